"""Latencies of operations, from histograms of nanoseconds. Times are seconds.

Quantiles of several histograms come from the merged one, as they cannot be averaged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gridbench.datagrid.record import Latencies

_NANOSECOND = 1e-9
_ROUNDING = 1e-9
"""Relative; 0.99 x 100 is to be rank 99, however the product comes out."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """How long operations took."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


def quantile(one: Latencies, share: float) -> float:
    """The smallest value that this share (0 to 1) of the operations does not exceed; ValueError if
    there are none."""
    counts = np.cumsum(np.asarray(one.counts, dtype=np.int64))
    if not counts.size or counts[-1] <= 0:
        raise ValueError("an empty histogram has no quantiles")
    rank = max(1, math.ceil(share * int(counts[-1]) * (1 - _ROUNDING)))
    return one.values[int(np.searchsorted(counts, rank))] * _NANOSECOND


def quantiles(one: Latencies) -> Quantiles | None:
    """Those that are shown; None if there are no operations."""
    count = sum(one.counts)
    if not count:
        return None
    total = sum(value * times for value, times in zip(one.values, one.counts, strict=True))
    return Quantiles(
        count=count,
        mean=total / count * _NANOSECOND,
        p50=quantile(one, 0.5),
        p90=quantile(one, 0.9),
        p99=quantile(one, 0.99),
        p999=quantile(one, 0.999),
        max=quantile(one, 1.0),
    )


def merged(some: Iterable[Latencies]) -> list[Latencies]:
    """One histogram for each operation and way to count, in the order in which they come."""
    found: dict[tuple[str, str], Counter[int]] = {}
    first: dict[tuple[str, str], Latencies] = {}
    for one in some:
        key = one.operation, one.counted
        first.setdefault(key, one)
        slots = found.setdefault(key, Counter())
        for value, times in zip(one.values, one.counts, strict=True):
            slots[value] += times
    return [
        Latencies(
            operation=first[key].operation,
            counted=first[key].counted,
            values=tuple(sorted(slots)),
            counts=tuple(slots[value] for value in sorted(slots)),
        )
        for key, slots in found.items()
    ]


def tail(one: Latencies, most: int = 120) -> list[tuple[float, float]]:
    """Points (operations of which one is slower, the latency in s): at 2 it is the median, at 100
    the 99th percentile; the last one is the maximum, at the number of operations. At most so many
    of them, evenly on a logarithmic scale."""
    count = sum(one.counts)
    if count < 2:
        return []
    places = np.geomspace(1.0, float(count), most)[:-1]
    points = [(float(place), quantile(one, 1 - 1 / place)) for place in places]
    return [*points, (float(count), quantile(one, 1.0))]
