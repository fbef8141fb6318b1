"""How long a read takes as the benchmark sees it, and as the plainest client of the same process
and the product's own benchmark see it, on the same cluster in the same run.

All processes share one processor: with several it is chance whether client and member do, and
waking a processor that sleeps takes several times as long as a read.
"""

from __future__ import annotations

import contextlib
import csv
import os
import subprocess
from collections.abc import Sequence

from benchmarks.data.clusters import (
    MEMBERS,
    REAL,
    judged,
    measured,
    named,
    session_for,
    steady,
    wanted,
    why_not,
)
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values
from gridbench.bench.series import Points
from gridbench.datagrid.cluster import Cluster
from gridbench.datagrid.latency import quantile
from gridbench.datagrid.parameters import Parameters
from gridbench.datagrid.workload import Workload

_ENGINES = {Extent.TRIAL: REAL[:1], Extent.USUAL: REAL, Extent.FULL: REAL}
_READS = {Extent.TRIAL: 1_000, Extent.USUAL: 20_000, Extent.FULL: 50_000}
_OBJECTS = 10_000
_REDIS = "redis"
_NEAR = 1.3
"""So many times what the others see, at most."""


def read_from(engine: str, reads: int) -> Values:
    """Median us of a read of 1 KB by one client, by the plainest loop, and by the product's own."""
    parameters = Parameters(
        nnodes=1, mnodes=MEMBERS, ntasks=5, nrepeats=-(-reads // 5),
        read_data_size=1, nobjects=_OBJECTS, object_size=1.0,
    )  # fmt: skip
    one = wanted(engine, Workload(parameters=parameters))
    # Of this process, which is a fresh one, and so of all that it starts.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with session_for(engine) as session, session.cluster(one) as cluster:
        case = steady(measured(session, one, cluster))
        (reading,) = [each for each in case.latencies if each.operation == "read"]
        bare = session.bare(one, cluster, reads)
        found = {"ours": 1e6 * quantile(reading, 0.5), "bare": 1e6 * quantile(bare, 0.5)}
        found |= judged(case)
        with contextlib.suppress(LookupError):
            found["own"] = _own(engine, cluster, reads)
    return found


def _own(engine: str, cluster: Cluster, reads: int) -> float:
    """What the benchmark that comes with the product finds, with one connection to the member that
    has the object. LookupError if it has none."""
    if engine != _REDIS:
        raise LookupError
    place = cluster.settings["members"][0]
    where = ["-h", place["address"], "-p", str(place["ports"][0])]
    key = next(
        key
        for key in map(str, range(_OBJECTS))
        if _run("redis-cli", *where, "exists", key) == "1\n"
    )
    table = _run("redis-benchmark", *where, "-c", "1", "-n", str(reads), "--csv", "get", key)
    (row,) = csv.DictReader(line for line in table.splitlines() if line.startswith('"'))
    return 1e3 * float(row["p50_latency_ms"])


def _run(*command: str) -> str:
    """What it has printed."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=120
    ).stdout


def area(extent: Extent) -> Area:
    """A case for each data grid."""
    engines, reads = _ENGINES[extent], _READS[extent]
    cases = [
        AreaCase(
            _name(engine),
            read_from,
            {"engine": engine, "reads": reads},
            missing=why_not([engine]),
            timeout=300,
        )
        for engine in engines
    ]
    title = f"Median of a read of 1 KB, one client, {MEMBERS} members, all on one processor"
    return Area("data/latency", title, tuple(cases), lambda s: _rows(s, engines), part="latency")


def _name(engine: str) -> str:
    return f"one read from {engine}"


def _rows(samples: Points, engines: Sequence[str]) -> list[Row]:
    found = {engine: samples.of(_name(engine), "ours") for engine in engines}
    known = [engine for engine in engines if found[engine].values] or engines
    fastest = min(known, key=lambda engine: found[engine].median)
    rows = []
    for engine in engines:
        ours, called = found[engine], named(engine, samples, _name(engine))
        target = Target(_NEAR, of_peer=True) if engine == fastest else None
        rows.append(
            Row(
                f"{called}; beside the plainest loop",
                "us",
                ours,
                peer=samples.of(_name(engine), "bare"),
                target=target,
                digits=1,
            )
        )
        if engine == _REDIS:
            rows.append(
                Row(
                    f"{called}; beside redis-benchmark",
                    "us",
                    ours,
                    peer=samples.of(_name(engine), "own"),
                    target=target,
                    digits=1,
                )
            )
    return rows
