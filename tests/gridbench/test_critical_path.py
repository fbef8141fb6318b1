"""What the last result waited for: followed back by hand, and adding up for any run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.analysis.critical_path import Step, by_kind, critical_path
from gridbench.analysis.lanes import assign_lanes
from timelines import made_run, table_of


def path_of(
    rows: list[dict[str, Any]], *, cold: bool = True, most: int | None = None
) -> list[Step]:
    table = table_of(rows)
    return critical_path(table, assign_lanes(table), cold=cold, most_outstanding=most)


def shown(path: list[Step]) -> list[tuple[str, int, float, float]]:
    return [(step.kind, step.row, step.begin, step.end) for step in path]


def task(submit: float, calc_in: float, calc_out: float, retrieve: float, worker: str = "w1"):  # type: ignore[no-untyped-def]
    return {
        "submit": submit,
        "calc_in": calc_in,
        "calc_out": calc_out,
        "retrieve": retrieve,
        "worker": worker,
    }


def test_a_worker_that_is_never_free_is_all_of_the_path() -> None:
    rows = [
        task(0.1, 1.0, 2.0, 2.5),
        task(0.2, 2.25, 4.0, 4.5),
        # It ended early, so that nothing waited for it.
        task(0.3, 1.5, 2.5, 3.0, "w2"),
    ]
    assert shown(path_of(rows)) == [
        ("start-up", 0, 0.0, 1.0),
        ("task", 0, 1.0, 2.0),
        ("between tasks", 1, 2.0, 2.25),
        ("task", 1, 2.25, 4.0),
        ("output", 1, 4.0, 4.5),
    ]


def test_tasks_without_all_stamps_are_not_in_the_path() -> None:
    whole = task(0.1, 1.0, 2.0, 2.5)
    nan = float("nan")
    expected = shown(path_of([whole]))
    assert expected
    for lost in (task(0.2, 2.25, nan, 4.5), task(0.2, nan, nan, 4.5), task(nan, 2.25, 4.0, 4.5)):
        assert shown(path_of([whole, lost])) == expected
        assert path_of([lost]) == []


def test_a_client_that_comes_late_is_the_path() -> None:
    rows = [task(0.0, 0.5, 1.0, 1.5), task(3.0, 3.25, 4.0, 4.5)]
    assert shown(path_of(rows, cold=False)) == [
        ("submission", 1, 0.0, 3.0),
        ("dispatch", 1, 3.0, 3.25),
        ("task", 1, 3.25, 4.0),
        ("output", 1, 4.0, 4.5),
    ]


def test_a_client_that_keeps_one_task_out_waits_for_each_result() -> None:
    rows = [task(0.0, 0.5, 1.0, 1.5), task(1.75, 2.0, 3.0, 4.0, "w2")]
    path = path_of(rows, cold=False, most=1)
    assert shown(path) == [
        ("submission", 0, 0.0, 0.0),
        ("dispatch", 0, 0.0, 0.5),
        ("task", 0, 0.5, 1.0),
        ("output", 0, 1.0, 1.5),
        ("room", 1, 1.5, 1.75),
        ("dispatch", 1, 1.75, 2.0),
        ("task", 1, 2.0, 3.0),
        ("output", 1, 3.0, 4.0),
    ]
    assert by_kind(path)["output"] == 1.5
    assert by_kind(path)["task"] == 1.5
    # With room for two it would not have waited.
    assert "room" not in by_kind(path_of(rows, cold=False, most=2))


def test_without_stamps_there_is_no_path() -> None:
    assert path_of([{"submit": 0.0}]) == []
    # It was back before it was sent, and so waited for itself.
    assert path_of([task(2.0, 0.5, 1.0, 1.5)], cold=False, most=0) == []


@given(
    tasks=st.integers(1, 60),
    workers=st.integers(1, 12),
    seed=st.integers(0, 1000),
    cold=st.booleans(),
    most=st.none() | st.integers(1, 20),
)
def test_the_steps_follow_each_other_from_the_start_to_the_last_result(
    *, tasks: int, workers: int, seed: int, cold: bool, most: int | None
) -> None:
    table = made_run(tasks, workers, sleep=0.2, seed=seed)
    path = critical_path(table, assign_lanes(table), cold=cold, most_outstanding=most)
    end = max(table["retrieve"].to_pylist())
    assert path[0].begin == 0.0
    assert path[-1].end == end
    assert all(one.end == other.begin for one, other in pairwise(path))
    assert sum(by_kind(path).values()) == pytest.approx(end)


def test_a_task_that_was_submitted_as_the_one_before_ended_waited_for_its_worker() -> None:
    rows = [task(0.0, 0.5, 1.0, 1.5), task(1.0, 1.25, 2.0, 2.5)]
    assert [step.kind for step in path_of(rows, cold=False)] == [
        "submission",
        "dispatch",
        "task",
        "between tasks",
        "task",
        "output",
    ]
    # A moment later it was the client that was waited for.
    later = [rows[0], task(1.01, 1.25, 2.0, 2.5)]
    assert [step.kind for step in path_of(later, cold=False)] == [
        "submission",
        "dispatch",
        "task",
        "output",
    ]


def test_room_is_there_once_as_many_are_out_as_there_may_be() -> None:
    # Two may be out. The third is submitted with the first result, at the same moment.
    rows = [
        task(0.0, 0.5, 1.0, 1.5),
        task(0.0, 0.5, 8.0, 8.5, "w2"),
        task(1.5, 2.0, 9.0, 9.5, "w3"),
    ]
    assert [(step.kind, step.row) for step in path_of(rows, cold=False, most=2)] == [
        ("submission", 0),
        ("dispatch", 0),
        ("task", 0),
        ("output", 0),
        ("room", 2),
        ("dispatch", 2),
        ("task", 2),
        ("output", 2),
    ]
    assert by_kind(path_of(rows, cold=False, most=2))["room"] == 0.0
    # Three might have been, and it was the client itself that was late.
    assert "room" not in by_kind(path_of(rows, cold=False, most=3))
    assert by_kind(path_of(rows, cold=False, most=3))["submission"] == 1.5
    # So it was if both results had long been back.
    both = [rows[0], task(0.0, 0.5, 2.0, 2.5, "w2"), task(3.0, 3.5, 9.0, 9.5, "w3")]
    assert by_kind(path_of(both, cold=False, most=2))["submission"] == 3.0


def test_of_two_last_results_the_first_is_followed_and_those_without_stamps_are_not() -> None:
    rows = [
        task(0.0, 0.5, 1.0, 3.0),
        task(0.0, 0.6, 2.0, 3.0, "w2"),
        {"submit": 0.0, "retrieve": 9.0},
    ]
    path = path_of(rows)
    assert {step.row for step in path} == {0}
    assert path[-1].length == 2.0
