"""The points that count, and the series that are taken out of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gridbench.bench.points import Key, Point
from gridbench.statistics.series import Histogram, Series


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
