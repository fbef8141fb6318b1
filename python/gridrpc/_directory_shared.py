"""Data that a program shares with the servers of a directory."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from gridrpc._shared import Shared, SharedParts
from gridrpc.errors import GridError

if TYPE_CHECKING:
    from gridrpc import _native
    from gridrpc._grid import Grid


class DirectoryShared(Shared):
    """Shared data that a server gets, under a name, with the first call that needs it there."""

    __slots__ = ("_at", "_keep", "_lock", "_name", "_readers", "_value", "is_named")

    def __init__(
        self, value: Any, name: str | None, keep: float | None, readers: str | Iterable[str]
    ) -> None:
        parts = SharedParts(value)
        if len(parts.buffers) != 1:
            raise TypeError(
                "a grid with a directory shares arrays and bytes: for other objects, name a "
                "server, as in Grid(servers=[...])"
            )
        self.nbytes = memoryview(parts.buffers[0]).nbytes
        #: The caller may change its data after this.
        self._value = value.copy() if hasattr(value, "copy") else bytes(value)
        #: Whether servers keep it when the grid is closed.
        self.is_named = name is not None
        self._name = f"shared-{secrets.token_hex(8)}" if name is None else name
        self._keep, self._readers = keep, readers
        self._lock = threading.Lock()
        #: The grid of each server that has it, by address; and the reference there.
        self._at: dict[str, tuple[Grid, Shared]] = {}

    @property
    def value(self) -> Any:
        """The data."""
        return self._value

    def is_at(self, address: str, grid: Grid | None) -> bool:
        """Whether a server has it, on this connection."""
        known = self._at.get(address)
        return known is not None and known[0] is grid

    def at(self, address: str, grid: Grid) -> Shared:
        """The reference for calls at a server."""
        with self._lock:
            if not self.is_at(address, grid):
                there = grid.share(
                    self._value, name=self._name, keep=self._keep, readers=self._readers
                )
                self._at[address] = grid, there
            return self._at[address][1]

    def remove(self) -> None:
        """Remove it from all servers that are reached."""
        with self._lock:
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


class DirectoryArguments:
    """Arguments of a call, with shared data that its server has to have."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
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

    def bytes_at(self, address: str, grid: Grid | None) -> float:
        """Bytes of the arguments that a server has."""
        return float(sum(one.nbytes for one in self.shared if one.is_at(address, grid)))

    def _with(self, replaced: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def of(one: Any) -> Any:
            return replaced(one) if isinstance(one, DirectoryShared) else one

        return tuple(map(of, self.args)), {name: of(one) for name, one in self.kwargs.items()}
