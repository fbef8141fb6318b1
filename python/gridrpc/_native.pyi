"""The native module, as the package above sees it. `make lint` checks this against the binary."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

from typing_extensions import Buffer as Bytes

__all__ = [
    "WIRE_VERSION",
    "Buffer",
    "Call",
    "Function",
    "Grid",
    "Watch",
    "Worker",
    "monotonic",
    "run_spawner",
]

WIRE_VERSION: Final[int]

#: Element type, whether the first index runs fastest, length of each dimension.
_Shape: TypeAlias = tuple[str, bool, Sequence[int]]
#: One argument of a native function: a plain value, an array, or a part of shared data.
_Value: TypeAlias = (
    int | float | str | Bytes | tuple[_Shape, Bytes] | tuple[_Shape | None, int, int, int] | None
)
#: Function: number, whether it is pickled, name, body. Arguments: pickle, buffers.
_Work: TypeAlias = tuple[int, bool, str, bytes, bytes | Buffer, list[Buffer]]

def monotonic() -> float: ...
def run_spawner(
    prepare: Callable[[str, list[str], list[str]], object], fork: Callable[[], int]
) -> int | None: ...

@final
class Buffer:
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...

@final
class Function:
    @property
    def name(self) -> str: ...

@final
class Watch:
    def __new__(cls) -> Watch: ...
    def push(self, token: int) -> None: ...
    def take(self, timeout: float | None = None) -> list[int]: ...

@final
class Call:
    def done(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...
    # ("returned", values), ("returned", pickle, buffers),
    # ("raised", type, message, trace, pickle, buffers), ("cancelled",), ("closed",),
    # ("deadline", worker), and "lost" or "no workers" with
    # (worker, pid, host), cause, status, signal, out_of_memory, stderr.
    def take_outcome(self) -> tuple[Any, ...] | None: ...
    def profile(self) -> dict[str, Any]: ...
    def watch(self, watch: Watch, token: int) -> None: ...

@final
class Grid:
    def __new__(
        cls,
        *,
        workers: int,
        cores: int,
        program: str,
        arguments: Sequence[str],
        environment: Sequence[tuple[str, str]],
        directory: str,
        path: Sequence[str],
        modules: Sequence[str],
        tcp: bool,
        max_queued: int,
        max_queued_bytes: int,
        shared_threshold: int,
        keep_free: int,
        grace: float,
        retries: int,
    ) -> Grid: ...
    def counts(self) -> tuple[int, int, int]: ...
    def wait_until_ready(self, timeout: float | None = None) -> bool: ...
    def register(
        self, name: str, body: bytes | None = None, *, typed: bool = False
    ) -> Function: ...
    def submit(
        self,
        function: Function,
        head: Bytes,
        buffers: Sequence[Bytes],
        blobs: Sequence[int],
        deadline: float | None,
        idempotent: bool,
    ) -> Call: ...
    def submit_values(
        self,
        function: Function,
        arguments: tuple[_Value, ...],
        blobs: Sequence[int],
        deadline: float | None,
        idempotent: bool,
    ) -> Call: ...
    def cancel(self, call: Call) -> bool: ...
    def share(self, parts: Sequence[Bytes]) -> int: ...
    def unshare(self, blob: int) -> None: ...
    def close(self) -> None: ...

@final
class Worker:
    def __new__(cls, descriptor: int) -> Worker: ...
    @property
    def number(self) -> int: ...
    def next(self, known: dict[int, Any]) -> _Work | None: ...
    def returned(
        self, calc_in: int, calc_out: int, head: Bytes, buffers: Sequence[Bytes]
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
    def kept(self, blob: int) -> Any | None: ...
    def keep(self, blob: int, value: object) -> None: ...
