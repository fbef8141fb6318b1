"""Where two lines of measured times cross."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from gridbench.statistics.interval import Interval

Kind = Literal["always", "never", "from", "up to"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where one of two things is faster than the other, over a size or a number."""

    kind: Kind
    """`always`: at all places; `never`: not at the largest of them; `from`: at all from one on; `up
    to`: at all up to one, and none beyond."""
    at: float = math.nan
    """For `from` and `up to`."""
    low: float = math.nan
    """The least that this may be, as the times spread; 0: it may be at all places, or at none."""
    high: float = math.nan
    """The most; infinite: beyond the largest place."""
    several: bool = False
    """It is faster in other places, too."""

    def describe(self, show: Callable[[float], str]) -> str:
        """Where it is faster: `always`, `from 12 MB`."""
        return f"{self.kind} {show(self.at)}" if self.kind in {"from", "up to"} else self.kind

    def spread(self, show: Callable[[float], str]) -> str:
        """How far the place may be off; empty: it is not."""
        if not self.certain:
            return "not certain"
        if self.kind in {"always", "never"}:
            return ""
        low, high = show(self.low), show(self.high)
        return "" if low == high else f"{low} to {high}"

    @property
    def certain(self) -> bool:
        """Whether it is the same however the times spread; the place apart."""
        if self.kind == "always":
            return self.high == 0
        if self.kind == "never":
            return self.low == math.inf
        return self.low > 0 and self.high < math.inf


def crossing(ours: Mapping[int, Interval], theirs: Mapping[int, Interval]) -> Crossing | None:
    """Where `theirs` are faster than `ours`.

    Both are times over sizes or numbers, as far as both were measured at them. Between
    two of these, the ratio of the times is taken to change evenly over the ratio of the places: in
    a picture with two logarithmic axes the lines between the points are straight. None if fewer
    than two places were measured on both sides.
    """
    places = sorted(ours.keys() & theirs.keys())
    if len(places) < 2:
        return None

    def cross(ratio: Mapping[int, float]) -> Crossing:
        return _cross(places, [math.log(max(ratio[one], 1e-300)) for one in places])

    found = cross({one: ours[one].value / theirs[one].value for one in places})
    # With our slowest and their fastest runs, and the opposite.
    best = cross({one: ours[one].high / theirs[one].low for one in places})
    worst = cross({one: ours[one].low / theirs[one].high for one in places})
    if found.kind == "up to":
        return replace(found, low=_up_to(worst), high=_up_to(best))
    return replace(found, low=_from(best), high=_from(worst))


def kind_of(faster: Sequence[bool]) -> tuple[Kind, int, bool]:
    """What it is, by whether it is faster at each place; for `from` and `up to` before
    which place it changes; and whether it is faster in other places too."""
    changes = [number for number, (a, b) in enumerate(pairwise(faster), 1) if a != b]
    if not changes:
        return ("always" if faster[0] else "never"), 0, False
    if faster[-1]:
        return "from", changes[-1], len(changes) > 1
    if len(changes) == 1:
        return "up to", changes[0], False
    return "never", 0, True


def _cross(places: Sequence[int], ahead: Sequence[float]) -> Crossing:
    """`ahead`: the logarithm of our time by theirs."""
    kind, number, several = kind_of([one > 0 for one in ahead])
    if kind in {"always", "never"}:
        return Crossing(kind, several=several)
    before, after = ahead[number - 1], ahead[number]
    below, above = places[number - 1], places[number]
    at = below * (above / below) ** (before / (before - after))
    return Crossing(kind, at, several=several)


def _from(found: Crossing) -> float:
    """The place from which on it is faster."""
    ends = {"always": 0.0, "never": math.inf, "up to": math.inf, "from": found.at}
    return ends[found.kind]


def _up_to(found: Crossing) -> float:
    """The place up to which it is."""
    ends = {"always": math.inf, "never": 0.0, "up to": found.at, "from": math.inf}
    return ends[found.kind]
