"""The XML set-up file of the compute-grid benchmark.

    <BenchmarkSetup>
    <NTasks>         200              </NTasks>
    <NNodes>         100              </NNodes>
    <InputFile>      input.200.1.0.1  </InputFile>
    <TaskDataSize>   10               </TaskDataSize>
    <SharedDataSize> 1024             </SharedDataSize>
    <WriteDataSize>  10               </WriteDataSize>
    </BenchmarkSetup>

Sizes are real numbers of KB of 1024 bytes. Values may be padded with blanks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.quantities import LARGEST_KB, MOST_CORES
from gridbench.xml_setup import SetupReader

ROOT = "BenchmarkSetup"
TAGS = ("NTasks", "NNodes", "InputFile", "TaskDataSize", "SharedDataSize", "WriteDataSize")
MOST_TASKS = 10_000_000
_LONGEST_NAME = 1000
_WHOLE = "write a whole number such as 100"
_KILOBYTES = "write the size in KB; 1 MB is 1024, no data is 0"
BYTES_PER_KB = 1024


@dataclass(frozen=True, slots=True)
class Setup:
    """What a set-up file, or the command line, asks for."""

    path: Path | None
    """The set-up file itself; None: the command line says it all."""
    ntasks: int
    nnodes: int
    """Cores, one task at a time each."""
    input_file: str
    """The list of task times, as written in the file."""
    task_kb: float
    shared_kb: float
    write_kb: float

    @property
    def times_path(self) -> Path | None:
        """Where the list of task times lies: `input_file` seen from the set-up file's folder."""
        return None if self.path is None else self.path.parent / self.input_file

    @property
    def task_bytes(self) -> int:
        """Data passed to each task."""
        return round(self.task_kb * BYTES_PER_KB)

    @property
    def shared_bytes(self) -> int:
        """Data common to all tasks."""
        return round(self.shared_kb * BYTES_PER_KB)

    @property
    def write_bytes(self) -> int:
        """Data that each task returns."""
        return round(self.write_kb * BYTES_PER_KB)

    def to_dict(self) -> dict[str, Any]:
        """As stored in run.json, under the names of the set-up file."""
        return {
            "NTasks": self.ntasks,
            "NNodes": self.nnodes,
            "InputFile": self.input_file,
            "TaskDataSize": self.task_kb,
            "SharedDataSize": self.shared_kb,
            "WriteDataSize": self.write_kb,
        }


def read_setup(path: Path) -> Setup:
    """Read the set-up file at `path`; InputError names file, line and remedy."""
    found = SetupReader(path, root=ROOT, tags=TAGS, example="examples/compute/setup.xml")
    return Setup(
        path=path,
        ntasks=found.whole("NTasks", 1, MOST_TASKS, _WHOLE),
        nnodes=found.whole("NNodes", 1, MOST_CORES, _WHOLE),
        input_file=found.text(
            "InputFile",
            _LONGEST_NAME,
            "the name of a file",
            "write the path of the list of task times, on one line",
        ),
        task_kb=found.real("TaskDataSize", 0.0, LARGEST_KB, _KILOBYTES),
        shared_kb=found.real("SharedDataSize", 0.0, LARGEST_KB, _KILOBYTES),
        write_kb=found.real("WriteDataSize", 0.0, LARGEST_KB, _KILOBYTES),
    )
