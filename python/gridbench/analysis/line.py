"""A straight line through points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.errors import InputError


@dataclass(frozen=True, slots=True)
class Line:
    """`intercept` + `slope` * x: a start-up cost and a cost for each worker, or for each byte."""

    intercept: float
    slope: float

    def at(self, x: float) -> float:
        """Its height at x."""
        return self.intercept + self.slope * x


def fit_line(x: Floats, y: Floats) -> Line:
    """The line of least squares. Points with a NaN are left out.

    Raises InputError if fewer than two different x remain: they say nothing about a slope.
    """
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(np.unique(x)) < 2:
        raise InputError(
            f"a line needs points at two places at least, not {len(np.unique(x))}",
            remedy="measure with different numbers of workers, or different sizes",
        )
    from_middle = x - x.mean()
    slope = float(from_middle @ y / (from_middle @ from_middle))
    return Line(float(y.mean() - slope * x.mean()), slope)
