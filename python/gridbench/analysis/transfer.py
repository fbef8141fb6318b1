"""Transfer times and rates, from stamps and sizes; what each stage of a run took.

The compute-grid benchmark counts 1 MB, which is 1,024 KB, as 8 Mbit, so a rate in Mbit/s is eight
times that in MB/s. It is kept here, so that rates of new runs stand beside the published ones.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from gridbench.analysis.columns import Floats, seconds, succeeded
from gridbench.analysis.lanes import assign_lanes

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
    reported = math.isfinite(sent) and wait == 0
    return Arrivals(
        step=step,
        noise=_QUANTILE * _OF_MEDIAN * scatter / math.sqrt(len(times)),
        span=float(known[-1] - sent if reported else times.sum()),
        tasks=tasks if reported else int(sizes.sum()),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """What each stage of a run took, seconds; NaN where the stamps do not tell.

    A *block* is as many tasks as there are cores. The first contends for the network, as all its
    transfers begin together; later ones spread out, as cores become free one by one.

    | from | to | seen in |
    |---|---|---|
    | client | scheduler | smallest step of submit times, if handing over is sending |
    | scheduler | workers | successive calc-in times of the first block |
    | workers | client | successive retrieve times of the first block |

    Starting up is in the first of these steps and spans, too: the same run without data tells how
    much of it. An engine that puts tasks into a queue submits them faster than they travel; then
    only calc-in times tell how fast data came.
    """

    first_start: float
    """Until the first task computed."""
    last_start: float
    """Until the last of the workers that had a task computed its first."""
    submit_step: float
    """Smallest difference of successive submit times."""
    submit_span: float
    """From the first to the last submission."""
    start_span: float
    """From the first to the last calc-in of the first block."""
    start_pace: Arrivals | None
    """Of the same stamps: step by step, without waits between waves of workers."""
    return_span: float
    """From the first to the last retrieve of the first block."""
    return_pace: Arrivals | None
    first_dispatch: float
    """Mean from submit to calc-in over the first block."""
    later_dispatch: float
    """Mean over later blocks, from the worker being free to calc-in."""
    first_return: float
    """Mean from calc-out to retrieve over the first block."""
    later_return: float

    def figures(self) -> dict[str, float]:
        """By name, without those that are not known; those of a pace as `start_pace_step`."""
        found: dict[str, float] = {}
        for name, value in asdict(self).items():
            if isinstance(value, dict):
                found |= {f"{name}_{inner}": float(one) for inner, one in value.items()}
            elif value is not None and math.isfinite(value):
                found[name] = value
        return found


def stage_times(table: pa.Table, cores: int, *, wait: float = 0.0) -> StageTimes:
    """The stages of a run on so many cores; failed tasks are left out.

    `wait`: seconds between waves of workers that the scheduler starts, which no pace has in it.
    """
    done = table.filter(pa.array(succeeded(table)))
    lanes = assign_lanes(done)
    submit, calc_in = seconds(done, "submit"), seconds(done, "calc_in")
    calc_out, retrieve = seconds(done, "calc_out"), seconds(done, "retrieve")
    first = np.zeros(done.num_rows, dtype=bool)
    first[np.argsort(np.where(np.isfinite(calc_in), calc_in, np.inf), kind="stable")[:cores]] = True
    starts = calc_in[(lanes.previous < 0) & (lanes.lane >= 0)]
    free = np.where(lanes.previous >= 0, np.minimum(retrieve[lanes.previous], calc_in), NAN)
    block = min(cores, done.num_rows)
    return StageTimes(
        first_start=_extreme(starts, largest=False),
        last_start=_extreme(starts, largest=True),
        submit_step=smallest_step(submit),
        submit_span=_extreme(submit, largest=True) - _extreme(submit, largest=False),
        start_span=block_span(calc_in, block),
        start_pace=arrivals(
            calc_in, block, sent=_extreme(seconds(done, "queued")[first], largest=False), wait=wait
        ),
        return_span=block_span(retrieve, block),
        return_pace=arrivals(
            retrieve, block, sent=_extreme(calc_out[first], largest=False), wait=wait
        ),
        first_dispatch=_mean((calc_in - submit)[first]),
        later_dispatch=_mean((calc_in - np.fmax(submit, free))[~first]),
        first_return=_mean((retrieve - calc_out)[first]),
        later_return=_mean((retrieve - calc_out)[~first]),
    )


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else NAN


def _extreme(values: Floats, *, largest: bool) -> float:
    known = values[np.isfinite(values)]
    if not len(known):
        return NAN
    return float(known.max() if largest else known.min())


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive:
    """The total time as a sum of its parts, as the original report estimates it; rates in Mbit/s.

    Where parts overlap, such as transfers with start-up or with computing, the sum is too large;
    where data takes a second, slower hop, or each task has a cost, it is too small.
    `gridbench.model` follows the tasks instead; this is for a first look.
    """

    name: str
    start_up: float
    """Seconds, however many cores."""
    start_up_per_core: float
    """Seconds."""
    task_rate: float
    shared_rate: float
    output_rate: float

    def total(
        self,
        *,
        tasks: int,
        cores: int,
        sleep: float,
        task_mb: float = 0.0,
        shared_mb: float = 0.0,
        output_mb: float = 0.0,
        queue: float = 0.0,
    ) -> float:
        """Seconds. `sleep` is of all tasks that follow each other on a core, `queue` any wait."""
        return (
            self.start_up
            + self.start_up_per_core * min(cores, tasks)
            + transfer_time(task_mb * tasks, self.task_rate)
            + transfer_time(shared_mb * cores, self.shared_rate)
            + sleep
            + transfer_time(output_mb * tasks, self.output_rate)
            + queue
        )


SYMPHONY = Additive(
    name="Platform Symphony",
    start_up=5.6,
    start_up_per_core=0.0,
    task_rate=830.0,
    shared_rate=880.0,
    output_rate=570.0,
)
NINFG = Additive(
    name="Ninf-G with Grid Engine",
    start_up=4.2,
    start_up_per_core=0.15,
    task_rate=835.0,
    shared_rate=835.0,
    output_rate=835.0,
)
