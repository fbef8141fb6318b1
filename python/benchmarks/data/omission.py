"""What a closed loop leaves out: operations that would have begun while an earlier one took long.

An open loop offers a share of the closed one's throughput at fixed times, and counts from these.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.data.clusters import (
    MEMBERS,
    judged,
    measured,
    named,
    session_for,
    steady,
    wanted,
    why_not,
)
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Values
from gridbench.bench.series import Points
from gridbench.datagrid.figures import throughput
from gridbench.datagrid.latency import quantile
from gridbench.datagrid.parameters import Parameters
from gridbench.datagrid.record import Counted
from gridbench.datagrid.record import DataGridCase as Record
from gridbench.datagrid.workload import Workload
from gridbench.formats import percent

_OPERATIONS = {Extent.TRIAL: 2_000, Extent.USUAL: 100_000, Extent.FULL: 200_000}
_ENGINE = "hazelcast"
_CLIENTS = 4
_SHARE = 0.7
_CLOSED, _SERVICE, _INTENDED = "closed", "service", "intended"


def offered(engine: str, operations: int) -> Values:
    """p99 of reads, us: of the closed loop, and of an open one from both times."""
    parameters = Parameters(
        nnodes=_CLIENTS, mnodes=MEMBERS, ntasks=_CLIENTS * 5, nrepeats=operations // _CLIENTS // 5,
        read_data_size=1, nobjects=10_000, object_size=1.0,
    )  # fmt: skip
    one = wanted(engine, Workload(parameters=parameters), 2)
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


def area(extent: Extent) -> Area:
    """One case."""
    case = AreaCase(
        "reads at a given rate",
        offered,
        {"engine": _ENGINE, "operations": _OPERATIONS[extent]},
        missing=why_not([_ENGINE]),
        timeout=300,
    )
    title = f"99th percentile of reads of 1 KB: {_ENGINE}, {MEMBERS} members, {_CLIENTS} clients"
    return Area("data/omission", title, (case,), lambda s: _rows(s, case.name), part="omission")


def _rows(samples: Points, name: str) -> list[Row]:
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
