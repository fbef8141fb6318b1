"""How far the clock of a host is ahead of the client's, from messages there and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns

LOOKS = 5
"""Messages there and back for an answer; the shortest says most."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The host's clock was `offset` ahead, give or take `error`; nanoseconds."""

    offset: int = 0
    error: int = 0
    trip: int = 0
    """How long a message there and back takes at best."""


def ask(clock: Callable[[], int], looks: int = LOOKS) -> Clock:
    """Ask a host for its time. The time that it tells was some time between question and answer."""
    return min((_once(clock) for _ in range(looks)), key=lambda one: one.error)


def between(before: Clock, after: Clock) -> Clock:
    """What holds for the time between two such answers, in which the clock may drift."""
    middle = (before.offset + after.offset) // 2
    apart = abs(before.offset - after.offset) // 2
    return Clock(middle, max(before.error, after.error) + apart, min(before.trip, after.trip))


def _once(clock: Callable[[], int]) -> Clock:
    asked = monotonic_ns()
    there = clock()
    answered = monotonic_ns()
    trip = answered - asked
    return Clock(there - (asked + answered) // 2, (trip + 1) // 2, trip)
