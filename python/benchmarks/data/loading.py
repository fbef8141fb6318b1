"""Storing a million objects beforehand, in bounded memory of the clients."""

from __future__ import annotations

from benchmarks.data.clusters import MEMBERS, measured, session_for, wanted, why_not
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Values
from gridbench.bench.series import Points
from gridbench.datagrid.parameters import Parameters
from gridbench.datagrid.workload import Workload

_OBJECTS = {Extent.TRIAL: 20_000, Extent.USUAL: 1_000_000, Extent.FULL: 1_000_000}
_ENGINE = "hazelcast"
_MEMORY = 2 << 30
"""Of each member."""
_FEW = 10_000


def stored(engine: str, objects: int) -> Values:
    """Objects of 1 KB per second, and the MB that a client process had resident at most; and the
    latter when there were few."""
    found: Values = {}
    chosen = {"member_memory": _MEMORY}
    for name, count in (("few", _FEW), ("all", objects)):
        parameters = Parameters(
            nnodes=2, mnodes=MEMBERS, ntasks=2, nrepeats=100,
            read_data_size=1, nobjects=count, object_size=1.0,
        )  # fmt: skip
        one = wanted(engine, Workload(parameters=parameters), 2)
        with session_for(engine, 1.0, **chosen) as session, session.cluster(one) as cluster:
            loading = measured(session, one, cluster).loading
        assert loading is not None
        found |= {
            f"{name} rate": loading.objects / loading.seconds,
            f"{name} memory": loading.client_memory / (1 << 20),
        }
    return found


def area(extent: Extent) -> Area:
    """One case."""
    objects = _OBJECTS[extent]
    case = AreaCase(
        _name(objects),
        stored,
        {"engine": _ENGINE, "objects": objects},
        missing=why_not([_ENGINE]),
        most_runs=3,
        timeout=600,
    )
    title = f"{objects:,} objects of 1 KB are stored: {_ENGINE}, {MEMBERS} members, two clients"
    return Area("data/loading", title, (case,), lambda s: _rows(s, objects), part="loading")


def _name(objects: int) -> str:
    return f"{objects:,} objects are stored"


def _rows(samples: Points, objects: int) -> list[Row]:
    name = _name(objects)
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
