"""Pickles of memory-mapped arrays as the place of their data in the file."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


class ByFile:
    """A value whose memory maps of files are opened again where it is unpickled.

    So what a worker writes to them is in the file. `elsewhere`: workers may run on other hosts; a
    map that can be written is then a ValueError, and others are copied.
    """

    def __init__(self, value: Any, *, elsewhere: bool) -> None:
        self._value = value
        self._elsewhere = elsewhere
        #: Pickling may be tried twice.
        self._parts: tuple[Any, ...] | None = None

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from gridrpc._pickling import dumps

        if self._parts is None:
            reduced = dict.fromkeys((np.ndarray, np.memmap), self._reduced)
            head, buffers = dumps(self._value, reduced)
            self._parts = head, *buffers
        return _loaded, self._parts

    def _reduced(self, array: Any) -> Any:
        mapped = _mapped(array)
        if mapped is None or (self._elsewhere and mapped.mode == "r"):
            return array.__reduce_ex__(5)
        if self._elsewhere:
            raise ValueError(
                f"an argument is a memory map of {mapped.filename}, which workers on other hosts "
                "cannot write to: return the values instead, or use workers of this machine only"
            )
        # Bytes from the start of the map to the first element, and to the lowest address.
        first = array.__array_interface__["data"][0] - mapped.__array_interface__["data"][0]
        steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
        low = first + sum(min(0, step) for step in steps)
        high = first + sum(max(0, step) for step in steps) + array.itemsize
        return _opened, (
            os.fspath(mapped.filename),
            "r" if mapped.mode == "r" or not array.flags.writeable else "r+",
            mapped.offset + low,
            high - low,
            array.dtype,
            array.shape,
            first - low,
            array.strides,
        )


def _mapped(array: Any) -> Any:
    """The map of a file that an array is, or is a view of; None: it is none, or a private one."""
    if not array.size:
        return None
    while array is not None and not isinstance(getattr(array, "base", None), mmap.mmap):
        array = getattr(array, "base", None)
    if isinstance(array, np.memmap) and array.mode != "c" and array.filename is not None:
        return array
    return None


def _loaded(head: Any, *buffers: Any) -> Any:
    from pickle import loads

    return loads(head, buffers=buffers)


def _opened(  # noqa: PLR0917 - as pickle calls it
    filename: str,
    mode: Any,
    offset: int,
    size: int,
    dtype: Any,
    shape: tuple[int, ...],
    first: int,
    strides: tuple[int, ...],
) -> Any:
    memory = np.memmap(filename, np.uint8, mode, offset, size)
    array = np.ndarray.__new__(np.memmap, shape, dtype, memory, first, strides)
    array.filename, array.mode, array.offset = memory.filename, mode, offset + first
    return array
