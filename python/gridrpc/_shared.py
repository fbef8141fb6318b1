"""Shared data: given once, referred to by calls, present once on a machine."""

from __future__ import annotations

import pickle
import threading
import weakref
from typing import TYPE_CHECKING, Any

from gridrpc._pickling import dumps
from gridrpc._typed import Shape, describe

if TYPE_CHECKING:
    from gridrpc import _native

_collecting = threading.local()


class Shared:
    """Refers to shared data. Pass it as an argument, or inside one: the function gets the data.

    Arrays arrive as read-only views of memory that all workers of the machine share; bytes arrive
    as a memoryview. The data goes when the last reference and the last call that uses it are gone.
    """

    __slots__ = ("__weakref__", "_blob", "_native", "_parts", "_shape", "nbytes")

    def __init__(self, native: _native.Grid, value: object) -> None:
        self._shape: Shape | None = None
        raw = isinstance(value, (bytes, bytearray, memoryview))
        if raw:
            value = pickle.PickleBuffer(value)
        else:
            described = describe(value)
            self._shape = described[0] if described is not None else None
        head, buffers = dumps(value)
        parts: list[Any] = [head, *buffers]
        self._blob = native.share(parts)
        self._native = native
        #: Lengths of the parts that follow the pickle, for native functions.
        self._parts = [memoryview(part).nbytes for part in buffers]
        self.nbytes = len(head) + sum(self._parts)
        weakref.finalize(self, native.unshare, self._blob).atexit = False

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        blobs = getattr(_collecting, "blobs", None)
        if blobs is None:
            raise TypeError("a reference to shared data can only go into a call of its own grid")
        blobs.append(self._blob)
        return _resolve, (self._blob,)

    def typed(self) -> tuple[Shape | None, int, int, int]:
        """How a native function is told of it: shape, number, part and length in bytes."""
        if len(self._parts) != 1:
            raise TypeError("native functions take shared arrays and bytes, not other objects")
        return self._shape, self._blob, 1, self._parts[0]

    @property
    def blob(self) -> int:
        """Its number in the grid."""
        return self._blob

    def __repr__(self) -> str:
        return f"<gridrpc.Shared {self._blob}: {self.nbytes:,} bytes>"


def dumps_collecting(value: object) -> tuple[bytes, list[Any], list[int]]:
    """Pickle a value, and the numbers of the shared data that it refers to."""
    _collecting.blobs = []
    try:
        head, buffers = dumps(value)
        return head, list(buffers), list(dict.fromkeys(_collecting.blobs))
    finally:
        _collecting.blobs = None


def _resolve(blob: int) -> Any:
    from gridrpc._worker import resolve

    return resolve(blob)
