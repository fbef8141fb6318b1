"""The three scenarios of the source: time of a task over size of objects, clients and members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from gridbench.bench.areas.data.clusters import REAL, measured, session_for, wanted, why_not
from gridbench.bench.areas.extent import Extent
from gridbench.bench.areas.figures import Area, Case, Row, Values
from gridbench.bench.series import Points
from gridbench.datagrid.engines.engine import find_engine
from gridbench.datagrid.figures import without_start_up
from gridbench.datagrid.memory import capacity
from gridbench.datagrid.parameters import Parameters
from gridbench.datagrid.presets import Choice, scenario
from gridbench.datagrid.workload import Workload

_ENGINES = {Extent.TRIAL: REAL[:1], Extent.USUAL: REAL[:1], Extent.FULL: REAL}
_CHOICES = {
    Extent.TRIAL: Choice(members=(2,), clients=(2,), object_sizes=(1.0,), operations=20),
    Extent.USUAL: Choice(),
    Extent.FULL: Choice(),
}
_NUMBERS = (1, 2, 3)
_BACKUPS = 1
_MEMORY = 512 << 20
"""Of each member: by it cases are scaled, which are to be the same on each machine."""


def run(engine: str, number: int, extent: str) -> Iterator[Values]:
    """Median seconds of a task in each case of the scenario."""
    with session_for(engine, backups=_BACKUPS, member_memory=_MEMORY) as session:
        for members, workloads in _by_members(engine, number, Extent(extent)).items():
            todo = [wanted(engine, one, 2) for one in workloads]
            with session.cluster(todo[0]) as cluster:
                for one in todo:
                    times = without_start_up(measured(session, one, cluster))
                    assert times is not None, members
                    yield {_key(one.workload): times.median}


def area(extent: Extent) -> Area:
    """A case for each scenario and data grid."""
    engines = _ENGINES[extent]
    cases = [
        Case(
            name=_name(engine, number),
            function=run,
            arguments={"engine": engine, "number": number, "extent": extent.value},
            missing=why_not([engine]),
            most_runs=3,
            timeout=1200,
        )
        for engine in engines
        for number in _NUMBERS
    ]
    title = "A task of 100 operations (scenario 1) or 1000, without start-up"
    rows = partial(_rows, engines=engines, extent=extent)
    return Area("data/scenarios", title, tuple(cases), rows, part="scenarios")


def _by_members(engine: str, number: int, extent: Extent) -> dict[int, list[Workload]]:
    described = find_engine(engine).described

    def room(own: Parameters) -> int:
        return capacity(own, described, _BACKUPS, _MEMORY)

    found: dict[int, list[Workload]] = {}
    for one in scenario(number, _CHOICES[extent], room):
        found.setdefault(one.parameters.mnodes, []).append(one)
    return found


def _name(engine: str, number: int) -> str:
    return f"scenario {number} on {engine}"


def _key(workload: Workload) -> str:
    return workload.told()


def _rows(samples: Points, engines: Sequence[str], extent: Extent) -> list[Row]:
    return [
        Row(
            what=f"{engine}, scenario {number}: {_key(one)}",
            unit="s",
            ours=samples.of(_name(engine, number), _key(one)),
            digits=4,
        )
        for engine in engines
        for number in _NUMBERS
        for workloads in _by_members(engine, number, extent).values()
        for one in workloads
    ]
