"""What the workers run in the measurements. Imports little, as each worker loads it by name."""

from __future__ import annotations

import os
import time
from typing import Any

from gridbench.engines.meeting import meet

PAGE = 4096


def stand(seconds: float) -> tuple[float, int]:
    """Sleep; returns when the work began, on the monotonic clock, and the process id."""
    began = time.monotonic()
    time.sleep(seconds)
    return began, os.getpid()


def read(data: Any) -> int:
    """Sum of one byte of each page of an array of bytes, which brings all of it here."""
    return int(data[::PAGE].sum(dtype="u8"))


def read_and_meet(data: Any, place: str) -> int:
    """Read the data, tell when that was done, and stay until all have."""
    total = read(data)
    meet(place)
    return total


def spin(seconds: float) -> float:
    """Keep the processor busy; returns for how long."""
    begin = time.perf_counter()
    until = begin + seconds
    while (now := time.perf_counter()) < until:
        pass
    return now - begin
