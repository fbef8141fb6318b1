"""Taking values out of the points: by engine, by round, of one quantity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gridbench.micro.catalogue import Source
from gridbench.micro.histogram import Histogram
from gridbench.micro.points import Key, Point

ByRound = dict[int, float]


@dataclass(slots=True)
class Series:
    """What the points tell of one quantity of one engine."""

    values: ByRound = field(default_factory=dict)
    disturbed: set[int] = field(default_factory=set)
    """The rounds that other programs disturbed."""
    trouble: Point | None = None
    """The last point that has no value, if any."""
    note: str = ""
    """What has to be known of the values, such as the parameter that was chosen."""
    samples: Histogram = field(default_factory=Histogram)
    """Of all rounds."""

    @property
    def undisturbed(self) -> ByRound:
        """The values that a claim may rest on."""
        return {n: value for n, value in self.values.items() if n not in self.disturbed}


class Points:
    """The points that count: of repeated ones the least disturbed."""

    def __init__(self, points: Iterable[Point]) -> None:
        best: dict[Key, Point] = {}
        for point in points:
            known = best.get(point.key)
            if known is None or _order(point) < _order(known):
                best[point.key] = point
        self._by_workload: dict[str, list[Point]] = {}
        for point in best.values():
            self._by_workload.setdefault(point.workload, []).append(point)

    @property
    def failed(self) -> list[Point]:
        """Those that have no value though they should."""
        every = [point for points in self._by_workload.values() for point in points]
        return [point for point in every if point.status == "failed"]

    def of(self, workload: str) -> list[Point]:
        """All points of a workload."""
        return self._by_workload.get(workload, [])

    def series(self, source: Source) -> dict[str, Series]:
        """One quantity by engine, in the source's unit times its factor."""
        found: dict[str, Series] = {}
        for point in self.of(source.workload):
            if any(point.parameters.get(n) != value for n, value in source.parameters.items()):
                continue
            series = found.setdefault(point.engine, Series())
            if point.status != "ok":
                series.trouble = point
            elif source.quantity in point.values:
                series.values[point.round] = point.values[source.quantity] * source.factor
                if point.disturbed:
                    series.disturbed.add(point.round)
                counts = point.samples.get(source.quantity)
                if isinstance(counts, dict):
                    series.samples = series.samples.merged(Histogram.from_record(counts))
        return found


def _order(point: Point) -> tuple[bool, float]:
    return point.status != "ok", point.load.get("others_cpu", 0.0)
