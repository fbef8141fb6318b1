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

import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gridbench.atomic_write import replace_file
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.workload.body import SLEEP, SPIN
from gridbench.workload.numbers import LARGEST_KB, LONGEST_TIME, MOST_CORES, MOST_TASKS, parse_real
from gridbench.xml_setup import SetupReader

# ---- Task times

_LONGEST_LINE = 4096
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Seconds = npt.NDArray[np.float64]
_MAKE_ONE = "make one with `gridbench list-times`, or correct InputFile in the set-up file"


def read_task_times(path: Path, ntasks: int) -> Seconds:
    """The `ntasks` times of the list at `path`, in seconds, shape (ntasks,).

    A list with fewer or more times than tasks is refused: the set-up file and the list
    then do not belong together, and the figures would be of another workload.
    """
    times = np.empty(ntasks, dtype=np.float64)
    try:
        # A pipe or a device would block or never end; only regular files are opened.
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("is not a regular file", file=path, remedy=_MAKE_ONE)
        with path.open("rb") as file:
            count, last_line = _read_lines(file, path, times)
    except OSError as error:
        raise InputError(
            f"cannot read the list of task times: {error.strerror}", file=path, remedy=_MAKE_ONE
        ) from None
    if count < ntasks:
        raise InputError(
            f"the list ends after {count} times, but NTasks is {ntasks}",
            file=path,
            line=last_line,
            remedy=f"set NTasks to {count}, or make a longer list with `gridbench list-times`"
            if count
            else _MAKE_ONE,
        )
    return times


def draw_task_times(tasks: int, mean: float, stddev: float, seed: int) -> Seconds:
    """Times from a normal distribution that is truncated at 0, seconds, shape (tasks,).

    Truncation moves the mean up a little when `stddev` is not small against `mean`.
    """
    _refuse_bad_parameters(tasks, mean, stddev, seed)
    generator = np.random.default_rng(seed)
    times = generator.normal(mean, stddev, tasks)
    # A normal distribution with a mean of 0 or more has at least half of its mass above 0,
    # so that drawing the negative ones again comes to an end soon.
    while (negative := times < 0).any():
        times[negative] = generator.normal(mean, stddev, int(negative.sum()))
    return times


def write_task_times(
    path: Path, tasks: int, mean: float, stddev: float, seed: int, *, replace: bool
) -> Seconds:
    """Draw a list of task times and write it to `path`; InputError if it exists or cannot be."""
    times = draw_task_times(tasks, mean, stddev, seed)
    heading = (
        f"# {tasks} task times in seconds: normal distribution, mean {mean:g}, standard deviation\n"
        f"# {stddev:g}, truncated at 0; seed {seed}, NumPy {np.__version__}\n"
        f"# gridbench list-times --tasks {tasks} --mean {mean:g} --stddev {stddev:g}"
        f" --seed {seed}\n"
    )
    if path.exists() and not replace:
        raise InputError("exists already", file=path, remedy="take another name, or add --force")
    lines = "".join(f"{seconds:.6f}\n" for seconds in times)
    try:
        replace_file(path, heading + lines)
    except OSError as error:
        raise InputError(
            f"cannot write the list of task times: {error.strerror}",
            file=path,
            remedy="choose a folder that exists, can be written and has space",
        ) from None
    return times


def _read_lines(file: BinaryIO, path: Path, times: Seconds) -> tuple[int, int]:
    """Fill `times` from the file; how many were found, and the number of the last line."""
    count = number = 0
    while raw := file.readline(_LONGEST_LINE + 1):
        number += 1
        if len(raw) > _LONGEST_LINE:
            raise InputError(
                f"the line is longer than {_LONGEST_LINE} bytes",
                file=path,
                line=number,
                remedy="write one time in seconds on each line",
            )
        if number == 1:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
        text = raw.decode("utf-8", errors="replace").strip()
        if not text or text.startswith("#"):
            continue
        if count == len(times):
            raise InputError(
                f"the list continues after {count} times, but NTasks is {count}",
                file=path,
                line=number,
                remedy="set NTasks to the length of the list, or shorten the list",
            )
        try:
            times[count] = parse_real(text, 0.0, LONGEST_TIME)
        except ValueError as error:
            raise InputError(
                f"a task time {error}",
                file=path,
                line=number,
                remedy="write one time in seconds on each line; comments start with #",
            ) from None
        count += 1
    return count, max(number, 1)


def _refuse_bad_parameters(tasks: int, mean: float, stddev: float, seed: int) -> None:
    if not 1 <= tasks <= MOST_TASKS:
        raise InputError(f"--tasks must be from 1 to {MOST_TASKS:,}, not {tasks}")
    for name, value in (("--mean", mean), ("--stddev", stddev)):
        if not math.isfinite(value) or not 0 <= value <= LONGEST_TIME:
            raise InputError(
                f"{name} must be from 0 to {as_given(LONGEST_TIME, 'seconds')}, not"
                f" {as_given(value, '')}"
            )
    if mean + 6 * stddev > LONGEST_TIME:
        raise InputError(
            f"times of mean {as_given(mean)} and standard deviation {as_given(stddev)} can exceed"
            f" the {as_given(LONGEST_TIME, 'seconds')} that a task may take",
            remedy="take a smaller --mean or --stddev",
        )
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, not {seed}")


# ---- Workloads

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
