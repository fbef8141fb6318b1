"""Which run comes next in a calibration, when there have been enough, and what a model covers: of
costs that are given."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gridbench.advise import calibration as next_run
from gridbench.advise.calibration import Search, calibrating, covers, first_cases, most_telling
from gridbench.advise.search import Split
from gridbench.advise.work import DivisibleWork
from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.model.observation import Situation, range_of
from gridbench.model.terms import Shape
from gridbench.scenario.grids import ScenarioCase
from synthetic import MB

WORK = DivisibleWork(seconds=16.0, cores=16)


def _case(tasks: int, cores: int, **more: Any) -> ScenarioCase:
    sizes = {"bytes_in": 0, "bytes_shared": 0, "bytes_out": 0}
    return ScenarioCase(
        **{"scenario": 0, "cores": cores, "tasks": tasks, "sleep": 1.0, **sizes, **more}
    )


def _model(slopes: dict[tuple[int, int], Floats]) -> PipelineModel:
    """Whose overhead has these slopes over two terms, which are as unsure as each other."""

    def found(situation: Situation) -> Floats:
        return slopes.get((situation.tasks, situation.cores), np.zeros(2))

    return cast(
        PipelineModel, SimpleNamespace(slopes=found, fit=SimpleNamespace(covariance=np.eye(2)))
    )


@pytest.mark.parametrize(
    ("answer", "around"),
    [
        # The advised split, twice as many tasks, and half as many cores.
        ((16, 8), [(16, 8), (32, 8), (16, 4)]),
        ((16, 1), [(16, 1), (32, 1)]),
        ((16, 3), [(16, 3), (32, 3), (16, 1)]),
    ],
)
def test_runs_tell_of_the_advised_split_and_of_splits_around_it(
    answer: tuple[int, int], around: list[tuple[int, int]]
) -> None:
    others = [(64, 8), (16, 16), (8, 8), (32, 4), (16, 2)]
    for wanted in around:
        # This split alone has an overhead that a term decides about.
        model = _model({wanted: np.array([1.0, 0.0]), (5, 5): np.array([1.0, 0.0])})
        cases = [_case(*one) for one in (*others, (5, 5))]
        found = most_telling(model, WORK, Split(*answer, 1.0), cases)
        assert found[0] == cases[-1]
    model = _model({one: np.array([1.0, 0.0]) for one in (*others, (5, 5)) if one not in around})
    cases = [_case(*one) for one in (*others, (5, 5))]
    # None of the others is asked about: no run tells more than another.
    assert most_telling(model, WORK, Split(*answer, 1.0), cases) == cases


def test_work_that_cannot_be_cut_further_is_not_asked_about_twice_as_many_tasks() -> None:
    model = _model({(16, 8): np.array([0.0, 1.0]), (32, 8): np.array([1.0, 0.0])})
    cases = [_case(16, 8), _case(32, 8)]
    coarse = replace(WORK, most_tasks=16)
    assert most_telling(model, coarse, Split(16, 8, 1.0), cases[::-1]) == cases
    assert most_telling(model, WORK, Split(16, 8, 1.0), cases) == cases


def test_a_run_that_moves_the_answer_more_tells_more_than_its_noise() -> None:
    # Of each the squared covariance with the answer, by its own variance and that of its noise.
    slopes = {
        (16, 8): np.array([1.0, 0.0]),
        (2, 2): np.array([0.1, 0.0]),  # 0.01 by 0.02: a little more than the last but one
        (3, 3): np.array([0.2, 0.0]),  # 0.04 by 0.05
        (4, 4): np.array([1.0, 1.0]),  # 1 by 2.01
        (5, 5): np.array([0.0, 9.0]),  # nothing
        (6, 6): np.array([1.0, 0.97]),  # 1 by 1.95: a little more than the first
    }
    cases = [_case(number, number) for number in (5, 2, 4, 6, 3)]
    found = most_telling(_model(slopes), WORK, Split(16, 8, 1.0), cases)
    assert [one.tasks for one in found] == [3, 6, 2, 4, 5]


@pytest.mark.parametrize(
    ("expected", "now", "good"),
    [
        (10.0, 10.0, True),
        # What was advised before takes 3 % more than the best, by now.
        (10.0, 10.0 / 1.029, True),
        (10.3, 10.0, True),
        (10.0, 10.0 / 1.031, False),
        # It is expected to take another time than before.
        (10.0 * math.exp(0.099), 12.0, True),
        (10.0 * math.exp(0.101), 12.0, False),
        (10.0 * math.exp(-0.099), 12.0, True),
        (10.0 * math.exp(-0.101), 12.0, False),
    ],
)
def test_an_answer_holds_if_it_and_its_total_stay_about_the_same(
    expected: float, now: float, good: bool
) -> None:
    model = cast(PipelineModel, SimpleNamespace(totals=lambda *_: np.array([expected])))
    before = Split(16, 8, 10.0)
    assert next_run._as_good(model, WORK, before, Split(32, 8, now)) == good


def _measured(cores: tuple[int, int] = (1, 16), most: float = 0.0, **more: Any) -> PipelineModel:
    situations = [
        Situation(cores=number, sleep=np.ones(number), bytes_in=most, **more) for number in cores
    ]
    return cast(PipelineModel, SimpleNamespace(ranges=range_of(situations)))


@pytest.mark.parametrize(
    ("cores", "covered"),
    [((1, 16), True), ((16, 16), True), ((1, 15), False), ((1, 64), True), ((17, 64), False)],
)
def test_a_model_covers_work_on_cores_that_were_measured(
    cores: tuple[int, int], covered: bool
) -> None:
    assert covers(_measured(cores), WORK) == covered


@pytest.mark.parametrize(("most", "covered"), [(2.0 * MB, True), (1.99 * MB, False)])
@pytest.mark.parametrize("data", ["bytes_in", "bytes_out", "bytes_shared"])
def test_a_model_covers_twice_the_data_that_was_measured(
    data: str, most: float, covered: bool
) -> None:
    # A megabyte of each task is tried up to four times as large.
    work = DivisibleWork(
        seconds=1.0,
        cores=16,
        bytes_out_each=1.0 * MB if data == "bytes_out" else 0.0,
        bytes_in_each=1.0 * MB if data == "bytes_in" else 0.0,
        bytes_shared=1.0 * MB if data == "bytes_shared" else 0.0,
    )
    enough: dict[str, Any] = {"bytes_in": 4.0 * MB, "bytes_out": 4.0 * MB, "bytes_shared": 4.0 * MB}
    situation = Situation(cores=16, sleep=np.ones(16), **(enough | {data: most}))
    model = cast(PipelineModel, SimpleNamespace(ranges=range_of([situation])))
    assert covers(model, work) == covered


def test_a_model_covers_starts_that_were_measured() -> None:
    assert not covers(_measured(), replace(WORK, warm=True))
    assert covers(_measured(warm=True), replace(WORK, warm=True))
    assert not covers(_measured(warm=True), WORK)


def test_between_two_looks_at_the_answer_are_three_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[dict[str, Any]] = []

    def model_of(_: object, **how: Any) -> PipelineModel:
        looks.append(how)
        raise InputError("too few")

    monkeypatch.setattr(next_run, "model_of", model_of)
    search = Search(WORK, ())
    firsts, every = len(first_cases(WORK)), len(calibrating(WORK))
    for _ in range(firsts):
        assert search.next() is not None
    assert looks == []
    seen = []
    while search.next():
        seen.append(len(looks))
    assert seen == [1 + number // 3 for number in range(every - firsts)]
    # A look takes no longer than it must.
    assert looks[0] == {"test": False, "shape": None, "few": True, "starts": 0, "begin": {}}


def test_each_look_begins_with_the_shape_and_where_the_last_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[tuple[object, object]] = []
    shape = Shape(all_first=True)

    def model_of(_: object, **how: Any) -> PipelineModel:
        looks.append((how["shape"], how["begin"]))
        fit = SimpleNamespace(shape=shape, values={"submit": 1e-5 * len(looks)})
        return cast(PipelineModel, SimpleNamespace(fit=fit))

    # One answer after the other, none as good as the last.
    monkeypatch.setattr(next_run, "model_of", model_of)
    monkeypatch.setattr(next_run, "best_split", lambda *_: Split(tasks=1, cores=1, total=1.0))
    monkeypatch.setattr(next_run, "_as_good", lambda *_: False)
    monkeypatch.setattr(next_run, "most_telling", lambda *arguments: arguments[-1])
    search = Search(WORK, ())
    while search.next():
        pass
    assert looks[:3] == [(None, {}), (shape, {"submit": 1e-5}), (shape, {"submit": 2e-5})]
    assert search.values == {"submit": 1e-5 * len(looks)}
