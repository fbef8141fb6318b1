"""Transfer times and rates, from stamps and sizes.

The compute-grid benchmark counts 1 MB, which is 1,024 KB, as 8 Mbit, so a rate in Mbit/s is eight
times that in MB/s. It is kept here, so that rates of new runs stand beside the published ones.
"""

from __future__ import annotations

import numpy as np

from gridbench.analysis.columns import Floats

MEGABYTE = 1 << 20
"""Bytes."""
MEGABITS_PER_MEGABYTE = 8.0
NAN = float("nan")


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
    that nothing has disturbed, and so the peak rate. Stamps need not be sorted; NaN are left out.
    """
    known = np.sort(stamps[np.isfinite(stamps)])
    return float(np.diff(known).min()) if len(known) > 1 else NAN


def block_span(stamps: Floats, tasks: int, *, base: int = 0, wait: float = 0.0) -> float:
    """Time from the first to the last of the `tasks` earliest stamps, seconds; NaN with too few.

    A block is as many tasks as there are workers: all of them share the network at the same time.
    With `base` 1, the span begins at the second task, if the first worker starts long before the
    others. Whole multiples of `wait` (seconds) in the gaps are taken off: a scheduler that
    starts workers in such steps has nothing to do with transfers. It has to be longer than a
    transfer. The stamps need not be sorted; NaN are left out.
    """
    known = np.sort(stamps[np.isfinite(stamps)])
    if len(known) < tasks or tasks < base + 2:
        return NAN
    gaps = np.diff(known[base:tasks])
    if wait > 0:
        gaps = gaps - np.floor(gaps / wait) * wait
    return float(gaps.sum())


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
