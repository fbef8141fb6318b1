"""The best number of tasks and cores for a work, by the model."""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.advise.work import Work
from gridbench.model.model import Model

_BLOCKS = (1, 2, 3, 4, 6, 10, 15, 25, 40, 65, 100)
"""Tasks for each core that are tried."""
_PATIENCE = 4
"""Numbers of tasks in a row that are no better, until no more are tried."""
_ALIKE = 0.01
"""Totals that differ by less are as good: then fewer cores are better, and fewer tasks."""
_SHOWN = (1, 2, 5, 10, 25, 50, 100, 200, 400, 1000)


@dataclass(frozen=True, slots=True)
class Split:
    """A number of tasks and cores, and what it takes; seconds."""

    tasks: int
    cores: int
    total: float


def best_split(model: Model, work: Work) -> Split:
    """The one with the smallest total; of those that are as good, that with the fewest cores."""
    # Cores that get no task only cost: never more of them than tasks.
    most = min(work.cores, work.most_tasks)
    found = {cores: best_of_cores(model, work, cores) for cores in cores_tried(most)}
    around = min(found.values(), key=lambda split: split.total).cores
    for factor in (0.75, 0.87, 1.15, 1.3):
        cores = round(around * factor)
        if 1 <= cores <= most and cores not in found:
            found[cores] = best_of_cores(model, work, cores)
    least = min(split.total for split in found.values())
    good = [split for split in found.values() if split.total <= least * (1 + _ALIKE)]
    return min(good, key=lambda split: split.cores)


def best_of_cores(model: Model, work: Work, cores: int) -> Split:
    """The best on so many cores, each with at least one task; of those that are as good, that with
    the fewest tasks."""
    found: list[Split] = []
    least, worse = float("inf"), 0
    for tasks in (blocks * cores for blocks in _BLOCKS):
        if tasks > work.most_tasks or worse == _PATIENCE:
            break
        split = Split(tasks, cores, model.total(work.divided(tasks, cores)))
        found.append(split)
        worse = 0 if split.total < least * (1 - _ALIKE / 10) else worse + 1
        least = min(least, split.total)
    return next(split for split in found if split.total <= least * (1 + _ALIKE / 10))


def cores_tried(most: int) -> list[int]:
    """From one to `most`, in steps of a half."""
    found, cores = [most], float(most)
    while cores > 1:
        cores /= 1.5
        found.append(max(1, round(cores)))
    return sorted(set(found))


def tasks_shown(split: Split, most: int) -> list[int]:
    """Numbers of tasks for a picture, the best among them."""
    around = [round(split.tasks * factor) for factor in (0.5, 0.7, 0.85, 1, 1.2, 1.5, 2)]
    return sorted({tasks for tasks in (*_SHOWN, *around) if 1 <= tasks <= most})
