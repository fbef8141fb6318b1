"""The native module, as the package above sees it. `make lint` checks this against the binary."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from threading import Condition
from types import GenericAlias
from typing import Any, Final, Generic, Self, TypeVar, final

from typing_extensions import Buffer as Bytes

from gridrpc._grid import Grid as _PythonGrid
from gridrpc._profile import Profile

_T = TypeVar("_T")

__all__ = [
    "ANSWER_STALE",
    "ANSWER_VALID",
    "ASSUMED_BANDWIDTH",
    "THREAD_VARIABLES",
    "WIRE_VERSION",
    "Average",
    "Buffer",
    "Call",
    "CallOptions",
    "Daemon",
    "DaemonConnection",
    "Dependency",
    "EndedTask",
    "ForkedSpawner",
    "Function",
    "Grid",
    "HeldTask",
    "Items",
    "Modules",
    "NamedData",
    "OwnCall",
    "OwnCalls",
    "References",
    "Reserved",
    "Server",
    "Target",
    "Watch",
    "Worker",
    "announced_interface",
    "choose_server",
    "chosen_servers",
    "core_time",
    "credentials_folder",
    "follow_calls",
    "follow_pipeline",
    "fork_spawner",
    "large_bytearray",
    "large_bytes",
    "memory_of_machine",
    "memory_size",
    "monotonic",
    "name_program",
    "pipeline_figures",
    "plain_bytes",
    "predicted_time",
    "processors",
    "raised",
    "ranks_environment",
    "run_spawner",
    "server_candidates",
    "shared_memory",
    "thread_environment",
    "threads_are_known",
    "wait_for_held",
]

ANSWER_STALE: Final[float]
ANSWER_VALID: Final[float]
ASSUMED_BANDWIDTH: Final[float]
THREAD_VARIABLES: Final[list[str]]
WIRE_VERSION: Final[int]

def monotonic() -> float: ...
def plain_bytes(objects: list[Any]) -> int: ...
def name_program(name: str) -> None: ...
def ranks_environment() -> list[tuple[str, str]]: ...
def raised(
    type_name: str, message: str, trace: str, head: Bytes, buffers: list[Any]
) -> BaseException: ...
def shared_memory(len: int) -> Buffer: ...
def memory_of_machine() -> int: ...
def memory_size(text: str) -> int | None: ...
def large_bytes(buffer: Bytes) -> bytes: ...
def large_bytearray(buffer: Bytes) -> bytearray: ...
def processors() -> int: ...
def thread_environment(workers: int) -> list[tuple[str, str]]: ...
def fork_spawner(fork: Callable[[], int], threads: int) -> ForkedSpawner | None: ...
def threads_are_known() -> bool: ...
def run_spawner(
    prepare: Callable[[str, list[str], list[str]], object], fork: Callable[[], int]
) -> int | None: ...

@final
class Buffer:
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    @staticmethod
    def held(view: memoryview, keeper: object) -> Buffer: ...

@final
class ForkedSpawner:
    @property
    def safe(self) -> bool: ...
    def give_up(self) -> None: ...

@final
class Server:
    @property
    def name(self) -> str: ...
    @property
    def hosts(self) -> list[str]: ...
    @property
    def is_session(self) -> bool: ...
    @property
    def only_offers(self) -> bool: ...
    @property
    def is_server(self) -> bool: ...

def credentials_folder() -> Path | None: ...
def announced_interface(declarations: str) -> tuple[str, str]: ...
def choose_server(
    policy: str,
    call: tuple[float, float, float],
    servers: list[tuple[float, float, float, float, float, bool, bool, float, float, float]],
    draw: int,
) -> int | None: ...
def core_time(
    call: tuple[float, float, float],
    server: tuple[float, float, float, float, float, bool, bool, float, float, float],
) -> float: ...
def predicted_time(
    call: tuple[float, float, float],
    server: tuple[float, float, float, float, float, bool, bool, float, float, float],
) -> tuple[float, float, float, float]: ...
def server_candidates(
    servers: list[
        tuple[
            float,
            float,
            int,
            bool,
            float | None,
            float | None,
            float | None,
            int,
            int,
            float,
            float | None,
        ]
    ],
    has_cost: bool,
) -> list[tuple[float, float, float, float, float, bool, bool, float, float, float]]: ...

@final
class Average:
    def __new__(cls) -> Average: ...
    def add(self, value: float) -> None: ...
    def add_run(self, operations: float, seconds: float, has_cost: bool) -> None: ...
    def add_queue(self, seconds: float) -> None: ...
    def add_transfer(self, bytes: float, seconds: float, error: float) -> None: ...
    @property
    def value(self) -> float | None: ...

@final
class OwnCalls:
    def __new__(cls) -> OwnCalls: ...
    @property
    def count(self) -> int: ...
    def before(self, at: float) -> int: ...
    def wait(self, now: float) -> float: ...
    def begin(self, now: float, seconds: float, cores: int) -> OwnCall: ...
    def end(self, now: float, call: OwnCall) -> None: ...

@final
class OwnCall: ...

def chosen_servers(
    words: Sequence[str], file: str | os.PathLike[str] | None = None
) -> list[Server]: ...

@final
class CallOptions:
    def __new__(
        cls,
        *,
        deadline: float | None = None,
        idempotent: bool = False,
        priority: int = 0,
        server: int | None = None,
        cores: int = 1,
        resources: Sequence[tuple[str, int]] = ...,
        expected: float | None = None,
    ) -> CallOptions: ...
    @property
    def deadline(self) -> float | None: ...
    @property
    def idempotent(self) -> bool: ...
    @property
    def server(self) -> int | None: ...
    @property
    def cores(self) -> int: ...
    @property
    def asks(self) -> bool: ...
    def with_cores(self, cores: int) -> CallOptions: ...
    def with_trace(self, trace_id: int, span_id: int, trace_flags: int) -> CallOptions: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def over(self, base: CallOptions) -> CallOptions: ...

@final
class Function:
    @property
    def name(self) -> str: ...
    @property
    def bytes(self) -> int: ...

@final
class References:
    def __new__(
        cls,
        own: list[tuple[str, Any]],
        attributes: list[tuple[Any, str, Any]],
        mappings: list[tuple[Any, bool, list[tuple[Any, Any]], list[Any]]],
        lists: list[list[Any]],
        sets: list[tuple[set[Any], set[Any]]],
        arrays: list[Any],
    ) -> References: ...
    def are_current(self, function: Callable[..., Any]) -> bool: ...

@final
class Modules:
    def __new__(cls, places: Sequence[str]) -> Modules: ...
    def all(self) -> list[tuple[str, str]]: ...

@final
class Target:
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def passed(self) -> list[tuple[str, bool]]: ...
    @property
    def returned(self) -> list[str]: ...
    @property
    def idempotent(self) -> bool: ...
    @property
    def parallel(self) -> bool: ...
    @property
    def has_changed(self) -> bool: ...

@final
class Reserved: ...

@final
class Watch:
    def __new__(cls) -> Watch: ...
    def push(self, token: int) -> None: ...
    def take(self, timeout: float | None = None) -> list[int]: ...

@final
class Call(Generic[_T]):
    def result(self, timeout: float | None = None) -> _T: ...
    def exception(self, timeout: float | None = None) -> BaseException | None: ...
    def done(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...
    def cancel(self) -> bool: ...
    def detach(self) -> str: ...
    def cancelled(self) -> bool: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def function_name(self) -> str: ...
    def add_done_callback(self, callback: Callable[[Call[_T]], object]) -> None: ...
    def __await__(self) -> Generator[Any, None, _T]: ...
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
    @property
    def _grid(self) -> _PythonGrid: ...
    def _profile(self) -> dict[str, Any]: ...
    def _cost(self) -> tuple[int, int, int, int, int]: ...
    @property
    def _condition(self) -> Condition: ...
    @property
    def _state(self) -> str: ...
    @property
    def _waiters(self) -> list[Any]: ...
    def _watch(self, watch: Watch, token: int) -> None: ...
    def _hold(self) -> Dependency | None: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...
    def _repr_html_(self) -> str: ...

@final
class Dependency: ...

@final
class Daemon:
    """Serves programs of this user on a grid of this process."""

    def __new__(
        cls,
        grid: Grid,
        socket: str,
        answer: Callable[[str, list[bytes]], list[bytes]],
        most: int,
    ) -> Daemon: ...
    @property
    def attached(self) -> int: ...
    def close(self) -> None: ...

@final
class DaemonConnection:
    """A program's connection to a daemon, for requests."""

    def __new__(cls, socket: str, timeout: float) -> DaemonConnection: ...
    def request(
        self, name: str, sections: Sequence[bytes | memoryview], timeout: float | None
    ) -> list[bytes]: ...
    def close(self) -> None: ...

@final
class Grid:
    def __new__(
        cls,
        *,
        workers: int,
        resources: Sequence[tuple[str, int]],
        cores: int,
        program: str,
        arguments: Sequence[str],
        environment: Sequence[tuple[str, str]],
        directory: str,
        path: Sequence[str],
        modules: Sequence[str],
        compiled: Modules,
        max_queued: int,
        max_queued_bytes: int,
        shared_threshold: int,
        keep_free: int,
        grace: float,
        retries: int,
        calls_per_process: int,
        labelled: bool,
        servers: Sequence[Server] = ...,
        agent: str = "",
        here: str = "",
        elsewhere: Sequence[str] = ...,
        remote_environment: Sequence[tuple[str, str]] = ...,
        python_environment: Sequence[tuple[str, str]] = ...,
        progress: str = "auto",
        forked: ForkedSpawner | None = None,
        preload: Sequence[str] = ...,
        runs_python: bool = True,
        advice: str = ...,
    ) -> Grid: ...
    def absent_hosts(self) -> list[str]: ...
    def stats(self) -> str: ...
    def counts(self) -> tuple[int, int, int]: ...
    def hosts(self) -> list[tuple[str, str, str, int, int, str]]: ...
    def workers(self) -> int: ...
    def host_of(self, worker: int) -> str | None: ...
    def prepare(self, module: str) -> None: ...
    def wait_until_ready(self, timeout: float | None = None) -> bool: ...
    def register(
        self,
        name: str,
        body: bytes | None = None,
        *,
        blobs: Sequence[int] = ...,
    ) -> Function: ...
    def submit(
        self,
        owner: _PythonGrid,
        callable: str | Callable[..., Any] | Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: CallOptions,
        on: Reserved | None = None,
        /,
    ) -> Call[Any]: ...
    def submit_pickled(
        self,
        owner: _PythonGrid,
        function: Function,
        head: Bytes,
        buffers: Sequence[Bytes],
        blobs: Sequence[int],
        options: CallOptions,
    ) -> Call[Any]: ...
    def remember(
        self,
        callable: str | Callable[..., Any],
        function: Function,
        references: References | None = None,
    ) -> None: ...
    def target(self, modules: Modules, name: str, server: str | None = None) -> Target: ...
    def methods(
        self, modules: Modules, name: str, server: str | None = None
    ) -> tuple[list[str], str | None]: ...
    def submit_target(
        self,
        owner: _PythonGrid,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        out: Any,
        options: CallOptions,
        on: Reserved | None,
        ranks: int = 1,
        mpirun: str = "",
    ) -> Call[Any]: ...
    def detach_target(
        self,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        options: CallOptions,
        ranks: int,
        mpirun: str,
    ) -> str: ...
    def attach(self, owner: _PythonGrid, modules: Modules, id: str) -> Call[Any]: ...
    def detached_calls(self) -> list[tuple[str, str, str, int]]: ...
    def call_size(
        self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any] | None
    ) -> tuple[int, int, float | None]: ...
    def call_target(
        self,
        owner: _PythonGrid,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        out: Any,
        options: CallOptions,
        on: Reserved | None,
    ) -> Any: ...
    def submit_chunk(
        self,
        owner: _PythonGrid,
        target: Target,
        items: list[Any],
        single: bool,
        limit: int,
        budget: int,
        options: CallOptions,
        on: Reserved | None,
    ) -> tuple[Call[Any], int] | None: ...
    def detach_call(self, call: Call[Any]) -> str: ...
    def python_server(self, name: str, server: str | None = None) -> str | None: ...
    def server(self, name: str) -> int: ...
    def reserve(
        self, server: int | None = None, python: bool = True, offered: bool = False
    ) -> Reserved: ...
    def standing(
        self, reserved: Reserved, timeout: float | None, name: str
    ) -> tuple[str, BaseException | None]: ...
    def release(self, reserved: Reserved) -> None: ...
    def cancel(self, call: Call[Any]) -> bool: ...
    def share(self, parts: Sequence[Bytes]) -> int: ...
    def unshare(self, blob: int) -> None: ...
    def close(self) -> None: ...

#: Owner, name, number, readers, ms since 1970 when it is removed, shape, and bytes.
_Described = tuple[str, str, int, list[str], int, tuple[str, bool, list[int]] | None, int]

@final
class NamedData:
    def __new__(cls, grid: Grid) -> NamedData: ...
    def share(self, description: str, data: Bytes) -> _Described: ...
    def find(self, name: str) -> _Described: ...
    def remove(self, name: str) -> None: ...
    def all(self) -> list[_Described]: ...
    def refer(self, number: int) -> None: ...

@final
class Items:
    def __new__(cls) -> Items: ...
    def run(
        self, calls: Iterator[object], done: list[Any], count: int, limit: int
    ) -> bool | None: ...
    def begin(self) -> None: ...
    def keep(self, head: Bytes, buffers: Sequence[Bytes]) -> bool: ...

@final
class Worker:
    def __new__(cls, descriptor: int, program: Callable[[], str]) -> Worker: ...
    @property
    def number(self) -> int: ...
    def serve(
        self,
        resolve: Callable[[bool, str, bytes], Callable[..., Any]],
        dumps: Callable[[object], tuple[bytes, Sequence[Bytes]]],
        fail: Callable[[Worker, int, int, BaseException], object],
    ) -> None: ...
    def raised(
        self,
        calc_in: int,
        calc_out: int,
        error: str,
        message: str,
        trace: str,
        head: Bytes,
        buffers: Sequence[Bytes],
    ) -> None: ...
    def shared(self, blob: int) -> list[Buffer]: ...
    def items(self) -> Items: ...
    def current(self) -> int | None: ...
    def ask(
        self, request: int, texts: Sequence[str], sections: Sequence[Bytes]
    ) -> tuple[list[str], list[Buffer]]: ...
    def passed_on(self, index: int) -> list[tuple[Buffer, int, int]]: ...
    def kept(self, blob: int) -> Any | None: ...
    def keep(self, blob: int, value: object) -> None: ...

@final
class EndedTask:
    @property
    def status(self) -> int: ...
    @property
    def began(self) -> int | None: ...
    @property
    def ended(self) -> int: ...
    @property
    def user(self) -> float: ...
    @property
    def system(self) -> float: ...
    @property
    def memory(self) -> int: ...

@final
class HeldTask:
    def __new__(
        cls,
        path: str | os.PathLike[str],
        arguments: Sequence[str | bytes],
        environment: Sequence[tuple[str, str]],
        directory: str | os.PathLike[str],
        output: str | os.PathLike[str],
        errors: str | os.PathLike[str],
        at_entry: bool,
    ) -> Self: ...
    def release(self, at: int) -> None: ...
    @property
    def ended(self) -> EndedTask | None: ...
    def kill(self) -> None: ...
    @property
    def pid(self) -> int: ...

def wait_for_held(tasks: Sequence[HeldTask], until: int) -> bool: ...
def follow_pipeline(
    case: object,
    parameters: object,
    throttling: object | None = None,
    watch: Callable[[int], object] | None = None,
) -> tuple[list[bytearray], tuple[float, int, float, int] | None]: ...
def follow_calls(
    network: object,
    plan: object,
    assignment: tuple[str, int] | object,
    watch: Callable[[int], object] | None = None,
) -> list[bytearray]: ...
def pipeline_figures(
    jobs: Sequence[tuple[object, object]],
) -> list[tuple[float, float, float, float]]: ...
