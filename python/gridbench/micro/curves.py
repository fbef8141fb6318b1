"""Quantities over another: array sizes, numbers of workers, task times, chunk sizes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from gridbench.bench.points import Point
from gridbench.bench.series import Points
from gridbench.micro.figures import Axis, Curve, Entry, Figure, Line
from gridbench.micro.workloads import AGAIN
from gridbench.statistics.interval import interval_of_median

_BINS_PER_DECADE = 8
_FAMILIES = (
    ("argument", "An array as argument", "argument_{}", Axis(name="size", unit="bytes")),
    ("echo", "An array there and back", "echo_{}", Axis(name="size", unit="bytes")),
    ("start_first", "From nothing to the first task", "start_{}_first", Axis(name="workers")),
    ("start_all", "From nothing to all at work", "start_{}_all", Axis(name="workers")),
    ("memory", "Memory of idle workers", "memory_{}", Axis(name="workers")),
)


def curves_of(points: Points, figures: Sequence[Figure]) -> Iterator[Curve]:
    """All curves for which there is something."""
    for name, title, pattern, axis in _FAMILIES:
        head, tail = pattern.split("{}")
        family = [
            figure
            for figure in figures
            if figure.parameter is not None
            and figure.id.startswith(head)
            and figure.id[len(head) :].split("_", 1)[1:] == tail.split("_", 1)[1:]
        ]
        if family:
            y = Axis(name="time" if family[0].unit != "MB" else "memory", unit=family[0].unit)
            yield Curve(id=name, title=title, x=axis, y=y, log=True, lines=_lines(family))
    yield from _map_rates(points)
    yield from _grains(points)
    yield from _million(points)


def _lines(family: Sequence[Figure]) -> tuple[Line, ...]:
    entries: dict[str, list[tuple[float, Entry]]] = {}
    for figure in family:
        assert figure.parameter is not None
        for entry in figure.entries:
            if entry.median is not None:
                entries.setdefault(entry.engine, []).append((figure.parameter.value, entry))
    return tuple(_line(engine, found) for engine, found in entries.items())


def _line(engine: str, found: list[tuple[float, Entry]]) -> Line:
    sure = all(entry.low is not None for _, entry in found)
    return Line(
        engine=engine,
        x=tuple(x for x, _ in found),
        y=tuple(entry.median or 0.0 for _, entry in found),
        low=tuple(entry.low or 0.0 for _, entry in found) if sure else (),
        high=tuple(entry.high or 0.0 for _, entry in found) if sure else (),
    )


def _shown(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Those that are well, by engine."""
    found: dict[str, list[Point]] = {}
    for point in points:
        if point.status == "ok" and not point.engine.endswith(AGAIN):
            found.setdefault(point.engine, []).append(point)
    return found


def _map_rates(points: Points) -> Iterator[Curve]:
    lines = []
    for engine, found in _shown(points.of_workload("map_rate")).items():
        rates: dict[float, list[float]] = {}
        for point in found:
            chunk = point.parameters["chunk"]
            if isinstance(chunk, int):  # not one that the engine chooses itself
                rates.setdefault(float(chunk), []).append(point.values["per_second"])
        if rates:
            lines.append(_collected(engine, rates))
    if lines:
        yield Curve(
            id="map_rate",
            title="Null calls per second by map",
            x=Axis(name="chunk", unit="items"),
            y=Axis(name="rate", unit="calls/s"),
            log=True,
            lines=tuple(lines),
        )


def _collected(engine: str, values: dict[float, list[float]]) -> Line:
    xs = sorted(values)
    intervals = [interval_of_median(values[x]) for x in xs]
    known = [interval for interval in intervals if interval is not None]
    sure = len(known) == len(xs)
    return Line(
        engine=engine,
        x=tuple(xs),
        y=tuple(statistics.median(values[x]) for x in xs),
        low=tuple(low for low, _ in known) if sure else (),
        high=tuple(high for _, high in known) if sure else (),
    )


def _grains(points: Points) -> Iterator[Curve]:
    for by, ending, words in (("submit", "", "submitted singly"), ("map", "_map", "by map")):
        mine = [point for point in points.of_workload("metg") if point.parameters["by"] == by]
        lines = []
        for engine, found in _shown(mine).items():
            tries: dict[int, list[tuple[float, float]]] = {}
            for point in found:
                samples = zip(point.samples["task_us"], point.samples["efficiency"], strict=True)
                for task, efficiency in samples:
                    # Rounds try different times: near ones go together.
                    tries.setdefault(_bin(task), []).append((task, efficiency))
            middles = [
                tuple(statistics.median(side) for side in zip(*tries[n], strict=True))
                for n in sorted(tries)
            ]
            lines.append(
                Line(engine=engine, x=tuple(m[0] for m in middles), y=tuple(m[1] for m in middles))
            )
        if lines:
            yield Curve(
                id=f"metg{ending}",
                title=f"How busy tasks keep 2 workers, {words}",
                x=Axis(name="task time", unit="us"),
                y=Axis(name="efficiency"),
                log=True,
                lines=tuple(lines),
            )


def _bin(value: float) -> int:
    return math.floor(_BINS_PER_DECADE * math.log10(value))


def _million(points: Points) -> Iterator[Curve]:
    lines = []
    for engine, found in _shown(points.of_workload("million")).items():
        last = [point for point in found if "calls" in point.samples]
        if last:
            samples = last[-1].samples
            lines.append(
                Line(engine=engine, x=tuple(samples["calls"]), y=tuple(samples["per_second"]))
            )
    if lines:
        yield Curve(
            id="million",
            title="Rate over a million calls in one go",
            x=Axis(name="calls done"),
            y=Axis(name="rate", unit="calls/s"),
            lines=tuple(lines),
        )
