"""gridrpc with native and Python workers, here or on servers, through its public Python API."""

from __future__ import annotations

import abc
import math
import os
import platform
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import gridrpc
from gridbench.engines.base import Cannot, Description
from gridbench.engines.functions import Chunk, FunctionEngine, perform
from gridbench.engines.servers import Servers
from gridbench.native import module
from gridbench.process.inside import make_room_for_files
from gridbench.workload import calls
from gridbench.workload.body import SLEEP, SPIN
from gridbench.workload.task import TaskResult

_HERE = platform.node()
_FILES, _FILES_PER_WORKER = 64, 3  # descriptors that a client has open at most
_FIRST = 0.05  # seconds of the first task of each worker


class GridrpcEngine(FunctionEngine):
    """A driver with one grid."""

    uses_shared_memory: ClassVar[bool] = False  # it passes memory by descriptor, not by /dev/shm

    takes_namespaces: ClassVar[bool] = True
    takes_servers: ClassVar[bool] = True

    @property
    def elsewhere(self) -> bool:
        """Whether workers are on hosts, with clocks of their own."""
        return self._servers is not None or bool(self._namespaces)

    def __init__(self) -> None:
        super().__init__()
        self._grid: gridrpc.Grid | None = None
        self._namespaces: tuple[str, ...] = ()
        self._servers: Servers | None = None

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        """Each namespace is a host, with an agent and its workers."""
        self._namespaces = tuple(namespaces)

    def use_servers(self, servers: Servers) -> None:
        """Use the workers of these servers."""
        self._servers = servers

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """One copy of shared data on this machine, or on each host."""
        del warm
        hosts = len(self._servers.hosts) if self._servers else len(self._namespaces)
        return min(workers, hosts) or 1

    def describe(self) -> Description:
        """The configuration is the resolved one of the grid."""
        config = {} if self._grid is None else _settings(self._grid.config)
        return Description(name=self.name, version=gridrpc.__version__, configuration=config)

    def prepare(self, workers: int) -> None:
        """Make room for open files before there are threads: a process with threads would wait for
        that when the grid opens. Load the class of profiles, which other programs do not need."""
        make_room_for_files(_FILES + _FILES_PER_WORKER * workers)
        _ = gridrpc.Profile

    def start(self, workers: int) -> None:
        """Open the grid, which requests its workers without waiting for them."""
        self._workers = workers
        self._grid = self._open(workers)

    def wait_ready(self) -> None:
        """Wait until all workers have answered and run a short task.

        So a ready worker has loaded what its tasks need, as with other engines. The tasks are sent
        while all workers are idle, so that each gets one.
        """
        self._running().wait_until_ready()
        self.gather([self.call(calls.stand, _FIRST) for _ in range(self._workers)])

    def put(self, value: Any) -> Any:
        """Shared data of the grid."""
        return self._running().share(value)

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], chunk: Chunk
    ) -> Iterable[Any]:
        """The grid's `map`."""
        called = self._callable(function)
        return self._running().map(called, items, chunk=chunk)

    def queued(self, future: Any) -> float:
        """When the call went to a worker."""
        return float(future.profile.sent)

    def task_result(self, future: Any) -> TaskResult:
        """The result, with timestamps on this host's clock and the grid's name of the host."""
        result: TaskResult = self.result(future)
        if not self.elsewhere:
            return result._replace(host=_HERE, clock_error=0.0)
        return _translated(result, future.profile)

    def moved(self, future: Any) -> int:
        """From the profile of the call, without data that the worker reads in place."""
        return int(future.profile.bytes_in)

    def close(self) -> None:
        """End the workers, and abandon running tasks."""
        if self._grid is not None:
            self._grid.close()

    def _running(self) -> gridrpc.Grid:
        if self._grid is None:
            raise RuntimeError("the engine has not been started")
        return self._grid

    def _place(self, workers: int) -> dict[str, Any]:
        """Settings of the grid that say where its workers are."""
        if self._servers is not None:
            return self._servers.arguments()
        if not self._namespaces:
            return {"workers": workers}
        # Outputs of tasks are one repeated byte, which compresses to nothing.
        return {"servers": servers_in(self._namespaces, workers, compression="none")}

    @abc.abstractmethod
    def _open(self, workers: int) -> gridrpc.Grid:
        """The grid."""

    @abc.abstractmethod
    def _callable(self, function: Callable[..., Any]) -> str | Callable[..., Any]:
        """What the grid calls for a Python function."""


class PythonEngine(GridrpcEngine):
    """gridrpc with Python workers, forked from a prepared process."""

    name: ClassVar[str] = "gridrpc-python"

    def _open(self, workers: int) -> gridrpc.Grid:
        # Imported once, before the workers are forked.
        return gridrpc.Grid(preload=self.modules, **self._place(workers))

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The grid's `submit`, which blocks when too many calls or bytes are queued."""
        return self._running().submit(function, *args)

    def _callable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


class NativeEngine(GridrpcEngine):
    """gridrpc with native workers, which run the task as a function of a compiled module."""

    name: ClassVar[str] = "gridrpc-native"

    bodies: ClassVar[frozenset[str] | None] = frozenset({SLEEP, SPIN})

    functions: ClassVar[Mapping[Callable[..., Any], str]] = {
        calls.null: "null",
        calls.take: "take",
        calls.stand: "sleep",
        time.sleep: "sleep",
    }
    """The module's function for each Python function, without those that report place and time."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[str, Any] = {}

    def _open(self, workers: int) -> gridrpc.Grid:
        # Loaded before the workers are forked, like imports of Python workers.
        tasks = [module()]
        return gridrpc.Grid(worker="native", modules=tasks, preload=tasks, **self._place(workers))

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Call the module's function; raises Cannot if there is none."""
        if function is not perform:
            return self._callable(function).submit(*args)
        sleep, data, shared, output_bytes, check, *doing = args
        if check:
            return self._function("check").submit(data, shared, output_size=output_bytes)
        name = "compute" if doing == [SPIN] else "task"
        return self._function(name).submit(sleep, data, shared, output_size=output_bytes)

    def result(self, future: Any) -> Any:
        """The result as the Python function would return it, if the module's function can."""
        values = future.result()
        match future.function_name.rpartition("/")[2]:
            case "check":
                return _checked(future.profile, values)
            case "task" | "compute":
                calc_in, calc_out, slept, begun = values.times.tolist()
                pid = int(values.process[0])
                return TaskResult(calc_in, calc_out, slept, pid, "", values.output, begun)
            case "sleep":
                return float(values[0])
        return values

    def _callable(self, function: Callable[..., Any]) -> Any:
        if function not in self.functions:
            raise Cannot(f"its native workers have no function like `{function.__name__}`")
        return self._function(self.functions[function])

    def _function(self, name: str) -> Any:
        if name not in self._found:
            self._found[name] = self._running().function(f"gridbench_tasks/{name}")
        return self._found[name]


def servers_in(
    namespaces: Iterable[str | os.PathLike[str]], workers: int, **keys: object
) -> list[str]:
    """Servers in these network namespaces (files), worker i in namespace i modulo their number.
    `keys`: further keys of the servers.

    Nothing is encrypted, so that a link carries only what is sent.
    """
    places = [os.fspath(namespace) for namespace in namespaces]
    servers = []
    for number, place in enumerate(places):
        own = len(range(number, workers, len(places)))
        values = {
            "workers": own,
            "encryption": "none",
            "output": "plain",
            "prefix": f"nsenter --net={shlex.quote(place)}",
            **keys,
        }
        if own:
            # Blanks are not written as `+`.
            servers.append(
                f"local://node{number + 1}?{urlencode(values, quote_via=quote, safe='/')}"
            )
    return servers


def _checked(profile: Any, values: Any) -> TaskResult:
    """The result of a checked task, with the timestamps of the call."""
    import numpy as np

    digests = values.digests.astype("<u4").view(np.uint8)
    returned = np.concatenate([digests, values.output])
    begin, end = profile.calc_in, profile.calc_out
    return TaskResult(begin, end, 0.0, profile.pid, profile.host, returned)


def _translated(result: TaskResult, profile: Any) -> TaskResult:
    """The result with the grid's name of the host and timestamps on this host's clock.

    Timestamps of the profile are on this clock, within its clock error. They were taken right
    before and right after the task, so they bound the task's own.
    """
    error = profile.clock_error
    if error and math.isfinite(result.begun):
        least = profile.calc_in - result.begun
        most = profile.calc_out - result.calc_out
        shift = (least + most) / 2
        result = result._replace(
            calc_in=result.calc_in + shift,
            calc_out=result.calc_out + shift,
        )
        error += abs(most - least) / 2
    return result._replace(host=profile.host, clock_error=error)


def _settings(config: gridrpc.Config) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__slots__}
