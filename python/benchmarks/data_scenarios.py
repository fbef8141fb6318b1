"""The three scenarios of the source: time of a task over size of objects, clients and members, in a
table for each.

Tasks that are smaller than the scenario's, as members have no room for more, count as if they had
as many operations, so that the rows of a table can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.data_operations import REAL, judged, measured, named, session_for, wanted, why_not
from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Values
from gridbench.bench.points import Points
from gridbench.datagrid.engine import find_engine
from gridbench.datagrid.figures import unsteady, without_start_up
from gridbench.datagrid.memory import capacity, need_of
from gridbench.datagrid.presets import KINDS, DataGridScale, scenario
from gridbench.datagrid.workload import DataGridWorkload, TaskParameters, label_shown
from gridbench.formats import counted, size

_ENGINES = {Extent.TRIAL: REAL[:1], Extent.USUAL: REAL[:1], Extent.FULL: REAL}
_CHOICES = {
    Extent.TRIAL: DataGridScale(members=(2,), clients=(2,), object_sizes=(1.0,), operations=20),
    Extent.USUAL: DataGridScale(),
    Extent.FULL: DataGridScale(),
}
_FIXED = {
    1: "8 members, 10 clients",
    2: "8 members, objects of 1 KB",
    3: "100 clients, objects of 1 KB",
}
_BACKUPS = 1
_MEMORY = 512 << 20
"""Of each member: by it cases are scaled, which are to be the same on each machine."""


def run(engine: str, number: int, extent: str) -> Iterator[Values]:
    """Median seconds of a task in each case of the scenario, of as many operations as it has there.

    RuntimeError in the end if some were not steady, which have no value.
    """
    shaky = []
    with session_for(engine, backups=_BACKUPS, member_memory=_MEMORY) as session:
        for members, workloads in _by_members(engine, number, Extent(extent)).items():
            todo = [wanted(engine, one, 2) for one in workloads]
            with session.cluster(todo[0]) as cluster:
                for one in todo:
                    case, key = measured(session, one, cluster), _key(number, one.workload)
                    if reasons := unsteady(case):
                        shaky.append(f"{key}: {reasons[0]}")
                        continue
                    times = without_start_up(case)
                    assert times is not None, members
                    share = _operations(number) / one.workload.parameters.operations_of_task
                    yield {key: share * times.median} | judged(case, key)
    if shaky:
        raise RuntimeError("; ".join(shaky))


def area(extent: Extent, number: int) -> Area:
    """A case of the scenario for each data grid; rows by operation, then along what is varied, with
    the data grids below each other."""
    cases = {
        engine: AreaCase(
            f"scenario {number} on {engine}", run,
            {"engine": engine, "number": number, "extent": extent.value},
            missing=why_not([engine]), most_runs=3, timeout=1200,
        )
        for engine in _ENGINES[extent]
    }  # fmt: skip

    def table(points: Points) -> Iterator[PlannedRow]:
        alike: dict[tuple[int, str], list[tuple[str, DataGridWorkload]]] = {}
        for engine in cases:
            for ones in _by_members(engine, number, extent).values():
                for one in ones:
                    place = list(KINDS).index(one.label), _key(number, one)
                    alike.setdefault(place, []).append((engine, one))
        for (_, key), those in sorted(alike.items(), key=lambda item: item[0][0]):
            for engine, one in those:
                what = key if len(cases) == 1 else f"{key}, {engine}"
                what = f"{named(what, points, cases[engine], key)}{_made(number, one)}"
                yield PlannedRow(what, "s", cases[engine][key], digits=4)

    title = (
        f"Scenario {number}: a task of {_operations(number):,} operations without start-up,"
        f" {_FIXED[number]}"
    )
    return Area(f"data/scenario-{number}", title, list(cases.values()), table)


def _operations(number: int) -> int:
    """Of a task of the scenario, as it is where there is room for it."""
    return next(iter(scenario(number, DataGridScale(), None))).parameters.operations_of_task


def _by_members(engine: str, number: int, extent: Extent) -> dict[int, list[DataGridWorkload]]:
    manifest = find_engine(engine).manifest

    def room(own: TaskParameters) -> int:
        return capacity(own, manifest, _BACKUPS, _MEMORY)

    found: dict[int, list[DataGridWorkload]] = {}
    for one in scenario(number, _CHOICES[extent], room):
        # What is under way can need more of a member than it has, however few objects there are.
        if need_of(wanted(engine, one, 2), manifest, _BACKUPS).member <= _MEMORY:
            found.setdefault(one.parameters.mnodes, []).append(one)
    return found


def _key(number: int, workload: DataGridWorkload) -> str:
    """What tells a case from the others of its scenario: `read, 100 KB`."""
    own = workload.parameters
    place = {
        1: size(own.object_bytes),
        2: counted(own.nnodes, "client"),
        3: counted(own.mnodes, "member"),
    }
    return f"{label_shown(workload.label)}, {place[number]}"


def _made(number: int, workload: DataGridWorkload) -> str:
    """How many operations a task had if these were not as many as the scenario's."""
    made = workload.parameters.operations_of_task
    return "" if made == _operations(number) else f"; tasks of {made:,}"
