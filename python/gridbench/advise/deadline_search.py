"""The inverse question: the fewest cores with which a work ends within a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gridbench.advise.costs import Costs
from gridbench.advise.expected import predict, total_of
from gridbench.advise.search import Split, best_on, best_split, cores_tried
from gridbench.advise.work import Work


@dataclass(frozen=True, slots=True)
class Within:
    """From how many cores on the work ends within a time, in seconds; None: with no number."""

    limit: float
    likely: Split | None
    """The fewest with which it is expected to: a run does so more likely than not."""
    sure: Split | None
    """The fewest of which the whole 90 % interval is within: 19 of 20 runs are."""
    shortest: Split
    """The best split of all, however many cores it takes."""

    @property
    def advised(self) -> Split:
        """The split to take."""
        return self.sure or self.likely or self.shortest


def within(costs: Costs, work: Work, limit: float) -> Within:
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


def _at_most(costs: Costs, work: Work, tasks: int, cores: int) -> float:
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
