"""A workload: what tasks there are, from a set-up file or the command line, and what they do.

The set-up file is that of the compute-grid benchmark, in XML:

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

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.workload.body import SLEEP, SPIN
from gridbench.workload.numbers import LARGEST_KB, MOST_CORES, MOST_TASKS
from gridbench.workload.task_times import Seconds, read_task_times
from gridbench.xml_setup import SetupReader

ROOT = "BenchmarkSetup"
TAGS = ("NTasks", "NNodes", "InputFile", "TaskDataSize", "SharedDataSize", "WriteDataSize")
_LONGEST_NAME = 1000
_WHOLE = "write a whole number such as 100"
_KILOBYTES = "write the size in KB; 1 MB is 1024, no data is 0"
BYTES_PER_KB = 1024


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of tasks."""

    body: str
    """See `gridbench.workload.body`; empty for logs, which do not tell."""
    processors: int | None = None
    """That all tasks share, because they compute on one machine; None: that is not known, or there
    is no need to know, as the time of a user's function is what it took."""

    @property
    def told(self) -> str:
        """What follows the word "tasks"; empty if it is not known."""
        if self.body in ("", SLEEP):
            return "that sleep" if self.body else ""
        if self.body != SPIN:
            return f"that call {self.body.rpartition('/')[2]}"
        if self.processors is None:
            return "that compute"
        return f"that compute on {self.processors} processor{'s' if self.processors != 1 else ''}"

    @property
    def own_time(self) -> str:
        """The name of what a task does by itself, between reading its data and making its output:
        sleep, the user's function, or just computing."""
        if self.body == SLEEP:
            return "sleep"
        return "computing" if self.body in ("", SPIN) else "function"


def is_trace(record: Mapping[str, Any]) -> bool:
    """Whether a program has left this record of a run by `GRIDRPC_TRACE`, which names no body."""
    return record.get("task") == ""


def kind_of(record: Mapping[str, Any]) -> Kind:
    """The kind of the tasks of a run with this record, be it that of a log."""
    body = str(record.get("task", SLEEP if "machine" in record else ""))
    machine = record.get("machine")
    if body != SPIN or record.get("grid") or not isinstance(machine, Mapping):
        return Kind(body)
    # What its control group or affinity allows it is what its workers inherit.
    processors = machine.get("cores_usable")
    return Kind(body, processors if isinstance(processors, int) and processors > 0 else None)


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


@dataclass(frozen=True)
class Workload:
    """What one run does, on whichever engine."""

    setup: Setup
    sleeps: Seconds
    """Seconds to sleep, scaled, shape (ntasks,)."""
    time_scale: float
    body: str = SLEEP
    """What tasks do for that time: see `gridbench.workload.body`."""


def read_workload(path: Path, time_scale: float, body: str = SLEEP) -> Workload:
    """The set-up file at `path` and its task times times `time_scale`, in seconds."""
    setup = read_setup(path)
    assert setup.times_path is not None, "it was read from a file"
    sleeps = read_task_times(setup.times_path, setup.ntasks) * time_scale
    return Workload(setup, sleeps, time_scale, body)
