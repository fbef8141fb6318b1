"""Where the time goes: the cost of going remote, split into phases.

Four stamps per task (five, if the engine tells when it took or sent the task) are all there
is, so the phases are defined by them and by what the task's worker did before. For one task:

    submit ......... free ....... queued ...... calc-in ......... calc-out ....... retrieve
       | queue         | dispatch    | input       | sleep + extra    | output        |

`free` is when the worker had finished with its task before: that task's retrieve time, or at
the latest this one's calc-in (an engine may send the next task before the result is in hand).

- **start-up**: a worker's wait from t = 0 to its first calc-in, on a cold start. Starting the
  process, connecting, shared data, and handing over the first task with its data are all in
  it; these stamps cannot tell them apart. On a warm start there is none: the first task's wait
  is submission, dispatch and input like any other's.
- **submission**: a free worker had to wait because the client had not yet submitted the task.
- **queue**: a submitted task had to wait because its worker was busy with others. It delays
  the task but costs the job nothing, as the worker was in use.
- **dispatch**: task submitted and worker free, until the task computes. Contains the transfer
  of the task's data unless that is stamped.
- **input**: the part of dispatch after the engine's own stamp (`queued`), if that lies between
  `free` and calc-in: sending, receiving and unpacking the task's data. Else 0, and inside
  dispatch. The same if the data went ahead while the worker was busy.
- **extra**: calc-out - calc-in - sleep: reading the input, writing the output, waking up late.
- **output**: calc-out to retrieve. For the job only as far as the worker does nothing else.
- **idle at the end**: a worker has no more tasks while others still work.
- **never used**: workers asked for that ran no task at all.

Two overheads per task answer different questions: the **round trip** is all that the client waits
beyond the task itself, also while the task is in a queue; **handling** is the same without
queue and start-up, what one task costs on a worker that is free.

Node clocks that differ from the client's shift dispatch and output against each other; the
intervals are kept with their sign, so that the sums stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from gridbench.analysis.columns import Floats, seconds
from gridbench.analysis.lanes import Lanes

_ROUNDING = 1e-8
"""Seconds: stamps are written down to the nanosecond, and so are the times between them."""
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class TaskPhases:
    """The phases of each task as the client sees it, shape (rows,), seconds.

    start_up + queue + dispatch + input + sleep + extra + output = retrieve - submit. NaN for
    tasks without all stamps.
    """

    start_up: Floats
    """From submit to calc-in, for the first task of a worker on a cold start; else 0."""
    queue: Floats
    dispatch: Floats
    input: Floats
    sleep: Floats
    extra: Floats
    output: Floats

    def means(self) -> dict[str, float]:
        """Mean of each phase over the tasks with all stamps; NaN if there are none, or if the phase
        is not known."""
        known = np.isfinite(self.total())
        if not known.any():
            known = np.isfinite(self.extra + self.output)
        return {
            field.name: float(getattr(self, field.name)[known].mean())
            if known.any()
            else float("nan")
            for field in fields(self)
        }

    def total(self) -> Floats:
        """Sum of the phases of each task."""
        phases: list[Floats] = [getattr(self, field.name) for field in fields(self)]
        return np.asarray(np.sum(phases, axis=0), dtype=np.float64)

    def handling(self) -> Floats:
        """What is left of each task's time without sleep, queue and start-up: its true overhead."""
        return self.dispatch + self.input + self.extra + self.output


@dataclass(frozen=True, slots=True)
class JobCost:
    """The time of the whole job, shared out: mean seconds per worker, t = 0 to the last retrieve.

    The parts add up to `total` exactly; all but `sleep` add up to `cost`.
    """

    workers: int
    total: float
    sleep: float
    start_up: float
    submission: float
    dispatch: float
    input: float
    extra: float
    output: float
    idle_end: float
    never_used: float

    @property
    def cost(self) -> float:
        """Measured time less the sleep time spread evenly over all workers, seconds."""
        return self.total - self.sleep

    def parts(self) -> dict[str, float]:
        """Name and seconds of each part, in the order in which a worker meets them."""
        names = ("start_up", "submission", "dispatch", "input", "sleep", "extra", "output")
        return {name: getattr(self, name) for name in (*names, "idle_end", "never_used")}


@dataclass(frozen=True, slots=True)
class _Moments:
    """Per row, seconds: when the worker was free for it, when the engine sent it off."""

    free: Floats
    begin: Floats
    sent: Floats


def task_phases(table: pa.Table, lanes: Lanes, *, cold: bool) -> TaskPhases:
    """Split each task's time from submit to retrieve."""
    submit, calc_in, calc_out = (seconds(table, n) for n in ("submit", "calc_in", "calc_out"))
    slept = time_slept(table)
    moments = _moments(table, lanes, cold=cold)
    first = (lanes.previous < 0) & (lanes.lane >= 0)
    wait = calc_in - submit
    start_up = np.where(first & cold, wait, 0.0)
    queue = np.where(first & cold, 0.0, np.maximum(0.0, moments.free - submit))
    input_ = np.where(first & cold, 0.0, calc_in - moments.sent)
    return TaskPhases(
        start_up=start_up,
        queue=queue,
        dispatch=wait - start_up - queue - input_,
        input=input_,
        sleep=slept,
        extra=calc_out - calc_in - slept,
        output=seconds(table, "retrieve") - calc_out,
    )


def input_begin(table: pa.Table, lanes: Lanes, *, cold: bool) -> Floats:
    """When each task's input phase starts in a Gantt chart, shape (rows,), seconds.

    The latest of submit, the engine's stamp, and the end of the worker's task before (its
    retrieve), but not after calc-in. For the first task of a worker on a cold start, submit.
    """
    moments = _moments(table, lanes, cold=False)
    calc_in = seconds(table, "calc_in")
    begin = np.where(moments.sent < calc_in, moments.sent, moments.begin)
    first = (lanes.previous < 0) & (lanes.lane >= 0)
    return np.minimum(np.where(first & cold, moments.begin, begin), calc_in)


def job_cost(table: pa.Table, lanes: Lanes, nnodes: int, *, cold: bool) -> JobCost | None:
    """Share out the job's time over `nnodes` workers; None if no task has calc-in and calc-out.

    If more workers than `nnodes` were seen, they count. Failed tasks without stamps are in no
    part: the time they took from a worker shows as dispatch or idle time.
    """
    rows = np.flatnonzero(lanes.lane >= 0)
    end = job_end(table)
    if len(rows) == 0 or not np.isfinite(end):
        return None
    calc_in, calc_out = seconds(table, "calc_in"), seconds(table, "calc_out")
    submit, slept = seconds(table, "submit"), time_slept(table)
    moments = _moments(table, lanes, cold=cold)
    first = rows[lanes.previous[rows] < 0]
    later = rows[lanes.previous[rows] >= 0]
    # On a cold start the first task of a worker is all start-up.
    split = later if cold else rows
    workers = max(nnodes, len(lanes.names))

    idle_before_submit = np.nan_to_num(np.maximum(0.0, submit - moments.free))[split]
    input_ = (calc_in - moments.sent)[split]
    after_free = (calc_in - moments.free)[split]
    last_free = np.clip(
        np.nan_to_num(seconds(table, "retrieve")[lanes.last], nan=-np.inf),
        calc_out[lanes.last],
        max(end, calc_out[lanes.last].max()),
    )
    output = (moments.free[later] - calc_out[lanes.previous[later]]).sum()
    output += (last_free - calc_out[lanes.last]).sum()
    busy = (calc_out - calc_in)[rows]
    sleep = np.where(np.isfinite(slept[rows]), slept[rows], busy)
    return JobCost(
        workers=workers,
        total=end,
        sleep=float(sleep.sum()) / workers,
        start_up=float(calc_in[first].sum()) / workers if cold else 0.0,
        submission=float(idle_before_submit.sum()) / workers,
        dispatch=float((after_free - idle_before_submit - input_).sum()) / workers,
        input=float(input_.sum()) / workers,
        extra=float((busy - sleep).sum()) / workers,
        output=float(output) / workers,
        idle_end=float((end - last_free).sum()) / workers,
        never_used=end * (workers - len(lanes.names)) / workers,
    )


def job_end(table: pa.Table) -> float:
    """End of the job: the last retrieve, or if none is known the last calc-out; else NaN."""
    for name in ("retrieve", "calc_out"):
        stamps = seconds(table, name)
        stamps = stamps[np.isfinite(stamps)]
        if len(stamps):
            return float(stamps.max())
    return float("nan")


def time_slept(table: pa.Table) -> Floats:
    """Seconds each task really slept, or if that is not known those it was asked to; else NaN.

    All of calc-in to calc-out where it differs from that by no more than stamps are rounded to.
    """
    slept = seconds(table, "slept")
    known = np.where(np.isfinite(slept), slept, seconds(table, "sleep"))
    busy = seconds(table, "calc_out") - seconds(table, "calc_in")
    return np.where(np.abs(busy - known) <= _ROUNDING, busy, known)


def _moments(table: pa.Table, lanes: Lanes, *, cold: bool) -> _Moments:
    calc_in, calc_out = seconds(table, "calc_in"), seconds(table, "calc_out")
    submit, queued = seconds(table, "submit"), seconds(table, "queued")
    retrieve = seconds(table, "retrieve")
    before = lanes.previous
    returned = np.fmax(retrieve[before], calc_out[before])
    first_free = calc_in if cold else np.zeros_like(calc_in)
    free = np.where(before >= 0, np.minimum(returned, calc_in), first_free)
    begin = np.fmax(submit, free)
    sent = np.where(queued > begin, np.minimum(queued, calc_in), calc_in)
    return _Moments(free, begin, sent)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Sorted values, seconds, without those not known."""

    values: Floats

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self.values)

    def percentile(self, percent: float) -> float:
        """The smallest value with at least `percent` % of the values at or below it; NaN if none.

        Always a measured value: nothing is interpolated.
        """
        if self.count == 0:
            return float("nan")
        return float(np.percentile(self.values, percent, method="inverted_cdf"))

    def figures(self) -> dict[str, float]:
        """min, p50, p90, p99, max and mean, seconds."""
        nothing = float("nan")
        return {
            "min": float(self.values[0]) if self.count else nothing,
            **{f"p{percent}": self.percentile(percent) for percent in PERCENTILES},
            "max": float(self.values[-1]) if self.count else nothing,
            "mean": float(self.values.mean()) if self.count else nothing,
        }

    def curve(self, points: int) -> tuple[Floats, Floats]:
        """Value and share of the tasks at or below it (0 to 1), at most about `points` of them.

        The tails are kept in full detail, as there the interesting values are few.
        """
        share = np.arange(1, self.count + 1) / self.count
        if self.count <= points:
            return self.values, share
        tail = points // 4
        middle = np.linspace(tail, self.count - 1 - tail, points - 2 * tail).round()
        keep = np.unique(
            np.concatenate([np.arange(tail), middle, np.arange(self.count - tail, self.count)])
        ).astype(np.int64)
        return self.values[keep], share[keep]


def round_trip(phases: TaskPhases) -> Distribution:
    """Overhead as the client sees it."""
    return _distribution(phases.total() - phases.sleep)


def handling(phases: TaskPhases) -> Distribution:
    """Overhead without queue and start-up."""
    # The first task of a worker on a cold start keeps its output and extra, but its dispatch is
    # inside the start-up: it would look too cheap, so it is left out.
    values = phases.handling()
    return _distribution(np.where(phases.start_up != 0, np.nan, values))


def _distribution(values: Floats) -> Distribution:
    return Distribution(np.sort(values[np.isfinite(values)]))
