"""The process pool of Python's standard library.

Used as its manual recommends: a forked `ProcessPoolExecutor` with `max_workers` and an initializer
for shared data. The pool starts all workers at the first submission. In a cold run they inherit the
initializer's arguments, so shared data costs nothing to send. A running pool (warm start) cannot
reach every worker, so shared data is an argument of each task.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from typing import Any, ClassVar

from gridbench.engines.base import Description
from gridbench.engines.functions import ExecutorEngine

_PATIENCE = 5.0  # seconds for a worker to terminate before it is killed


class ProcessPoolEngine(ExecutorEngine):
    """concurrent.futures.ProcessPoolExecutor with forked workers."""

    name: ClassVar[str] = "process-pool"
    own_process: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._inherited: list[Any] = []
        self._shared_by = "not used yet"
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()
        self._closed = threading.Event()

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """Inherited by fork in a cold run, else one copy per worker."""
        return workers if warm else 0

    def describe(self) -> Description:
        """The version is that of Python."""
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
        """Store the number: the pool starts its workers at the first call."""
        self._workers = workers

    def put(self, value: Any) -> Any:
        """Pass the data to the initializer, or with each call if the workers run already."""
        if self._pool is None:
            self._shared_by = "inherited by the workers through the initializer"
            self._inherited.append(value)
            return _Inherited(len(self._inherited) - 1)
        self._shared_by = "argument of each task"
        return value

    def close(self) -> None:
        """End the workers, and abandon running tasks."""
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

    def _running(self) -> ProcessPoolExecutor:
        if self._closed.is_set():
            raise RuntimeError("the pool is closed")
        if self._pool is None:
            self._others = set(multiprocessing.active_children())
            self._pool = ProcessPoolExecutor(
                max_workers=self._workers,
                mp_context=multiprocessing.get_context("fork"),
                initializer=_prepare_worker,
                initargs=(self._inherited,),
            )
        return self._pool


class _Inherited:
    """Reference to data that the workers have inherited; unpickles to the data."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return _find_inherited, (self._number,)


# Runs in the workers.

_inherited: list[Any] = []


def _prepare_worker(inherited: list[Any]) -> None:
    """The pool's initializer."""
    global _inherited
    _inherited = inherited
    # Ctrl-C reaches all processes of the terminal; the client decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Workers would wait for tasks forever after the client was killed.
    threading.Thread(target=_end_with_client, daemon=True).start()


def _end_with_client() -> None:
    client = multiprocessing.parent_process()
    if client is not None:
        client.join()
        os._exit(1)


def _find_inherited(number: int) -> Any:
    return _inherited[number]
