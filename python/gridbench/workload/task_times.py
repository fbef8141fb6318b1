"""The list of task times: one time in seconds a line, `#` lines are comments.

The name of such a file (`input.200.1.0.1` for tasks, mean and standard deviation) is a
habit of the people who write them, and is never parsed.
"""

from __future__ import annotations

import math
import stat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from gridbench.atomic_write import replace_file
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.workload.numbers import LONGEST_TIME, MOST_TASKS, parse_real

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
                f"the list goes on after {count} times, but NTasks is {count}",
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
