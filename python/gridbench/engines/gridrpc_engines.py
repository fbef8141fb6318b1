"""gridrpc on this machine, with native and with Python workers, through its public Python API."""

from __future__ import annotations

import abc
import queue
import socket
from typing import Any, ClassVar

import numpy as np

import gridrpc
from gridbench.engines.base import Bytes, Description, Engine, Outcome, Task
from gridbench.engines.python_tasks import failure_of, outcome_of, perform


class _GridEngine(Engine):
    """What both have in common: one grid, results in the order in which they come."""

    uses_shared_memory: ClassVar[bool] = False  # it passes memory by descriptor, not by /dev/shm

    def __init__(self) -> None:
        self._grid: gridrpc.Grid | None = None
        self._ended: queue.SimpleQueue[tuple[Task, gridrpc.Call[Any]]] = queue.SimpleQueue()
        self._host = socket.gethostname()

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """Shared data is present once on a machine."""
        del workers, warm
        return 1

    def describe(self) -> Description:
        """The configuration is the resolved one of the grid."""
        config = {} if self._grid is None else _settings(self._grid.config)
        return Description(name=self.name, version=gridrpc.__version__, configuration=config)

    def start(self, workers: int) -> None:
        """Opening a grid asks for its workers and does not wait for them."""
        self._grid = self._open(workers)

    def wait_ready(self) -> None:
        """Return when all workers have answered."""
        self._running().wait_until_ready()

    def share(self, data: Bytes) -> Any:
        """Shared data of the grid; none if there is nothing to share."""
        return self._running().share(data) if data.size else data

    def submit(self, task: Task, shared: Any) -> None:
        """The grid waits when too many calls, or bytes of their data, are queued."""
        call = self._call(self._running(), task, shared)
        call.add_done_callback(lambda call: self._ended.put((task, call)))

    def next_outcome(self) -> Outcome:
        """The next task in order of completion."""
        task, call = self._ended.get()
        error = call.exception()
        if error is not None:
            return failure_of(task.tid, error)
        return self._outcome(task, call)

    def close(self) -> None:
        """End the workers; tasks that still run are given up."""
        if self._grid is not None:
            self._grid.close()

    def _running(self) -> gridrpc.Grid:
        if self._grid is None:
            raise RuntimeError("the engine has not been started")
        return self._grid

    @abc.abstractmethod
    def _open(self, workers: int) -> gridrpc.Grid:
        """The grid."""

    @abc.abstractmethod
    def _call(self, grid: gridrpc.Grid, task: Task, shared: Any) -> gridrpc.Call[Any]:
        """Submit a task."""

    @abc.abstractmethod
    def _outcome(self, task: Task, call: gridrpc.Call[Any]) -> Outcome:
        """What came of a task that ended well."""


class PythonEngine(_GridEngine):
    """gridrpc with Python workers, forked from a prepared process."""

    name: ClassVar[str] = "gridrpc-python"

    def _open(self, workers: int) -> gridrpc.Grid:
        # What the tasks need is imported once, before the workers are forked.
        return gridrpc.Grid(workers, preload=("gridbench.engines.python_tasks",))

    def _call(self, grid: gridrpc.Grid, task: Task, shared: Any) -> gridrpc.Call[Any]:
        return grid.submit(perform, task.sleep, task.data, shared, task.output_bytes, task.check)

    def _outcome(self, task: Task, call: gridrpc.Call[Any]) -> Outcome:
        return outcome_of(task.tid, call.result(), queued=call.profile.sent)


class NativeEngine(_GridEngine):
    """gridrpc with native workers, which run the task as a built-in function."""

    name: ClassVar[str] = "gridrpc-native"

    def _open(self, workers: int) -> gridrpc.Grid:
        return gridrpc.Grid(workers, worker="native")

    def _call(self, grid: gridrpc.Grid, task: Task, shared: Any) -> gridrpc.Call[Any]:
        if task.check:
            return grid.submit("builtin/check", task.data, shared, task.output_bytes)
        return grid.submit("builtin/task", task.sleep, task.data, shared, task.output_bytes)

    def _outcome(self, task: Task, call: gridrpc.Call[Any]) -> Outcome:
        profile = call.profile
        if task.check:
            data, shared, output = call.result()
            digests = np.array([data, shared], dtype="<u4").view(np.uint8)
            calc_in, calc_out, slept, pid = profile.calc_in, profile.calc_out, 0.0, profile.pid
            returned = np.concatenate([digests, np.frombuffer(output, np.uint8)])
        else:
            output, calc_in, calc_out, slept, pid = call.result()
            returned = np.frombuffer(output, np.uint8)
        return Outcome(
            tid=task.tid,
            calc_in=calc_in,
            calc_out=calc_out,
            slept=slept,
            queued=profile.sent,
            output=returned,
            worker=str(pid),
            host=profile.host or self._host,
        )


def _settings(config: gridrpc.Config) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__slots__}
