"""Areas `grain`, `large` and `journal`: `map` with chunks, with large inputs and with a journal."""

from __future__ import annotations

import os
import random
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Target, Values
from benchmarks.measuring import run_apart
from gridbench.bench.points import Points
from gridbench.formats import as_given, round_amount
from gridbench.process.memory import footprint, tree
from gridbench.workload.calls import read, same, spin
from gridrpc import Grid

# Area `grain`: `map` with `chunk="auto"` beside fixed chunk sizes, for tasks that spin. A run goes
# through all sizes in random order, each with the same tasks on the same two workers. What "auto"
# is compared with is the size that turned out best, which nobody knows beforehand.

Tasks = Literal["10 us", "log-normal"]

_WORKERS = 2
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_MEAN, _SIGMA = 100e-6, 2.0
_BOUND = 1.10
"""How much longer than with the best fixed size a run may take."""


def sizes(tasks: Tasks, count: int, seed: int) -> Values:
    """Seconds for so many tasks: by fixed size of chunks, and with "auto".

    `auto` knows how many tasks there are, `auto, generator` does not.
    """
    times = _times(tasks, count, seed)
    order: list[int | Literal["auto", "auto, generator"]] = [*_SIZES, "auto", "auto, generator"]
    random.shuffle(order)
    values = {}
    with Grid(workers=_WORKERS) as grid:
        grid.wait_until_ready()
        list(grid.map(spin, [1e-6] * 1000))
        for size in order:
            given: Iterable[float] = iter(times) if size == "auto, generator" else times
            begin = time.perf_counter()
            ran = sum(grid.map(spin, given, chunk=size if isinstance(size, int) else "auto"))
            values[str(size)] = time.perf_counter() - begin
            if ran < sum(times):
                raise RuntimeError("tasks ran for less time than requested")
    return values


def _times(tasks: Tasks, count: int, seed: int) -> list[float]:
    """Run times of the tasks, s."""
    if tasks == "10 us":
        return [10e-6] * count
    draw = random.Random(seed)
    times = [draw.lognormvariate(0.0, _SIGMA) for _ in range(count)]
    scale = _MEAN * count / sum(times)
    return [scale * t for t in times]


def grain_area(extent: Extent) -> Area:
    """In full there are more tasks."""
    uniform, uneven = (100_000, 20_000) if extent is Extent.FULL else (20_000, 5_000)
    return grain_area_of(uniform=uniform, uneven=uneven)


def grain_area_of(*, uniform: int, uneven: int) -> Area:
    """With so many tasks of 10 us, and so many of uneven times."""
    counts: dict[Tasks, int] = {"10 us": uniform, "log-normal": uneven}
    alike, drawn = (
        AreaCase(f"chunk sizes, tasks of {tasks}", sizes, {"tasks": tasks, "count": n, "seed": 1})
        for tasks, n in counts.items()
    )
    mean, sigma = round_amount(_MEAN, "s"), as_given(_SIGMA, "")
    titles = {"tasks of 10 µs": alike, f"log-normal tasks, mean {mean}, sigma {sigma}": drawn}

    def table(points: Points) -> Iterator[PlannedRow]:
        for title, case in titles.items():
            medians = {size: case[str(size)].of(points).median for size in _SIZES}
            # NaN, where it could not be measured, comes last.
            best = min(_SIZES, key=lambda size: (medians[size] != medians[size], medians[size]))
            for auto, how in (("auto", ""), ("auto, generator", ", from a generator")):
                what, target = f"{title}{how}; best fixed: {best}", Target(_BOUND, of_peer=True)
                yield PlannedRow(what, "s", case[auto], peer=case[str(best)], target=target)

    title = f'map, {_WORKERS} workers: chunk="auto"; peer: the best fixed chunk size'
    return Area("grain", title, (alike, drawn), table)


# Area `large`: 200 tasks with 100 MB input each, made as they are needed, on 4 Python workers.
# Memory is that of the client and all its descendants together, sampled from outside.


def stream(workers: int, tasks: int, size: int) -> Values:
    """Seconds for `tasks` inputs of `size` bytes, each a new array that the task reads."""
    begin = time.monotonic()
    inputs = (np.full(size, number % 251, np.uint8) for number in range(tasks))
    pages = len(range(0, size, 4096))
    with Grid(workers) as grid:
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


def large_area(extent: Extent) -> Area:
    """Takes long: once, and in full as often as the others."""
    workers, tasks, size = 4, 200, 100_000_000
    most_runs = None if extent is Extent.FULL else 1
    numbers = {"workers": workers, "tasks": tasks, "size": size}
    case = AreaCase("large inputs", watch, numbers, most_runs=most_runs, timeout=900)
    title = (
        f"{tasks} tasks x {round_amount(size, 'bytes')} input each, lazily produced,"
        f" {workers} Python workers"
    )
    what, peak = "peak memory of client and workers together", case["peak"] * 1e-6
    rows = [
        PlannedRow(what, "MB", peak, target=Target(1500), digits=0),
        PlannedRow("duration", "s", case["seconds"], digits=1),
    ]
    return Area("large", title, (case,), rows)


# Area `journal`: `map` of functions that do nothing, with and without a journal, and resumed.

_WRITTEN, _READ = 200_000, 1_000_000
"""Items per second with a journal, and read from one."""
_MORE = 64e6
"""How much more memory ten times as many items may take, bytes."""


def nothing(count: int) -> Values:
    """Items per second of a map of so many: plain, with a new journal, and with a full one.

    `more`: what the process's largest size has grown by for all but the first tenth, bytes.
    """
    values: Values = {}
    with (
        tempfile.TemporaryDirectory(prefix="gb-journal-") as folder,
        Grid(workers=_WORKERS) as grid,
    ):
        grid.wait_until_ready()
        list(grid.map(same, range(count // 10), journal=Path(folder, "first")))
        list(grid.map(same, range(count // 10), journal=Path(folder, "first")))
        before = _peak()
        for name in ("plain", "written", "read"):
            journal = None if name == "plain" else Path(folder, "all")
            begin = time.perf_counter()
            total = sum(grid.map(same, range(count), journal=journal))
            values[name] = count / (time.perf_counter() - begin)
            if total != count * (count - 1) // 2:
                raise RuntimeError("results are missing, or wrong")
        values["more"] = _peak() - before
        values["bytes"] = Path(folder, "all").stat().st_size / count
    return values


def _peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def journal_area(extent: Extent) -> Area:
    """In full there are more items."""
    return journal_area_of(10_000_000 if extent is Extent.FULL else 1_000_000)


def journal_area_of(count: int) -> Area:
    """With so many items."""
    case = AreaCase("nothing", nothing, {"count": count})
    plain, more = case["plain"], case["more"] * 1e-6
    rows = [
        *(
            PlannedRow(f"items per second {what}", "/s", case[name], limit=plain, target=target)
            for name, what, target in (
                ("written", "with a journal", Target(_WRITTEN, at_least=True)),
                ("read", "that a journal has", Target(_READ, at_least=True)),
            )
        ),
        PlannedRow(
            "memory for the last nine tenths of the items", "MB", more, target=Target(_MORE * 1e-6)
        ),
        PlannedRow("bytes of the file for each item", "", case["bytes"], digits=1),
    ]
    title = f"map of {count:,} items of nothing, {_WORKERS} workers; limit: without a journal"
    return Area("journal", title, [case], rows)
