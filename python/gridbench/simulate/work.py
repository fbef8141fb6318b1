"""What is simulated: a workload on so many cores, as it is asked for on the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.quantities import LARGEST_KB, LONGEST_TIME
from gridbench.workload.task_times import draw_task_times

MOST_CORES = 1_000_000
MOST_TASKS = 10_000_000
_LARGEST = LARGEST_KB * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A workload and the number of cores. Raises InputError for what makes no sense."""

    cores: int
    tasks: int
    sleep: float
    """Mean time of a task, seconds."""
    stddev: float = 0.0
    """Standard deviation of these times, seconds."""
    bytes_in: float = 0.0
    """Data of each task."""
    bytes_shared: float = 0.0
    bytes_out: float = 0.0
    seed: int = 1
    """Of the task times: the same seed gives the same times."""

    def __post_init__(self) -> None:
        for name, count, most in (
            ("--cores", self.cores, MOST_CORES),
            ("--tasks", self.tasks, MOST_TASKS),
        ):
            if not 1 <= count <= most:
                raise InputError(f"{name} must be from 1 to {most:,}, not {count:,}")
        for name, seconds in (("--sleep", self.sleep), ("--stddev", self.stddev)):
            if not 0 <= seconds <= LONGEST_TIME:
                raise InputError(
                    f"{name} must be from 0 to {as_given(LONGEST_TIME, 'seconds')}, not"
                    f" {as_given(seconds, '')}"
                )
        for name, size in (
            ("--input-per-task", self.bytes_in),
            ("--shared", self.bytes_shared),
            ("--output-per-task", self.bytes_out),
        ):
            if not 0 <= size <= _LARGEST:
                raise InputError(
                    f"{name} must be from 0 bytes to a terabyte, not {as_given(size, '')}"
                )

    def raised(self) -> float:
        """Seconds by which truncating the distribution of the times at 0 moves their mean up."""
        if not self.stddev:
            return 0.0
        edge = self.sleep / self.stddev
        density = math.exp(-(edge**2) / 2) / math.sqrt(2 * math.pi)
        above = (1 + math.erf(edge / math.sqrt(2))) / 2
        return self.stddev * density / above

    def times(self) -> Floats:
        """Seconds of each task, normally distributed and truncated at 0, shape (tasks,)."""
        return draw_task_times(self.tasks, self.sleep, self.stddev, self.seed)
