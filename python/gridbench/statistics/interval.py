"""Values with the intervals they lie in: of repetitions, of medians, and of ratios of medians."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

_RESAMPLES = 2000
_SURE = 0.95


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

    None without any known value. Of a single one only the margin is known: how repetitions would
    spread is then not known.
    """
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return None
    return Interval(statistics.median(known), min(known) - margin, max(known) + margin)


def index_of_median(values: Sequence[float]) -> int:
    """Where the median lies among the values; of an even number the lower of the two in the
    middle."""
    order = sorted(range(len(values)), key=values.__getitem__)
    return order[(len(values) - 1) // 2]


def interval_of_median(values: Sequence[float]) -> tuple[float, float] | None:
    """A 95 % interval of the median, from the order of the values; None for fewer than three.

    Of three to five values no two hold the median in 95 % of cases; then it is the smallest and
    the largest, which do so in 75 to 94 %.
    """
    ordered = sorted(values)
    count = len(ordered)
    if count < 3:
        return None
    # The median lies below the value of rank r in as many cases as r coins or fewer show heads.
    rank, below = 0, 0.0
    while rank < (count - 1) // 2:
        below += comb(count, rank) / 2**count
        if 2 * below > 1 - _SURE:
            break
        rank += 1
    lowest = max(0, rank - 1)
    return ordered[lowest], ordered[count - 1 - lowest]


def bootstrap_interval(values: Sequence[float], seed: int = 1) -> tuple[float, float] | None:
    """A 95 % interval of the median, by drawing again from the values; None for fewer than two."""
    if len(values) < 2:
        return None
    draw = random.Random(seed)
    medians = sorted(
        statistics.median(draw.choices(values, k=len(values))) for _ in range(_RESAMPLES)
    )
    tail = round(_RESAMPLES * (1 - _SURE) / 2)
    return medians[tail], medians[-1 - tail]


def ratio_bounds(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float] | None:
    """Lower and upper bound of the ratio of what two samples come from, each with 95 % confidence.

    By ranks (Hodges and Lehmann's interval with the distribution of Mann and Whitney's U), so that
    nothing is supposed of how totals are distributed, and an outlier counts no more than any other.
    None if there are too few for that confidence: three of each do.
    """
    pairs = sorted(our / their for our in ours for their in theirs)
    # The largest number of pairs that may be left out at one end.
    counts = _arrangements(len(ours), len(theirs))
    total, so_far, left_out = sum(counts), 0, -1
    for count in counts:
        so_far += count
        if so_far > (1 - _SURE) * total * (1 + 1e-9):
            break
        left_out += 1
    return None if left_out < 0 else (pairs[left_out], pairs[-1 - left_out])


def _arrangements(ours: int, theirs: int) -> list[int]:
    """For each value of Mann and Whitney's U, in how many orders of two samples it comes out."""
    # The coefficients of a Gaussian binomial, by its factors (1 - q^(theirs + k)) / (1 - q^k).
    counts = [1] + [0] * (ours * theirs)
    for factor in range(1, ours + 1):
        for power in range(len(counts) - 1, theirs + factor - 1, -1):
            counts[power] -= counts[power - theirs - factor]
        for power in range(factor, len(counts)):
            counts[power] += counts[power - factor]
    return counts
