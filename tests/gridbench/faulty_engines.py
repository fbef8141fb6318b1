"""Engines that do one thing wrong each, as third parties' engines may."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from multiprocessing import resource_tracker
from typing import Any

import numpy as np
from gridbench_thread_pool import ThreadPoolEngine

from gridbench.engines.base import Outcome, Task
from gridbench.errors import InputError


class Start(ThreadPoolEngine):
    """Cannot start."""

    name = "start"

    def start(self, workers: int) -> None:
        del workers
        raise RuntimeError("the licence\nhas expired")


class Patient(ThreadPoolEngine):
    """Says how long it would wait for its workers."""

    name = "patient"

    def start(self, workers: int) -> None:
        raise RuntimeError(f"{workers} workers have {self.patience:g} s")


class Dead(ThreadPoolEngine):
    """Takes the process of its client with it."""

    name = "dead"

    def start(self, workers: int) -> None:
        del workers
        os.kill(os.getpid(), signal.SIGKILL)


class Hang(ThreadPoolEngine):
    """Never comes back from starting."""

    name = "hang"

    def start(self, workers: int) -> None:
        super().start(workers)
        threading.Event().wait()


class Idle(ThreadPoolEngine):
    """Takes tasks and does nothing."""

    name = "idle"

    def submit(self, task: Task, shared: Any) -> None:
        pass


class Stray(ThreadPoolEngine):
    """Leaves a process behind that nobody is the parent of."""

    name = "stray"

    def start(self, workers: int) -> None:
        subprocess.run(["sh", "-c", "sleep 1000 & echo $! >stray.pid"], check=True)
        super().start(workers)


class Tracker(ThreadPoolEngine):
    """Has Python start a helper process, as shared memory and semaphores do."""

    name = "tracker"

    def start(self, workers: int) -> None:
        resource_tracker.ensure_running()
        super().start(workers)


class Refuse(ThreadPoolEngine):
    """Does not take so many workers."""

    name = "refuse"

    def start(self, workers: int) -> None:
        raise InputError(f"{workers} workers are too many", remedy="take one")


class Submit(ThreadPoolEngine):
    """Breaks down after five tasks."""

    name = "submit"

    def submit(self, task: Task, shared: Any) -> None:
        if task.tid == 6:
            threading.Event().wait(0.5)  # so that the five come back
            raise ConnectionError("the manager is gone")
        super().submit(task, shared)


class Collect(ThreadPoolEngine):
    """Breaks down while results are awaited."""

    name = "collect"

    def next_outcome(self) -> Outcome:
        outcome = super().next_outcome()
        if outcome.tid == 3:
            raise ConnectionError("the manager is gone")
        return outcome


class Twice(ThreadPoolEngine):
    """Returns a task twice."""

    name = "twice"

    def next_outcome(self) -> Outcome:
        outcome = super().next_outcome()
        self.ended.put(outcome)
        return outcome


class Short(ThreadPoolEngine):
    """Loses the last byte of the output."""

    name = "short"

    def next_outcome(self) -> Outcome:
        outcome = super().next_outcome()
        return replace(outcome, output=None if outcome.output is None else outcome.output[:-1])


class Flip(ThreadPoolEngine):
    """Alters one byte of what each task is given, or of what the third returns."""

    name = "flip"

    def share(self, data: Any) -> Any:
        return flipped(data) if data.size else data

    def next_outcome(self) -> Outcome:
        outcome = super().next_outcome()
        if outcome.tid == 3 and outcome.output is not None:
            return replace(outcome, output=flipped(outcome.output))
        return outcome


class Task3(ThreadPoolEngine):
    """Fails every third task."""

    name = "task3"

    def next_outcome(self) -> Outcome:
        outcome = super().next_outcome()
        if outcome.tid % 3 == 0:
            return Outcome(tid=outcome.tid, error="OSError: out of luck\nand of lines")
        return outcome


class Close(ThreadPoolEngine):
    """Fails when it is closed."""

    name = "close"

    def close(self) -> None:
        super().close()
        raise RuntimeError("the door is stuck")


class Hoard(ThreadPoolEngine):
    """Says how much it needs."""

    name = "hoard"
    uses_shared_memory = True

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        del workers, warm
        return 10**9


class Lean(ThreadPoolEngine):
    """Cannot bear libraries for tables and plots, like a pool that forks from this process."""

    name = "lean"

    def start(self, workers: int) -> None:
        for name in ("pyarrow", "plotly"):
            if name in sys.modules:
                raise RuntimeError(f"{name} is loaded")
        super().start(workers)


class Ahead(ThreadPoolEngine):
    """Notes how many tasks it was given at one time."""

    name = "ahead"
    most = 0
    held = 0

    def submit(self, task: Task, shared: Any) -> None:
        self.held += 1
        self.most = max(self.most, self.held)
        super().submit(task, shared)

    def next_outcome(self) -> Outcome:
        outcome = super().next_outcome()
        self.held -= 1
        return outcome


def flipped(data: Any) -> Any:
    """A copy with the last byte changed."""
    copy = np.array(data)
    copy[-1] ^= 1
    return copy
