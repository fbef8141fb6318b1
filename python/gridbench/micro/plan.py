"""The points of a run: their order, and which of them are not worth measuring."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from gridbench.bench.points import DataPoint, PlannedPoint
from gridbench.bench.session import Item, Session
from gridbench.micro.record import Completeness
from gridbench.micro.workloads import case_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPoint(PlannedPoint):
    """A planned point, and how its session measures it."""

    session: Session
    item: Item
    series: Hashable
    """The key of its points of all rounds."""
    companions: tuple[Hashable, ...]
    """Those of all items of its session."""

    @property
    def seconds(self) -> float:
        """Estimate; the first item of a session has the start."""
        start = self.session.start_seconds if self.item is self.session.items[0] else 0.0
        return start + self.item.seconds

    def told(self) -> str:
        """Engine, workload and round."""
        case = case_of(self.workload, self.parameters)
        return f"{self.engine} {case}, round {self.round + 1}"


def points_of(session: Session, number: int) -> list[SessionPoint]:
    """The points of a session in a round."""
    points = [
        PlannedPoint(
            workload=item.workload, engine=item.engine, parameters=item.parameters, round=number
        )
        for item in session.items
    ]
    series = tuple(point.key_without("round") for point in points)
    return [
        SessionPoint(
            **point.planned_fields, session=session, item=item, series=key, companions=series
        )
        for point, item, key in zip(points, session.items, series, strict=True)
    ]


def planned(sessions: Sequence[Session], seed: int) -> list[SessionPoint]:
    """All points in the order in which they are measured.

    Rounds are outermost, so that a run that is cut off has all engines; within a round the sessions
    come in random order.
    """
    found = []
    for number in range(max((session.rounds for session in sessions), default=0)):
        due = [session for session in sessions if number < session.rounds]
        random.Random(f"{seed} {number}").shuffle(due)
        found += [point for session in due for point in points_of(session, number)]
    return found


class Attempts:
    """What was tried in which round."""

    def __init__(self, points: Iterable[DataPoint] = ()) -> None:
        self._by_series: dict[Hashable, list[DataPoint]] = {}
        self._failed: set[Hashable] = set()
        for point in points:
            self.add(point)

    def add(self, point: DataPoint) -> None:
        """One more."""
        key = point.key_without("round")
        self._by_series.setdefault(key, []).append(point)
        if point.status != "ok":
            self._failed.add(key)

    def futile(self, case: SessionPoint) -> str:
        """Why another try would be a waste of time; empty if it is none."""
        if self._failed.isdisjoint(case.companions):  # the usual case, and a quick answer
            return ""
        own = self._earlier(case.series, case.round)
        if own and all(point.at_limit for point in own):
            return "it did not end within its time limit in earlier rounds"
        tries = [point for key in case.companions for point in self._earlier(key, case.round)]
        if tries and all(point.status in ("failed", "cannot") for point in tries):
            return "its session failed in earlier rounds"
        return ""

    def _earlier(self, series: Hashable, number: int) -> list[DataPoint]:
        return [point for point in self._by_series.get(series, []) if point.round < number]


def completeness(cases: Sequence[SessionPoint], points: Sequence[DataPoint]) -> Completeness:
    """How many of the planned points exist; futile ones are not planned."""
    keys, attempts = {point.identity for point in points}, Attempts(points)
    there = sum(case.identity in keys for case in cases)
    left = [
        case.round + 1 for case in cases if case.identity not in keys and not attempts.futile(case)
    ]
    rounds = max((case.round + 1 for case in cases), default=0)
    return Completeness(
        points=there, planned=there + len(left), round=min(left, default=rounds), rounds=rounds
    )
