"""The body of a task, for engines whose workers run Python.

It is in a module of its own that imports next to nothing, because every worker
imports it. NumPy is imported where output is made: the other parts need buffers only.
"""

from __future__ import annotations

import os
import platform
import time
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from gridbench.workload.body import SLEEP, body

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PAGE = 4096
"""Bytes: the stride at which data is touched."""
DIGEST_BYTES = 8
"""What a checked task puts before its output: two CRC-32, little-endian."""
_PATTERN_PERIOD = 251  # prime, so that a page or block in the wrong place is seen


class TaskResult(NamedTuple):
    """What a worker hands back. Stamps are seconds of the worker's CLOCK_MONOTONIC."""

    calc_in: float
    calc_out: float
    slept: float
    """Seconds that its body took, be it a sleep or not."""
    pid: int
    host: str
    output: npt.NDArray[np.uint8] | None
    """None if no output was requested."""
    begun: float = float("nan")
    """When the task was begun, before it read its data."""
    clock_error: float = float("nan")
    """Seconds by which calc_in and calc_out may be wrong on the client's clock; NaN: not known."""


def run_task(
    sleep: float, data: Any, shared: Any, output_bytes: int, doing: str = SLEEP
) -> TaskResult:
    """Run one task of the benchmark: touch the data, do its body (`gridbench.workload.body`), which
    is to take `sleep` seconds, and make the output.

    `data` and `shared` are contiguous buffers (arrays, bytes) or None. One byte of each page
    is read before the calc-in stamp, so that data that was only mapped has really come. The
    output is written in full after the body and before the calc-out stamp.
    """
    work = body(doing)  # a user's module is imported before the first stamp
    begun = time.monotonic()
    _touch(data)
    _touch(shared)
    calc_in = time.monotonic()
    work(sleep, data, shared)
    woken = time.monotonic()
    output = _fresh_bytes(output_bytes, int(woken * 1e6) & 0xFF) if output_bytes else None
    calc_out = time.monotonic()
    slept = woken - calc_in
    return TaskResult(calc_in, calc_out, slept, os.getpid(), platform.node(), output, begun)


def check_task(data: Any, shared: Any, output_bytes: int) -> TaskResult:
    """Run one task of the untimed checksum pass.

    The output has `DIGEST_BYTES + output_bytes` bytes: the CRC-32 of the task data and of the
    shared data, each 4 bytes, little-endian, and then `pattern(output_bytes)`.
    """
    import numpy as np

    calc_in = time.monotonic()
    output = np.empty(DIGEST_BYTES + output_bytes, dtype=np.uint8)
    output[:DIGEST_BYTES] = np.frombuffer(digests(data, shared), dtype=np.uint8)
    output[DIGEST_BYTES:] = pattern(output_bytes)
    calc_out = time.monotonic()
    return TaskResult(calc_in, calc_out, 0.0, os.getpid(), platform.node(), output, calc_in)


def digests(data: Any, shared: Any) -> bytes:
    """The first `DIGEST_BYTES` bytes of a checked task's output."""
    return b"".join(
        zlib.crc32(b"" if buffer is None else _view(buffer)).to_bytes(4, "little")
        for buffer in (data, shared)
    )


def pattern(size: int) -> npt.NDArray[np.uint8]:
    """The output that a checked task makes: byte i is i modulo 251. Shape (size,)."""
    import numpy as np

    return np.resize(np.arange(_PATTERN_PERIOD, dtype=np.uint8), size)


def _touch(buffer: Any) -> None:
    """Read one byte of each page of `buffer`, and its last byte, as it may start within one."""
    if buffer is None:
        return
    view = _view(buffer)
    if len(view):
        view[::PAGE].tobytes()
        view[-1]


def _view(buffer: Any) -> memoryview:
    view = memoryview(buffer)
    # An empty view of more than bytes cannot be cast; it has nothing to read either.
    return view.cast("B") if view.nbytes else memoryview(b"")


def _fresh_bytes(size: int, value: int) -> npt.NDArray[np.uint8]:
    """New memory, every byte of it written; an array of zeros might be one page mapped often."""
    import numpy as np

    return np.full(size, value, dtype=np.uint8)
