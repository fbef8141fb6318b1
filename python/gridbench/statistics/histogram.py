"""Many times in little room: a histogram whose buckets are 1 % wide.

Percentiles of several runs come from their merged histograms, as they cannot be averaged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

_GROWTH = math.log(1.01)  # a bucket ends 1 % above where it begins

PERCENTILES = ("50", "90", "99", "99.9")
"""Those that are shown, in percent."""


class Histogram:
    """Counts of positive values by logarithmic buckets; bucket b begins at 1.01 to the power b."""

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
