"""Figures of a round: how simultaneous its tasks were, how much they did, and which were slow.

Times are seconds of the client's clock; unknown values are NaN.

The rate of a phase, in bytes or operations, is the work of all tasks over the time of the slowest
task, as IOR and mdtest report it. The sum of the tasks' own rates is never lower: it is the rate
that they would have if all ended together. The begin of a phase is not recorded, so both assume
that all tasks begin it together, as they do the first one.

A task is a straggler if its time is above Tukey's outer fence, three times the distance between the
quartiles above the upper one, and at least 5 % above the median: where nearly all tasks take the
same time, the fence alone would mark differences of no importance. Fewer than five tasks have no
stragglers, as their quartiles reach to the slowest.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridbench.sync.record import Latency, Phase, Round, TaskRun

Numbers = NDArray[np.float64]
NOT_KNOWN = math.nan
_DISTANCES = 3.0
_ABOVE_MEDIAN = 1.05
_FEWEST_TASKS = 5
_FEWEST_ROUNDS = 3
"""Rounds from which on a worker or host can be a frequent straggler."""


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """A phase, over all tasks that have it and ended well."""

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
    """p50 is the median of the tasks' medians. The others are the largest of all tasks, an upper
    bound: percentiles of several tasks cannot be combined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFigures:
    """Figures of one round."""

    tasks: int
    ok: int
    skew: float
    """From the first instruction of the first task to that of the last task."""
    clock_error: float
    """Possible error of the skew: the clock errors of the two worst hosts."""
    late: float
    """Largest delay of the order to start after the agreed instant."""
    span: float
    """From the first instruction of the first task to the last end."""
    simultaneity: float
    """Share of the span, 0 to 1, in which all tasks that began and ended ran together."""
    running: float
    """Mean number of running tasks over the span."""
    shortest: float
    """Seconds from first instruction to end, of tasks that ended well."""
    median: float
    longest: float
    stragglers: tuple[int, ...]
    """Workers whose tasks were stragglers."""
    phases: dict[str, PhaseFigures]
    """In the order of the tasks."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Number of running tasks as a step function: `running[n]` from `times[n]` to the next time."""

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


def timed(tasks: Iterable[TaskRun]) -> tuple[Numbers, Numbers]:
    """Begin and end of the tasks that have both."""
    known = [
        (task.began, task.ended)
        for task in tasks
        if task.began is not None and task.ended is not None
    ]
    both = np.array(known, dtype=np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def task_times(tasks: Iterable[TaskRun]) -> Numbers:
    """Seconds from begin to end, of the tasks that have both."""
    began, ended = timed(tasks)
    return ended - began


def clock_error(tasks: Iterable[TaskRun]) -> float:
    """Possible error of a difference between two tasks; tasks of one host share a clock."""
    worst: dict[str, float] = {}
    for task in tasks:
        worst[task.host] = max(worst.get(task.host, 0.0), task.clock_error)
    return sum(sorted(worst.values())[-2:]) if len(worst) > 1 else 0.0


def simultaneity(began: Numbers, ended: Numbers) -> float:
    """Share of the time from the first begin to the last end in which all tasks run."""
    if not began.size:
        return NOT_KNOWN
    span = ended.max() - began.min()
    # Tasks without duration at one moment are simultaneous.
    return max(0.0, float((ended.min() - began.max()) / span)) if span > 0 else 1.0


def parallelism(tasks: Iterable[TaskRun]) -> Parallelism:
    """The number of running tasks over time, of the tasks with begin and end."""
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


def phases_of(tasks: Sequence[TaskRun]) -> dict[str, PhaseFigures]:
    """Figures of all phases that the tasks report, by name."""
    found: dict[str, list[list[Phase]]] = {}
    for task in tasks:
        own: dict[str, list[Phase]] = {}
        for phase in task.phases:
            own.setdefault(phase.name, []).append(phase)
        for name, phases in own.items():
            found.setdefault(name, []).append(phases)
    return {name: _phase(phases) for name, phases in found.items()}


def _phase(tasks: list[list[Phase]]) -> PhaseFigures:
    """Figures of one phase. If a task reports it several times, these parts follow each other."""
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
    """The total over the longest time, and the sum of the single rates. NaN if nothing was done, or
    if a time is 0."""
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


# ---- Stragglers


@dataclass(frozen=True, slots=True)
class FrequentStraggler:
    """A worker or host that was a straggler in most of its rounds."""

    host: str
    worker: int | None
    """None: the host as a whole."""
    times: int
    rounds: int


def fence(times: Sequence[float]) -> float:
    """The time above which a task is a straggler; infinite for too few times."""
    if len(times) < _FEWEST_TASKS:
        return math.inf
    first, median, third = statistics.quantiles(times, n=4, method="inclusive")
    return max(third + _DISTANCES * (third - first), _ABOVE_MEDIAN * median)


def stragglers(one: Round) -> list[TaskRun]:
    """The tasks of a round that ended well but late."""
    well = _well_timed(one)
    above = fence([seconds for _, seconds in well])
    return [task for task, seconds in well if seconds > above]


def straggling_hosts(one: Round) -> list[str]:
    """The hosts of a round whose median task time is above the fence of all hosts' medians."""
    medians = _medians(one)
    above = fence(list(medians.values()))
    return [host for host, median in medians.items() if median > above]


def frequent_stragglers(rounds: Iterable[Round]) -> list[FrequentStraggler]:
    """Hosts, then workers, that are stragglers in more than half of three or more rounds; the most
    frequent first."""
    seen: dict[tuple[str, int | None], list[bool]] = {}
    for one in rounds:
        hosts, tasks = set(straggling_hosts(one)), {task.worker for task in stragglers(one)}
        for host in _medians(one):
            seen.setdefault((host, None), []).append(host in hosts)
        for task, _ in _well_timed(one):
            seen.setdefault((task.host, task.worker), []).append(task.worker in tasks)
    found = [
        FrequentStraggler(host, worker, sum(late), len(late))
        for (host, worker), late in seen.items()
        if len(late) >= _FEWEST_ROUNDS and 2 * sum(late) > len(late)
    ]
    return sorted(
        found, key=lambda r: (r.worker is not None, -r.times / r.rounds, r.host, r.worker or 0)
    )


def _well_timed(one: Round) -> list[tuple[TaskRun, float]]:
    return [(task, task.seconds) for task in one.tasks if task.seconds is not None]


def _medians(one: Round) -> dict[str, float]:
    by_host: dict[str, list[float]] = {}
    for task, seconds in _well_timed(one):
        by_host.setdefault(task.host, []).append(seconds)
    return {host: statistics.median(times) for host, times in by_host.items()}
