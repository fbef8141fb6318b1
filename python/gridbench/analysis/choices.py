"""What a series of measured cases says to choose: the best split, and sizes that cost too much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gridbench.errors import InputError
from gridbench.statistics.interval import Interval

JUMP = 2.0
"""A cost that is more than so many times that without data has jumped."""


@dataclass(frozen=True, slots=True)
class SweetSpot:
    """Where the total time over the number of tasks is smallest."""

    tasks: int
    total: Interval
    as_good: tuple[int, ...]
    """Numbers of tasks, the best included, whose total may be just as small, rising."""
    at_edge: bool
    """The smallest or largest number that was tried: a better one may lie beyond."""


def sweet_spot(totals: Mapping[int, Interval]) -> SweetSpot:
    """The number of tasks with the smallest total time. InputError without at least two."""
    if len(totals) < 2:
        raise InputError(
            f"a best number of tasks needs at least two to choose from, not {len(totals)}",
            remedy="measure the same work split into different numbers of tasks",
        )
    best = min(totals, key=lambda tasks: (totals[tasks].value, tasks))
    return SweetSpot(
        tasks=best,
        total=totals[best],
        as_good=tuple(sorted(n for n, total in totals.items() if total.low <= totals[best].high)),
        at_edge=best in (min(totals), max(totals)),
    )


def jump(costs: Mapping[int, Interval], factor: float = JUMP) -> int | None:
    """The smallest size at which the cost has jumped for certain, bytes; None if it does nowhere.

    `costs`: the cost at each size, that of size 0 among them. It has jumped when even its lower
    end is more than `factor` times the upper end of the cost without data, and it stays so for
    all larger sizes. InputError without size 0.
    """
    if 0 not in costs:
        raise InputError(
            "a jump is found by comparison with the cost without data, which was not measured",
            remedy="measure size 0 as well",
        )
    bound = factor * max(0.0, costs[0].high)
    found = None
    for size in sorted(costs, reverse=True)[:-1]:
        if costs[size].low <= bound:
            break
        found = size
    return found


def largest_good(values: Mapping[int, float], least: float) -> int | None:
    """The largest size up to which the efficiency is at least `least` at every size; or None."""
    found = None
    for size in sorted(values):
        if values[size] < least:
            break
        found = size
    return found
