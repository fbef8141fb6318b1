"""Which cases of the data-grid benchmark are run, in which order, and which are still missing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.datagrid.engine import DataGridEngine, DataGridManifest
from gridbench.datagrid.options import DataGridParameters, Offered
from gridbench.datagrid.plan import (
    MOST_PROCESSES,
    DataGridOrder,
    DataGridWork,
    measured_disturbed,
    missing,
    plan_of,
    with_rate,
    without,
)
from gridbench.datagrid.record import DataGridCase, OperationCounts
from gridbench.datagrid.workload import DataGridWorkload, TaskParameters
from gridbench.errors import InputError
from gridbench.hosts.hosts_file import HostChoice, HostSlots
from gridbench.jsonl_store import failed_before, latest
from gridbench.records import from_record

SMALL = TaskParameters(
    nnodes=4, mnodes=3, ntasks=8, nrepeats=10, read_data_size=1, update_data_size=1, nobjects=100,
    object_size=1.0,
)  # fmt: skip
MIX = {
    "read": 0.5, "overwrite": 0.5, "update": 0.0, "insert": 0.0, "scan": 0.0, "keys": "zipfian",
    "scan_length": 100, "seed": 1,
}  # fmt: skip


def engine(name: str, **keys: Any) -> DataGridEngine:
    return DataGridEngine(
        name, Path("engine.toml"), DataGridManifest(name.title(), "a.Grid", **keys), own=True
    )


GRID = engine("grid")


def work(
    *workloads: DataGridWorkload,
    engines: Iterable[DataGridEngine] = (GRID,),
    where: HostChoice | None = None,
    **more: Any,
) -> DataGridWork:
    return DataGridWork(
        engines=tuple(engines),
        workloads=workloads or (DataGridWorkload(parameters=SMALL),),
        available=1 << 33,
        where=where or HostChoice(),
        parameters=DataGridParameters(**more),
    )


def with_members(*counts: int) -> list[DataGridWorkload]:
    return [DataGridWorkload(parameters=replace(SMALL, mnodes=count)) for count in counts]


def case_of(
    wanted: DataGridOrder, *, operations: int = 1000, seconds: float = 2.0, **more: Any
) -> DataGridCase:
    """The record of a case that was wanted, as it is read back from a file."""
    found = DataGridCase(
        **wanted.planned_fields,
        title="Grid",
        version="1",
        processes=wanted.processes,
        at="2026-01-01T00:00:00",
        status=more.pop("status", "done"),
        seconds=seconds,
        counts=OperationCounts(reads=operations),
        **more,
    )
    return from_record(DataGridCase, json.loads(json.dumps(asdict(found))))


def wanted_of(*workloads: DataGridWorkload, **more: Any) -> list[DataGridOrder]:
    return list(plan_of(work(*workloads, **more)).wanted)


# ---- Their order


def test_a_cluster_serves_all_cases_of_an_engine_with_as_many_members() -> None:
    workloads = with_members(8, 1, 8, 4)
    found = wanted_of(*workloads, engines=[GRID, engine("other")], rounds=2)
    clusters = [one.cluster for one in found]
    assert clusters == [
        *[("grid", 1), ("grid", 4), ("grid", 8), ("grid", 8)],
        *[("other", 1), ("other", 4), ("other", 8), ("other", 8)],
        # The second repeat begins with another engine.
        *[("other", 1), ("other", 4), ("other", 8), ("other", 8)],
        *[("grid", 1), ("grid", 4), ("grid", 8), ("grid", 8)],
    ]
    assert [one.repeat for one in found] == [0] * 8 + [1] * 8


def test_open_loops_come_behind_the_closed_one() -> None:
    found = wanted_of(offered=(Offered(rate=500.0), Offered(share=0.5)))
    assert [(one.loop, one.rate, one.share) for one in found] == [
        ("closed", None, None), ("open", 500.0, None), ("open", None, 0.5),
    ]  # fmt: skip


def test_client_processes_are_no_more_than_clients_cores_or_four() -> None:
    cores = len(os.sched_getaffinity(0))
    most = min(MOST_PROCESSES, cores)
    assert [one.processes for one in wanted_of()] == [most]
    one_client = DataGridWorkload(parameters=replace(SMALL, nnodes=1))
    assert [one.processes for one in wanted_of(one_client)] == [1]
    assert [one.processes for one in wanted_of(processes=3)] == [3]
    assert [one.processes for one in wanted_of(one_client, processes=3)] == [1]
    away = HostChoice(hosts=(HostSlots("elsewhere.example", 1),))
    assert [one.processes for one in wanted_of(where=away)] == [4]


def test_a_map_in_the_process_of_its_clients_has_one_process() -> None:
    found = wanted_of(engines=[engine("map", members=False)], processes=3)
    assert [one.processes for one in found] == [1]


# ---- What an engine cannot have


def test_more_backups_than_a_data_grid_keeps_are_reported() -> None:
    one = engine("cluster", most_backups=1)
    assert not plan_of(work(engines=[one], backups=1)).skipped
    with pytest.raises(InputError, match="Cluster keeps 1 backup of an object at most"):
        plan_of(work(engines=[one], backups=2))
    assert not plan_of(work(backups=2)).skipped


def test_cases_with_too_few_members_are_skipped_and_told_once() -> None:
    three = engine("cluster", least_members=3)
    plan = plan_of(
        work(*with_members(1, 4), engines=[three, GRID], rounds=2, offered=(Offered(rate=10.0),))
    )
    assert {(one.engine, one.members) for one in plan.wanted} == {
        ("cluster", 4), ("grid", 1), ("grid", 4),
    }  # fmt: skip
    ((skipped, why),) = plan.skipped
    assert (skipped.cluster, why) == (("cluster", 1), "Cluster needs 3 members at least")


@pytest.mark.parametrize(
    ("kill", "text"),
    [
        ((3,), "there is no member 3 to kill: the last one is 2"),
        ((0, 9), "there is no member 9 to kill"),
        ((0, 1, 2), "all members would be killed, and none be left to answer"),
    ],
)
def test_members_that_are_not_there_cannot_be_killed(kill: tuple[int, ...], text: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_of(work(kill=kill))
    assert text in caught.value.what
    assert "more members" in caught.value.remedy
    four = plan_of(work(*with_members(3, 10), kill=kill))
    assert [one.members for one in four.wanted] == [10]
    assert [text in why for _, why in four.skipped] == [True]
    assert len(plan_of(work(kill=(2,))).wanted) == 1


def test_a_map_without_members_starts_no_cluster_and_none_can_be_killed() -> None:
    maps = [engine("map", members=False, least_members=3)]
    found = wanted_of(*with_members(1, 4), engines=maps)
    assert {one.cluster for one in found} == {("map", 0)}
    assert "map, 0 members, 4 clients" in found[0].describe()
    with pytest.raises(InputError, match="has no members that could be killed"):
        plan_of(work(engines=maps, kill=(0,)))


# ---- What is missing


def test_a_case_has_the_identity_of_its_record() -> None:
    workloads = [
        DataGridWorkload(parameters=SMALL),
        DataGridWorkload(parameters=SMALL, label="read", scenario=1, scaled={"NObjects": "1000"}),
        DataGridWorkload(parameters=SMALL, label="ycsb-a", mix=MIX),
    ]
    found = wanted_of(
        *workloads, engines=[GRID, engine("other")], rounds=2, updates="atomic", kill=(0, 1),
        offered=(Offered(rate=333.25),),
    )  # fmt: skip
    assert len(found) == 3 * 2 * 2 * 2
    assert len({one.identity for one in found}) == len(found)
    for one in found:
        assert one.identity == case_of(one).identity


def test_records_without_a_share_are_resumed() -> None:
    for one in wanted_of(offered=(Offered(rate=333.25),)):
        older = asdict(case_of(one))
        del older["share"]
        found = from_record(DataGridCase, json.loads(json.dumps(older)))
        assert found == case_of(one)
        assert missing([one], [found]) == []


def test_what_is_done_is_not_missing_and_what_failed_is() -> None:
    found = wanted_of(*with_members(1, 2, 3))
    cases = [case_of(found[0]), case_of(found[1], status="failed", why="no room")]
    assert missing(found, cases) == found[1:]
    assert missing(found, [*cases, case_of(found[1])]) == found[2:]
    assert missing(found, map(case_of, found)) == []


def test_what_failed_by_itself_is_known() -> None:
    found = wanted_of(*with_members(1, 2, 3))
    cases = [
        case_of(found[0], status="failed", why="no room"),
        case_of(found[1], status="failed", why="no room", load={"judgement": "disturbed"}),
        case_of(found[2]),
    ]
    assert failed_before(found, cases) == found[:1]
    # The last attempt counts.
    assert failed_before(found, latest([*cases, case_of(found[0])])) == []


def test_open_loops_are_left_out_with_the_closed_one_that_they_depend_on() -> None:
    closed, half, full = wanted_of(offered=(Offered(share=0.5), Offered(rate=100.0)))
    assert without([closed, half, full], [closed]) == [full]
    assert without([closed, half, full], [full]) == [closed, half]
    assert without([closed, half, full], []) == [closed, half, full]
    # Once its rate is known it can be measured.
    known = with_rate(half, [case_of(closed)])
    assert known is not None
    assert without([closed, known], [closed]) == [known]


def test_what_other_programs_disturbed_is_measured_again() -> None:
    found = wanted_of(*with_members(1, 2, 3), offered=(Offered(share=0.5),))[:3]
    closed, half, other = found
    disturbed = {"judgement": "disturbed"}
    cases = [case_of(closed, operations=200, seconds=1.0, load=disturbed)]
    known = with_rate(half, cases)
    assert known is not None
    cases += [case_of(known, load={"judgement": "undisturbed"}), case_of(other, load=disturbed)]
    assert missing(found, cases) == [closed, other]
    assert measured_disturbed(cases) == {closed.identity, other.identity}
    # Who accepts that others use the machine need not measure forever.
    assert missing(found, cases, accepted=True) == []
    # Half of what the undisturbed loop did is another rate; and what failed last is missing.
    cases.append(case_of(closed, operations=900, seconds=1.0))
    another = with_rate(half, cases)
    assert another is not None
    assert (known.rate, another.rate) == (100.0, 450.0)
    assert missing(found, cases) == [another, other]
    cases.append(case_of(another))
    failed = case_of(other, status="failed", why="no room")
    assert missing(found, [*cases, failed]) == [other]
    assert missing(found, [*cases, failed], accepted=True) == [other]
    # Later ones do not change it again.
    cases.append(case_of(closed, operations=2000, seconds=1.0))
    assert with_rate(half, cases) == another


@pytest.mark.parametrize(
    "other",
    [{"updates": "atomic"}, {"kill": (1,)}, {"engines": [engine("other")]}],
    ids=["updates", "kill", "engine"],
)
def test_a_case_of_another_kind_is_missing(other: dict[str, Any]) -> None:
    cases = [case_of(one) for one in wanted_of()]
    found = wanted_of(**other)
    assert missing(found, cases) == found


def test_a_share_is_of_what_the_closed_loop_did() -> None:
    closed, half = wanted_of(offered=(Offered(share=0.5),))
    assert with_rate(half, []) is None
    assert with_rate(half, [case_of(closed, status="failed", why="x")]) is None
    assert with_rate(closed, []) == closed
    case = case_of(closed, operations=24_690, seconds=2.0)
    known = with_rate(half, [case])
    assert known is not None
    assert (known.rate, known.share, known.loop) == (6170.0, None, "open")
    assert missing([closed, half], [case]) == [known]
    assert missing([closed, half], [case, case_of(known)]) == []
    # Before the closed loop has been measured, it is no other case's twin.
    assert half.identity != closed.identity
    assert missing([closed, half], []) == [closed, half]


def test_all_repeats_offer_the_same() -> None:
    first, _, second, half = wanted_of(offered=(Offered(share=0.5),), rounds=2)
    assert with_rate(half, [case_of(second, operations=100, seconds=1.0)]) is None
    known = with_rate(half, [case_of(first, operations=200, seconds=1.0), case_of(second)])
    assert known is not None
    assert (known.rate, known.repeat) == (100.0, 1)


@given(share=st.floats(1e-3, 10), operations=st.integers(0, 10**12), seconds=st.floats(1e-6, 1e6))
def test_the_rate_of_a_share_is_a_rate_and_stays_the_same(
    share: float, operations: int, seconds: float
) -> None:
    closed, part = wanted_of(offered=(Offered(share=share),))
    case = case_of(closed, operations=operations, seconds=seconds)
    known = with_rate(part, [case])
    assert known is not None
    assert known.rate is not None
    assert known.rate > 0
    assert case_of(known).identity == known.identity
    assert with_rate(part, [case, case_of(known)]) == known


def test_a_case_is_reported_in_words() -> None:
    closed, fixed, half = wanted_of(
        DataGridWorkload(parameters=SMALL, label="read"), updates="atomic", kill=(0, 2),
        offered=(Offered(rate=1500.0), Offered(share=0.5)),
    )  # fmt: skip
    text = "grid, read, 3 members, 4 clients, 8 tasks of 20 operations, 1 KB"
    end = "atomic updates, members 0 and 2 killed"
    assert closed.describe() == f"{text}, {end}"
    assert fixed.describe() == f"{text}, open loop, 1,500 operations/s, {end}"
    assert half.describe() == f"{text}, open loop, 0.5 of the closed one's throughput, {end}"
