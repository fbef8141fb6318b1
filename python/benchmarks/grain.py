"""Area `grain`: `map` with `chunk="auto"` beside fixed chunk sizes, for tasks that spin.

A run goes through all sizes in random order, each with the same tasks on the same two workers. What
"auto" is compared with is the size that turned out best, which nobody knows beforehand.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import Literal

from benchmarks.figures import Area, AreaCase, Row, Target, Values
from gridbench.bench.points import Points
from gridbench.formats import as_given, round_amount
from gridbench.statistics.series import Series
from gridbench.workload.calls import spin
from gridrpc import Grid

Tasks = Literal["10 us", "log-normal"]

_WORKERS = 2
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_MEAN, _SIGMA = 100e-6, 2.0
#: How much longer than with the best fixed size a run may take.
_BOUND = 1.10


def sizes(tasks: Tasks, count: int, seed: int) -> Values:
    """Seconds for so many tasks: by fixed size of chunks, and with "auto".

    `auto` is told how many tasks there are, `auto, generator` is not.
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
                raise RuntimeError("tasks ran for less time than they were told to")
    return values


def _times(tasks: Tasks, count: int, seed: int) -> list[float]:
    """Run times of the tasks, s."""
    if tasks == "10 us":
        return [10e-6] * count
    draw = random.Random(seed)
    times = [draw.lognormvariate(0.0, _SIGMA) for _ in range(count)]
    scale = _MEAN * count / sum(times)
    return [scale * t for t in times]


def area(full: bool) -> Area:
    """In full there are more tasks."""
    return (
        area_of(uniform=100_000, uneven=20_000) if full else area_of(uniform=20_000, uneven=5_000)
    )


def area_of(*, uniform: int, uneven: int) -> Area:
    """With so many tasks of 10 us, and so many of uneven times."""
    counts: dict[Tasks, int] = {"10 us": uniform, "log-normal": uneven}
    return Area(
        "grain",
        f'map, {_WORKERS} workers: chunk="auto"; peer: the best fixed chunk size',
        [
            AreaCase(_name(tasks), sizes, {"tasks": tasks, "count": count, "seed": 1})
            for tasks, count in counts.items()
        ],
        _rows,
    )


def _name(tasks: Tasks) -> str:
    return f"chunk sizes, tasks of {tasks}"


def _rows(samples: Points) -> list[Row]:
    rows = []
    titles: dict[Tasks, str] = {
        "10 us": "tasks of 10 µs",
        "log-normal": f"log-normal tasks, mean {round_amount(_MEAN, 's')},"
        f" sigma {as_given(_SIGMA, '')}",
    }
    for tasks, title in titles.items():
        fixed = {size: samples.of(_name(tasks), str(size)) for size in _SIZES}
        best = min(fixed, key=lambda size: _sortable(fixed[size]))
        for auto, how in (("auto", ""), ("auto, generator", ", from a generator")):
            rows.append(
                Row(
                    f"{title}{how}; best fixed: {best}",
                    "s",
                    samples.of(_name(tasks), auto),
                    peer=fixed[best],
                    target=Target(_BOUND, of_peer=True),
                )
            )
    return rows


def _sortable(measured: Series) -> float:
    return measured.median if measured.values else float("inf")
