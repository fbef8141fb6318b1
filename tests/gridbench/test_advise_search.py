"""The search for a split and for the fewest cores, on totals that are given for each; and how work
is divided."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.advise import search as expected
from gridbench.advise import search as module
from gridbench.advise.options import AdviceParameters
from gridbench.advise.search import (
    Split,
    best_on,
    best_split,
    cores_tried,
    predict,
    tasks_shown,
    total_of,
    within,
)
from gridbench.advise.uneven import MOST_PIECES, Uneven, edges, parse_uneven
from gridbench.advise.work import LONGEST, DivisibleWork, parse_time
from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel, TotalPrediction
from gridbench.model.observation import Situation
from gridbench.schema import declarations
from gridbench.workload.numbers import LARGEST_KB, MOST_CORES
from gridbench.workload.workload import MOST_TASKS

WORK = DivisibleWork(seconds=100.0, cores=100)


@dataclass(frozen=True)
class Given:
    """A total for each number of tasks and cores; the interval ends a tenth above it."""

    total: Callable[[int, int], float]
    deviation: float = 0.0
    name: str = "given"
    linked: bool = False

    def totals(
        self, situations: Sequence[Situation], changed: Mapping[str, float] | None = None
    ) -> Floats:
        del changed
        return np.array([self.total(one.tasks, one.cores) for one in situations])

    def predict(self, situation: Situation) -> TotalPrediction:
        total = self.total(situation.tasks, situation.cores)
        return TotalPrediction(total, 0.9 * total, 1.1 * total, situation.ideal, ())

    def unsure(self, _: Situation) -> float:
        return self.deviation

    def outside(self, _: Situation) -> tuple[str, ...]:
        return ("far",)


def _costs(total: Callable[[int, int], float], deviation: float = 0.0) -> PipelineModel:
    return cast(PipelineModel, Given(total, deviation))


def test_numbers_of_cores_are_tried_in_steps_of_a_half() -> None:
    assert cores_tried(1) == [1]
    assert cores_tried(2) == [1, 2]
    assert cores_tried(100) == [1, 2, 3, 4, 6, 9, 13, 20, 30, 44, 67, 100]


def test_around_the_best_of_them_others_are_tried() -> None:
    # Of those in steps of a half 44 is the best, and 0.75, 0.87, 1.15 and 1.3 times 44 are tried.
    for best in (33, 38, 51, 57):
        near: dict[int, float] = {44: 10.0, best: 9.0}
        costs = _costs(lambda _, cores, near=near: near.get(cores, 20.0))  # type: ignore[misc]
        assert best_split(costs, WORK).cores == best


@pytest.mark.parametrize(("worse", "cores"), [(1.01, 20), (1.011, 100)])
def test_fewer_cores_are_better_if_they_take_a_hundredth_more(worse: float, cores: int) -> None:
    costs = _costs(lambda _, on: {100: 10.0, 20: 10.0 * worse}.get(on, 20.0))
    assert best_split(costs, WORK).cores == cores


@pytest.mark.parametrize(("worse", "tasks"), [(1.03, 20), (1.031, 60)])
def test_fewer_tasks_are_better_if_they_take_three_hundredths_more(
    worse: float, tasks: int
) -> None:
    costs = _costs(lambda of, _: {60: 10.0, 20: 10.0 * worse}.get(of, 20.0))
    assert best_on(costs, WORK, 10, math.inf).tasks == tasks
    # But not if they are not done in time.
    assert best_on(costs, WORK, 10, 10.0) == Split(60, 10, 10.0)
    assert best_on(costs, WORK, 10, 9.0).tasks == tasks


def test_tasks_are_tried_from_one_to_a_hundred_for_each_core() -> None:
    tried: list[int] = []

    def total(tasks: int, _: int) -> float:
        tried.append(tasks)
        return 1000.0 / tasks

    assert best_on(_costs(total), WORK, 2, math.inf).tasks == 200
    assert tried == [2, 4, 6, 8, 12, 20, 30, 50, 80, 130, 200]
    tried.clear()
    assert best_on(_costs(total), replace(WORK, most_tasks=29), 2, math.inf).tasks == 20
    assert tried == [2, 4, 6, 8, 12, 20]
    # Uneven work is also cut as finely as it can be.
    uneven = replace(WORK, most_tasks=29, uneven=Uneven(share=0.5))
    assert best_on(_costs(total), uneven, 2, math.inf).tasks == 29
    assert best_on(_costs(total), replace(uneven, most_tasks=201), 2, math.inf).tasks == 200
    assert best_on(_costs(total), replace(uneven, most_tasks=2), 2, math.inf).tasks == 2


def test_after_four_that_are_no_better_no_more_are_tried() -> None:
    tried: list[int] = []

    def total(tasks: int, _: int) -> float:
        tried.append(tasks)
        return {1: 10.0, 2: 11.0, 3: 12.0, 4: 10.0, 6: 9.0}.get(tasks, 9.0)

    assert best_on(_costs(total), WORK, 1, math.inf).tasks == 6
    # Four after 6 were as good.
    assert tried == [1, 2, 3, 4, 6, 10, 15, 25, 40]
    assert best_on(_costs(lambda tasks, _: float(tasks)), WORK, 1, math.inf).tasks == 1


def test_there_are_never_more_cores_than_tasks() -> None:
    costs = _costs(lambda _, cores: 100.0 / cores)
    assert best_split(costs, replace(WORK, most_tasks=7)) == Split(7, 7, 100 / 7)


def test_numbers_of_tasks_for_a_picture() -> None:
    assert tasks_shown(Split(20, 4, 1.0), 120) == [
        1, 2, 5, 10, 14, 17, 20, 24, 25, 30, 40, 50, 100,
    ]  # fmt: skip
    assert tasks_shown(Split(1, 1, 1.0), 1000) == [1, 2, 5, 10, 25, 50, 100, 200, 400, 1000]


# Within a time.


@given(st.integers(1, 64), st.integers(1, 64))
def test_the_fewest_cores_are_found(likely: int, more: int) -> None:
    # On so many cores it takes 9 s, and with 19 of 20 runs 9.9 s.
    costs = _costs(
        lambda _, cores: 9.0 if cores >= likely + more else 9.5 if cores >= likely else 20.0
    )
    found = within(costs, replace(WORK, seconds=1.0), 10.0)
    assert found.likely is not None
    assert found.likely.cores == min(likely, 100)
    if likely + more > 100:
        assert found.sure is None
        assert found.advised == found.likely
    else:
        assert found.sure is not None
        assert (found.sure.cores, found.sure.total) == (likely + more, 9.0)
        assert found.advised == found.sure


def test_so_few_cores_that_the_work_itself_takes_longer_are_not_tried() -> None:
    tried: set[int] = set()

    def total(_: int, cores: int) -> float:
        tried.add(cores)
        return 1.0

    on = module._fewest(
        lambda cores: Split(cores, cores, total(1, cores)), [1, 2, 4, 8], 3, limit=2.0
    )
    # The first that is tried is 4, and 3 the only one before it that can do.
    assert on is not None
    assert on.cores == 3
    assert tried == {4, 3}


# Of the numbers that are tried first, 9 is one, and 11 lies between two of them.
@pytest.mark.parametrize(("seconds", "likely", "sure"), [(90.0, 9, 10), (110.0, 11, 13)])
def test_what_ends_exactly_in_time_ends_in_time(seconds: float, likely: int, sure: int) -> None:
    found = within(_costs(lambda _, on: seconds / on), replace(WORK, seconds=seconds), 10.0)
    assert found.likely is not None
    assert (found.likely.cores, found.likely.total) == (likely, 10.0)
    assert found.sure is not None
    assert (found.sure.cores, found.sure.total) == (sure, seconds / sure)


def test_to_end_in_time_may_take_all_cores_or_more_than_there_are() -> None:
    everything = within(_costs(lambda _, cores: 100.0 / cores), WORK, 1.0)
    assert everything.likely == Split(100, 100, 1.0)
    assert everything.sure is None
    none = within(_costs(lambda _, cores: 100.0 / cores), WORK, 0.99)
    assert (none.likely, none.sure) == (None, None)
    assert none.advised == none.shortest == Split(100, 100, 1.0)


# The interval of uneven work.


def test_the_interval_is_of_all_draws_and_of_how_unsure_the_model_is() -> None:
    work = replace(WORK, uneven=Uneven(share=0.5))
    ideals = np.array([one.ideal for one in work.drawn(100, 10)])
    surely = predict(_costs(lambda *_: 50.0), work, 100, 10)
    assert surely.total == 50.0
    assert surely.ideal == pytest.approx(ideals.mean())
    # All draws take 50 s; the part above their ideal time is overhead.
    assert (surely.low, surely.high) == pytest.approx((50.0, 50.0))
    assert surely.extrapolated == ("far",)
    unsure = predict(_costs(lambda *_: 50.0, 0.5), work, 100, 10)
    overhead = 50.0 - float(ideals.mean())
    # 1.645 deviations to either side, and a little more as the draws differ.
    assert unsure.high - unsure.ideal == pytest.approx(overhead * math.exp(0.5 * 1.645), rel=0.05)
    assert unsure.low - unsure.ideal == pytest.approx(overhead / math.exp(0.5 * 1.645), rel=0.05)
    # A total that is below the ideal time has no overhead, and no interval that ends below it.
    none = predict(_costs(lambda *_: 1.0, 0.5), work, 100, 10)
    assert none.low == 1.0
    assert none.high == pytest.approx(np.percentile(np.repeat(ideals, 100), 95))
    assert total_of(_costs(lambda *_: 50.0), work, 100, 10) == 50.0


def test_what_is_unsure_without_end_has_an_end() -> None:
    work = replace(WORK, uneven=Uneven(share=0.5))
    found = predict(_costs(lambda *_: 50.0, 1e6), work, 100, 10)
    # Ten logarithms of the overhead.
    overhead = 50.0 - np.array([one.ideal for one in work.drawn(100, 10)])
    assert found.high < 50 + overhead.max() * math.exp(10)
    assert found.high > overhead.min() * math.exp(10)


# Dividing work.


def test_work_is_divided_with_its_data() -> None:
    work = DivisibleWork(
        seconds=100.0, cores=4, bytes_in=80.0, bytes_in_each=3.0, bytes_shared=7.0, bytes_out=40.0,
        bytes_out_each=2.0, warm=True,
    )  # fmt: skip
    found = work.divided(8, 4)
    assert (found.cores, found.sleep.tolist()) == (4, [12.5] * 8)
    assert (found.bytes_in, found.bytes_shared, found.bytes_out) == (13.0, 7.0, 7.0)
    assert found.warm
    assert work.sizes == (80.0, 3.0, 7.0, 40.0, 2.0)


@pytest.mark.parametrize(
    "fine",
    [
        {"seconds": LONGEST},
        {"cores": 1},
        {"cores": MOST_CORES},
        {"most_tasks": 1},
        {"most_tasks": MOST_TASKS},
        {"bytes_in": LARGEST_KB * 1024.0},
        {"bytes_out_each": 0.0},
        {"most_tasks": 10, "uneven": Uneven(share=0.5, pieces=10)},
    ],
)
def test_the_largest_and_smallest_works_are_taken(fine: dict[str, object]) -> None:
    replace(WORK, **fine)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"seconds": 0.0}, "makes no sense"),
        ({"seconds": LONGEST * 1.001}, "makes no sense"),
        ({"seconds": math.inf}, "makes no sense"),
        ({"cores": 0}, "the number of cores must be from 1"),
        ({"cores": MOST_CORES + 1}, "the number of cores must be from 1"),
        ({"most_tasks": 0}, "the number of tasks must be from 1"),
        ({"most_tasks": MOST_TASKS + 1}, "the number of tasks must be from 1"),
        ({"bytes_in": LARGEST_KB * 1024.0 + 1}, "not a size in bytes"),
        ({"bytes_shared": -1.0}, "not a size in bytes"),
        ({"most_tasks": 11, "uneven": Uneven(share=0.5, pieces=10)}, "cannot be divided"),
        ({"most_tasks": 2, "uneven": Uneven(share=0.5, pieces=1)}, "cannot be divided"),
    ],
)
def test_other_works_are_refused(wrong: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        replace(WORK, **wrong)  # type: ignore[arg-type]


def test_work_that_computes_has_no_more_cores_than_processors() -> None:
    spinning = replace(WORK, body="spin")
    fewer = spinning.on_processors(8)
    assert (fewer.cores, fewer.cores_asked) == (8, 100)
    enough = spinning.on_processors(100)
    assert (enough.cores, enough.cores_asked) == (100, 0)
    assert WORK.on_processors(8) is WORK


def test_the_longest_time_is_taken() -> None:
    assert parse_time("--work", "1000000000s") == LONGEST


# Uneven work.


@pytest.mark.parametrize(
    ("tasks", "draws"), [(1, 32), (625, 32), (626, 31), (1000, 20), (2500, 8), (100_000, 8)]
)
def test_more_tasks_are_drawn_less_often(tasks: int, draws: int) -> None:
    assert Uneven(share=0.5).draws(tasks) == draws


@pytest.mark.parametrize(
    "fine",
    [{"share": 1.0}, {"share": 10.0, "distribution": "pareto"}, {"pieces": MOST_PIECES}],
)
def test_the_largest_deviations_are_taken(fine: dict[str, object]) -> None:
    Uneven(**({"share": 0.5} | fine))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "text", "remedy"),
    [
        ({"share": 0.0}, "0 times the mean is not a deviation", "above 0 and up to 1000%"),
        ({"share": 10.1, "distribution": "pareto"}, "10.1 times the mean", "up to 1000%"),
        ({"share": 1.01}, "cannot deviate by 101% of its mean", "or give up to 100%"),
        ({"pieces": -1}, "the number of pieces must be from 1 to 100,000", ""),
        ({"pieces": MOST_PIECES + 1}, "the number of pieces must be from 1 to 100,000", ""),
    ],
)
def test_other_deviations_are_refused(wrong: dict[str, object], text: str, remedy: str) -> None:
    with pytest.raises(InputError, match=text) as refused:
        Uneven(**({"share": 0.5} | wrong))  # type: ignore[arg-type]
    assert remedy in str(refused.value)


def test_a_deviation_is_reported_as_a_share() -> None:
    assert Uneven(share=0.125).describe() == "deviating by 12.5 %"
    assert Uneven(share=2.0, distribution="pareto").describe() == "deviating by 200 %, pareto"
    assert parse_uneven("1000%", "pareto", None) == Uneven(share=10.0, distribution="pareto")
    with pytest.raises(InputError, match="from 0% to 1000%"):
        parse_uneven("1001%", "pareto", None)


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_no_two_tasks_differ_by_more_than_one_piece(pieces: int, tasks: int) -> None:
    found = edges(pieces, tasks)
    assert (found[0], found[-1], len(found)) == (0, pieces, tasks + 1)
    assert np.ptp(np.diff(found)) <= 1


def test_what_stands_for_a_normal_distribution_is_as_often_above_as_below() -> None:
    assert len(expected._NORMAL) == 100
    assert pytest.approx(-expected._NORMAL[::-1]) == expected._NORMAL
    assert np.percentile(expected._NORMAL, 95) == pytest.approx(1.645, abs=0.05)


def test_uneven_work_is_cut_as_finely_as_it_can_be_up_to_a_hundred_tasks_for_each_core() -> None:
    costs = _costs(lambda tasks, _: 1000.0 / tasks)
    uneven = replace(WORK, most_tasks=199, uneven=Uneven(share=0.5))
    assert best_on(costs, uneven, 2, math.inf).tasks == 199
    assert best_on(costs, replace(uneven, most_tasks=100_000), 2, math.inf).tasks == 200


def test_of_work_that_is_even_the_interval_is_the_models_own() -> None:
    found = predict(_costs(lambda *_: 50.0), WORK, 100, 10)
    assert (found.total, found.low, found.high) == pytest.approx((50.0, 45.0, 55.0))
    assert (found.ideal, found.extrapolated) == (10.0, ())


def test_work_is_cut_into_as_many_tasks_as_the_command_says() -> None:
    (most,) = [
        default for name, _, default in declarations(AdviceParameters) if name == "most_tasks"
    ]
    assert most == WORK.most_tasks == 100_000
