"""Transfer times and rates, from stamps and sizes.

The compute-grid benchmark counts 1 MB, which is 1,024 KB, as 8 Mbit, so a rate in Mbit/s is eight
times that in MB/s. It is kept here, so that rates of new runs stand beside the published ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Floats

MEGABYTE = 1 << 20
"""Bytes."""
MEGABITS_PER_MEGABYTE = 8.0
NAN = float("nan")

_LONGER = 1.5
"""A step so many times the usual one may be a wait."""
_NEAR = 0.05
"""Of a wait: how exactly waves begin at multiples of it, by the stamps."""
_PACE = 95.0
"""Percentile of the steps up to which they tell the pace; above it are pauses."""
_MAD = 1.4826
"""Times the median absolute deviation is the standard deviation, of a normal distribution."""
_OF_MEDIAN = 1.2533
"""The standard error of a median by that of a mean."""
_QUANTILE = 1.96


def rate_mbps(megabytes: float, seconds: float) -> float:
    """Mbit/s at which so much is transferred in so long; NaN if the time is not above 0."""
    return megabytes * MEGABITS_PER_MEGABYTE / seconds if seconds > 0 else NAN


def transfer_time(megabytes: float, mbps: float) -> float:
    """Seconds that so much takes at a rate above 0, in Mbit/s."""
    return megabytes * MEGABITS_PER_MEGABYTE / mbps


def bytes_per_second(mbps: float) -> float:
    """A rate in Mbit/s as bytes per second."""
    return mbps / MEGABITS_PER_MEGABYTE * MEGABYTE


def smallest_step(stamps: Floats) -> float:
    """Smallest difference of successive stamps, seconds; NaN with fewer than two.

    Of submit times, where handing a task over means sending its data: the time of one transfer
    that nothing has disturbed, and so the peak rate. An engine that puts tasks into a queue submits
    them faster than they travel. Stamps need not be sorted; NaN are left out.
    """
    known = np.sort(stamps[np.isfinite(stamps)])
    return float(np.diff(known).min()) if len(known) > 1 else NAN


def block_span(stamps: Floats, tasks: int) -> float:
    """Time from the first to the last of the `tasks` earliest stamps, seconds; NaN with too few.

    A block is as many tasks as there are workers: all of them share the network at the same time.
    The stamps need not be sorted; NaN are left out.
    """
    known = np.sort(stamps[np.isfinite(stamps)])
    return float(known[tasks - 1] - known[0]) if len(known) >= tasks > 1 else NAN


def _without_waits(stamps: Floats, wait: float) -> Floats:
    """The differences of sorted stamps, shape (stamps - 1,), without the waits for the next wave.

    Waves of workers start at whole multiples of `wait` after each other, and the first task of a
    wave computes as long after its start as that of any other. However long a wave took, the rest
    until the next one is no transfer: what is left is a usual step.
    """
    steps = np.diff(stamps)
    if not (wait > 0 and len(steps)):
        return steps
    usual = _usual_step(steps, wait)
    begin = float(stamps[0])
    for at, step in enumerate(steps.tolist()):
        since = float(stamps[at + 1]) - begin
        waves = round(since / wait)
        if step > _LONGER * usual and waves and abs(since - waves * wait) < _NEAR * wait:
            steps[at] = usual
            begin = float(stamps[at + 1])
    return steps


def _usual_step(steps: Floats, wait: float) -> float:
    """The median of the steps within waves; without any, waves are of one worker each."""
    within = steps[steps < (1 - _NEAR) * wait / 2]
    return float(np.median(within)) if len(within) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """At which pace the tasks of a block arrived; times in seconds."""

    step: float
    """From one task to the next, median."""
    noise: float
    """How far that median may be off by the scatter of the steps, 95 %."""
    span: float
    """In which `tasks` travelled: from when the first was sent, if that is known, to the last; else
    from the end of the first group."""
    tasks: int
    """All, or those after the first group: its data had travelled before the span began."""


def arrivals(
    stamps: Floats, tasks: int, *, sent: float = NAN, wait: float = 0.0
) -> Arrivals | None:
    """The pace of the `tasks` earliest stamps; None with fewer than two of them to compare.

    `sent` is when the first was sent off: where transfers go at the same time, nobody knows how
    much of the others had travelled when the first arrived.

    Transfers that go at the same time, such as one to each host, arrive in groups: what comes
    within half of the mean step belongs together, and the time between two groups is shared by the
    tasks of the later one. In that mean the longest twentieth does not count, such as pauses.

    Waits of a scheduler that starts waves of workers every `wait` seconds have nothing to do with
    transfers, and are taken off. If the first worker starts at least a wait before the second, the
    pace begins at the second task. The stamps need not be sorted; NaN are left out.
    """
    known = np.sort(stamps[np.isfinite(stamps)])[:tasks]
    if len(known) < tasks or tasks < 2:
        return None
    if wait > 0 and tasks > 2 and known[1] - known[0] >= (1 - _NEAR) * wait:
        known = known[1:]
    steps = _without_waits(known, wait)
    mean = steps[steps <= np.percentile(steps, _PACE)].mean()
    ends = np.flatnonzero(np.append(steps > mean / 2, True))
    if len(ends) < 2:
        return None
    times = np.add.reduceat(steps, ends[:-1])
    sizes = np.diff(ends)
    each = np.repeat(times / sizes, sizes)
    step = float(np.median(each))
    scatter = float(np.median(np.abs(each - step))) * _MAD
    told = math.isfinite(sent) and wait == 0
    return Arrivals(
        step=step,
        noise=_QUANTILE * _OF_MEDIAN * scatter / math.sqrt(len(times)),
        span=float(known[-1] - sent if told else times.sum()),
        tasks=tasks if told else int(sizes.sum()),
    )


def time_per_task(span: float, empty_span: float, tasks: int) -> float:
    """Seconds that the data of one task took, from the span of a block and that without data."""
    return (span - empty_span) / tasks


def transfer_load(cores: int, megabytes: float, mbps: float, task_time: float) -> float:
    """The rule of thumb: time to send data to all cores, over the time of a task.

    Transfers do not hurt while it is below 1: then the link is done with all cores before the
    first of them needs the next task. `megabytes` are of one task, `task_time` is in seconds;
    infinite for tasks that take no time but have data.
    """
    needed = cores * transfer_time(megabytes, mbps)
    if task_time > 0:
        return needed / task_time
    return float("inf") if needed > 0 else 0.0
