"""How a figure grows with sizes or workers: a line, a jump, a best split, the scalability law."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.statistics.interval import Interval

JUMP = 2.0
"""A cost that is more than so many times that without data has jumped."""
LEAST_COUNTS = 4
"""Numbers of workers that a fit of the scalability law takes: it has three parameters."""


@dataclass(frozen=True, slots=True)
class FittedLine:
    """`intercept` + `slope` * x: a start-up cost and a cost for each worker, or for each byte."""

    intercept: float
    slope: float

    def at(self, x: float) -> float:
        """Its height at x."""
        return self.intercept + self.slope * x


def fit_line(x: Floats, y: Floats) -> FittedLine:
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
    return FittedLine(float(y.mean() - slope * x.mean()), slope)


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


@dataclass(frozen=True, slots=True)
class Scalability:
    """Gunther's universal scalability law: what n workers do together.

        rate(n) = n * alone / (1 + contention * (n - 1) + coherence * n * (n - 1))

    N. J. Gunther: Guerrilla Capacity Planning, Springer 2007, chapter 4.
    """

    alone: float
    """Rate of a single worker."""
    contention: float
    """Share of the work that only one worker at a time can do; 0: none."""
    coherence: float
    """What each pair of workers costs, as a share of the work of one; 0: nothing."""
    error: float
    """The largest difference to what was measured, relative to that."""

    def rate(self, workers: float) -> float:
        """Of so many workers together."""
        others = workers - 1
        return workers * self.alone / (
            1 + self.contention * others + self.coherence * workers * others
        )  # fmt: skip

    @property
    def most(self) -> float:
        """With how many workers the rate is largest; infinite: more always do more."""
        if self.contention >= 1:
            return 1.0
        return math.sqrt((1 - self.contention) / self.coherence) if self.coherence else math.inf


def fit_scalability(rates: Mapping[int, float]) -> Scalability | None:
    """The law that is nearest to rates by numbers of workers, in relative errors; None if there
    are fewer than `LEAST_COUNTS`, or the rates do not follow it at all."""
    from scipy.optimize import nnls

    if len(rates) < LEAST_COUNTS or not all(0 < rate < math.inf for rate in rates.values()):
        return None
    workers = np.array(list(rates), dtype=np.float64)
    # Workers over rate is linear in the coefficients, and these are not negative.
    taken = workers / np.array(list(rates.values()))
    terms = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)], axis=1)
    found, _ = nnls(terms / taken[:, None], np.ones_like(taken))
    if not found[0] > 0:
        return None
    alone, contention, coherence = (1 / found[0], found[1] / found[0], found[2] / found[0])
    law = Scalability(float(alone), float(contention), float(coherence), 0.0)
    error = max(abs(law.rate(count) / rate - 1) for count, rate in rates.items())
    return Scalability(law.alone, law.contention, law.coherence, error)
