"""The best number of tasks and cores for a work, by the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gridbench.advise.costs import Costs
from gridbench.advise.expected import total_of
from gridbench.advise.work import Work

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
Takes = Callable[[Costs, Work, int, int], float]
"""Seconds that a work takes as so many tasks on so many cores, in the end."""
_SHOWN = (1, 2, 5, 10, 25, 50, 100, 200, 400, 1000)


@dataclass(frozen=True, slots=True)
class Split:
    """A number of tasks and cores, and what it takes; seconds."""

    tasks: int
    cores: int
    total: float


def best_split(costs: Costs, work: Work) -> Split:
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


def best_on(costs: Costs, work: Work, cores: int, limit: float, takes: Takes = total_of) -> Split:
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


def _splits(costs: Costs, work: Work, cores: int, takes: Takes = total_of) -> list[Split]:
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


def _tasks_tried(work: Work, cores: int) -> list[int]:
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
