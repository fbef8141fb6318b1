"""What a round shows: how simultaneous its tasks were, and how much they did.

Times are on the client's clock, in seconds; what is not known is NaN.

The rate of a phase, in bytes or operations, is all that the tasks did over the time of the slowest
of them. IOR and mdtest report this: the slowest process ends their measurement. The sum of the
tasks' own rates stands beside it; it is what they would do if no task ended before another, and is
never below the first. A phase's begin is not recorded, so that this supposes that all tasks begin
it together, as they do the first one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridbench.sync.record import Latency, Phase, Round, Task
from gridbench.sync.stragglers import stragglers

Numbers = NDArray[np.float64]
NOT_KNOWN = math.nan


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """A phase of all tasks that ended well and have it."""

    tasks: int
    seconds: float
    """Of the slowest task."""
    bytes: int
    operations: int
    bandwidth: float
    """Bytes per second: all bytes over `seconds`."""
    bandwidth_summed: float
    """The sum of the tasks' own bandwidths."""
    rate: float
    """Operations per second: all operations over `seconds`."""
    rate_summed: float
    latency: Latency | None
    """The median of the tasks' medians; of 90 %, 99 % and the maximum the largest of all tasks.
    That is an upper bound: percentiles of all cannot be put together from those of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFigures:
    """Figures of one round."""

    tasks: int
    ok: int
    skew: float
    """From the first of the first instructions to the last, of all tasks that began."""
    clock_error: float
    """By so much the skew may be wrong: what is not known of the clocks of the two worst hosts."""
    late: float
    """The order to start came by so much too late to the worst worker."""
    span: float
    """From the first of the first instructions to the last end."""
    simultaneity: float
    """The share of the span in which all tasks ran that began and ended, 0 to 1."""
    running: float
    """How many tasks ran at a time, on average over the span."""
    shortest: float
    """Seconds from first instruction to end, of the tasks that ended well."""
    median: float
    longest: float
    stragglers: tuple[int, ...]
    """Workers whose task was far slower than those of the others."""
    phases: dict[str, PhaseFigures]
    """In the order of the tasks."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How many tasks run, as a step function: `running[n]` from `times[n]` to the next time."""

    times: Numbers
    running: NDArray[np.int64]

    def integral(self) -> float:
        """Seconds of all tasks together."""
        return float(np.dot(np.diff(self.times), self.running[:-1])) if self.times.size else 0.0


def figures_of(one: Round) -> RoundFigures:
    """All figures of a round."""
    began, ended = timed(one.tasks)
    starts = np.array([task.began for task in one.tasks if task.began is not None])
    span = float(ended.max() - began.min()) if began.size else NOT_KNOWN
    well = [task for task in one.tasks if task.status == "ok"]
    times = task_times(well)
    return RoundFigures(
        tasks=len(one.tasks),
        ok=len(well),
        skew=float(np.ptp(starts)) if starts.size else NOT_KNOWN,
        clock_error=clock_error(one.tasks),
        late=max((task.late for task in one.tasks), default=0.0),
        span=span,
        simultaneity=simultaneity(began, ended),
        running=_mean_running(began, ended),
        shortest=float(times.min()) if times.size else NOT_KNOWN,
        median=float(np.median(times)) if times.size else NOT_KNOWN,
        longest=float(times.max()) if times.size else NOT_KNOWN,
        stragglers=tuple(task.worker for task in stragglers(one)),
        phases=phases_of(well),
    )


def timed(tasks: Iterable[Task]) -> tuple[Numbers, Numbers]:
    """When the tasks began and ended of which both is known."""
    known = [
        (task.began, task.ended)
        for task in tasks
        if task.began is not None and task.ended is not None
    ]
    both = np.array(known, dtype=np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def task_times(tasks: Iterable[Task]) -> Numbers:
    """Seconds that tasks took of which both ends are known."""
    began, ended = timed(tasks)
    return ended - began


def clock_error(tasks: Iterable[Task]) -> float:
    """By so much a difference between two tasks may be wrong: clocks of tasks of one host agree."""
    worst: dict[str, float] = {}
    for task in tasks:
        worst[task.host] = max(worst.get(task.host, 0.0), task.clock_error)
    return sum(sorted(worst.values())[-2:]) if len(worst) > 1 else 0.0


def simultaneity(began: Numbers, ended: Numbers) -> float:
    """The share of the time from the first begin to the last end in which all tasks run."""
    if not began.size:
        return NOT_KNOWN
    span = ended.max() - began.min()
    # Tasks that take no time at all, all at one moment, are simultaneous.
    return max(0.0, float((ended.min() - began.max()) / span)) if span > 0 else 1.0


def parallelism(tasks: Iterable[Task]) -> Parallelism:
    """How many tasks run at each time, of those whose begin and end are known."""
    began, ended = timed(tasks)
    moments = np.concatenate([began, ended])
    change = np.concatenate([np.ones_like(began), -np.ones_like(ended)]).astype(np.int64)
    times, place = np.unique(moments, return_inverse=True)
    steps = np.zeros(times.size, dtype=np.int64)
    np.add.at(steps, place, change)
    return Parallelism(times, np.cumsum(steps))


def _mean_running(began: Numbers, ended: Numbers) -> float:
    if not began.size:
        return NOT_KNOWN
    span = float(ended.max() - began.min())
    return float((ended - began).sum()) / span if span > 0 else float(began.size)


def phases_of(tasks: Sequence[Task]) -> dict[str, PhaseFigures]:
    """The phases that any of the tasks tells of, by name."""
    found: dict[str, list[list[Phase]]] = {}
    for task in tasks:
        own: dict[str, list[Phase]] = {}
        for phase in task.phases:
            own.setdefault(phase.name, []).append(phase)
        for name, phases in own.items():
            found.setdefault(name, []).append(phases)
    return {name: _phase(phases) for name, phases in found.items()}


def _phase(tasks: list[list[Phase]]) -> PhaseFigures:
    """One phase; a task that names it several times did it so often, one after another."""
    seconds = [sum(phase.seconds for phase in own) for own in tasks]
    sizes = [sum(phase.bytes for phase in own) for own in tasks]
    counts = [sum(phase.operations for phase in own) for own in tasks]
    bandwidth, bandwidth_summed = _rates(sizes, seconds)
    rate, rate_summed = _rates(counts, seconds)
    known = [phase.latency for own in tasks for phase in own if phase.latency is not None]
    return PhaseFigures(
        tasks=len(tasks),
        seconds=max(seconds),
        bytes=sum(sizes),
        operations=sum(counts),
        bandwidth=bandwidth,
        bandwidth_summed=bandwidth_summed,
        rate=rate,
        rate_summed=rate_summed,
        latency=_together(known) if known else None,
    )


def _rates(amounts: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """All over the longest time, and the sum of each over its own; not known without any amount, or
    if a time is not above 0."""
    if not any(amounts) or not min(seconds) > 0:
        return NOT_KNOWN, NOT_KNOWN
    own = (amount / time for amount, time in zip(amounts, seconds, strict=True))
    return sum(amounts) / max(seconds), sum(own)


def _together(latencies: Sequence[Latency]) -> Latency:
    return Latency(
        p50=statistics.median(one.p50 for one in latencies),
        p90=max(one.p90 for one in latencies),
        p99=max(one.p99 for one in latencies),
        max=max(one.max for one in latencies),
    )
