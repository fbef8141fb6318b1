"""Reads and loading of data grids: rate of the driver, latency beside other clients, open loops."""

from __future__ import annotations

import contextlib
import csv
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import psutil
from rich.console import Console

from benchmarks.figures import Area, AreaCase, CaseValue, Extent, PlannedRow, Target, Values
from gridbench.bench.points import Points
from gridbench.datagrid.cluster import DataGridCluster
from gridbench.datagrid.engine import find_engine
from gridbench.datagrid.figures import quantile, throughput, unsteady, verdict, without_start_up
from gridbench.datagrid.options import DataGridParameters
from gridbench.datagrid.plan import DataGridOrder, DataGridWork, WarmUpLimits, capacity, need_of
from gridbench.datagrid.presets import KINDS, DataGridScale, scenario
from gridbench.datagrid.record import Counted, DataGridCase
from gridbench.datagrid.record import DataGridCase as Record
from gridbench.datagrid.session import DataGridSession, open_session
from gridbench.datagrid.windows import steadiness
from gridbench.datagrid.workload import DataGridWorkload, TaskParameters, label_shown
from gridbench.errors import InputError
from gridbench.formats import counted, percent, size

REAL = ("hazelcast", "redis", "ignite", "geode", "coherence")
"""The data grids with members."""
MEMBERS = 3
_TOO_SHORT = " too short"


def why_not(engines: Sequence[str]) -> str:
    """Why one of them cannot be run here; empty if all can."""
    for name in engines:
        try:
            find_engine(name).require()
        except InputError as error:
            return str(error)
    return ""


@contextlib.contextmanager
def session_for(engine: str, warm: float = 20.0, **chosen: Any) -> Iterator[DataGridSession]:
    """A session for an engine; `warm`: seconds of warm-up at most."""
    work = DataGridWork(
        engines=(find_engine(engine),),
        workloads=(),
        parameters=DataGridParameters(**chosen),
        warm_up=WarmUpLimits.of(warm),
        available=psutil.virtual_memory().available,
    )
    with open_session(work, _no_check, Console(quiet=True)) as session:
        yield session


def wanted(engine: str, workload: DataGridWorkload, processes: int = 1) -> DataGridOrder:
    """A case of it."""
    has_members = find_engine(engine).manifest.members
    return DataGridOrder.of(
        workload,
        engine=engine,
        repeat=0,
        members=workload.parameters.mnodes if has_members else 0,
        processes=processes,
    )


def measured(
    session: DataGridSession, one: DataGridOrder, cluster: DataGridCluster
) -> DataGridCase:
    """The outcome. RuntimeError if it failed, or if the data are not right."""
    case = session.measure(one, cluster)
    kind, reasons = verdict(case)
    if kind == "failed":
        raise RuntimeError("; ".join(reasons))
    return case


def steady(case: DataGridCase) -> DataGridCase:
    """The case. RuntimeError if its throughput was not steady: nothing is claimed from it then."""
    if reasons := unsteady(case):
        raise RuntimeError("; ".join(reasons))
    return case


def judged(case: DataGridCase, what: str = "") -> Values:
    """What says of the figures of a case that it was too short to judge whether it was steady; of
    several cases of one function, each has a `what` of its own."""
    return {f"{what}{_TOO_SHORT}": 1.0} if steadiness(case).steady is None else {}


def named(row: str, points: Points, case: AreaCase, what: str = "") -> str:
    """The name of a row, marked where the values of the case are too short to judge."""
    short = case[f"{what}{_TOO_SHORT}"].of(points).values
    return f"{row} (too short to judge whether it was steady)" if short else row


def _no_check() -> None:
    """Who wants an end of the case ends its process, which unwinds."""


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

_ENGINES = {Extent.TRIAL: REAL[:1], Extent.USUAL: REAL, Extent.FULL: REAL}
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
    engines = _ENGINES[extent]
    # Short runs of nothing would measure the start of Java.
    reads = dict.fromkeys(engines, _DRIVER_READS[extent]) | {_NULL: 100 * _DRIVER_READS[extent]}
    cases = {
        engine: AreaCase(
            f"reads from {engine}", read_rate, {"engine": engine, "reads": count},
            missing=why_not([engine]), timeout=300,
        )
        for engine, count in reads.items()
    }  # fmt: skip

    def table(points: Points) -> Iterator[PlannedRow]:
        for engine in engines:
            what = named(f"reads, {engine}", points, cases[engine])
            yield PlannedRow(what, "/s", cases[engine]["rate"], digits=0)
        fastest = _best(engines, points, {name: case["rate"] for name, case in cases.items()}, max)
        what = named(f"reads, no data grid; beside the fastest, {fastest}", points, cases[_NULL])
        target = Target(_AHEAD, at_least=True, of_peer=True)
        rate, peer = cases[_NULL]["rate"], cases[fastest]["rate"]
        yield PlannedRow(what, "/s", rate, peer=peer, target=target, digits=0)

    title = f"Reads of 1 KB, {_DRIVER_CLIENTS} clients in two processes, {MEMBERS} members"
    return Area("data/driver", title, list(cases.values()), table)


def _best(
    engines: Sequence[str],
    points: Points,
    values: Mapping[str, CaseValue],
    choose: Callable[..., str],
) -> str:
    """The engine with the largest or smallest value, of those that were measured."""
    found = {engine: values[engine].of(points) for engine in engines}
    known = [engine for engine in engines if found[engine].values] or engines
    return choose(known, key=lambda engine: found[engine].median)


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
    """Its output."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=120
    ).stdout


def latency_area(extent: Extent) -> Area:
    """A case for each data grid."""
    engines = _ENGINES[extent]
    cases = {
        engine: AreaCase(
            f"one read from {engine}", read_latency,
            {"engine": engine, "reads": _LATENCY_READS[extent]},
            missing=why_not([engine]), timeout=300,
        )
        for engine in engines
    }  # fmt: skip

    def table(points: Points) -> Iterator[PlannedRow]:
        fastest = _best(engines, points, {name: case["ours"] for name, case in cases.items()}, min)
        for engine, case in cases.items():
            target = Target(_NEAR, of_peer=True) if engine == fastest else None
            beside = {"bare": "the plainest loop"}
            if engine == _REDIS:
                beside["own"] = "redis-benchmark"
            for peer, reported in beside.items():
                what = f"{named(engine, points, case)}; beside {reported}"
                ours = case["ours"]
                yield PlannedRow(what, "us", ours, peer=case[peer], target=target, digits=1)

    title = f"Median of a read of 1 KB, one client, {MEMBERS} members, all on one processor"
    return Area("data/latency", title, list(cases.values()), table)


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
    arguments = {"engine": _HAZELCAST, "operations": _OPERATIONS[extent]}
    missing = why_not([_HAZELCAST])
    case = AreaCase("reads at a given rate", offered, arguments, missing=missing, timeout=300)
    at = f"open loop at {percent(_SHARE, 0)} of its throughput"

    def table(points: Points) -> Iterator[PlannedRow]:
        closed = case[_CLOSED]
        yield PlannedRow(named("closed loop", points, case, _CLOSED), "us", closed, digits=0)
        what = named(f"{at}, from when they began", points, case, _SERVICE)
        yield PlannedRow(what, "us", case[_SERVICE], digits=0)
        what = f"{at}, from when they should have begun; beside the closed loop"
        yield PlannedRow(what, "us", case[_INTENDED], peer=closed, digits=0)

    title = (
        f"99th percentile of reads of 1 KB: {_HAZELCAST}, {MEMBERS} members,"
        f" {_LOOP_CLIENTS} clients"
    )
    return Area("data/omission", title, [case], table)


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
        f"{objects:,} objects are stored", stored, {"engine": _HAZELCAST, "objects": objects},
        missing=why_not([_HAZELCAST]), most_runs=3, timeout=600,
    )  # fmt: skip
    memory = f"memory of a client process at most; beside that for {_FEW:,} objects"
    few, every = case["few memory"], case["all memory"]
    rows = [
        PlannedRow("objects stored", "/s", case["all rate"], digits=0),
        PlannedRow(memory, "MB", every, peer=few, digits=0),
    ]
    title = f"{objects:,} objects of 1 KB are stored: {_HAZELCAST}, {MEMBERS} members, two clients"
    return Area("data/loading", title, [case], rows)


# ---- The three scenarios of the source

_SCENARIO_ENGINES = {Extent.TRIAL: REAL[:1], Extent.USUAL: REAL[:1], Extent.FULL: REAL}
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
_SCENARIO_MEMORY = 512 << 20
"""Of each member: by it cases are scaled, which are to be the same on each machine."""


def run_scenario(engine: str, number: int, extent: str) -> Iterator[Values]:
    """Median seconds of a task in each case of the scenario, of as many operations as it has there.

    RuntimeError in the end if some were not steady, which have no value.
    """
    shaky = []
    with session_for(engine, backups=_BACKUPS, member_memory=_SCENARIO_MEMORY) as session:
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


def scenario_area(extent: Extent, number: int) -> Area:
    """A case of the scenario for each data grid; rows by operation, then along what is varied, with
    the data grids below each other."""
    cases = {
        engine: AreaCase(
            f"scenario {number} on {engine}", run_scenario,
            {"engine": engine, "number": number, "extent": extent.value},
            missing=why_not([engine]), most_runs=3, timeout=1200,
        )
        for engine in _SCENARIO_ENGINES[extent]
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
        return capacity(own, manifest, _BACKUPS, _SCENARIO_MEMORY)

    found: dict[int, list[DataGridWorkload]] = {}
    for one in scenario(number, _CHOICES[extent], room):
        # What is under way can need more of a member than it has, however few objects there are.
        if need_of(wanted(engine, one, 2), manifest, _BACKUPS).member <= _SCENARIO_MEMORY:
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
