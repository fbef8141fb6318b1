"""Data that a program shares with the servers of a directory."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

from gridrpc._named_data import check_name
from gridrpc._shared import Shape, Shared, SharedParts
from gridrpc.errors import GridError

if TYPE_CHECKING:
    from gridrpc import _native
    from gridrpc._directory import KnownServer
    from gridrpc._grid import Grid

#: Servers that are asked at a time.
MOST_ASKED = 16


class DirectoryShared(Shared):
    """Shared data that a server gets, under a name, with the first call that needs it there."""

    __slots__ = ("_at", "_keep", "_lock", "_name", "_readers", "_value", "is_named")

    def __init__(
        self, value: Any, name: str | None, keep: float | None, readers: str | Iterable[str]
    ) -> None:
        self._value = _owned(value)
        #: Whether servers keep it when the grid is closed.
        self.is_named = name is not None
        self._name = _random_name() if name is None else name
        self._keep, self._readers = keep, readers
        self._lock = threading.Lock()
        #: The grid of each server that has it, by address; and the reference there.
        self._at: dict[str, tuple[Grid, Shared]] = {}

    @property
    def value(self) -> Any:
        """The data."""
        return self._value

    @property
    def nbytes(self) -> int:
        """Length of the data of the present version."""
        return _size(self._value)

    def replace(self, value: Any, /) -> None:
        """Put new data in place of the present data: see `Shared.replace`.

        A server gets it with the next call that goes there, or at once if the data has a name.
        """
        new = _owned(value)
        with self._lock:
            if self.is_named:
                self._at = {
                    address: (grid, self._stored(grid, new))
                    for address, (grid, _) in self._at.items()
                }
            else:
                # Copies on servers end with the last call that needs them.
                self._leave()
                self._name = _random_name()
            self._value = new

    def is_at(self, address: str, grid: Grid | None) -> bool:
        """Whether a server has it, on this connection."""
        known = self._at.get(address)
        return known is not None and known[0] is grid

    def at(self, address: str, grid: Grid) -> Shared:
        """The reference for calls at a server."""
        with self._lock:
            if not self.is_at(address, grid):
                self._at[address] = grid, self._stored(grid, self._value)
            return self._at[address][1]

    def _stored(self, grid: Grid, value: Any) -> Shared:
        return grid.share(value, name=self._name, keep=self._keep, readers=self._readers)

    def can_be_at(self, address: str) -> bool:
        """Whether calls that need it can go to a server."""
        del address
        return True

    def remove(self) -> None:
        """Remove it from all servers that are reached."""
        with self._lock:
            self._leave()

    def _leave(self) -> None:
        for grid, _ in self._at.values():
            with contextlib.suppress(LookupError, OSError, GridError, ValueError):
                grid.unshare(self._name)
        self._at.clear()

    def __reduce__(self) -> NoReturn:
        raise TypeError("shared data of a grid with a directory is an argument by itself")

    def part(self, native: _native.Grid) -> NoReturn:
        self.blob_in(native)

    def blob_in(self, native: _native.Grid) -> NoReturn:
        raise ValueError(f"this shared data belongs to a directory, and {native!r} has none")

    def __repr__(self) -> str:
        return f"<gridrpc.Shared at {len(self._at)} servers: {self.nbytes:,} bytes>"


class FoundShared(DirectoryShared):
    """Data that servers keep under a name: calls that need it go to one that has it."""

    __slots__ = ()

    def __init__(self, name: str, servers: list[KnownServer]) -> None:
        check_name(name.rpartition("/")[2])
        self._name, self.is_named = name, True
        self._lock = threading.Lock()
        self._at, missing = {}, list[str]()
        found = dict[str, Shared]()
        with ThreadPoolExecutor(MOST_ASKED) as pool:
            for server, answer in zip(servers, pool.map(self._ask, servers), strict=True):
                if isinstance(answer, tuple):
                    self._at[server.address] = answer
                    found[server.address] = answer[1]
                elif not isinstance(answer, LookupError):
                    missing.append(f"{server.address}: {answer}")
        if not found:
            others = "".join(f"\n  could not ask {one}" for one in missing)
            raise LookupError(
                f"none of {len(servers) - len(missing)} servers keeps data named `{name}` that "
                f"this user may use{others}"
            )
        kinds = {(str(one._shape), one.nbytes) for one in found.values()}
        if len(kinds) > 1:
            raise ValueError(
                f"servers keep different data named `{name}`: {', '.join(sorted(found))}: name "
                "one of them, as in Grid(servers=[...])"
            )
        first = next(iter(found.values()))
        self._value = _of_shape(first._shape, first.nbytes)

    def _ask(self, server: KnownServer) -> tuple[Grid, Shared] | Exception:
        try:
            grid = server.connected()
            return grid, grid.shared(self._name)
        except (LookupError, OSError, GridError) as error:
            return error

    def can_be_at(self, address: str) -> bool:
        return address in self._at

    def replace(self, _value: Any, /) -> NoReturn:
        raise TypeError(
            f"`{self._name}` was found in the directory: its owner can share other data under the "
            "name"
        )

    def at(self, address: str, grid: Grid) -> Shared:
        with self._lock:
            if not self.is_at(address, grid):
                # The connection has been made again.
                self._at[address] = grid, grid.shared(self._name)
            return self._at[address][1]


def _owned(value: Any) -> Any:
    """A copy of data that a server can have: the caller may change its own afterwards."""
    if len(SharedParts(value).buffers) != 1:
        raise TypeError(
            "a grid with a directory shares arrays and bytes: for other objects, name a server, as "
            "in Grid(servers=[...])"
        )
    return value.copy() if hasattr(value, "copy") else bytes(value)


def _random_name() -> str:
    return f"shared-{secrets.token_hex(8)}"


def _of_shape(shape: Shape | None, nbytes: int) -> Any:
    """An object of the same size, whose memory is never touched, so that it takes none."""
    if shape is None:
        return bytes(nbytes)
    import numpy as np

    dtype, fortran, dims = shape
    return np.empty(dims, dtype, order="F" if fortran else "C")


class DirectoryArguments:
    """Arguments of a call, with shared data that its server has to have."""

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.args = args
        self.kwargs = dict(kwargs)
        given = (*args, *kwargs.values())
        self.shared = [one for one in given if isinstance(one, DirectoryShared)]

    def values(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with the data itself."""
        if not self.shared:
            return self.args, self.kwargs
        return self._with(lambda one: one.value)

    def at(self, address: str, grid: Grid) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments for a call at a server."""
        if not self.shared:
            return self.args, self.kwargs
        return self._with(lambda one: one.at(address, grid))

    @property
    def nbytes(self) -> float:
        """Bytes of arrays, bytes and texts among the arguments."""
        return float(sum(map(_size, (*self.args, *self.kwargs.values()))))

    def can_be_at(self, address: str) -> bool:
        """Whether a server has all shared data that this program cannot send."""
        return all(one.can_be_at(address) for one in self.shared)

    def bytes_at(self, address: str, grid: Grid | None) -> float:
        """Bytes of the arguments that a server has."""
        return float(sum(one.nbytes for one in self.shared if one.is_at(address, grid)))

    def _with(self, replaced: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def of(one: Any) -> Any:
            return replaced(one) if isinstance(one, DirectoryShared) else one

        return tuple(map(of, self.args)), {name: of(one) for name, one in self.kwargs.items()}


def _size(value: Any) -> int:
    """Estimated bytes of an argument."""
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    return len(value) if isinstance(value, (bytes, bytearray, str)) else 8
