"""Timelines for tests: from a few rows, or of a size that a real run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.timeline import SCHEMA

NAN = float("nan")
DEFAULTS: dict[str, Any] = {
    "sleep": 1.0,
    "queued": NAN,
    "worker": "w1",
    "host": "node1",
    "bytes_in": 0,
    "bytes_shared": 0,
    "bytes_out": 0,
    "status": "ok",
}


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A timeline of rows that need to give only what matters; `slept` follows `sleep`."""
    full = []
    for tid, row in enumerate(rows, 1):
        given = {"tid": tid, **DEFAULTS, **row}
        given.setdefault("slept", given["sleep"])
        for stamp in ("submit", "calc_in", "calc_out", "retrieve"):
            given.setdefault(stamp, NAN)
        full.append(given)
    return pa.Table.from_pylist(full, schema=SCHEMA)


def made_run(tasks: int, workers: int, *, sleep: float = 1.0, seed: int = 1) -> pa.Table:
    """A timeline like a run's: workers that start one by one, jitter in all phases."""
    random = np.random.default_rng(seed)
    free = 0.3 + np.arange(workers) * 0.002 + random.exponential(0.01, workers)
    rows = []
    for tid in range(1, tasks + 1):
        worker = int(free.argmin())
        submit = tid * 20e-6
        queued = max(free[worker], submit) + random.exponential(50e-6)
        calc_in = queued + random.exponential(200e-6)
        slept = max(0.0, random.normal(sleep, sleep / 10))
        calc_out = calc_in + slept + random.exponential(80e-6)
        retrieve = calc_out + random.lognormal(-8.5, 1.0)
        free[worker] = retrieve
        rows.append(
            {
                "tid": tid,
                "sleep": slept,
                "submit": submit,
                "queued": queued,
                "calc_in": calc_in,
                "calc_out": calc_out,
                "retrieve": retrieve,
                "worker": f"worker-{worker}",
                "host": f"node{worker % 4}",
            }
        )
    rows.sort(key=lambda row: row["retrieve"])
    return table_of(rows)
