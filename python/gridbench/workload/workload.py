"""A workload: the set-up, and the times scaled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gridbench.workload.body import SLEEP
from gridbench.workload.setup_file import Setup, read_setup
from gridbench.workload.task_times import Seconds, read_task_times


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
    sleeps = read_task_times(setup.times_path, setup.ntasks) * time_scale
    return Workload(setup, sleeps, time_scale, body)
