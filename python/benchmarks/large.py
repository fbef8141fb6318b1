"""Area `large`: 200 tasks with 100 MB input each, made as they are needed, on 4 Python workers.

Memory is that of the client and all its descendants together, sampled from outside.
"""

from __future__ import annotations

import os
import time

import numpy as np

import gridrpc
from benchmarks.figures import Area, AreaCase, Row, Target, Values
from benchmarks.measuring import run_apart
from gridbench.bench.points import Points
from gridbench.formats import round_amount
from gridbench.process.memory import footprint, tree
from gridbench.workload.calls import read

_CASE = "large inputs"


def stream(workers: int, tasks: int, size: int) -> Values:
    """Seconds for `tasks` inputs of `size` bytes, each a new array that the task reads."""
    begin = time.monotonic()
    inputs = (np.full(size, number % 251, np.uint8) for number in range(tasks))
    pages = len(range(0, size, 4096))
    with gridrpc.Grid(workers) as grid:
        for number, total in enumerate(grid.map(read, inputs)):
            if total != pages * (number % 251):
                raise RuntimeError(f"task {number + 1} read other data than were sent")
    return {"seconds": time.monotonic() - begin}


def watch(workers: int, tasks: int, size: int) -> Values:
    """The same, and the most memory that a sample of all its processes found, bytes."""
    peak = 0

    def sample() -> None:
        nonlocal peak
        peak = max(peak, footprint(tree(os.getpid())[1:]))

    numbers = {"workers": workers, "tasks": tasks, "size": size}
    return run_apart(stream, numbers, glance=sample) | {"peak": peak}


def area(full: bool) -> Area:
    """Takes long: once, and in full as often as the others."""
    numbers = {"workers": 4, "tasks": 200, "size": 100_000_000}
    return area_of(numbers, most_runs=None if full else 1)


def area_of(numbers: dict[str, int], *, most_runs: int | None) -> Area:
    """With so many workers, tasks and bytes each."""
    case = AreaCase(_CASE, watch, numbers, most_runs=most_runs, timeout=900)
    title = (
        f"{numbers['tasks']} tasks x {round_amount(numbers['size'], 'bytes')} input each, lazily"
        f" produced, {numbers['workers']} Python workers"
    )
    return Area("large", title, (case,), _rows)


def _rows(samples: Points) -> list[Row]:
    return [
        Row(
            "peak memory of client and workers together",
            "MB",
            samples.of(_CASE, "peak").scaled(1e-6),
            target=Target(1500),
            digits=0,
        ),
        Row("duration", "s", samples.of(_CASE, "seconds"), digits=1),
    ]
