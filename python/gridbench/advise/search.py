"""The best number of tasks and cores for a work, and the fewest cores for a time limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Protocol

import numpy as np

from gridbench.advise.work import DivisibleWork
from gridbench.analysis.columns import Floats
from gridbench.model.model import TotalPrediction
from gridbench.model.observation import Situation


class PredictionModel(Protocol):
    """A fitted `Model`, or a system's `Profiled`."""

    @property
    def name(self) -> str:
        """Of the engine or system."""

    @property
    def linked(self) -> bool:
        """Whether the workers are behind links."""

    @property
    def values(self) -> Mapping[str, float]:
        """What costs time, by name: `start.` and so on, see `gridbench.model.terms`."""

    def totals(
        self, situations: Sequence[Situation], changed: Mapping[str, float] | None = None
    ) -> Floats:
        """Seconds that each takes, with some of the values changed, shape (situations,)."""

    def predict(self, situation: Situation) -> TotalPrediction:
        """The same of one, with an interval."""

    def unsure(self, situation: Situation) -> float:
        """Standard deviation of the logarithm of the overhead of a run."""

    def outside(self, situation: Situation) -> tuple[str, ...]:
        """In which ways it is unlike all that was measured, as sentences without a full stop."""


_LOW, _HIGH = 5, 95
"""Percentiles: the ends of a 90 % interval."""
_NORMAL = np.array([NormalDist().inv_cdf((number + 0.5) / 100) for number in range(100)])
"""A hundred values that stand for a normal distribution."""
_MOST = 10.0
"""Of logarithms of factors: what is that unsure is not known at all."""


def total_of(
    costs: PredictionModel,
    work: DivisibleWork,
    tasks: int,
    cores: int,
    changed: Mapping[str, float] | None = None,
) -> float:
    """Seconds that the work takes as so many tasks on so many cores, with some of the model's terms
    changed if wanted."""
    return float(costs.totals(work.drawn(tasks, cores), changed).mean())


def predict(costs: PredictionModel, work: DivisibleWork, tasks: int, cores: int) -> TotalPrediction:
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


_BLOCKS = (1, 2, 3, 4, 6, 10, 15, 25, 40, 65, 100)
"""Tasks for each core that are tried."""
_PATIENCE = 4
"""Numbers of tasks in a row that are no better, until no more are tried."""
_ALIKE_ON_CORES = 0.01
"""Totals that differ by less are as good: then fewer cores are better."""
_ALIKE_IN_TASKS = 0.03
"""On the same cores, totals that differ by less are as good: then fewer tasks are better. How a
total changes with the number of tasks is off by 6 % in the median (docs/benchmarks/advice.json),
and where it is much off, it is many tasks that take longer than expected."""
Takes = Callable[[PredictionModel, DivisibleWork, int, int], float]
"""Seconds that a work takes as so many tasks on so many cores, in the end."""
_SHOWN = (1, 2, 5, 10, 25, 50, 100, 200, 400, 1000)


@dataclass(frozen=True, slots=True)
class Split:
    """A number of tasks and cores, and what it takes; seconds."""

    tasks: int
    cores: int
    total: float


def best_split(costs: PredictionModel, work: DivisibleWork) -> Split:
    """The one with the smallest total; of those that are as good, that with the fewest cores, and
    with these the one with the fewest tasks."""
    # Cores that get no task only cost: never more of them than tasks.
    most = min(work.cores, work.most_tasks)
    found = {cores: _splits(costs, work, cores) for cores in cores_tried(most)}
    around = min(found, key=lambda cores: _least(found[cores]))
    for factor in (0.75, 0.87, 1.15, 1.3):
        cores = min(most, round(around * factor))
        if cores not in found:
            found[cores] = _splits(costs, work, cores)
    least = min(map(_least, found.values()))
    fewest = min(
        cores for cores, splits in found.items() if _least(splits) <= least * (1 + _ALIKE_ON_CORES)
    )
    return _with_few_tasks(found[fewest], math.inf)


def best_on(
    costs: PredictionModel, work: DivisibleWork, cores: int, limit: float, takes: Takes = total_of
) -> Split:
    """The one on exactly so many cores, which are no more than tasks can be; one that ends within
    `limit` seconds, if any does. Its total is what `takes` says."""
    return _with_few_tasks(_splits(costs, work, cores, takes), limit)


def _with_few_tasks(splits: Sequence[Split], limit: float) -> Split:
    """Of splits on the same cores, from few tasks to many, the first that is as good as the
    best."""
    least = _least(splits)
    enough = least * (1 + _ALIKE_IN_TASKS)
    if least <= limit:
        enough = min(enough, limit)
    return next(split for split in splits if split.total <= enough)


def _least(splits: Sequence[Split]) -> float:
    return min(split.total for split in splits)


def _splits(
    costs: PredictionModel, work: DivisibleWork, cores: int, takes: Takes = total_of
) -> list[Split]:
    """On so many cores, each with at least one task: from few tasks to many, until they get no
    better."""
    found: list[Split] = []
    least, worse = float("inf"), 0
    for tasks in _tasks_tried(work, cores):
        split = Split(tasks, cores, takes(costs, work, tasks, cores))
        found.append(split)
        worse = 0 if split.total < least else worse + 1
        least = min(least, split.total)
        if worse == _PATIENCE:
            break
    return found


def _tasks_tried(work: DivisibleWork, cores: int) -> list[int]:
    """As many for each core; of uneven work also the finest division, which may be in between."""
    found = {blocks * cores for blocks in _BLOCKS if blocks * cores <= work.most_tasks}
    if work.uneven:
        found.add(min(work.most_tasks, cores * _BLOCKS[-1]))
    return sorted(found)


def cores_tried(most: int) -> list[int]:
    """From one to `most`, in steps of a half."""
    found, cores = [most], float(most)
    while cores > 1:
        cores /= 1.5
        found.append(round(cores))
    return sorted(set(found))


def tasks_shown(split: Split, most: int) -> list[int]:
    """Numbers of tasks for a picture, the best among them."""
    around = [round(split.tasks * factor) for factor in (0.5, 0.7, 0.85, 1, 1.2, 1.5, 2)]
    return sorted({tasks for tasks in (*_SHOWN, *around) if 1 <= tasks <= most})


@dataclass(frozen=True, slots=True)
class Within:
    """From how many cores on the work ends within a time, in seconds; None: with no number."""

    limit: float
    likely: Split | None
    """The fewest with which it is expected to: a run does so more likely than not."""
    sure: Split | None
    """The fewest whose whole 90 % interval is within the limit, as 19 of 20 runs are."""
    shortest: Split
    """The best split of all, however many cores it takes."""

    @property
    def advised(self) -> Split:
        """The split to take."""
        return self.sure or self.likely or self.shortest


def within(costs: PredictionModel, work: DivisibleWork, limit: float) -> Within:
    """Search all numbers of cores up to those of the work."""

    def expected(cores: int) -> Split:
        return best_on(costs, work, cores, limit)

    def at_most(cores: int) -> Split:
        return best_on(costs, work, cores, limit, _at_most)

    shortest = best_split(costs, work)
    tried = sorted({*cores_tried(min(work.cores, work.most_tasks)), shortest.cores})
    # Fewer cores have no time for the work itself.
    likely = _fewest(expected, tried, math.ceil(work.seconds / limit), limit)
    sure = likely and _fewest(at_most, [likely.cores, *tried], likely.cores, limit)
    if sure:
        sure = replace(sure, total=total_of(costs, work, sure.tasks, sure.cores))
    return Within(limit=limit, likely=likely, sure=sure, shortest=shortest)


def _at_most(costs: PredictionModel, work: DivisibleWork, tasks: int, cores: int) -> float:
    """Seconds that 19 of 20 runs take at most."""
    return predict(costs, work, tasks, cores).high


def _fewest(
    on: Callable[[int], Split], tried: Sequence[int], fewest: int, limit: float
) -> Split | None:
    """The split on the fewest cores that takes no longer than the limit: of the numbers tried, from
    `fewest` on, the first that does, and by bisection one of those between it and the one
    before."""
    below = fewest - 1
    for cores in (one for one in tried if one >= fewest):
        found = on(cores)
        if found.total <= limit:
            break
        below = cores
    else:
        return None
    while found.cores - below > 1:
        between = on((found.cores + below) // 2)
        if between.total <= limit:
            found = between
        else:
            below = between.cores
    return found
