"""What of the plan is there, and what is still to be measured."""

from __future__ import annotations

from collections.abc import Sequence

from gridbench.bench.plan import Item, Session
from gridbench.bench.points import Key, Point, PointsFile, key_of
from gridbench.micro.figures import Extent
from gridbench.micro.workloads import case_of


def missing(session: Session, number: int, points: Sequence[Point]) -> list[Item]:
    """The items of the session that are to be measured in round `number`: those without a point.

    Another try would be time lost where those of earlier rounds did not end within their limit, or
    where all of the session failed in these. `points`: what is not measured again.
    """
    done = {point.key for point in points}
    before: dict[Key, list[Point]] = {}
    for point in points:
        if point.round < number:
            before.setdefault(_key(point, 0), []).append(point)
    earlier = [before.get(_key(item, 0), []) for item in session.items]
    tries = [point for own in earlier for point in own]
    if tries and all(point.status in ("failed", "cannot") for point in tries):
        return []
    return [
        item
        for item, own in zip(session.items, earlier, strict=True)
        if _key(item, number) not in done and not (own and all(point.at_limit for point in own))
    ]


def failed_before(sessions: Sequence[Session], points: PointsFile) -> list[str]:
    """What failed in an earlier call and is not tried again, in words."""
    failed = points.failed_before
    return [
        f"{item.engine} {case_of(item)}"
        for session in sessions
        for item in session.items
        if any(_key(item, number) in failed for number in range(session.rounds))
    ]


def seconds_left(session: Session, points: Sequence[Point]) -> float:
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
            if number < session.rounds:
                found = sum(_key(item, number) in keys for item in session.items)
                left = len(missing(session, number, points))
                there += found
                planned += found + left
                first = number + 1 if left else first
    return Extent(points=there, planned=planned, round=first, rounds=rounds)


def _key(one: Item | Point, number: int) -> Key:
    """That of its point in a round."""
    return key_of(one.workload, one.engine, one.parameters, number)
