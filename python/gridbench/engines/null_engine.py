"""An engine that does nothing: each task has ended when it is handed over.

What a run on it takes is the benchmark's own cost, which every other run has as well. It sleeps for
no task, has no workers, and keeps no data.
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
    """Nothing: a run on it takes what the benchmark itself does."""

    name: ClassVar[str] = "null"
    bodies: ClassVar[frozenset[str] | None] = None  # it does none of them

    def __init__(self) -> None:
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """None outside of the client."""
        del workers, warm
        return 0

    def describe(self) -> Description:
        """It has the version of the package that it comes with."""
        return Description(self.name, gridrpc.__version__)

    def start(self, workers: int) -> None:
        """There are no workers."""

    def wait_ready(self) -> None:
        """There is nothing to wait for."""

    def share(self, data: Bytes) -> Any:
        """The data, where it is."""
        return data

    def submit(self, task: Task, shared: Any) -> None:
        """It has ended."""
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
        """In the order in which they were handed over."""
        return self._outcomes.get()

    def close(self) -> None:
        """There is nothing to end."""


def _empty(size: int) -> Bytes:
    import numpy as np

    return np.empty(size, dtype=np.uint8)
