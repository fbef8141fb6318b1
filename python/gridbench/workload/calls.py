"""What the workers run in the micro benchmarks. Each worker imports it, so it imports little."""

from __future__ import annotations

import os
import time

from gridbench.process.barrier import meet

TYPE_CHECKING = False  # `typing` takes as long to load as all the rest

if TYPE_CHECKING:
    from typing import Any

PAGE = 4096


def null() -> None:
    """Nothing."""


def take(item: int) -> None:
    """Nothing, with a number: what `map` is measured with on native workers."""
    del item


def same(item: Any) -> Any:
    """The argument: what `map` is measured with elsewhere, and arrays there and back."""
    return item


def ends(data: Any) -> tuple[int, int, int]:
    """Length, first and last element of an array of bytes, so that only the argument travels."""
    return len(data), int(data[0]), int(data[-1])


def stand(seconds: float) -> tuple[float, int]:
    """Sleep; returns when the work began, on the monotonic clock, and the process id."""
    began = time.monotonic()
    time.sleep(seconds)
    return began, os.getpid()


def do(body: str, seconds: float) -> float:
    """What a task of `gridbench.workload.body` does, without data; the seconds that it took."""
    from gridbench.workload.body import body as body_of

    begin = time.perf_counter()
    body_of(body)(seconds, b"", b"")
    return time.perf_counter() - begin


def spin(seconds: float) -> float:
    """Keep a processor busy for so long; returns for how long it was."""
    begin = time.perf_counter()
    until = begin + seconds
    while (now := time.perf_counter()) < until:
        pass
    return now - begin


def read(data: Any) -> int:
    """Sum of one byte of each page of an array of bytes, which brings all of it here."""
    return int(data[::PAGE].sum(dtype="u8"))


def solve(matrix: Any, right: Any) -> Any:
    """Solve a system of linear equations."""
    import numpy as np  # not loaded by workers that only call the others

    return np.linalg.solve(matrix, right)


def read_and_meet(data: Any, place: str) -> int:
    """Read the data, tell when that was done, and stay until all have; what `read` returns."""
    total = read(data)
    meet(place)
    return total
