"""An engine that does nothing: each task ends when it is submitted.

A run on it takes the benchmark's own overhead, which is part of every run. It has no workers, does
not sleep, and keeps no data.
"""

from __future__ import annotations

import os
import platform
import queue
import time
from typing import Any, ClassVar

import gridrpc
from gridbench.engines.base import Bytes, Description, Engine, Outcome, Task
from gridbench.workload.task import check_task

_HERE = platform.node()


class NullEngine(Engine):
    """Nothing: a run on it measures the benchmark's own overhead."""

    name: ClassVar[str] = "null"
    bodies: ClassVar[frozenset[str] | None] = None

    def __init__(self) -> None:
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """No copy outside the client."""
        del workers, warm
        return 0

    def describe(self) -> Description:
        """The version is that of the package."""
        return Description(self.name, gridrpc.__version__)

    def start(self, workers: int) -> None:
        """Do nothing: there are no workers."""

    def wait_ready(self) -> None:
        """Return at once."""

    def share(self, data: Bytes) -> Any:
        """The data itself."""
        return data

    def submit(self, task: Task, shared: Any) -> None:
        """End the task."""
        now = time.monotonic()
        if task.check:
            output = check_task(task.data, shared, task.output_bytes).output
        else:
            output = task.data[:0] if not task.output_bytes else _empty(task.output_bytes)
        self._outcomes.put(
            Outcome(
                tid=task.tid,
                calc_in=now,
                calc_out=now,
                slept=0.0,
                output=output,
                worker=str(os.getpid()),
                host=_HERE,
                clock_error=0.0,
            )
        )

    def next_outcome(self) -> Outcome:
        """Outcomes in order of submission."""
        return self._outcomes.get()

    def close(self) -> None:
        """Do nothing."""


def _empty(size: int) -> Bytes:
    import numpy as np

    return np.empty(size, dtype=np.uint8)
