"""Models of costs: known costs are found again, and what was not measured is not claimed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from gridbench.datagrid.model_kind import FORMULA as TASKS
from gridbench.errors import InputError
from gridbench.model.cost_model import TOTAL, CostModel, CostSubject
from gridbench.model.formula import Formula, MeasuredCase
from gridbench.model.held_out import EACH
from gridbench.model.saved import cost_models, cost_record
from gridbench.pages.terminal import print_document
from gridbench.records import RecordError
from gridbench.sync.model_kind import FORMULA as ROUNDS

KB = 1024
OPERATION, BYTE, START, FILLED = 1e-4, 2e-9, 5e-3, 4.0
CLIENTS, SIZES, OPERATIONS = (1, 2, 4, 8, 16), (KB, 64 * KB, 1024 * KB), (20, 100)


def task_time(clients: float, size: float, operations: float) -> float:
    crowd = max(1.0, clients / FILLED)
    return START + operations * (OPERATION + BYTE * size) * crowd


def points(
    clients: Iterable[float] = CLIENTS,
    sizes: Iterable[float] = SIZES,
    operations: Iterable[float] = OPERATIONS,
    factors: Iterable[float] = (1.0,),
) -> tuple[MeasuredCase, ...]:
    """Cases that follow the costs exactly, but for the factors of their repeats."""
    return tuple(
        MeasuredCase(
            {"clients": n, "size": size, "operations": k},
            tuple({"task": task_time(n, size, k) * factor} for factor in factors),
        )
        for n in clients
        for size in sizes
        for k in operations
    )


def fitted(some: tuple[MeasuredCase, ...], formula: Formula = TASKS, **more: Any) -> CostModel:
    return CostSubject(formula=formula, name="made", told="made up", points=some, **more).fit(
        test=True
    )


def values(model: CostModel) -> dict[str, float | None]:
    return {f"{one.part}.{one.name}": one.value for one in model.estimates}


def round_point(workers: int, factor: float = 1.0) -> MeasuredCase:
    """Holding takes 10 ms and 3 ms for each worker; each begins 5 us later than the one before, and
    20 us besides; a task takes 0.2 s, up to two at a time, and its end 1 ms."""
    return MeasuredCase(
        {"workers": workers},
        (
            {
                "hold": (0.01 + 0.003 * workers) * factor,
                "skew": 5e-6 * (workers - 1) + (2e-5 if workers > 1 else 0.0),
                "work": 0.2 * max(1.0, workers / 2) + 1e-3 * workers,
            },
        ),
    )


def test_known_costs_of_tasks_are_found_again() -> None:
    model = fitted(points())
    found = values(model)
    assert found["task.operation"] == pytest.approx(OPERATION, rel=0.03)
    assert found["task.byte"] == pytest.approx(BYTE, rel=0.03)
    assert found["task.start"] == pytest.approx(START, rel=0.03)
    assert found["task.filled"] == pytest.approx(FILLED, rel=0.05)
    assert model.spread < 0.02
    (each, clients, size) = model.held_out[TOTAL][:3]
    assert each.what == EACH
    assert len(each.errors) == model.cases == 30
    assert each.largest < 0.05
    assert (clients.what, len(clients.errors)) == ("the most clients: 16", 6)
    assert (size.what, len(size.errors)) == ("the largest size of an object: 1 MB", 10)


def test_known_costs_of_rounds_are_found_again_part_by_part() -> None:
    model = fitted(tuple(map(round_point, (1, 2, 3, 4, 8, 16, 32))), ROUNDS)
    found = values(model)
    assert found["hold.worker"] == pytest.approx(0.003, rel=0.01)
    assert found["hold.start"] == pytest.approx(0.01, rel=0.01)
    assert found["skew.worker"] == pytest.approx(5e-6, rel=0.01)
    assert found["skew.apart"] == pytest.approx(2e-5, rel=0.01)
    assert found["work.task"] == pytest.approx(0.2, rel=0.05)
    assert found["work.filled"] == pytest.approx(2.0, rel=0.06)
    expected = model.expect({"workers": 24})
    assert expected.parts == pytest.approx(round_point(24).repeats[0], rel=0.05)
    assert sum(expected.parts.values()) == pytest.approx(expected.total)
    assert set(model.held_out) == {TOTAL, "hold", "skew", "work"}


@pytest.mark.parametrize(
    ("some", "unknown"),
    [
        (points(operations=(100,)), {"task.start"}),
        (points(sizes=(KB,)), {"task.byte"}),
        (points(clients=(4,)), {"task.filled"}),
        (points(clients=(4,), sizes=(KB,)), {"task.byte", "task.filled"}),
    ],
)
def test_what_the_cases_do_not_tell_apart_has_no_value(
    some: tuple[MeasuredCase, ...], unknown: set[str]
) -> None:
    if len(some) < 3:
        some += points(clients=(4,), sizes=(KB,), operations=(50,))
    model = fitted(some)
    assert {name for name, value in values(model).items() if value is None} == unknown
    # What was measured is predicted all the same, and what does not crowd only roughly.
    for one in some:
        assert model.expect(one.values).total == pytest.approx(one.total, rel=0.15)


def test_what_scatter_would_decide_about_is_not_told_apart() -> None:
    # Only cases with the largest objects have fewer operations, as where memory is short.
    few = points(operations=(100,), sizes=(KB, 8 * KB, 64 * KB))
    few += points(operations=(50,), sizes=(1024 * KB,))
    assert values(fitted(few))["task.start"] is None


@pytest.mark.parametrize("seed", range(4))
def test_a_cost_of_each_worker_is_not_taken_for_waiting_that_explains_as_much(seed: int) -> None:
    """One worker fills the disk: its time, and the end of each task, grow alike."""
    random = np.random.default_rng(seed)
    some = tuple(
        MeasuredCase(
            {"workers": n},
            tuple(
                {"hold": 0.01, "skew": 1e-5 * n, "work": (0.5 * n + 0.01 * n) * factor}
                for factor in random.normal(1.0, 0.02, 3)
            ),
        )
        for n in (1, 2, 3, 4, 6, 8)
    )
    model = fitted(some, ROUNDS)
    found = {f"{one.part}.{one.name}": one for one in model.estimates}
    assert found["work.task"].value == pytest.approx(0.51, rel=0.05)
    assert found["work.exit"].value is None
    assert found["work.filled"].value == pytest.approx(1.0, rel=0.1)


def test_more_repeats_make_intervals_narrower() -> None:
    def width(repeats: int) -> float:
        random = np.random.default_rng(1)
        some = points(sizes=(KB,), factors=random.normal(1.0, 0.1, repeats))
        (operation,) = [one for one in fitted(some).estimates if one.name == "operation"]
        assert operation.low is not None
        assert operation.high is not None
        return operation.high / operation.low - 1

    assert width(40) < 0.7 * width(5)


def test_too_few_cases_are_refused_with_what_is_missing() -> None:
    with pytest.raises(InputError, match="2 cases cannot tell so many costs apart") as caught:
        fitted(points(clients=(1, 2), sizes=(KB,), operations=(100,)))
    assert "at least 1 more must be measured" in str(caught.value)
    assert "another clients or size of an object or operations of a task" in caught.value.remedy


def test_repeats_give_intervals_and_single_measurements_none() -> None:
    assert all(one.low is one.high is None for one in fitted(points()).estimates)
    model = fitted(points(factors=(0.9, 1.0, 1.2)))
    assert model.repeats == 3 * model.cases
    for one in model.estimates:
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.value <= one.high
    operation = next(one for one in model.estimates if one.name == "operation")
    assert operation.low is not None
    assert operation.high is not None
    assert OPERATION * 0.85 < operation.low < OPERATION < operation.high < OPERATION * 1.25


def test_within_what_was_measured_nothing_is_marked_and_beyond_it_the_range_is_wider() -> None:
    model = fitted(points())
    inside = model.expect({"clients": 3, "size": 10 * KB, "operations": 50})
    assert inside.outside == ()
    assert inside.low < inside.total < inside.high
    assert inside.total == pytest.approx(task_time(3, 10 * KB, 50), rel=0.05)
    beyond = model.expect({"clients": 64, "size": 4096 * KB, "operations": 50})
    assert beyond.outside == (
        "clients: 64 is outside what was measured, 1 to 16",
        "size of an object: 4 MB is outside what was measured, 1 KB to 1 MB",
    )
    assert beyond.high / beyond.total == pytest.approx(beyond.total / beyond.low)
    assert beyond.high / beyond.total > 1.5 * inside.high / inside.total


def test_held_out_errors_tell_that_costs_are_not_as_the_formula_says() -> None:
    odd = tuple(
        MeasuredCase(one.values, ({"task": one.total * (3 if one.values["clients"] == 8 else 1)},))
        for one in points()
    )
    model, right = fitted(odd), fitted(points())
    assert model.held_out[TOTAL][0].largest > 0.5
    assert model.error > 5 * right.error
    case = {"clients": 3, "size": 10 * KB, "operations": 50}
    assert math.log(model.expect(case).high / model.expect(case).total) > 5 * math.log(
        right.expect(case).high / right.expect(case).total
    )


def shown(model: CostModel) -> str:
    console = Console(file=StringIO(), width=200)
    print_document(console, model.document())
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_terms_are_shown_with_units_and_what_is_not_known_of_them() -> None:
    text = shown(fitted(points(factors=(0.9, 1.0, 1.1)), uncounted=2))
    for words in (
        "Fitted to 30 cases, 90 measurements: clients: 1 to 16, size of an object: 1 KB to 1 MB",
        "2 cases without a valid measurement: this model claims nothing.",
        "ms/MB",
        "µs to",
        "each case in turn",
        "the most clients: 16",
    ):
        assert words in text
    assert "cannot separate" not in text
    alike = shown(fitted(points(operations=(100,))))
    assert "The measurements cannot separate these from other costs: start." in alike
    # Four clients fill it, so that of fewer it is not known how many do.
    assert "or more" not in text
    assert "3.00 or more" in shown(fitted(points(clients=(1, 2, 3))))


def test_a_model_is_the_same_when_read_again() -> None:
    for model in (
        fitted(points(factors=(0.9, 1.1)), uncounted=2),
        fitted(tuple(map(round_point, (1, 2, 4, 8, 16))), ROUNDS),
        replace(fitted(points()), held_out={}),
    ):
        record = json.loads(json.dumps(cost_record([model]), allow_nan=False))
        assert cost_models(model.formula, record) == [model]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"format": 7}, "its format is 7"),
        ({"models": [{"name": "made"}]}, "told is missing"),
    ],
)
def test_a_damaged_record_is_refused(damage: dict[str, Any], message: str) -> None:
    record = cost_record([fitted(points())]) | damage
    with pytest.raises(RecordError, match=message):
        cost_models(TASKS, json.loads(json.dumps(record)))


@pytest.mark.parametrize(
    ("term", "change", "message"),
    [
        ("byte", {"name": "magic"}, "`task.magic` that is not known"),
        ("byte", {"value": -1.0}, "`task.byte` is -1"),
        ("filled", {"value": 0.0}, "`task.filled` is 0"),
    ],
)
def test_terms_that_cannot_be_are_refused(term: str, change: dict[str, Any], message: str) -> None:
    record = json.loads(json.dumps(cost_record([fitted(points())])))
    estimates = record["models"][0]["estimates"]
    next(one for one in estimates if one["name"] == term).update(change)
    with pytest.raises(RecordError, match=message):
        cost_models(TASKS, record)


def test_a_record_without_a_range_is_refused() -> None:
    record = json.loads(json.dumps(cost_record([fitted(points())])))
    del record["models"][0]["measured"]["size"]
    with pytest.raises(RecordError, match="does not say what was measured of size"):
        cost_models(TASKS, record)
