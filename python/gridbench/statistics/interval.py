"""A measured value with the interval that it lies in: spread of repetitions, and clocks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """`value`, which lies from `low` to `high`."""

    value: float
    low: float
    high: float

    def minus(self, other: Interval) -> Interval:
        """The difference of two values that were measured independently."""
        return Interval(self.value - other.value, self.low - other.high, self.high - other.low)

    def times(self, factor: float) -> Interval:
        """Multiplied by a number that is certain."""
        ends = (self.low * factor, self.high * factor)
        return Interval(self.value * factor, min(ends), max(ends))

    def under(self, amount: float) -> Interval | None:
        """`amount` divided by it, as for a rate; None if it is not above 0.

        The upper end is infinite if the time may be 0: then it says only how fast at least.
        """
        if not self.value > 0:
            return None
        high = amount / self.low if self.low > 0 else math.inf
        return Interval(amount / self.value, amount / self.high, high)

    def above(self, other: Interval) -> bool:
        """Whether it is larger for certain."""
        return self.low > other.high


def measured(values: Iterable[float], margin: float) -> Interval | None:
    """The median of repetitions, from the smallest to the largest, each certain to `margin`.

    None without any known value. Of a single one only the margin is told: how repetitions would
    spread is then not known.
    """
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return None
    return Interval(statistics.median(known), min(known) - margin, max(known) + margin)
