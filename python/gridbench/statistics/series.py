"""Values of one quantity, round by round, and histograms of many times.

Percentiles of several runs come from their merged histograms, as they cannot be averaged.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

_GROWTH = math.log(1.01)  # a bucket ends 1 % above where it begins

PERCENTILES = ("50", "90", "99", "99.9")
"""Those that are shown, in percent."""


class Histogram:
    """Counts of positive values by buckets 1 % wide; bucket b begins at 1.01 to the power b."""

    def __init__(self, counts: Counter[int] | None = None) -> None:
        self._counts: Counter[int] = Counter() if counts is None else counts

    @classmethod
    def of(cls, values: Iterable[float]) -> Histogram:
        """The histogram of these values, which have to be positive."""
        return cls(Counter(math.floor(math.log(value) / _GROWTH) for value in values))

    @classmethod
    def from_record(cls, record: dict[str, int]) -> Histogram:
        """What `to_record` gave."""
        return cls(Counter({int(bucket): count for bucket, count in record.items()}))

    def to_record(self) -> dict[str, int]:
        """For JSON: the count of each bucket."""
        return {str(bucket): self._counts[bucket] for bucket in sorted(self._counts)}

    def merged(self, other: Histogram) -> Histogram:
        """All values of both."""
        return Histogram(self._counts + other._counts)

    @property
    def count(self) -> int:
        """How many values there are."""
        return self._counts.total()

    def percentile(self, percent: float) -> float:
        """The value that so many percent do not exceed, within 0.5 %; ValueError if empty."""
        if not self._counts:
            raise ValueError("an empty histogram has no percentiles")
        rank = max(1, math.ceil(self.count * percent / 100))
        passed = 0
        for bucket in sorted(self._counts):
            passed += self._counts[bucket]
            if passed >= rank:
                break
        return math.exp((bucket + 0.5) * _GROWTH)


ByRound = Mapping[int, float]
Status = Literal["ok", "failed", "cannot", "missing"]
"""Of what was to be measured."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one quantity by round, the order of which pairs them with those of others."""

    by_round: ByRound = field(default_factory=dict)
    problem: str = ""
    """Why values are missing; empty if none are."""
    at_limit: bool = False
    """They are missing because it did not end within its limit."""
    disturbed: frozenset[int] = frozenset()
    """The rounds that other programs disturbed."""
    status: Status = "ok"
    """Of what has no value."""
    note: str = ""
    """What has to be known of the values, such as the parameter that was chosen."""
    samples: Histogram = field(default_factory=Histogram)
    """Of all rounds."""

    @classmethod
    def exactly(cls, value: float) -> Series:
        """A quantity that follows from the numbers of a case, such as the ideal time."""
        return cls({0: value})

    @property
    def values(self) -> list[float]:
        """In the order of rounds."""
        return [self.by_round[number] for number in sorted(self.by_round)]

    @property
    def median(self) -> float:
        """NaN if nothing could be measured."""
        return statistics.median(self.by_round.values()) if self.by_round else float("nan")

    @property
    def undisturbed(self) -> Series:
        """What a claim may rest on."""
        sound = {n: value for n, value in self.by_round.items() if n not in self.disturbed}
        return replace(self, by_round=sound, disturbed=frozenset())

    def scaled(self, factor: float) -> Series:
        """The same in another unit."""
        return replace(self, by_round={n: value * factor for n, value in self.by_round.items()})

    def ratios_to(self, other: Series) -> Series:
        """How many times the other value this one is, for each round that both have.

        Values of one round were measured soon after each other, so that a machine that is slow for
        a while does not shift their ratio.
        """
        common = sorted(self.by_round.keys() & other.by_round.keys())
        return Series(
            {n: self.by_round[n] / other.by_round[n] for n in common if other.by_round[n]},
            disturbed=self.disturbed | other.disturbed,
        )

    def ratio_to(self, other: Series) -> float:
        """Median of the ratios of those rounds that both have; NaN if there are none."""
        return self.ratios_to(other).median

    def difference_to(self, twin: Series) -> Series:
        """How many times the larger of the two is the smaller, for each round that both have."""
        ratios = {n: ratio for n, ratio in self.ratios_to(twin).by_round.items() if ratio}
        return Series(
            {n: max(ratio, 1 / ratio) for n, ratio in ratios.items()},
            self.problem or twin.problem,
            self.at_limit or twin.at_limit,
            self.disturbed | twin.disturbed,
        )


def paired_ratios(ours: Series, theirs: Series) -> list[float]:
    """Our value by theirs for each round that both have; without a common one, of the medians."""
    ratios = ours.ratios_to(theirs).values
    if not ratios and ours.values and theirs.values and theirs.median:
        ratios = [ours.median / theirs.median]
    return ratios


def noise_between(one: Series, other: Series) -> float:
    """The factor, from 1 on, between two series of what is the same engine.

    The larger of two: how far their medians are apart, and the middle one of how far the two
    values of a round are apart.
    """
    by_round = one.difference_to(other)
    if not by_round.values:
        return 1.0
    first, second = (
        statistics.median(side.by_round[number] for number in by_round.by_round)
        for side in (one, other)
    )
    return max(by_round.median, first / second, second / first)
