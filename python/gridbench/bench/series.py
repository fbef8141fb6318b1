"""Taking values out of the points: one quantity, by round."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gridbench.bench.histogram import Histogram
from gridbench.bench.points import Key, Point, Status

ByRound = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one quantity by round, the order of which pairs them with those of others."""

    by_round: ByRound = field(default_factory=dict)
    problem: str = ""
    """Why values are missing; empty if none are."""
    at_limit: bool = False
    """They are missing because it did not end within its limit."""
    disturbed: frozenset[int] = frozenset()
    """The rounds that other programs disturbed."""
    status: Status = "ok"
    """Of what has no value."""
    note: str = ""
    """What has to be known of the values, such as the parameter that was chosen."""
    samples: Histogram = field(default_factory=Histogram)
    """Of all rounds."""

    @classmethod
    def exactly(cls, value: float) -> Series:
        """A quantity that follows from the numbers of a case, such as the ideal time."""
        return cls({0: value})

    @property
    def values(self) -> list[float]:
        """In the order of rounds."""
        return [self.by_round[number] for number in sorted(self.by_round)]

    @property
    def median(self) -> float:
        """NaN if nothing could be measured."""
        return statistics.median(self.by_round.values()) if self.by_round else float("nan")

    @property
    def undisturbed(self) -> Series:
        """What a claim may rest on."""
        sound = {n: value for n, value in self.by_round.items() if n not in self.disturbed}
        return replace(self, by_round=sound, disturbed=frozenset())

    def scaled(self, factor: float) -> Series:
        """The same in another unit."""
        return replace(self, by_round={n: value * factor for n, value in self.by_round.items()})

    def ratios_to(self, other: Series) -> Series:
        """How many times the other value this one is, for each round that both have.

        Values of one round were measured soon after each other, so that a machine that is slow for
        a while does not shift their ratio.
        """
        common = sorted(self.by_round.keys() & other.by_round.keys())
        return Series(
            {n: self.by_round[n] / other.by_round[n] for n in common if other.by_round[n]},
            disturbed=self.disturbed | other.disturbed,
        )

    def ratio_to(self, other: Series) -> float:
        """Median of the ratios of those rounds that both have; NaN if there are none."""
        return self.ratios_to(other).median

    def difference_to(self, twin: Series) -> Series:
        """How many times the larger of the two is the smaller, for each round that both have."""
        ratios = {n: ratio for n, ratio in self.ratios_to(twin).by_round.items() if ratio}
        return Series(
            {n: max(ratio, 1 / ratio) for n, ratio in ratios.items()},
            self.problem or twin.problem,
            self.at_limit or twin.at_limit,
            self.disturbed | twin.disturbed,
        )


class Points:
    """The points that count: of repeated ones the least disturbed."""

    def __init__(self, points: Iterable[Point] = ()) -> None:
        self._by_workload: dict[str, dict[Key, Point]] = {}
        for point in points:
            self.add(point)

    def add(self, point: Point) -> None:
        """One more."""
        found = self._by_workload.setdefault(point.workload, {})
        known = found.get(point.key)
        if known is None or _order(point) < _order(known):
            found[point.key] = point

    @property
    def all(self) -> list[Point]:
        """All of them."""
        return [point for found in self._by_workload.values() for point in found.values()]

    @property
    def run(self) -> list[Point]:
        """Those of what was run, whatever came of it."""
        return [point for point in self.all if point.at]

    @property
    def disturbed(self) -> list[Point]:
        """Those that other programs disturbed."""
        return [point for point in self.run if point.disturbed]

    @property
    def failed(self) -> list[Point]:
        """Those that have no value though they should."""
        return [point for point in self.all if point.status == "failed"]

    def of_workload(self, workload: str) -> list[Point]:
        """All points of a workload."""
        return list(self._by_workload.get(workload, {}).values())

    def rounds_of(self, workload: str) -> dict[int, Point]:
        """The points of a workload that one engine alone has, by round."""
        return {point.round: point for point in self.of_workload(workload)}

    def by_engine(
        self, workload: str, quantity: str, parameters: Mapping[str, Any], factor: float = 1.0
    ) -> dict[str, Series]:
        """One quantity by engine, times `factor`, of the points that have these parameters."""
        chosen: dict[str, list[Point]] = {}
        for point in self.of_workload(workload):
            if all(point.parameters.get(name) == value for name, value in parameters.items()):
                chosen.setdefault(point.engine, []).append(point)
        return {
            engine: _series(points, quantity).scaled(factor) for engine, points in chosen.items()
        }

    def of(self, workload: str, quantity: str) -> Series:
        """One quantity of a workload that one engine alone has; problems say which it is of."""
        points = self.of_workload(workload)
        series = _series(points, quantity)
        if not points:
            return replace(series, problem=f"{workload}: was not run")
        if series.problem:
            last = max(point.round for point in points if _lacks(point, quantity))
            series = replace(series, problem=f"{workload}, round {last + 1}: {series.problem}")
        return series


def _series(points: Iterable[Point], quantity: str) -> Series:
    series = Series()
    values: dict[int, float] = {}
    disturbed: set[int] = set()
    for point in sorted(points, key=lambda point: point.round):
        if quantity in point.values:
            values[point.round] = point.values[quantity]
            if point.disturbed:
                disturbed.add(point.round)
            counts = point.samples.get(quantity)
            if isinstance(counts, dict):
                merged = series.samples.merged(Histogram.from_record(counts))
                series = replace(series, samples=merged)
        elif _lacks(point, quantity):
            series = replace(
                series, problem=point.why, status=point.status, at_limit=point.at_limit
            )
    return replace(series, by_round=values, disturbed=frozenset(disturbed))


def _lacks(point: Point, quantity: str) -> bool:
    return point.status != "ok" and quantity not in point.values


def _order(point: Point) -> tuple[bool, bool, float]:
    """What could not be measured counts only as long as nothing else is there."""
    return (
        point.status != "ok",
        not point.at,
        point.load.get("others_cpu", 0.0),
    )
