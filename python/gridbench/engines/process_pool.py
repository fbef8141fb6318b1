"""The process pool of Python's standard library, the peer that everybody has.

Used as its manual recommends: one `ProcessPoolExecutor` with `max_workers`, started by
fork, and what is common to all tasks given to the workers by an initializer. The pool
starts all its workers at the first submission, so in a cold run that is when they start;
the initializer's arguments are then inherited, and shared data costs nothing to send.
Once the pool runs (warm start) it has no way to reach every worker, and shared data can
only go along as an argument of each task, as its users do.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import platform
import queue
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gridbench.engines.base import Bytes, Description, Engine, Outcome, Task
from gridbench.engines.python_tasks import failure_of, outcome_of, perform
from gridbench.workload.task import TaskResult

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

_PATIENCE = 5.0  # seconds for a worker to end when told to, before it is killed


class ProcessPoolEngine(Engine):
    """concurrent.futures.ProcessPoolExecutor with forked workers."""

    name: ClassVar[str] = "process-pool"

    def __init__(self) -> None:
        self._workers = 0
        self._shared: Bytes = np.empty(0, dtype=np.uint8)
        self._shared_by = "not used yet"
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()
        self._closed = threading.Event()
        self._ended: queue.SimpleQueue[tuple[int, Future[TaskResult]]] = queue.SimpleQueue()

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """Inherited by fork in a cold run, else one for each worker that has a task."""
        return workers if warm else 0

    def describe(self) -> Description:
        """The version is Python's, as the pool is part of it."""
        return Description(
            name=self.name,
            version=f"Python {platform.python_version()}",
            configuration={
                "max_workers": self._workers,
                "start_method": "fork",
                "shared_data": self._shared_by,
            },
        )

    def start(self, workers: int) -> None:
        """Note the wish: the pool itself starts its workers when it gets something to do."""
        self._workers = workers

    def wait_ready(self) -> None:
        """Return when each worker has met all others at a barrier."""
        pool = self._running_pool()
        # A worker that has taken one of these waits until the others are taken too, so
        # that no worker can take two, and each must answer.
        for meeting in [pool.submit(_meet) for _ in range(self._workers)]:
            meeting.result()

    def share(self, data: Bytes) -> Any:
        """Keep the data for the initializer, or for the tasks if the workers run already."""
        if self._pool is None:
            self._shared = data
            self._shared_by = "inherited by the workers through the initializer"
            return None
        self._shared_by = "argument of each task"
        return data

    def submit(self, task: Task, shared: Any) -> None:
        """Queue the task; the pool's own queue has no bound."""
        try:
            future = self._running_pool().submit(
                _perform, task.sleep, task.data, shared, task.output_bytes, task.check
            )
        except RuntimeError as error:  # the pool is broken, or was shut down
            future = Future()
            future.set_exception(error)
        future.add_done_callback(lambda future: self._ended.put((task.tid, future)))

    def next_outcome(self) -> Outcome:
        """The next task in order of completion; a task whose worker died has an error."""
        tid, future = self._ended.get()
        if future.cancelled():
            return Outcome(tid=tid, error="cancelled: the pool was closed")
        error = future.exception()
        return failure_of(tid, error) if error else outcome_of(tid, future.result())

    def close(self) -> None:
        """End the workers, without waiting for tasks that still run."""
        pool, self._pool = self._pool, None
        self._closed.set()
        if pool is None:
            return
        workers = [
            child for child in multiprocessing.active_children() if child not in self._others
        ]
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join(_PATIENCE)
            if worker.is_alive():
                worker.kill()
                worker.join(_PATIENCE)

    def _running_pool(self) -> ProcessPoolExecutor:
        if self._closed.is_set():
            raise RuntimeError("the pool is closed")
        if self._pool is None:
            context = multiprocessing.get_context("fork")
            self._others = set(multiprocessing.active_children())
            self._pool = ProcessPoolExecutor(
                max_workers=self._workers,
                mp_context=context,
                initializer=_prepare_worker,
                initargs=(context.Barrier(self._workers), self._shared),
            )
        return self._pool


# What stands below runs in the workers.

_barrier: Barrier | None = None
_shared: Bytes | None = None


def _prepare_worker(barrier: Barrier, shared: Bytes) -> None:
    """The pool's initializer."""
    global _barrier, _shared
    _barrier, _shared = barrier, shared
    # Ctrl-C reaches all processes of the terminal; what it means is decided by the client.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # A worker of the pool would wait for tasks for ever if the client was killed.
    threading.Thread(target=_end_with_client, daemon=True).start()


def _end_with_client() -> None:
    client = multiprocessing.parent_process()
    if client is not None:
        client.join()
        os._exit(1)


def _meet() -> None:
    assert _barrier is not None
    with contextlib.suppress(threading.BrokenBarrierError):
        _barrier.wait()


def _perform(sleep: float, data: Bytes, shared: Bytes | None, size: int, check: bool) -> TaskResult:
    return perform(sleep, data, _shared if shared is None else shared, size, check)
