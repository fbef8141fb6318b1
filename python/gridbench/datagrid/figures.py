"""Figures of a case, and whether its data are right.

Times are seconds; what is not known is NaN or None. Quantiles of several histograms come from the
merged one, as they cannot be averaged.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gridbench.datagrid.record import Counted, DataGridCase, Latencies
from gridbench.datagrid.windows import Dip, Steadiness, dip, steadiness
from gridbench.formats import amount, counted, percent
from gridbench.machine.judgement import disturbed
from gridbench.quantities import KB

# ---- Latencies

_NANOSECOND = 1e-9
_ROUNDING = 1e-9
"""Relative; 0.99 x 100 is to be rank 99, however the product comes out."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """How long operations took."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


def quantile(one: Latencies, share: float) -> float:
    """The smallest value that this share (0 to 1) of the operations does not exceed; ValueError if
    there are none."""
    counts = np.cumsum(np.asarray(one.counts, dtype=np.int64))
    if not counts.size or counts[-1] <= 0:
        raise ValueError("an empty histogram has no quantiles")
    rank = max(1, math.ceil(share * int(counts[-1]) * (1 - _ROUNDING)))
    return one.values[int(np.searchsorted(counts, rank))] * _NANOSECOND


def quantiles(one: Latencies) -> Quantiles | None:
    """Those that are shown; None if there are no operations."""
    count = sum(one.counts)
    if not count:
        return None
    total = sum(value * times for value, times in zip(one.values, one.counts, strict=True))
    return Quantiles(
        count=count,
        mean=total / count * _NANOSECOND,
        p50=quantile(one, 0.5),
        p90=quantile(one, 0.9),
        p99=quantile(one, 0.99),
        p999=quantile(one, 0.999),
        max=quantile(one, 1.0),
    )


def merged(some: Iterable[Latencies]) -> list[Latencies]:
    """One histogram for each operation and way to count, in the order in which they come."""
    found: dict[tuple[str, str], Counter[int]] = {}
    first: dict[tuple[str, str], Latencies] = {}
    for one in some:
        key = one.operation, one.counted
        first.setdefault(key, one)
        slots = found.setdefault(key, Counter())
        for value, times in zip(one.values, one.counts, strict=True):
            slots[value] += times
    return [
        Latencies(
            operation=first[key].operation,
            counted=first[key].counted,
            values=tuple(sorted(slots)),
            counts=tuple(slots[value] for value in sorted(slots)),
        )
        for key, slots in found.items()
    ]


def tail(one: Latencies, most: int = 120) -> list[tuple[float, float]]:
    """Points (operations per slower one, the latency in s): at 2 it is the median, at 100
    the 99th percentile; the last one is the maximum, at the number of operations. At most so many
    of them, evenly on a logarithmic scale."""
    count = sum(one.counts)
    if count < 2:
        return []
    places = np.geomspace(1.0, float(count), most)[:-1]
    points = [(float(place), quantile(one, 1 - 1 / place)) for place in places]
    return [*points, (float(count), quantile(one, 1.0))]


# ---- All figures of a case

NOT_KNOWN = math.nan
KEPT_UP = 0.95
"""The share of an offered rate that has to be done."""

Verdict = Literal["valid", "invalid", "failed"]
"""`invalid`: it is shown, but nothing is claimed from it. `failed`: it did not come to its end, or
the data were not right."""


Outcome = Literal["right", "wrong", "lost", "not checked"]
"""`lost`: something is missing, as is to be expected: more members were killed than there are
copies, or updates that are not atomic collided."""


@dataclass(frozen=True, slots=True)
class Correctness:
    """The outcome of the check, with sentences for what is not as it should be."""

    outcome: Outcome
    lost: int = 0
    """Objects that have to be there and are not."""
    wrong: int = 0
    """Values that were never written, in the run and after it."""
    updates: int = 0
    """By so many the counters in the values differ from what was done: below 0, updates are lost.
    What is in doubt is taken as it suits."""
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskTimeFigures:
    """How long tasks took."""

    tasks: int
    median: float
    shortest: float
    longest: float


@dataclass(frozen=True, slots=True)
class MemberMemory:
    """What members took for the data, and how evenly they have it."""

    members: int
    each: tuple[int, ...]
    """Bytes resident, of the members that report them. What a process has taken once it may
    keep, so that in a cluster that has had other cases these may be in it."""
    used: tuple[int, ...]
    """Bytes in use after garbage was collected, of the members that report them: of the heap,
    and of what has the data outside of it. They are of this case alone."""
    entries: tuple[int, ...]
    """Objects that each was responsible for; empty if it is not known of all."""
    data: int
    """Bytes of all objects, without copies; 0: not known."""

    @property
    def imbalance(self) -> float:
        """The most entries of a member over the mean: 1 is even."""
        mean = sum(self.entries) / len(self.entries) if self.entries else 0.0
        return max(self.entries) / mean if mean > 0 else NOT_KNOWN

    @property
    def variation(self) -> float:
        """The standard deviation of the entries over their mean."""
        mean = sum(self.entries) / len(self.entries) if self.entries else 0.0
        return statistics.pstdev(self.entries) / mean if mean > 0 else NOT_KNOWN

    @property
    def mean(self) -> float:
        """Bytes in use of a member."""
        return sum(self.used) / len(self.used) if self.used else NOT_KNOWN

    @property
    def times_data(self) -> float:
        """Bytes in use of all members over those of the objects; a backup alone makes it 2."""
        if not self.data or len(self.used) != self.members:
            return NOT_KNOWN
        return sum(self.used) / self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFigures:
    """Figures of one case."""

    operations: int
    """That ended well."""
    throughput: float
    """Operations per second."""
    bandwidth: float
    """Bytes of objects per second: read or written, and both for an update. NaN with scans."""
    with_start_up: TaskTimeFigures | None
    """All tasks; a client's first, cold one with the time in which the clients were connected."""
    without_start_up: TaskTimeFigures | None
    """Tasks after the warm-up, without the first one of each client, or with it if there are no
    others."""
    latencies: dict[tuple[str, Counted], Quantiles]
    steadiness: Steadiness
    dip: Dip | None
    memory: MemberMemory | None
    correctness: Correctness
    verdict: Verdict
    reasons: tuple[str, ...]

    def latency(self, operation: str, counted: Counted = "service") -> Quantiles | None:
        """Of an operation; None if there are none of it."""
        return self.latencies.get((operation, counted))


def figures_of(case: DataGridCase) -> CaseFigures:
    """All figures of a case."""
    known = {(one.operation, one.counted): quantiles(one) for one in merged(case.latencies)}
    judged, reasons = verdict(case)
    return CaseFigures(
        operations=operations(case),
        throughput=throughput(case),
        bandwidth=bandwidth(case),
        with_start_up=with_start_up(case),
        without_start_up=without_start_up(case),
        latencies={key: found for key, found in known.items() if found is not None},
        steadiness=steadiness(case),
        dip=dip(case),
        memory=memory(case),
        correctness=correctness(case),
        verdict=judged,
        reasons=tuple(reasons),
    )


def operations(case: DataGridCase) -> int:
    """Operations that ended well."""
    made = case.counts
    return made.reads + made.updates + made.inserts + made.overwrites + made.scans + made.shared


def throughput(case: DataGridCase) -> float:
    """Operations per second, all clients together."""
    return operations(case) / case.seconds if case.seconds > 0 else NOT_KNOWN


def bandwidth(case: DataGridCase) -> float:
    """Bytes of objects per second; an update reads and writes its object. Not known with scans, as
    the objects that these found are not counted."""
    made = case.counts
    size = case.parameters.get("ObjectSize", NOT_KNOWN) * KB
    if not case.seconds > 0 or made.scans:
        return NOT_KNOWN
    moved = made.reads + made.shared + made.inserts + made.overwrites + 2 * made.updates
    return moved * size / case.seconds


def operations_of_task(case: DataGridCase) -> float:
    """Operations that the parameters give a task."""
    p = case.parameters
    each = sum(p.get(f"{kind}DataSize", 0) for kind in ("Read", "Update", "Write"))
    return p.get("NRepeats", 1) * each + p.get("SharedDataSize", 0)


def with_start_up(case: DataGridCase) -> TaskTimeFigures | None:
    """As the sources measured it: the start-up of a client is part of its first task.

    That is the one right after it had connected, before the warm-up; where that was not measured,
    the first one after it.
    """
    if case.cold:
        later = [time for _, time in _durations(case)]
        return _times([*(case.clients_in + time for time in case.cold), *later])
    first = _first_tasks(case)
    return _times(
        [time + (case.clients_in if at in first else 0.0) for at, time in _durations(case)]
    )


def without_start_up(case: DataGridCase) -> TaskTimeFigures | None:
    """Of clients that are warm. If each client has a single task, it counts if there was a warm-up;
    else nothing is known."""
    first = _first_tasks(case)
    later = [time for at, time in _durations(case) if at not in first]
    if not later and case.warm_up is not None:
        later = [time for _, time in _durations(case)]
    return _times(later)


def memory(case: DataGridCase) -> MemberMemory | None:
    """Of the members after loading; None if there are none."""
    if not case.members:
        return None
    entries = tuple(one.entries for one in case.members)
    return MemberMemory(
        members=len(case.members),
        each=tuple(one.memory for one in case.members if one.memory > 0),
        used=tuple(one.used for one in case.members if one.used > 0),
        entries=entries if min(entries) >= 0 else (),
        data=case.loading.bytes if case.loading else 0,
    )


# ---- Are the data right, and is the case valid?


def correctness(case: DataGridCase) -> Correctness:
    """What the check after the run found, and what the tasks saw in it."""
    reported: list[str] = []
    found = case.checked
    wrong = case.wrong + (found.wrong if found else 0)
    if wrong:
        reported.append(f"{counted(wrong, 'value')} read that nobody had written")
    if found is None:
        if case.missing:
            reported.append(f"{counted(case.missing, 'object')} to be read were not there")
        outcome: Outcome = "wrong" if reported else "not checked"
        return Correctness(outcome, lost=case.missing, wrong=wrong, told=tuple(reported))
    expected = found.expected + found.doubtful
    lost = max(expected - found.found, found.missing, 0)
    spare = found.found - expected
    updates = _difference(found.updates, found.updates_expected, found.in_doubt)
    excused = killed(case) > case.backups
    bad = bool(wrong)
    if lost:
        reported.append(f"{lost:,} of {counted(found.expected, 'object')} lost")
        bad |= not excused
    elif case.missing:
        reported.append(f"{counted(case.missing, 'read')} in the run found no object where one was")
        bad |= not excused
    if spare > 0:
        reported.append(f"{counted(spare, 'object')} more than were stored")
        bad = True
    if updates < 0:
        collided = found.may_collide and case.updates == "plain"
        why = ", as tasks updated the same objects at the same time" if collided else ""
        reported.append(f"{counted(-updates, 'update')} of {found.updates_expected:,} lost{why}")
        bad |= not (excused or collided)
    elif updates > 0:
        reported.append(f"{counted(updates, 'update')} more in the values than were made")
        bad = True
    outcome = "wrong" if bad else "lost" if reported else "right"
    return Correctness(outcome, lost, wrong, updates, tuple(reported))


def killed(case: DataGridCase) -> int:
    """How many members were killed; fewer than were to be, if the tasks had ended before."""
    return sum(one.killed_at is not None for one in case.members)


def _difference(found: int, expected: int, in_doubt: int) -> int:
    """How far `found` is from what it may be: up to so many in doubt may be there or not."""
    if found < expected:
        return found - expected
    return max(0, found - expected - in_doubt)


def verdict(case: DataGridCase) -> tuple[Verdict, list[str]]:
    """Whether a claim may rest on the case, and why not."""
    if case.status == "failed":
        return "failed", [case.why or "it did not come to its end"]
    data = correctness(case)
    if data.outcome == "wrong":
        return "failed", list(data.told)
    reasons = list(_invalid(case))
    return ("invalid" if reasons else "valid"), reasons


def unsteady(case: DataGridCase) -> list[str]:
    """Why its throughput is not called steady: before the measured part, and in it."""
    found = []
    if case.warm_up is not None and not case.warm_up.steady:
        found.append("throughput did not become steady in the warm-up; --warm S gives it more time")
    steady = steadiness(case)
    # What a killed member does to throughput is what is looked at.
    if steady.steady is False and not case.kill:
        way = "rose" if steady.change > 0 else "fell"
        found.append(
            f"throughput {way} by {percent(abs(steady.change), 0)} from the first half of the run"
            " to the second"
        )
    return found


def _invalid(case: DataGridCase) -> list[str]:
    found = []
    if disturbed(case):
        found.append("other programs disturbed it")
    if case.warm_up is None:
        found.append("there was no warm-up")
    found += unsteady(case)
    if case.kill:
        if not killed(case):
            found.append("no member was killed, as all tasks ended before")
        return found
    if errors := sum(case.errors.values()):
        found.append(f"{counted(errors, 'operation')} failed")
    if case.rate is not None and throughput(case) < KEPT_UP * scheduled(case, case.rate):
        found.append(
            f"of {amount(case.rate, 'operations/s')} offered only"
            f" {amount(throughput(case), 'operations/s')} were done, so that latencies grow with"
            " the length of the run"
        )
    return found


def scheduled(case: DataGridCase, rate: float) -> float:
    """Operations per second that an open loop of this rate has from its begin to its end: fewer if
    not all clients have as many tasks, as some end before others."""
    tasks = case.parameters.get("NTasks", 1)
    busy = min(case.parameters.get("NNodes", 1), tasks)
    return rate * tasks / (busy * math.ceil(tasks / busy))


def _durations(case: DataGridCase) -> list[tuple[int, float]]:
    """Place and time of each task."""
    both = zip(case.tasks.began, case.tasks.ended, strict=True)
    return [(at, ended - began) for at, (began, ended) in enumerate(both)]


def _first_tasks(case: DataGridCase) -> set[int]:
    """The places of the tasks that a client began with."""
    first: dict[int, int] = {}
    for at, client in enumerate(case.tasks.client):
        if client not in first or case.tasks.began[at] < case.tasks.began[first[client]]:
            first[client] = at
    return set(first.values())


def _times(seconds: Sequence[float]) -> TaskTimeFigures | None:
    if not seconds:
        return None
    return TaskTimeFigures(len(seconds), statistics.median(seconds), min(seconds), max(seconds))
