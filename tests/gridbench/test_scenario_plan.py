"""What cases need, in which order they are run, and what is learned of those that have run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gridbench.jsonl_store import failed_before, missing
from gridbench.quantities import GB, MB
from gridbench.run.client import EngineFacts
from gridbench.scenario import plan
from gridbench.scenario.grids import GridChoice, ScenarioCase, cases_of
from gridbench.scenario.plan import (
    Experience,
    WorkerPlace,
    cannot,
    items_of,
    need_of,
    too_long,
)
from gridbench.scenario.results import CaseResult
from test_scenario_results import RESULT

FACTS = EngineFacts({}, 1, False)
CASE = ScenarioCase(scenario=4, cores=100, tasks=200, sleep=30, bytes_in=10 * MB)


def _need(
    case: ScenarioCase, place: WorkerPlace | None = None, experience: Experience | None = None
):  # type: ignore[no-untyped-def]
    return need_of(
        case, "engine", FACTS, ideal=60.0, place=place or WorkerPlace(),
        experience=experience or Experience(set()),
    )  # fmt: skip


def test_needs_grow_with_the_case() -> None:
    small, large = _need(replace(CASE, bytes_in=0)), _need(CASE)
    assert large.bytes_moved == 200 * 10 * MB
    assert large.memory - small.memory == 101 * 10 * MB
    assert large.seconds > small.seconds > 60
    shared = ScenarioCase(scenario=1, cores=100, tasks=100, sleep=30, bytes_shared=MB)
    # On one host shared data is there once; over links each node gets its own.
    assert _need(shared).bytes_moved == MB
    assert _need(shared, WorkerPlace(nodes=4, rate=1e9)).bytes_moved == 4 * MB
    linked = _need(CASE, WorkerPlace(nodes=4, rate=1e8))
    assert linked.seconds > 60 + 200 * 10 * MB * 8 / 1e8


def test_what_has_run_corrects_the_guess() -> None:
    fresh, slow = Experience(set()), Experience(set())
    guess = _need(CASE, experience=fresh).seconds - 60
    result = replace(
        RESULT, engine="engine", cores=100, tasks=200, bytes_in=10 * MB, ideal_s=60.0,
        total_s=100.0, took_s=60 + 3 * guess, load={"memory_used": 101 * 10.0 * MB + 2 * GB},
    )  # fmt: skip
    slow.learn(result)
    assert _need(CASE, experience=slow).seconds == pytest.approx(60 + 3 * guess)
    assert slow.worker_memory("engine", 0.0) > 20 * MB
    assert slow.slower("another") == 1.0
    slow.learn(replace(result, status="skipped"))
    assert slow.slower("engine") == pytest.approx(3.0)


def test_cases_that_do_not_fit_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    need = _need(CASE)
    monkeypatch.setattr(plan, "available_memory", lambda: need.memory * 2)
    assert cannot(CASE, need, "engine", FACTS) == ""
    monkeypatch.setattr(plan, "available_memory", lambda: round(need.memory * 1.05))
    reported = cannot(CASE, need, "engine", FACTS)
    assert "memory: about" in reported
    assert "100 tasks at a time and 100 workers" in reported
    many = replace(CASE, cores=10_000_000, bytes_in=0)
    assert cannot(many, _need(many), "engine", FACTS).startswith("workers: ")


def test_time_that_is_allowed() -> None:
    need = replace(_need(CASE), seconds=90.0)
    assert too_long(need, None, None) == ""
    assert too_long(need, 90.0, 90.0) == ""
    assert too_long(need, 80.0, None) == "time: about 90 s would be needed, and 80 s are allowed"
    assert "and 0 s are left of the time for all" in too_long(need, None, -4.0)


def test_the_order_is_random_and_comes_from_the_seed() -> None:
    cases = cases_of(1, GridChoice())
    items = items_of(cases, ["a", "b"], 2, 1)
    assert len(items) == len({item.identity for item in items}) == 36 * 2 * 2
    # Rounds follow each other; within one, engines and cases are mixed.
    assert [item.round for item in items] == [0] * 72 + [1] * 72
    first, second = items[:72], items[72:]
    assert [(i.case, i.engine) for i in first] != [(i.case, i.engine) for i in second]
    assert [item.case for item in first[::2]] != cases
    assert items == items_of(cases, ["a", "b"], 2, 1)
    assert items != items_of(cases, ["a", "b"], 2, 2)


def test_what_is_not_done_is_missing_and_some_of_it_has_failed() -> None:
    items = items_of(cases_of(3, GridChoice()), ["a"], 1, 1)

    def result(number: int, status: str, *, again: bool = False) -> CaseResult:
        case = items[number].case.key
        return replace(RESULT, case=case, engine="a", status=status, again=again)  # type: ignore[arg-type]

    results = [
        result(0, "done"),
        result(1, "failed"),
        result(2, "skipped"),
        result(3, "invalid"),
        result(4, "failed", again=True),
    ]
    assert missing(items, results) == items[1:]
    undisturbed = [one for one in results if not one.again]
    assert failed_before(items, undisturbed) == items[1:2]
