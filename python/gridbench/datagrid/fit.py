"""Time over object size as a line, as the slides have it: so many s/MB and a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridbench.statistics.interval import Interval

KB_IN_MB = 1024
_SURE = 0.95


@dataclass(frozen=True, slots=True)
class Fit:
    """Seconds = `per_mb` x size in MB + `constant`; both with their 95 % intervals, which are
    infinite if there are no more points than a line needs."""

    per_mb: Interval
    constant: Interval

    def times(self, factor: float) -> Fit:
        """The line of so many times as many operations."""
        return Fit(self.per_mb.times(factor), self.constant.times(factor))

    def at(self, size: float) -> float:
        """Seconds for a size in MB."""
        return self.per_mb.value * size + self.constant.value


def fitted(sizes: Sequence[float], seconds: Sequence[float]) -> Fit | None:
    """The line of least squares of the relative errors, as times of small and of large objects
    differ by orders of magnitude and scatter alike. `sizes` in MB; times have to be above 0.

    None for fewer than two different sizes.
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    if len(np.unique(x)) < 2 or not (y > 0).all():
        return None
    # Each equation divided by its time: what is left over is relative.
    columns = np.stack([x / y, 1 / y], axis=1)
    inverse = np.linalg.inv(columns.T @ columns)
    found = inverse @ columns.T @ np.ones_like(y)
    freedom = len(y) - 2
    margins = np.full(2, math.inf)
    if freedom > 0:
        from scipy.special import stdtrit

        left = float(((columns @ found - 1) ** 2).sum())
        spread = np.sqrt(np.diag(inverse) * left / freedom)
        margins = spread * float(stdtrit(freedom, (1 + _SURE) / 2))
    slope, constant = (
        Interval(float(value), float(value - margin), float(value + margin))
        for value, margin in zip(found, margins, strict=True)
    )
    return Fit(slope, constant)
