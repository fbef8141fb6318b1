"""A Redis that clients ask at once: Redis' own benchmark as the task, a connection for each."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Values, noise_row
from benchmarks.sync.rounds import Seen, medians, workers_at
from gridbench.bench.series import Points
from gridbench_testbed.daemons import lacking
from gridbench_testbed.services import redis
from gridbench_testbed.services.redis import Redis

_WORKERS = {
    Extent.TRIAL: (1, 2), Extent.USUAL: (1, 2, 4, 8, 16), Extent.FULL: (1, 2, 4, 8, 16),
}  # fmt: skip
_REQUESTS = {Extent.TRIAL: 500, Extent.USUAL: 20_000, Extent.FULL: 50_000}
"""Of each worker."""
_REPEATS = {Extent.TRIAL: 1, Extent.USUAL: 1, Extent.FULL: 3}
_PROGRAM = "redis-benchmark"


def asked(workers: int, requests: int, repeats: int) -> Values:
    """Requests per second of all together, and the median us that one takes; and that again."""
    with Redis() as server, workers_at(workers) as all_workers:
        words = ("-s", str(server.socket), "-c", "1", "-n", str(requests), "-t", "set", "--csv")

        def step() -> Values:
            seen = all_workers.run(_PROGRAM, *words)
            rate = workers * requests / seen.figures.span
            return {"rate": rate, "latency": _latency(seen)}

        return medians({"once": step, "again": step}, repeats)


def _latency(seen: Seen) -> float:
    """The median of the workers' medians, us; they write them in ms, as CSV with a head."""
    tables = [list(csv.DictReader(text.splitlines())) for text in seen.printed]
    return 1e3 * statistics.median(float(table[0]["p50_latency_ms"]) for table in tables)


def area(extent: Extent) -> Area:
    """A case for each number of workers."""
    counts, requests, repeats = _WORKERS[extent], _REQUESTS[extent], _REPEATS[extent]
    missing = redis.why_not()
    if lacking(_PROGRAM):
        missing = f"`{_PROGRAM}` is not installed: scripts/ensure-redis does that"
    cases = [
        AreaCase(
            _name(workers),
            asked,
            {"workers": workers, "requests": requests, "repeats": repeats},
            missing=missing,
            timeout=300,
        )
        for workers in counts
    ]
    title = f"`{_PROGRAM}` of each worker at one Redis: {requests:,} times SET, one by one"
    return Area("sync/redis", title, tuple(cases), lambda s: _rows(s, counts), part="redis")


def _name(workers: int) -> str:
    return f"Redis asked by {workers}"


def _rows(samples: Points, counts: Sequence[int]) -> list[Row]:
    rows = []
    for workers in counts:
        name = _name(workers)
        once, again = samples.of(name, "once rate"), samples.of(name, "again rate")
        rows += [
            Row(f"requests, workers: {workers}", "/s", once, digits=0),
            Row(
                f"time of one (median), workers: {workers}",
                "us",
                samples.of(name, "once latency"),
                digits=0,
            ),
            noise_row(f"requests, workers: {workers}, by itself", once, again),
        ]
    return rows
