"""Shared data: given once, referred to by calls, present once on a machine."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from gridrpc._pickling import dumps, dumps_by_value

if TYPE_CHECKING:
    import numpy as np

    from gridrpc import _native

#: Of an array: type of its elements, whether the first index runs fastest, its dimensions.
Shape = tuple[str, bool, list[int]]

#: While a pickle is made: the native grid, the numbers of shared data, and the calls whose
#: results are needed.
collecting = threading.local()


class SharedParts:
    """A value taken apart for sharing: its pickle, and the memory that it refers to."""

    def __init__(self, value: Any) -> None:
        self.shape: Shape | None = None
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = pickle.PickleBuffer(value)
        else:
            described = describe(value)
            if described is not None:
                self.shape, array = described
                if type(value) is type(array) and not _lies_well(value):
                    # Pickled as it is, it would be copied into each worker's own memory.
                    value = array.reshape(value.shape)
        self.head, self.buffers = dumps(value)


def describe(value: object) -> tuple[Shape, Any] | None:
    """Shape and contiguous memory of a NumPy array (a copy if it is not contiguous), or None."""
    # NumPy is not imported before somebody has an array.
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return None
    array: np.ndarray[Any, Any] = value
    fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    if not fortran:
        array = numpy.ascontiguousarray(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return (array.dtype.name, fortran, list(value.shape)), array


def _lies_well(array: Any) -> bool:
    """Whether an array has no gaps, and this machine's byte order."""
    return bool(array.dtype.isnative and (array.flags.c_contiguous or array.flags.f_contiguous))


class BlobNumber(int):
    """The number of shared data, which is there as long as this object is."""

    _grid: _native.Grid

    def __new__(cls, native: _native.Grid, number: int) -> BlobNumber:
        self = super().__new__(cls, number)
        self._grid = native
        return self

    def __del__(self) -> None:
        self._grid.unshare(self)


class Version(NamedTuple):
    """Shared data as calls that are submitted now get it."""

    number: BlobNumber
    #: Of an array.
    shape: Shape | None
    #: Lengths of the parts that follow the first, for functions of modules.
    parts: list[int]
    nbytes: int


class Shared:
    """Reference to shared data. Pass it as an argument, or inside one: the function gets the data.

    Arrays arrive as read-only views of memory that all workers of the machine share; bytes arrive
    as a memoryview. The data is freed when the last reference and the last call that uses it are
    gone. `replace` puts a new version in its place while calls run.
    """

    __slots__ = ("__weakref__", "_forget", "_native", "_renew", "_version")

    def __init__(
        self,
        native: _native.Grid,
        version: Version,
        renew: Callable[[Any], Version] | None = None,
        forget: Callable[[int], None] | None = None,
    ) -> None:
        """`renew`: makes another version; `forget`: drops functions that carry an old one."""
        self._native = native
        self._version = version
        self._renew = renew
        self._forget = forget

    @property
    def nbytes(self) -> int:
        """Length of the data of the present version."""
        return self._version.nbytes

    @property
    def _shape(self) -> Shape | None:
        return self._version.shape

    def replace(self, value: Any, /) -> None:
        """Put new data, of any type and size, in place of the present data.

        Each call gets one version as a whole: the one that is current when it is submitted; an item
        of `map`, when it is sent. The old version is freed when no call needs it any more. If this
        raises an error, the present version stays. Any thread may call it at any time. Raises
        TypeError for data from `Grid.shared`, and what `Grid.share` raises.
        """
        if self._renew is None:
            raise TypeError(
                "data that another program has shared cannot be replaced by this reference: its "
                "owner can share other data under the name"
            )
        new = self._renew(value)
        old, self._version = self._version, new
        if self._forget is not None and old.number != new.number:
            self._forget(old.number)

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        blobs = getattr(collecting, "blobs", None)
        if blobs is None:
            raise TypeError("a reference to shared data can only go into a call of its own grid")
        number = self.blob_in(collecting.native)
        # Keeps the version until the call has been submitted.
        blobs.append(number)
        return _resolve, (int(number),)

    def part(self, native: _native.Grid) -> tuple[Shape | None, int, int, int]:
        """Its description for a module function: shape, number, part and length in bytes."""
        self.blob_in(native)
        number, shape, parts, _ = self._version
        if len(parts) != 1:
            raise TypeError("module functions take shared arrays and bytes, not other objects")
        return shape, number, 1, parts[0]

    def blob_in(self, native: _native.Grid) -> BlobNumber:
        """Its number in the grid. Raises ValueError if it belongs to another one."""
        if native is not self._native:
            raise ValueError("this shared data belongs to another grid: share it with this one")
        return self._version.number

    def __repr__(self) -> str:
        return f"<gridrpc.Shared {int(self._version.number)}: {self.nbytes:,} bytes>"


def share(native: _native.Grid, value: Any, forget: Callable[[int], None] | None = None) -> Shared:
    """Share a value with the workers of a grid."""

    def version(value: Any) -> Version:
        taken = SharedParts(value)
        number = BlobNumber(native, native.share([taken.head, *taken.buffers]))
        parts = [memoryview(part).nbytes for part in taken.buffers]
        return Version(number, taken.shape, parts, len(taken.head) + sum(parts))

    return Shared(native, version(value), version, forget)


class Collected(NamedTuple):
    """A pickle, its buffers, and what of its grid it refers to: shared data, and calls."""

    head: bytes
    buffers: list[Any]
    blobs: list[int]
    calls: list[_native.Dependency]


def dumps_collecting(
    value: object, native: _native.Grid, *, calls: bool = False, in_band: bool = False
) -> Collected:
    """Pickle a value, and collect what of that grid it refers to; `calls`: those may be there.

    `in_band`: through cloudpickle, with no buffers beside the pickle.
    """
    # Pickling may run code that submits a call itself.
    outer = vars(collecting).copy()
    collecting.native, collecting.blobs = native, []
    collecting.calls = {} if calls else None
    try:
        head, buffers = dumps_by_value(value, in_band=True) if in_band else dumps(value)
        blobs = list(dict.fromkeys(collecting.blobs))
        held = [held for _, held in (collecting.calls or {}).values()]
        return Collected(head, list(buffers), blobs, held)
    finally:
        collecting.blobs = collecting.calls = None
        vars(collecting).update(outer)


def _resolve(blob: int) -> Any:
    from gridrpc._worker import resolve

    return resolve(blob)
