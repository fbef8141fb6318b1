"""Handing tasks to an engine in one thread, and collecting outcomes in another.

Both stamp on CLOCK_MONOTONIC and do little else. Everything slow (files, display) is left
to the main thread, which takes the results from a queue.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from gridbench.engines.base import Engine, Outcome, Task
from gridbench.engines.functions import one_line

_GLANCE = 0.1  # seconds between looks at whether to stop, while waiting for room
_PORTION = 1000  # results taken at one time


class EngineFailure(Exception):
    """The engine as a whole failed, not a single task."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A task that came back. Stamps are seconds of CLOCK_MONOTONIC."""

    task: Task
    outcome: Outcome
    """Without its output, whose memory is let go as soon as it was looked at."""
    output_bytes: int
    submit: float
    retrieve: float


class Exchange:
    """One pass of tasks through an engine.

    `begin` runs first, in the submitting thread, and returns the reference to the shared
    data. `inspect` looks at each successful outcome and returns what is wrong with it, or
    nothing. No more than `most_outstanding` tasks are in the engine's hands at one time.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        begin: Callable[[], Any],
        tasks: Iterable[Task],
        count: int,
        most_outstanding: int,
        inspect: Callable[[Task, Outcome], str],
    ) -> None:
        self.submitted = 0
        """Tasks handed over so far."""
        self.collected = 0
        """Tasks taken from the queue by `take` so far."""
        self._engine = engine
        self._begin = begin
        self._tasks = tasks
        self._count = count
        self._inspect = inspect
        self._stop = threading.Event()
        self._release = threading.Event()
        self._over = threading.Event()
        """Nothing more comes."""
        self._more = False
        """More lies there than the last `take` took."""
        self._room = threading.Semaphore(most_outstanding)
        self._pending: dict[int, tuple[Task, float]] = {}
        self._results: queue.SimpleQueue[Returned | EngineFailure] = queue.SimpleQueue()
        self._submitter = threading.Thread(target=self._submit, name="submit", daemon=True)
        self._collector = threading.Thread(target=self._collect, name="collect", daemon=True)

    def start(self) -> None:
        """Begin, and hand over tasks from now on."""
        self._submitter.start()

    @property
    def finished(self) -> bool:
        """All tasks have been taken."""
        return self.collected == self._count

    def take(self, wait: float) -> list[Returned]:
        """What has come back since the last time, `wait` seconds from now or when all is there.

        It does not wake with each result: that would cost the other threads time that is measured.
        Raises EngineFailure when all that came before has been taken.
        """
        if not self._more:
            self._over.wait(wait)
        taken: list[Returned] = []
        with suppress(queue.Empty):
            while len(taken) < _PORTION:
                item = self._results.get_nowait()
                if isinstance(item, EngineFailure):
                    if not taken:
                        raise item
                    self._results.put(item)
                    break
                taken.append(item)
        self._more = len(taken) == _PORTION
        self.collected += len(taken)
        return taken

    def stop(self) -> None:
        """Hand over no more tasks; results that still come are dropped. Does not wait."""
        self._stop.set()

    def join(self, patience: float) -> None:
        """Wait for both threads, `patience` seconds each. An engine may block one forever.

        Not before the engine was closed: see `_submit`.
        """
        self._release.set()
        for thread in (self._submitter, self._collector):
            if thread.is_alive():
                thread.join(patience)

    # In the threads.

    def _submit(self) -> None:
        try:
            shared = self._begin()
            if self._stop.is_set():
                return
            # Only now: before it was started, an engine has no outcomes to wait for.
            self._collector.start()
            for task in self._tasks:
                while not self._room.acquire(timeout=_GLANCE):
                    if self._stop.is_set():
                        return
                if self._stop.is_set():
                    return
                self._pending[task.tid] = (task, time.monotonic())
                self._engine.submit(task, shared)
                self.submitted += 1
        except Exception as error:  # an engine is foreign code: it can fail in any way
            self._fail(error)
        finally:
            # An engine may have asked Linux to end its processes with their parent, and to Linux
            # that is the thread which has started them.
            self._release.wait()

    def _collect(self) -> None:
        try:
            for _ in range(self._count):
                outcome = self._engine.next_outcome()
                retrieve = time.monotonic()
                if self._stop.is_set():
                    return
                self._room.release()
                self._results.put(self._returned(outcome, retrieve))
            self._over.set()
        except Exception as error:  # see above
            self._fail(error)

    def _returned(self, outcome: Outcome, retrieve: float) -> Returned:
        if outcome.tid not in self._pending:
            raise EngineFailure(
                f"it returned task {outcome.tid}, which it was not given or has returned before"
            )
        task, submit = self._pending.pop(outcome.tid)
        wrong = "" if outcome.error else self._inspect(task, outcome)
        output_bytes = 0 if outcome.output is None else outcome.output.nbytes
        return Returned(
            task=task,
            outcome=replace(outcome, output=None, error=outcome.error or wrong),
            output_bytes=output_bytes,
            submit=submit,
            retrieve=retrieve,
        )

    def _fail(self, error: Exception) -> None:
        failure = error if isinstance(error, EngineFailure) else EngineFailure(one_line(error))
        failure.__cause__ = error if failure is not error else None
        if not self._stop.is_set():
            self._results.put(failure)
            self._over.set()
