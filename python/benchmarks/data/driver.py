"""What the driver itself can do: operations on no data grid at all, beside those on real ones."""

from __future__ import annotations

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
from gridbench.datagrid.figures import throughput
from gridbench.datagrid.parameters import Parameters
from gridbench.datagrid.workload import Workload

_ENGINES = {Extent.TRIAL: REAL[:1], Extent.USUAL: REAL, Extent.FULL: REAL}
_READS = {Extent.TRIAL: 2_000, Extent.USUAL: 50_000, Extent.FULL: 50_000}
"""Of each client."""
_CLIENTS = 8
_NULL = "null"
_AHEAD = 50.0
"""So many times the operations of the fastest real one, at least."""


def read_from(engine: str, reads: int) -> Values:
    """Reads per second of objects of 1 KB, of eight clients in two processes."""
    parameters = Parameters(
        nnodes=_CLIENTS, mnodes=MEMBERS, ntasks=_CLIENTS * 5, nrepeats=-(-reads // 5),
        read_data_size=1, nobjects=10_000, object_size=1.0,
    )  # fmt: skip
    one = wanted(engine, Workload(parameters=parameters), 2)
    with session_for(engine) as session, session.cluster(one) as cluster:
        case = steady(measured(session, one, cluster))
    return {"rate": throughput(case)} | judged(case)


def area(extent: Extent) -> Area:
    """A case for each data grid, and for none."""
    engines = _ENGINES[extent]
    # Short runs of nothing would measure the start of Java.
    reads = dict.fromkeys(engines, _READS[extent]) | {_NULL: 100 * _READS[extent]}
    cases = [
        AreaCase(
            _name(engine),
            read_from,
            {"engine": engine, "reads": count},
            missing=why_not([engine]),
            timeout=300,
        )
        for engine, count in reads.items()
    ]
    title = f"Reads of 1 KB, {_CLIENTS} clients in two processes, {MEMBERS} members"
    return Area("data/driver", title, tuple(cases), lambda s: _rows(s, engines), part="driver")


def _name(engine: str) -> str:
    return f"reads from {engine}"


def _rows(samples: Points, engines: Sequence[str]) -> list[Row]:
    found = {engine: samples.of(_name(engine), "rate") for engine in engines}
    known = [engine for engine in engines if found[engine].values] or engines
    fastest = max(known, key=lambda engine: found[engine].median)
    return [
        *(
            Row(named(f"reads, {engine}", samples, _name(engine)), "/s", rate, digits=0)
            for engine, rate in found.items()
        ),
        Row(
            named(f"reads, no data grid; beside the fastest, {fastest}", samples, _name(_NULL)),
            "/s",
            samples.of(_name(_NULL), "rate"),
            peer=found[fastest],
            target=Target(_AHEAD, at_least=True, of_peer=True),
            digits=0,
        ),
    ]
