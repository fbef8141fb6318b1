"""Lanes: which tasks followed each other on the same worker.

A timeline usually names the worker of each task. Old logs name the host only, on which
several cores may have worked; there tasks are laid into as few lanes as their times need.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Lanes = npt.NDArray[np.int64]


def lanes(table: pa.Table) -> Lanes:
    """The number of each row's lane, from 0, shape (rows,); -1 where calc-in is not known."""
    calc_in = table.column("calc_in").to_numpy()
    calc_out = table.column("calc_out").to_numpy()
    workers = table.column("worker").to_pylist()
    hosts = table.column("host").to_pylist()
    result = np.full(len(calc_in), -1, dtype=np.int64)
    named: dict[tuple[str, str], int] = {}
    free: dict[str, list[tuple[float, int]]] = {}  # lanes of a host, by the time they end
    count = 0
    for row in np.argsort(calc_in, kind="stable"):
        if not np.isfinite(calc_in[row]):
            break  # NaN sorts last
        worker, host = workers[row] or "", hosts[row] or ""
        if worker:
            key = (host, worker)
            if key not in named:
                named[key] = count
                count += 1
            result[row] = named[key]
            continue
        ends = free.setdefault(host, [])
        if ends and ends[0][0] <= calc_in[row]:
            lane = heapq.heappop(ends)[1]
        else:
            lane = count
            count += 1
        result[row] = lane
        end = calc_out[row] if np.isfinite(calc_out[row]) else np.inf
        heapq.heappush(ends, (float(end), lane))
    return result
