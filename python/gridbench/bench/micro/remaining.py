"""What of the plan is there, and what is still to be measured."""

from __future__ import annotations

from collections.abc import Sequence

from gridbench.bench.micro.figures import Extent
from gridbench.bench.plan import Item, Session
from gridbench.bench.points import Point, PointsFile, key_of


def missing(session: Session, number: int, points: PointsFile) -> list[Item]:
    """The items of the session that have no point in this round."""
    done = points.done()
    return [
        item
        for item in session.items
        if key_of(item.workload, item.engine, item.parameters, number) not in done
    ]


def hopeless(session: Session, number: int, points: Sequence[Point]) -> bool:
    """Whether all of it failed in an earlier round, so that another one would be time lost.

    What failed in an earlier call is tried again, as something may have been mended since.
    """
    mine = {key_of(item.workload, item.engine, item.parameters, 0)[:3] for item in session.items}
    engines = {item.engine for item in session.items}
    before = [
        point
        for point in points
        if point.round < number and point.engine in engines and point.key[:3] in mine
    ]
    return bool(before) and all(point.status in ("failed", "cannot") for point in before)


def seconds_left(session: Session, points: PointsFile) -> float:
    """How long what is missing of a session takes in all rounds, about."""
    return sum(
        session.seconds_of(missing(session, number, points)) for number in range(session.rounds)
    )


def extent_of(sessions: Sequence[Session], points: Sequence[Point]) -> Extent:
    """How much of what was planned there is; what was rightly not tried again is not planned."""
    keys = {point.key for point in points}
    rounds = max((session.rounds for session in sessions), default=0)
    planned = there = 0
    first = rounds
    for number in reversed(range(rounds)):
        for session in sessions:
            items = session.items if number < session.rounds else ()
            found = sum(
                key_of(item.workload, item.engine, item.parameters, number) in keys
                for item in items
            )
            there += found
            if found == len(items) or hopeless(session, number, points):
                planned += found
            else:
                planned += len(items)
                first = number + 1
    return Extent(points=there, planned=planned, round=first, rounds=rounds)
