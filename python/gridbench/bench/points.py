"""Points: measurements of one item in one round, and their series."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gridbench.engines.names import current_name
from gridbench.jsonl_store import PlannedCase, ResultsForm
from gridbench.statistics.series import Histogram, Series, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPoint(PlannedCase):
    """A point before it is measured."""

    workload: str
    engine: str = ""
    """Empty where a workload has one engine only."""
    parameters: dict[str, Any] = field(default_factory=dict)
    round: int
    """From 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPoint(PlannedPoint):
    """One measurement."""

    values: dict[str, float] = field(default_factory=dict)
    samples: dict[str, Any] = field(default_factory=dict)
    status: Status = "ok"
    why: str = ""
    at_limit: bool = False
    """It did not end within its limit, and would not on another try."""
    disturbed: bool = False
    load: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    at: str = ""
    """When it ended, ISO 8601; empty if it did not begin."""
    version: str = ""
    """Of the engine, if known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", current_name(self.engine))

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Sorts measurements of one point: values before failures, the least disturbed first."""
        return self.status != "ok", not self.at, self.load.get("others_cpu", 0.0)


def stands(point: DataPoint, *, retry_failed: bool) -> bool:
    """Whether a resumed run keeps a point: it has a value, or it failed undisturbed and failures
    are not retried."""
    return point.status == "ok" or (bool(point.at) and not point.disturbed and not retry_failed)


class Points:
    """The points that count: of repeated ones the least disturbed."""

    def __init__(self, points: Iterable[DataPoint] = ()) -> None:
        self._by_workload: dict[str, dict[Hashable, DataPoint]] = {}
        for point in points:
            self.add(point)

    def add(self, point: DataPoint) -> None:
        """One more."""
        found = self._by_workload.setdefault(point.workload, {})
        key = point.identity
        known = found.get(key)
        if known is None or point.rank < known.rank:
            found[key] = point

    @property
    def all(self) -> list[DataPoint]:
        """All of them."""
        return [point for found in self._by_workload.values() for point in found.values()]

    @property
    def run(self) -> list[DataPoint]:
        """Those of what was run, whatever the outcome."""
        return [point for point in self.all if point.at]

    @property
    def disturbed(self) -> list[DataPoint]:
        """Those that other programs disturbed."""
        return [point for point in self.run if point.disturbed]

    @property
    def failed(self) -> list[DataPoint]:
        """Those that have no value though they should."""
        return [point for point in self.all if point.status == "failed"]

    def of_workload(self, workload: str) -> list[DataPoint]:
        """All points of a workload."""
        return list(self._by_workload.get(workload, {}).values())

    def rounds_of(self, workload: str) -> dict[int, DataPoint]:
        """The points of a workload that one engine alone has, by round."""
        return {point.round: point for point in self.of_workload(workload)}

    def by_engine(
        self, workload: str, quantity: str, parameters: Mapping[str, Any], factor: float = 1.0
    ) -> dict[str, Series]:
        """One quantity by engine, times `factor`, of the points that have these parameters."""
        chosen: dict[str, list[DataPoint]] = {}
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


def _series(points: Iterable[DataPoint], quantity: str) -> Series:
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


def _lacks(point: DataPoint, quantity: str) -> bool:
    return point.status != "ok" and quantity not in point.values


class PointsForm(ResultsForm[DataPoint]):
    """The form of a file of points."""

    def counting(self, records: Iterable[DataPoint]) -> list[DataPoint]:
        """The least disturbed of each point."""
        return Points(records).all
