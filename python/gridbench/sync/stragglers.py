"""Tasks, workers and hosts that were far slower than the others.

A task is a straggler if its time is beyond Tukey's outer fence, three times the distance between
the quartiles above the upper one, and at least 5 % above the median: where nearly all tasks take
the same time, the fence alone would call out what makes no difference. Fewer than five tasks have
none, as their quartiles reach to the slowest.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gridbench.sync.record import Round, Task

_DISTANCES = 3.0
_ABOVE_MEDIAN = 1.05
_FEWEST_TASKS = 5
"""Of four, the fence is where the slowest is."""
_FEWEST_ROUNDS = 3
"""From so many on it is told that a worker is often late."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A worker or host that was a straggler in most of its rounds."""

    host: str
    worker: int | None
    """None: it is the host as a whole."""
    times: int
    rounds: int


def fence(times: Sequence[float]) -> float:
    """What is above this is a straggler's time; infinite if there are too few."""
    if len(times) < _FEWEST_TASKS:
        return math.inf
    first, median, third = statistics.quantiles(times, n=4, method="inclusive")
    return max(third + _DISTANCES * (third - first), _ABOVE_MEDIAN * median)


def stragglers(one: Round) -> list[Task]:
    """The tasks of a round that ended well, but late; how others ended is told of them anyway."""
    timed = [(task, seconds) for task, seconds in _timed(one)]
    above = fence([seconds for _, seconds in timed])
    return [task for task, seconds in timed if seconds > above]


def straggling_hosts(one: Round) -> list[str]:
    """The hosts of a round the median of whose tasks is beyond the fence of these medians."""
    medians = _medians(one)
    above = fence(list(medians.values()))
    return [host for host, median in medians.items() if median > above]


def often_late(rounds: Iterable[Round]) -> list[Repeated]:
    """Hosts, then workers, that are stragglers in more than half of their rounds, three or more;
    those most often so first."""
    seen: dict[tuple[str, int | None], list[bool]] = {}
    for one in rounds:
        hosts, tasks = set(straggling_hosts(one)), {task.worker for task in stragglers(one)}
        for host in _medians(one):
            seen.setdefault((host, None), []).append(host in hosts)
        for task, _ in _timed(one):
            seen.setdefault((task.host, task.worker), []).append(task.worker in tasks)
    found = [
        Repeated(host, worker, sum(late), len(late))
        for (host, worker), late in seen.items()
        if len(late) >= _FEWEST_ROUNDS and 2 * sum(late) > len(late)
    ]
    return sorted(
        found,
        key=lambda r: (r.worker is not None, -r.times / r.rounds, r.host, r.worker or 0),
    )


def _timed(one: Round) -> list[tuple[Task, float]]:
    return [
        (task, task.ended - task.began)
        for task in one.tasks
        if task.status == "ok" and task.began is not None and task.ended is not None
    ]


def _medians(one: Round) -> dict[str, float]:
    by_host: dict[str, list[float]] = {}
    for task, seconds in _timed(one):
        by_host.setdefault(task.host, []).append(seconds)
    return {host: statistics.median(times) for host, times in by_host.items()}
