"""What the client of an engine does in one run. It travels to the process in which that happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gridbench.engines.base import Bytes, Task
from gridbench.workload.body import SLEEP

if TYPE_CHECKING:
    from gridbench.workload.task_times import Seconds

DATA_SEED = 20
"""Seed of the task data and the shared data, so that runs of one set-up carry the same bytes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A workload, and how it is to be run. Sizes are in bytes."""

    workers: int
    warm: bool
    """All workers have answered before t = 0; else starting them counts."""
    sleeps: Seconds
    """Seconds to sleep, scaled, shape (ntasks,)."""
    task_bytes: int
    shared_bytes: int
    output_bytes: int
    most_outstanding: int
    """At most so many tasks are in the engine's hands at one time."""
    start_timeout: float
    """Seconds that the engine may take to start."""
    body: str = SLEEP
    """What tasks do for their time: see `gridbench.workload.body`."""

    def make_data(self) -> tuple[Bytes, Bytes]:
        """The data of every task and the shared data: random bytes that no engine can compress.

        Read-only. One buffer is passed with every task, to spare the memory of the client.
        Engines do not know that it is the same, and must move it each time.
        """
        generator = np.random.default_rng(DATA_SEED)
        return (
            np.frombuffer(generator.bytes(self.task_bytes), dtype=np.uint8),
            np.frombuffer(generator.bytes(self.shared_bytes), dtype=np.uint8),
        )

    def tasks(self, data: Bytes, *, check: bool) -> Iterator[Task]:
        """The tasks in order, made as they are asked for; with `check`, those of the checksum
        pass, which do not sleep."""
        for tid, sleep in enumerate(self.sleeps, start=1):
            yield Task(
                tid=tid,
                sleep=0.0 if check else float(sleep),
                data=data,
                output_bytes=self.output_bytes,
                check=check,
                body=self.body,
            )
