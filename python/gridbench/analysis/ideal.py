"""The shortest time in which given tasks can be done on given workers."""

from __future__ import annotations

import numpy as np

from gridbench.analysis.columns import Floats


def ideal_time(sleeps: Floats, workers: int) -> float:
    """A lower bound for any schedule without overhead, seconds; exact for equal tasks.

    The largest of: the work spread evenly; and, for each k, what a worker needs that gets k + 1
    of the k * workers + 1 longest tasks (some worker must), if it gets the shortest of them.
    """
    longest_first = np.sort(sleeps[np.isfinite(sleeps)])[::-1]
    count = len(longest_first)
    if count == 0 or workers < 1:
        return 0.0
    sums = np.concatenate([[0.0], np.cumsum(longest_first)])
    k = np.arange((count - 1) // workers + 1)
    top = k * workers + 1
    unlucky = sums[top] - sums[top - k - 1]
    return float(max(sums[-1] / workers, unlucky.max()))
