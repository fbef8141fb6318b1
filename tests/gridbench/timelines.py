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


def skewed_run(
    *,
    offset: float = 0.0,
    drift: float = 0.0,
    tasks: int = 300,
    workers: int = 100,
    hosts: int = 20,
    sleep: float = 2.0,
    start: float = 5.0,
    seed: int = 1,
) -> tuple[pa.Table, pa.Table]:
    """A run on hosts whose clocks differ from the client's by up to `offset` seconds and gain up to
    `drift` seconds per second, either way: as logged, and in truth. It starts cold, with 20 ms
    from worker to worker; tasks take 5 ms there and 1 ms back at least."""
    random = np.random.default_rng(seed)
    ahead = random.uniform(-offset, offset, hosts)
    gains = random.uniform(-drift, drift, hosts)
    free = start + 0.02 * np.arange(workers)
    truth, logged = [], []
    for tid in range(1, tasks + 1):
        worker = int(free.argmin())
        host = worker % hosts
        submit = 1e-3 * tid
        calc_in = max(free[worker], submit) + 0.005 + random.exponential(0.005)
        calc_out = calc_in + sleep * random.uniform(0.9, 1.1)
        retrieve = calc_out + 0.001 + random.exponential(0.004)
        free[worker] = retrieve
        row = {
            "tid": tid,
            "sleep": calc_out - calc_in,
            "submit": submit,
            "calc_in": calc_in,
            "calc_out": calc_out,
            "retrieve": retrieve,
            "worker": f"node{host}",
            "host": f"node{host}",
            "clock_error": NAN,
        }
        truth.append(row)
        wrong = {n: row[n] + ahead[host] + gains[host] * row[n] for n in ("calc_in", "calc_out")}
        logged.append(row | wrong)
    return table_of(logged), table_of(truth)
