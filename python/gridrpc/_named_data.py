"""Shared data with names, which a server keeps for later programs and other users."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from gridrpc import _native
from gridrpc._shared import BlobNumber, Shape, Shared, Version, describe

#: Kinds of NumPy's types of numbers, and those among them that differ between machines.
_NUMBERS, _OTHERS = "biufc", {"longdouble", "clongdouble", "float128", "complex256"}

_Described = tuple[str, str, int, list[str], int, Shape | None, int]


class SharedName(NamedTuple):
    """Data that a server keeps under a name, from `Grid.shared_names`."""

    #: "owner/name", for `Grid.shared`.
    name: str
    #: Length of the data.
    nbytes: int
    #: Type of the elements of an array; None: bytes.
    dtype: str | None
    #: Dimensions of an array.
    shape: tuple[int, ...]
    #: Users, groups as "@NAME", and "all", as the owner gave them.
    readers: tuple[str, ...]
    #: When it is removed, seconds since 1970.
    until: float


class NamedData:
    """Named data of the server of a grid."""

    def __init__(self, native: _native.Grid) -> None:
        self._native = native
        self._store = _native.NamedData(native)

    def share(
        self, value: Any, name: str, keep: float | None, readers: str | Iterable[str]
    ) -> Shared:
        def version(value: Any) -> Version:
            return self._stored(value, name, keep, readers)

        return Shared(self._native, version(value), version)

    def _stored(
        self, value: Any, name: str, keep: float | None, readers: str | Iterable[str]
    ) -> Version:
        check_name(name)
        if keep is not None and not 0 < keep < float("inf"):
            raise ValueError(f"keep is {keep!r}: give a positive number of seconds")
        shape, data = _typed(value)
        dtype, fortran, dims = shape or (None, False, [])
        description = {
            "name": name,
            "keep": keep,
            "readers": [readers] if isinstance(readers, str) else [*readers],
            "dtype": dtype,
            "fortran": fortran,
            "dims": dims,
            "bytes": data.nbytes,
        }
        return self._version(self._store.share(json.dumps(description), data))

    def find(self, name: str) -> Shared:
        check_name(name.rpartition("/")[2])
        return Shared(self._native, self._version(self._store.find(name)))

    def remove(self, name: str) -> None:
        check_name(name.rpartition("/")[2])
        self._store.remove(name)

    def names(self) -> list[SharedName]:
        return [_public(described) for described in self._store.all()]

    def _version(self, described: _Described) -> Version:
        _, _, number, _, _, shape, nbytes = described
        self._store.refer(number)
        return Version(BlobNumber(self._native, number), shape, [nbytes], nbytes)


def _public(described: _Described) -> SharedName:
    owner, name, _, readers, until, shape, nbytes = described
    dtype, _, dims = shape or (None, False, [])
    return SharedName(f"{owner}/{name}", nbytes, dtype, tuple(dims), tuple(readers), until / 1000)


def check_name(name: str) -> None:
    """Raise ValueError unless data can have this name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise ValueError(
            f"{name!r} is not a name for shared data: it has up to 64 letters, digits, '_', '-' "
            "and '.', and begins with a letter or digit"
        )


def _typed(value: Any) -> tuple[Shape | None, memoryview]:
    """Shape and bytes of an array of numbers, or of bytes. There is no pickle of anything else."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return None, pickle.PickleBuffer(value).raw()
    described = describe(value)
    if described is None:
        raise TypeError(
            f"{type(value).__name__} cannot be shared by name: only NumPy arrays of numbers and "
            "bytes can, since others may use them without trusting a pickle"
        )
    import numpy as np

    shape, array = described
    if type(value) not in {np.ndarray, np.memmap}:
        raise TypeError(f"{type(value).__name__} cannot be shared by name: give a plain array")
    if array.dtype.kind not in _NUMBERS or shape[0] in _OTHERS:
        raise TypeError(
            f"arrays of {array.dtype} cannot be shared by name: only arrays of numbers can"
        )
    return shape, pickle.PickleBuffer(array).raw()
