"""What is measured with which engine, how often, and in which order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from gridbench.bench.points import DataPoint
from gridbench.bench.session import Item, Session
from gridbench.engines.servers import ServerHost, Servers
from gridbench.errors import InputError
from gridbench.micro.experiment import Attempts, completeness, planned, points_of, reason
from gridbench.micro.record import Completeness
from gridbench.micro.sessions import Elsewhere, sessions_of
from gridbench.micro.workloads import (
    AGAIN,
    EMPTY,
    FULL,
    INHERITED,
    LIMITS,
    NATIVE,
    ON_SERVERS,
    ONLY_HERE,
    POOL,
    PYTHON,
    QUICK,
    WORKLOADS,
    C,
    case_of,
    check_workloads,
)
from gridbench.statistics.claims import ENOUGH

ENGINES = {name: f"somewhere:{name}" for name in (PYTHON, NATIVE, POOL, "ray", "dask")} | {C: ""}
EVERYTHING = sessions_of(ENGINES, list(WORKLOADS), FULL, "/programs")


def test_every_workload_is_measured_with_every_peer() -> None:
    found = {(item.workload, item.engine) for session in EVERYTHING for item in session.items}
    for name in (PYTHON, POOL, "ray", "dask"):
        assert {(workload, name) for workload in WORKLOADS} <= found
    assert {("argument", EMPTY), ("echo", EMPTY), ("solve", EMPTY)} <= found
    assert {("shared_100MB", INHERITED), ("null_call", C), ("null_rate", C)} <= found
    assert ("limit", "memcpy") in found


def test_equals_are_measured_twice() -> None:
    labels = Counter(session.label for session in EVERYTHING)
    for name in (PYTHON, POOL):
        # All but the million calls, where nothing hangs on a few percent.
        assert labels[name + AGAIN] == labels[name] - 1
    assert "ray" + AGAIN not in labels


def test_on_servers_all_is_measured_that_does_not_need_one_machine() -> None:
    servers = Servers(None, ("ssh://node1",), (ServerHost("node1", "node1", 2, "TCP"),))
    both = Elsewhere((PYTHON, NATIVE), servers)
    sessions = sessions_of(ENGINES, list(WORKLOADS), FULL, "/programs", both)
    there = [session for session in sessions if session.label.endswith(ON_SERVERS)]
    assert [session for session in sessions if session not in there] == EVERYTHING
    assert {session.engine for session in there} == {PYTHON, NATIVE}
    assert all(session.servers is servers for session in there)
    measured = {item.workload for one in there if not one.left_out for item in one.items}
    left_out = {item.workload: one.left_out for one in there if one.left_out for item in one.items}
    assert measured == set(WORKLOADS) - set(ONLY_HERE)
    assert left_out == {name: f"it is for one machine: {why}" for name, why in ONLY_HERE.items()}
    # An array is in memory that workers elsewhere cannot read.
    assert {item.engine for one in there for item in one.items} == {
        PYTHON + ON_SERVERS, NATIVE + ON_SERVERS,
    }  # fmt: skip


def test_no_point_is_measured_by_two_sessions() -> None:
    keys = Counter(
        (item.workload, item.engine, str(item.parameters))
        for session in EVERYTHING
        for item in session.items
    )
    assert max(keys.values()) == 1


def test_what_takes_long_has_fewer_rounds() -> None:
    rounds = {(s.label, s.name): s.rounds for s in EVERYTHING}
    assert rounds[PYTHON, "calls"] == rounds[PYTHON, "16 workers"] == FULL.rounds
    assert rounds["ray", "100 workers"] == rounds["dask", "100 workers"] == ENOUGH
    assert (PYTHON, "100 workers, NumPy loaded") in rounds
    assert ("ray", "100 workers, NumPy loaded") not in rounds


def test_all_engines_take_about_an_hour_and_a_quick_run_into_minutes() -> None:
    # Each engine has as many rounds as a claim takes.
    every = ENGINES | dict.fromkeys(("parsl", "hyperqueue", "mpi", "ipyparallel", "loky"), "x:y")
    full = sessions_of(every, list(WORKLOADS), FULL, "/programs")
    assert sum(s.seconds * s.rounds for s in full) < 80 * 60
    ours = {name: ENGINES[name] for name in (PYTHON, NATIVE, POOL, C)}
    quick = sessions_of(ours, list(WORKLOADS), QUICK, "/programs")
    assert sum(s.seconds * s.rounds for s in quick) < 5 * 60


def test_the_order_is_random_and_kept_by_its_seed() -> None:
    first = planned(EVERYTHING, seed=1)
    assert first == planned(EVERYTHING, seed=1)
    assert first != planned(EVERYTHING, seed=2)
    assert [case.round for case in first] == sorted(case.round for case in first)

    def order(number: int) -> list[str]:
        own = [case.session for case in first if case.round == number]
        return list(dict.fromkeys(one.label + one.name for one in own if one.rounds > 1))

    assert order(0) != order(1)
    assert sorted(order(0)) == sorted(order(1))
    assert all(one.session.rounds == FULL.rounds for one in first if one.round == 4)
    assert sum(one.seconds for one in first) == pytest.approx(
        sum(session.seconds * session.rounds for session in EVERYTHING)
    )


def test_without_a_compiler_nothing_is_measured_from_c() -> None:
    sessions = sessions_of(ENGINES, list(WORKLOADS), FULL, "")
    names = {item.engine for session in sessions for item in session.items}
    assert C not in names
    assert "ping_pong_unix" not in names
    assert "ping_pong_unix, Python" in names


def test_only_the_limits_of_what_is_requested_are_measured() -> None:
    sessions = sessions_of({PYTHON: "x:y"}, ["solve"], FULL, "/programs")
    assert [session.label for session in sessions] == [PYTHON, PYTHON + AGAIN]
    sessions = sessions_of({PYTHON: "x:y"}, ["start"], FULL, "/programs")
    limits = next(session for session in sessions if session.label == LIMITS)
    assert {item.engine for item in limits.items} == {"fork"}


def test_an_unknown_workload_is_reported_with_a_guess() -> None:
    with pytest.raises(InputError, match="there is no workload `nul_call`") as caught:
        check_workloads(["nul_call"])
    assert caught.value.remedy.startswith("did you mean `null_call`? the workloads are null_call, ")
    assert check_workloads(["echo", "null_call"]) == ["null_call", "echo"]


def test_an_engine_can_refuse_a_workload_or_one_case_of_it() -> None:
    size = {"bytes": 10_000_000}
    assert case_of("argument", size) == "argument_10MB"
    assert reason({"argument_10MB": "too large"}, "argument", size) == "too large"
    assert reason({"argument": "none"}, "argument", size) == "none"
    assert reason({"argument_100MB": "too large", "echo": "none"}, "argument", size) == ""
    start = next(s for s in EVERYTHING if s.name == "100 workers")
    assert [case_of(item.workload, item.parameters) for item in start.items] == [
        "start_100", "tasks_100_short", "tasks_100_null",
    ]  # fmt: skip


def _session(name: str) -> Session:
    return next(s for s in EVERYTHING if (s.label, s.name) == ("ray", name))


def _point(item: Item, number: int, **more: Any) -> DataPoint:
    return DataPoint(
        workload=item.workload,
        engine=item.engine,
        parameters=item.parameters,
        round=number,
        **more,
    )


def _futile(session: Session, number: int, points: list[DataPoint]) -> list[Item]:
    """The items that are not worth another try in a round."""
    attempts = Attempts(points)
    return [case.item for case in points_of(session, number) if attempts.futile(case)]


def test_a_session_in_which_all_failed_is_not_tried_in_later_rounds() -> None:
    session = _session("100 workers")
    items = list(session.items)
    assert len(items) == 3
    failed = [_point(item, 0, status="failed") for item in items]
    assert _futile(session, 0, failed) == []
    assert _futile(session, 1, failed) == items
    # It is as long as one of them has a value.
    assert _futile(session, 1, [*failed[:2], _point(items[2], 0)]) == []


def test_what_reached_its_limit_is_not_tried_in_later_rounds() -> None:
    session = _session("100 workers")
    start, short, null = session.items
    points = [_point(start, 0), _point(short, 0), _point(null, 0, status="failed", at_limit=True)]
    assert _futile(session, 1, points) == [null]
    assert completeness(planned([replace(session, rounds=2)], 1), points) == Completeness(
        points=3, planned=5, round=2, rounds=2
    )
    # One that did so once, and ended in time later, is.
    points += [_point(start, 1), _point(short, 1), _point(null, 1)]
    assert _futile(session, 2, points) == []


def test_what_is_missing_of_a_run_is_counted() -> None:
    calls, start = replace(_session("calls"), rounds=3), replace(_session("16 workers"), rounds=2)
    count, cases = len(calls.items), planned([calls, start], 1)

    def points(session: Session, number: int, status: Any = "ok") -> list[DataPoint]:
        return [_point(item, number, status=status) for item in session.items]

    found = points(calls, 0)
    assert completeness(cases, found) == Completeness(
        points=count, planned=3 * count + 2, round=1, rounds=3
    )
    found += points(start, 0) + points(calls, 1)[1:] + points(start, 1)
    assert completeness(cases, found) == Completeness(
        points=2 * count + 1, planned=3 * count + 2, round=2, rounds=3
    )
    # What failed is there, and is not tried in further rounds.
    found = points(start, 0, "failed")
    assert completeness(planned([start], 1), found) == Completeness(
        points=1, planned=1, round=2, rounds=2
    )
    assert completeness([], []) == Completeness(points=0, planned=0, round=0, rounds=0)
