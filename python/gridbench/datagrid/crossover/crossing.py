"""From where on the data grid is the faster one, by what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from gridbench.statistics.interval import Interval


@dataclass(frozen=True, slots=True)
class Crossing:
    """From where on, over size or readers, the data grid is faster than the compute grid."""

    kind: Literal["always", "never", "at"]
    """`always`: wherever it was measured; `never`: not at the largest that was measured."""
    at: float = math.nan
    """For `at`: from there on it is faster."""
    low: float = math.nan
    """As the times spread, it may be from there on; 0: wherever it was measured."""
    high: float = math.nan
    """Or only from there; infinite: not even at the largest that was measured."""
    several: bool = False
    """Below, the data grid is faster in places, too."""


def crossing(compute: Mapping[int, Interval], grid: Mapping[int, Interval]) -> Crossing | None:
    """Where the line of the data grid comes to lie below that of the compute grid, and stays there.

    Both are times in seconds over sizes or readers, as far as both were measured at them. Between
    two of these, the ratio of the times is taken to change evenly over the ratio of the places: in
    a picture with two logarithmic axes the lines between the points are straight. None if fewer
    than two places were measured on both sides.
    """
    places = sorted(compute.keys() & grid.keys())
    if len(places) < 2:
        return None
    kind, at, several = _cross(
        {one: math.log(compute[one].value / grid[one].value) for one in places}
    )
    earliest = _cross({one: _log(compute[one].high / grid[one].low) for one in places})
    latest = _cross({one: _log(compute[one].low / grid[one].high) for one in places})
    return Crossing(
        kind,
        at,
        low=_end(earliest),
        high=_end(latest),
        several=several,
    )


_Found = tuple[Literal["always", "never", "at"], float, bool]


def _cross(ahead: Mapping[int, float]) -> _Found:
    """`ahead`: the logarithm of the time of the compute grid by that of the data grid, by place."""
    places = sorted(ahead)
    faster = [ahead[one] > 0 for one in places]
    several = sum(a != b for a, b in pairwise(faster)) > 1
    if all(faster):
        return "always", math.nan, False
    if not faster[-1]:
        return "never", math.nan, any(faster)
    behind = max(number for number, one in enumerate(faster) if not one)
    below, above = places[behind], places[behind + 1]
    share = -ahead[below] / (ahead[above] - ahead[below])
    return "at", below * (above / below) ** share, several


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def _end(found: _Found) -> float:
    kind, place, _ = found
    return {"always": 0.0, "never": math.inf, "at": place}[kind]
