"""How many tasks computed at the same time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gridbench.analysis.columns import Floats, Integers, seconds


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
