"""A workload ready to run: the set-up, the times scaled, and the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridbench.engines.base import Bytes, Task
from gridbench.workload.setup_file import Setup, read_setup
from gridbench.workload.task_times import Seconds, read_task_times

DATA_SEED = 20
"""Seed of the task data and the shared data, so that runs of one set-up carry the same bytes."""


@dataclass(frozen=True)
class Workload:
    """What one run does, on whichever engine. The arrays are read-only."""

    setup: Setup
    sleeps: Seconds
    """Seconds to sleep, scaled, shape (ntasks,)."""
    time_scale: float
    data: Bytes
    """Task data, shape (task_bytes,): one buffer passed with every task, to spare the memory of
    the client. Engines do not know that it is the same, and must move it each time."""
    shared: Bytes
    """Shared data, shape (shared_bytes,)."""

    def tasks(self, *, check: bool = False) -> Iterator[Task]:
        """The tasks in order, made as they are asked for; with `check`, those of the checksum
        pass, which do not sleep."""
        for tid, sleep in enumerate(self.sleeps, start=1):
            yield Task(
                tid=tid,
                sleep=0.0 if check else float(sleep),
                data=self.data,
                output_bytes=self.setup.write_bytes,
                check=check,
            )


def read_plan(path: Path, time_scale: float) -> tuple[Setup, Seconds]:
    """The set-up file at `path` and its task times times `time_scale`, in seconds."""
    setup = read_setup(path)
    return setup, read_task_times(setup.times_path, setup.ntasks) * time_scale


def make_workload(setup: Setup, sleeps: Seconds, time_scale: float) -> Workload:
    """The workload with its data, random bytes that no engine can compress."""
    generator = np.random.default_rng(DATA_SEED)
    return Workload(
        setup=setup,
        sleeps=sleeps,
        time_scale=time_scale,
        data=np.frombuffer(generator.bytes(setup.task_bytes), dtype=np.uint8),
        shared=np.frombuffer(generator.bytes(setup.shared_bytes), dtype=np.uint8),
    )
