"""Opening grids, and compiling modules for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gridrpc

#: The program `gridrpc` that belongs to this Python.
PROGRAM = Path(sys.prefix) / "bin" / "gridrpc"

CompileIdl = Callable[..., Path]


@contextmanager
def opened(**settings: Any) -> Iterator[gridrpc.Grid]:
    """A grid that gives up what still runs when it is closed: a test that fails must not hang."""
    grid = gridrpc.Grid(**settings)
    try:
        yield grid
    finally:
        grid.close()


def queued(grid: gridrpc.Grid) -> int:
    """How many calls wait for workers."""
    return grid._native.counts()[1]
