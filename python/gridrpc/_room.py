"""Room on the disk for what is written to a file later, whatever others write meanwhile."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from contextlib import suppress

_KEEP_SIZE, _PUNCH_HOLE = 1, 2
#: There is no room, or there may be none.
SHORTAGES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def make_room(file: int, start: int, end: int) -> bool:
    """Reserve these bytes of a file, beyond its end, which stays. False: the file system cannot.

    Raises OSError if there is no room.
    """
    return _changed(file, _KEEP_SIZE, start, end)


def release_room(file: int, start: int, end: int) -> None:
    """Give back what `make_room` has reserved."""
    with suppress(OSError):  # it only saves room
        _changed(file, _KEEP_SIZE | _PUNCH_HOLE, start, end)


def _changed(file: int, mode: int, start: int, end: int) -> bool:
    call = _fallocate()
    while call is not None:
        if call(file, mode, start, end - start) == 0:
            return True
        number = ctypes.get_errno()
        if number in SHORTAGES:
            raise OSError(number, os.strerror(number))
        if number != errno.EINTR:
            break
    return False


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """fallocate(2), which `os` does not have."""
    library = ctypes.CDLL(None, use_errno=True)
    found = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)
    return found
