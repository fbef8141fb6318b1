"""Reads and loading of data grids: rate of the driver, latency beside other clients, open loops."""

from __future__ import annotations

import contextlib
import csv
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace

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
from benchmarks.figures import Area, AreaCase, Extent, Row, Target, Values
from gridbench.bench.points import Points
from gridbench.datagrid.cluster import DataGridCluster
from gridbench.datagrid.figures import quantile, throughput
from gridbench.datagrid.plan import DataGridOrder
from gridbench.datagrid.record import Counted
from gridbench.datagrid.record import DataGridCase as Record
from gridbench.datagrid.workload import DataGridWorkload, TaskParameters
from gridbench.formats import percent

_OBJECTS = 10_000


def _reading(engine: str, clients: int, reads: int, processes: int = 1) -> DataGridOrder:
    """A case in which each client reads objects of 1 KB."""
    parameters = TaskParameters(
        nnodes=clients, mnodes=MEMBERS, ntasks=5 * clients, nrepeats=-(-reads // 5),
        read_data_size=1, nobjects=_OBJECTS, object_size=1.0,
    )  # fmt: skip
    return wanted(engine, DataGridWorkload(parameters=parameters), processes)


# Part `driver`: reads from no data grid, beside those from real ones, to see what the driver can
# do.

_REAL = {Extent.TRIAL: REAL[:1], Extent.USUAL: REAL, Extent.FULL: REAL}
_DRIVER_READS = {Extent.TRIAL: 2_000, Extent.USUAL: 50_000, Extent.FULL: 50_000}
"""Of each client."""
_DRIVER_CLIENTS = 8
_NULL = "null"
_AHEAD = 50.0
"""So many times the operations of the fastest real one, at least."""


def read_rate(engine: str, reads: int) -> Values:
    """Reads per second of objects of 1 KB, of eight clients in two processes."""
    one = _reading(engine, _DRIVER_CLIENTS, reads, processes=2)
    with session_for(engine) as session, session.cluster(one) as cluster:
        case = steady(measured(session, one, cluster))
    return {"rate": throughput(case)} | judged(case)


def driver_area(extent: Extent) -> Area:
    """A case for each data grid, and for none."""
    engines = _REAL[extent]
    # Short runs of nothing would measure the start of Java.
    reads = dict.fromkeys(engines, _DRIVER_READS[extent]) | {_NULL: 100 * _DRIVER_READS[extent]}
    cases = [
        AreaCase(
            _driver_name(engine),
            read_rate,
            {"engine": engine, "reads": count},
            missing=why_not([engine]),
            timeout=300,
        )
        for engine, count in reads.items()
    ]
    title = f"Reads of 1 KB, {_DRIVER_CLIENTS} clients in two processes, {MEMBERS} members"
    return Area(
        "data/driver", title, tuple(cases), lambda s: _driver_rows(s, engines), part="driver"
    )


def _driver_name(engine: str) -> str:
    return f"reads from {engine}"


def _driver_rows(samples: Points, engines: Sequence[str]) -> list[Row]:
    found = {engine: samples.of(_driver_name(engine), "rate") for engine in engines}
    known = [engine for engine in engines if found[engine].values] or engines
    fastest = max(known, key=lambda engine: found[engine].median)
    return [
        *(
            Row(named(f"reads, {engine}", samples, _driver_name(engine)), "/s", rate, digits=0)
            for engine, rate in found.items()
        ),
        Row(
            named(
                f"reads, no data grid; beside the fastest, {fastest}", samples, _driver_name(_NULL)
            ),
            "/s",
            samples.of(_driver_name(_NULL), "rate"),
            peer=found[fastest],
            target=Target(_AHEAD, at_least=True, of_peer=True),
            digits=0,
        ),
    ]


# Part `latency`: a read as the benchmark, the plainest client of the same process and the product's
# own benchmark see it, on the same cluster in the same run. All processes share one processor: with
# several, waking one that sleeps takes several times as long as a read.

_LATENCY_READS = {Extent.TRIAL: 1_000, Extent.USUAL: 20_000, Extent.FULL: 50_000}
_REDIS = "redis"
_NEAR = 1.3
"""So many times what the others see, at most."""


def read_latency(engine: str, reads: int) -> Values:
    """Median us of a read of 1 KB by one client, by the plainest loop, and by the product's own."""
    one = _reading(engine, 1, reads)
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


def _own(engine: str, cluster: DataGridCluster, reads: int) -> float:
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


def latency_area(extent: Extent) -> Area:
    """A case for each data grid."""
    engines, reads = _REAL[extent], _LATENCY_READS[extent]
    cases = [
        AreaCase(
            _latency_name(engine),
            read_latency,
            {"engine": engine, "reads": reads},
            missing=why_not([engine]),
            timeout=300,
        )
        for engine in engines
    ]
    title = f"Median of a read of 1 KB, one client, {MEMBERS} members, all on one processor"
    return Area(
        "data/latency", title, tuple(cases), lambda s: _latency_rows(s, engines), part="latency"
    )


def _latency_name(engine: str) -> str:
    return f"one read from {engine}"


def _latency_rows(samples: Points, engines: Sequence[str]) -> list[Row]:
    found = {engine: samples.of(_latency_name(engine), "ours") for engine in engines}
    known = [engine for engine in engines if found[engine].values] or engines
    fastest = min(known, key=lambda engine: found[engine].median)
    rows = []
    for engine in engines:
        ours, called = found[engine], named(engine, samples, _latency_name(engine))
        target = Target(_NEAR, of_peer=True) if engine == fastest else None
        rows.append(
            Row(
                f"{called}; beside the plainest loop",
                "us",
                ours,
                peer=samples.of(_latency_name(engine), "bare"),
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
                    peer=samples.of(_latency_name(engine), "own"),
                    target=target,
                    digits=1,
                )
            )
    return rows


# Part `omission`: the same reads in a closed and an open loop. The latter counts the wait of a read
# from when it should have begun.

_OPERATIONS = {Extent.TRIAL: 2_000, Extent.USUAL: 100_000, Extent.FULL: 200_000}
_HAZELCAST = "hazelcast"
_LOOP_CLIENTS = 4
_SHARE = 0.7
_CLOSED, _SERVICE, _INTENDED = "closed", "service", "intended"


def offered(engine: str, operations: int) -> Values:
    """p99 of reads, us: of the closed loop, and of an open one from both times."""
    one = _reading(engine, _LOOP_CLIENTS, operations // _LOOP_CLIENTS, processes=2)
    with session_for(engine) as session, session.cluster(one) as cluster:
        closed = steady(measured(session, one, cluster))
        rate = _SHARE * throughput(closed)
        open_loop = steady(measured(session, replace(one, loop="open", rate=rate), cluster))
    return {
        _CLOSED: _p99(closed, "service"),
        _SERVICE: _p99(open_loop, "service"),
        _INTENDED: _p99(open_loop, "intended"),
        **judged(closed, _CLOSED),
        **judged(open_loop, _SERVICE),
    }


def _p99(case: Record, counted: Counted) -> float:
    (one,) = [
        each for each in case.latencies if (each.operation, each.counted) == ("read", counted)
    ]
    return 1e6 * quantile(one, 0.99)


def omission_area(extent: Extent) -> Area:
    """One case."""
    case = AreaCase(
        "reads at a given rate",
        offered,
        {"engine": _HAZELCAST, "operations": _OPERATIONS[extent]},
        missing=why_not([_HAZELCAST]),
        timeout=300,
    )
    title = (
        f"99th percentile of reads of 1 KB: {_HAZELCAST}, {MEMBERS} members,"
        f" {_LOOP_CLIENTS} clients"
    )
    return Area(
        "data/omission", title, (case,), lambda s: _omission_rows(s, case.name), part="omission"
    )


def _omission_rows(samples: Points, name: str) -> list[Row]:
    closed, intended = samples.of(name, _CLOSED), samples.of(name, _INTENDED)
    at = f"open loop at {percent(_SHARE, 0)} of its throughput"
    return [
        Row(named("closed loop", samples, name, _CLOSED), "us", closed, digits=0),
        Row(
            named(f"{at}, from when they began", samples, name, _SERVICE),
            "us",
            samples.of(name, _SERVICE),
            digits=0,
        ),
        Row(
            f"{at}, from when they should have begun; beside the closed loop",
            "us",
            intended,
            peer=closed,
            digits=0,
        ),
    ]


# Part `loading`: storing a million objects, in bounded memory of the clients.

_LOADING_OBJECTS = {Extent.TRIAL: 20_000, Extent.USUAL: 1_000_000, Extent.FULL: 1_000_000}
_MEMORY = 2 << 30
"""Of each member."""
_FEW = 10_000


def stored(engine: str, objects: int) -> Values:
    """Objects of 1 KB per second, and the MB that a client process had resident at most; and the
    latter when there were few."""
    found: Values = {}
    chosen = {"member_memory": _MEMORY}
    for name, count in (("few", _FEW), ("all", objects)):
        parameters = TaskParameters(
            nnodes=2, mnodes=MEMBERS, ntasks=2, nrepeats=100,
            read_data_size=1, nobjects=count, object_size=1.0,
        )  # fmt: skip
        one = wanted(engine, DataGridWorkload(parameters=parameters), 2)
        with session_for(engine, 1.0, **chosen) as session, session.cluster(one) as cluster:
            loading = measured(session, one, cluster).loading
        assert loading is not None
        found |= {
            f"{name} rate": loading.objects / loading.seconds,
            f"{name} memory": loading.client_memory / (1 << 20),
        }
    return found


def loading_area(extent: Extent) -> Area:
    """One case."""
    objects = _LOADING_OBJECTS[extent]
    case = AreaCase(
        _loading_name(objects),
        stored,
        {"engine": _HAZELCAST, "objects": objects},
        missing=why_not([_HAZELCAST]),
        most_runs=3,
        timeout=600,
    )
    title = f"{objects:,} objects of 1 KB are stored: {_HAZELCAST}, {MEMBERS} members, two clients"
    return Area("data/loading", title, (case,), lambda s: _loading_rows(s, objects), part="loading")


def _loading_name(objects: int) -> str:
    return f"{objects:,} objects are stored"


def _loading_rows(samples: Points, objects: int) -> list[Row]:
    name = _loading_name(objects)
    return [
        Row("objects stored", "/s", samples.of(name, "all rate"), digits=0),
        Row(
            f"memory of a client process at most; beside that for {_FEW:,} objects",
            "MB",
            samples.of(name, "all memory"),
            peer=samples.of(name, "few memory"),
            digits=0,
        ),
    ]
