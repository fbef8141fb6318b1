"""The numbers of one run, from its timeline alone, and how many tasks ran at the same time.

Clocks of different hosts differ, so a task can seem to come back before it ended. Such
negative intervals are counted and kept as they are: they are offsets, not errors, and
cutting them off at 0 would move every percentile.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.clocks import largest_error
from gridbench.analysis.columns import Floats, Integers, seconds
from gridbench.analysis.lanes import lanes

NAN = float("nan")
_ROUNDING = 0.01
"""Share by which an efficiency may be above 1, as stamps are rounded and sleeping is inexact."""


@dataclass(frozen=True, slots=True)
class Concurrency:
    """A step function: from `time[i]` to `time[i + 1]`, `running[i]` tasks were computing."""

    time: Floats
    """Shape (steps,), seconds, rising."""
    running: Integers
    """Shape (steps,); the last is 0."""

    @property
    def most(self) -> int:
        """The largest number of tasks that ran at once."""
        return int(self.running.max(initial=0))

    def mean(self, end: float) -> float:
        """Mean number of running tasks from t = 0 to `end` (seconds); NaN if `end` is not > 0."""
        if not end > 0:
            return float("nan")
        inside = np.diff(np.clip(np.append(self.time, end), 0, end))
        return float(np.sum(inside * self.running) / end)


def running_over_time(table: pa.Table) -> Concurrency:
    """Count the tasks between calc-in and calc-out; tasks without either do not count.

    Where one task ends at the very moment another starts, they do not overlap.
    """
    begin, end = seconds(table, "calc_in"), seconds(table, "calc_out")
    known = np.isfinite(begin) & np.isfinite(end) & (end >= begin)
    moments = np.concatenate([begin[known], end[known]])
    change = np.concatenate([np.ones(known.sum()), -np.ones(known.sum())]).astype(np.int64)
    time, at = np.unique(moments, return_inverse=True)
    steps = np.zeros(len(time), dtype=np.int64)
    np.add.at(steps, at, change)
    return Concurrency(time, np.cumsum(steps))


def thinned(steps: Concurrency, points: int) -> Concurrency:
    """The same curve with about `points` steps for drawing: each slice of time keeps its
    first, lowest, highest and last step, so peaks and gaps stay."""
    count = len(steps.time)
    if count <= points:
        return steps
    slices = max(1, points // 4)
    start, stop = steps.time[0], steps.time[-1]
    slot = ((steps.time - start) / (stop - start) * slices).astype(np.int64)
    slot = np.minimum(slot, slices - 1)
    by_height = np.lexsort((steps.running, slot))
    _, edges = np.unique(slot, return_index=True)
    ends = np.append(edges[1:], count) - 1
    keep = np.unique(np.concatenate([edges, ends, by_height[edges], by_height[ends]]))
    return Concurrency(steps.time[keep], steps.running[keep])


@dataclass(frozen=True, slots=True)
class PhaseStatistics:
    """How one part of the overhead is distributed over the tasks; seconds, NaN if unknown."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    largest: float
    negative: int
    """Tasks for which the interval is below 0: the clocks of client and host differ."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The outcome of one run. Times are seconds; NaN where the stamps do not tell."""

    tasks: int
    """Tasks asked for."""
    ok: int
    failed: int
    missing: int
    """Tasks without a row: the run ended before they did."""
    nodes: int
    workers_seen: int
    """Workers that did at least one task."""
    total: float
    """From t = 0 until the last result was in the client's hand."""
    ideal: float
    """The same tasks in order of submission on `nodes` cores, with no overhead at all; if they
    compute, on the processors that there are."""
    efficiency: float
    """`ideal` over `total`."""
    tasks_per_second: float
    first_calc_in: float
    """Until the first task started computing."""
    last_worker_calc_in: float
    """Until the last of the workers seen started its first task."""
    most_running: int
    """Most tasks computing at one time."""
    clock_error: float
    """Calc-in and calc-out may be so far off the client's clock; NaN: the engine does not tell."""
    bytes_in: int
    bytes_out: int
    startup: PhaseStatistics
    """First task of each worker: from submit to calc-in, with the worker's start-up in it."""
    dispatch: PhaseStatistics
    """Every later task: from the moment it was submitted and its worker free, to calc-in."""
    oversleep: PhaseStatistics
    """Slept longer than asked for."""
    output: PhaseStatistics
    """From the end of the sleep to calc-out: making the output."""
    giving_back: PhaseStatistics
    """From calc-out to retrieve."""
    overhead: PhaseStatistics
    """Per task: dispatch (or start-up), oversleep, output and giving back together."""

    @property
    def took_their_time(self) -> bool:
        """False: the job took less than its tasks were to take, so that these have not done so, as
        with an engine that does nothing. Efficiency then has no meaning."""
        return not self.efficiency > 1 + _ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """For JSON: nested dictionaries, with None for NaN."""
        return {key: _plain(value) for key, value in asdict(self).items()}


def summarise(table: pa.Table, ntasks: int, nnodes: int, processors: int | None = None) -> Summary:
    """The summary of a timeline (`gridbench.timeline.SCHEMA`) of `ntasks` tasks on `nnodes`.

    `processors`: those that the tasks had to share; None: they had what they needed.
    """
    ok = [status == "ok" for status in table.column("status").to_pylist()]
    done = table.filter(pa.array(ok, pa.bool_()))
    stamps = {
        name: done.column(name).to_numpy()
        for name in ("sleep", "slept", "submit", "calc_in", "calc_out", "retrieve")
    }
    lane = lanes(done)
    ready, first = _ready(stamps, lane)
    wait = stamps["calc_in"] - ready
    requested = np.where(np.isfinite(stamps["sleep"]), stamps["sleep"], stamps["slept"])
    oversleep = stamps["slept"] - requested
    output = stamps["calc_out"] - stamps["calc_in"] - stamps["slept"]
    back = stamps["retrieve"] - stamps["calc_out"]
    total = _extreme(np.max, stamps["retrieve"])
    in_order = requested[np.argsort(stamps["submit"], kind="stable")]
    ideal = ideal_time(in_order, nnodes, processors)
    return Summary(
        tasks=ntasks,
        ok=done.num_rows,
        failed=table.num_rows - done.num_rows,
        missing=max(0, ntasks - table.num_rows),
        nodes=nnodes,
        workers_seen=len(np.unique(lane[lane >= 0])),
        total=total,
        ideal=ideal,
        efficiency=ideal / total if total > 0 else NAN,
        tasks_per_second=done.num_rows / total if total > 0 else NAN,
        first_calc_in=_extreme(np.min, stamps["calc_in"]),
        last_worker_calc_in=_extreme(np.max, stamps["calc_in"][first]),
        most_running=_most_running(stamps["calc_in"], stamps["calc_out"]),
        clock_error=largest_error(done),
        bytes_in=_total(done, "bytes_in"),
        bytes_out=_total(done, "bytes_out"),
        startup=distribution(wait[first]),
        dispatch=distribution(wait[~first]),
        oversleep=distribution(oversleep),
        output=distribution(output),
        giving_back=distribution(back),
        overhead=distribution(wait + oversleep + output + back),
    )


def distribution(values: Floats) -> PhaseStatistics:
    """Count, mean, percentiles and largest of the finite values."""
    values = values[np.isfinite(values)]
    if not len(values):
        return PhaseStatistics(0, NAN, NAN, NAN, NAN, NAN, 0)
    p50, p90, p99 = (float(value) for value in np.percentile(values, (50, 90, 99)))
    return PhaseStatistics(
        count=len(values),
        mean=float(values.mean()),
        p50=p50,
        p90=p90,
        p99=p99,
        largest=float(values.max()),
        negative=int((values < 0).sum()),
    )


def ideal_time(times: Floats, nnodes: int, processors: int | None = None) -> float:
    """Seconds that tasks of these times take on `nnodes` cores, each going to the first core
    that is free, with no overhead. NaN if there are none.

    `processors`: those that the cores stand for, if they are fewer and the tasks compute; then it
    is the least that they can take.
    """
    times = times[np.isfinite(times)]
    if not len(times):
        return NAN
    ends = [0.0] * min(nnodes, len(times))
    for one in times.tolist():
        heapq.heapreplace(ends, ends[0] + one)
    longest = max(ends)
    return max(longest, float(times.sum()) / processors) if processors else longest


def _ready(stamps: dict[str, Floats], lane: Integers) -> tuple[Floats, Any]:
    """For each task, when it could have started: submitted, and its worker free; and whether
    it was its worker's first."""
    ready = stamps["submit"].copy()
    first = np.zeros(len(ready), dtype=bool)
    # By lane, and by calc-in within a lane.
    order = np.lexsort((stamps["calc_in"], lane))
    order = order[lane[order] >= 0]
    if len(order):
        starts = np.r_[True, lane[order][1:] != lane[order][:-1]]
        first[order] = starts
        later, before = order[1:][~starts[1:]], order[:-1][~starts[1:]]
        ready[later] = np.fmax(stamps["submit"][later], stamps["calc_out"][before])
    return ready, first


def _most_running(calc_in: Floats, calc_out: Floats) -> int:
    known = np.isfinite(calc_in) & np.isfinite(calc_out)
    starts, ends = np.sort(calc_in[known]), np.sort(calc_out[known])
    if not len(starts):
        return 0
    # At each start: tasks started so far, less those ended by then.
    running = np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="right")
    return max(1, int(running.max()))


def _extreme(function: Any, values: Floats) -> float:
    values = values[np.isfinite(values)]
    return float(function(values)) if len(values) else NAN


def _total(table: pa.Table, column: str) -> int:
    return sum(value or 0 for value in table.column(column).to_pylist())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
