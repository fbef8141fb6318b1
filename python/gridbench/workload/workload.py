"""A workload: the set-up, and the times scaled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.workload.body import SLEEP
from gridbench.workload.setup_file import BYTES_PER_KB, MOST_TASKS, Setup, read_setup
from gridbench.workload.task_times import Seconds, read_task_times

TASKS_PER_CORE = 100


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


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks that are all alike, as the command line gives them."""

    count: int | None = None
    """None: so many for each worker that runs are short, but not all overhead."""
    seconds: float = 0.01
    bytes_in: int = 0
    bytes_shared: int = 0
    bytes_out: int = 0

    def workload(self, cores: int, time_scale: float, body: str = SLEEP) -> Workload:
        """Such tasks on so many workers. InputError if there would be too many."""
        count = self.count or TASKS_PER_CORE * cores
        if count > MOST_TASKS:
            raise InputError(
                f"{counted(count, 'task')} for {counted(cores, 'core')} are too many",
                remedy=f"give --tasks N, up to {MOST_TASKS:,}",
            )
        setup = Setup(
            path=None,
            ntasks=count,
            nnodes=cores,
            input_file="",
            task_kb=self.bytes_in / BYTES_PER_KB,
            shared_kb=self.bytes_shared / BYTES_PER_KB,
            write_kb=self.bytes_out / BYTES_PER_KB,
        )
        sleeps = np.full(count, self.seconds * time_scale)
        return Workload(setup, sleeps, time_scale, body)
