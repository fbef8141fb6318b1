"""NumPy arrays as typed values of native functions. NumPy is not imported before
somebody has an array."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: Element type, whether the first index runs fastest, length of each dimension.
Shape = tuple[str, bool, list[int]]


def describe(value: object) -> tuple[Shape, Any] | None:
    """Shape and contiguous memory of a NumPy array (a copy if it is not contiguous), or None."""
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


def to_native(value: object) -> Any:
    """One argument of a native function, as the native module takes it."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, bytearray, memoryview)):
        return value
    described = describe(value)
    if described is not None:
        return described
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    raise TypeError(
        f"native functions take None, numbers, str, bytes and NumPy arrays, not "
        f"{type(value).__name__}"
    )
