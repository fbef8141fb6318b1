"""What a split of a work is expected to take: of work that is uneven, the mean of several draws."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from gridbench.advise.costs import Costs
from gridbench.advise.work import Work
from gridbench.model.model import TotalPrediction

_LOW, _HIGH = 5, 95
"""Percentiles: the ends of a 90 % interval."""
_NORMAL = np.array([NormalDist().inv_cdf((number + 0.5) / 100) for number in range(100)])
"""A hundred values that stand for a normal distribution."""
_MOST = 10.0
"""Of logarithms of factors: what is that unsure is not known at all."""


def total_of(
    costs: Costs,
    work: Work,
    tasks: int,
    cores: int,
    changed: Mapping[str, float] | None = None,
) -> float:
    """Seconds that the work takes as so many tasks on so many cores, with some of the model's terms
    changed if wanted."""
    return float(costs.totals(work.drawn(tasks, cores), changed).mean())


def predict(costs: Costs, work: Work, tasks: int, cores: int) -> TotalPrediction:
    """The same with an interval. Of uneven work it has two reasons: how unsure the model is of the
    overhead, and how the draws differ."""
    situations = work.drawn(tasks, cores)
    even = work.divided(tasks, cores)
    if len(situations) == 1:
        return costs.predict(situations[0])
    totals = costs.totals(situations)
    ideals = np.array([one.ideal for one in situations])
    factors = np.exp(np.clip(costs.unsure(even) * _NORMAL, -_MOST, _MOST))
    # Of each draw all that it may take: the interval is of all these together.
    may = ideals[:, None] + np.maximum(totals - ideals, 0.0)[:, None] * factors
    low, high = np.percentile(may, (_LOW, _HIGH))
    total, ideal = float(totals.mean()), float(ideals.mean())
    return TotalPrediction(
        total=total,
        low=min(float(low), total),
        high=max(float(high), total),
        ideal=ideal,
        extrapolated=costs.outside(even),
    )
