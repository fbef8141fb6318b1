"""Advice for work whose tasks differ in time."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridbench.advise.advice import DIFFERENCES, advise
from gridbench.advise.prose import sentences
from gridbench.advise.search import predict, total_of
from gridbench.advise.trying import candidates
from gridbench.advise.uneven import DISTRIBUTIONS, TimeDistribution, Uneven, _drawn, parse_uneven
from gridbench.advise.work import DivisibleWork
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from running import Run

EVEN = DivisibleWork(seconds=100.0, cores=16)
HALF = Uneven(share=0.5)
WORK = replace(EVEN, uneven=HALF)


def costless(model: PipelineModel) -> PipelineModel:
    """An engine that takes no time at all."""
    free = tuple(
        replace(one, value=0.0, low=0.0, high=0.0, determined=True) for one in model.fit.estimates
    )
    return replace(model, fit=replace(model.fit, estimates=free))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_times_deviate_as_they_should(distribution: TimeDistribution, share: float) -> None:
    uneven = Uneven(share=share, distribution=distribution)
    times = np.concatenate([uneven.times(500.0, 5000, draw) for draw in range(40)])
    assert times.mean() == pytest.approx(0.1)
    assert times.min() >= 0
    # What a normal distribution has below 0 is cut off; a Pareto's deviation is slow to be seen.
    assert times.std() / 0.1 == pytest.approx(share, rel=0.12 if distribution == "pareto" else 0.03)


def test_tails_are_heavy_in_order() -> None:
    largest = [
        max(
            Uneven(share=0.5, distribution=one).times(1000.0, 1000, draw).max()
            for draw in range(20)
        )
        for one in DISTRIBUTIONS
    ]
    assert largest == sorted(largest)
    assert largest[0] < 4 < largest[1]


@pytest.mark.parametrize("pieces", [0, 1000])
@pytest.mark.parametrize("tasks", [1, 7, 999])
def test_the_whole_takes_as_long_as_was_said(pieces: int, tasks: int) -> None:
    times = Uneven(share=0.5, pieces=pieces).times(60.0, tasks, 3)
    assert times.shape == (tasks,)
    assert times.sum() == pytest.approx(60.0)


def test_pieces_even_out_within_a_task() -> None:
    uneven = Uneven(share=0.4, distribution="log-normal", pieces=40_000)
    for tasks in (400, 10_000):
        times = uneven.times(1.0, tasks, 0)
        expected = 0.4 / np.sqrt(40_000 / tasks)
        assert times.std() / times.mean() == pytest.approx(expected, rel=0.15)
    # Without, they deviate as much however many there are.
    alike = replace(uneven, pieces=0)
    for tasks in (400, 10_000):
        assert alike.times(1.0, tasks, 0).std() * tasks == pytest.approx(0.4, rel=0.15)


def test_the_same_pieces_are_divided_in_each_split() -> None:
    uneven = Uneven(share=0.9, pieces=12)
    pieces = uneven.times(1.0, 12, 5)
    assert uneven.times(1.0, 4, 5) == pytest.approx(pieces.reshape(4, 3).sum(axis=1))
    # Five tasks of 12 pieces: two or three of them each.
    ends = [2, 4, 7, 9]
    assert uneven.times(1.0, 5, 5) == pytest.approx([part.sum() for part in np.split(pieces, ends)])
    assert not np.allclose(uneven.times(1.0, 12, 6), pieces)


def test_without_costs_a_total_is_the_longest_task(model: PipelineModel) -> None:
    free = costless(model)
    work = DivisibleWork(seconds=100.0, cores=100, uneven=HALF, warm=True)
    drawn = [HALF.times(100.0, 100, draw) for draw in range(HALF.draws(100))]
    total = total_of(free, work, 100, 100)
    assert total == pytest.approx(np.mean([one.max() for one in drawn]))
    # Twice the time of tasks that are alike, and ten for each core nearly none of that.
    assert total == pytest.approx(2.1, rel=0.1)
    assert total_of(free, work, 400, 100) == pytest.approx(1.31, rel=0.05)
    assert total_of(free, work, 1000, 100) == pytest.approx(1.18, rel=0.05)
    assert total_of(free, replace(work, uneven=None), 100, 100) == pytest.approx(1.0)


def test_the_interval_holds_what_other_draws_take(model: PipelineModel) -> None:
    free = costless(model)
    work = DivisibleWork(seconds=100.0, cores=100, uneven=HALF, warm=True)
    expected = predict(free, work, 100, 100)
    totals = [HALF.times(100.0, 100, draw).max() for draw in range(1000, 3000)]
    held = np.mean([expected.low <= one <= expected.high for one in totals])
    assert 0.8 < held < 0.97
    assert expected.low < expected.total < expected.high
    assert expected.total == total_of(free, work, 100, 100)


def test_an_unsure_model_makes_the_interval_wider(model: PipelineModel) -> None:
    short = replace(WORK, seconds=0.1)
    sure = predict(model, short, 16, 16)
    unsure = replace(model, fit=replace(model.fit, spread=1.0))
    wide = predict(unsure, short, 16, 16)
    assert wide.low < sure.low < sure.high < wide.high


def test_uneven_work_is_cut_into_more_tasks(model: PipelineModel) -> None:
    even, uneven = advise(model, EVEN), advise(model, WORK)
    assert even.split.tasks == 16
    assert uneven.split.tasks >= 4 * 16
    as_even = total_of(model, WORK, even.split.tasks, even.split.cores)
    assert uneven.expected.total < 0.8 * as_even
    for tasks in (16, 32, 64, 160, 640):
        assert uneven.split.total <= total_of(model, WORK, tasks, 16) * 1.05


def test_pieces_that_even_out_need_fewer_tasks(model: PipelineModel) -> None:
    pieces = replace(WORK, uneven=Uneven(share=0.5, pieces=100_000))
    assert advise(model, pieces).split.tasks < advise(model, WORK).split.tasks


def test_the_finest_division_is_tried(model: PipelineModel) -> None:
    work = replace(WORK, most_tasks=20, uneven=Uneven(share=0.5, pieces=20))
    assert advise(model, work).split.tasks == 20


def test_where_the_time_goes_tells_what_differences_take(model: PipelineModel) -> None:
    few = replace(WORK, most_tasks=16)
    advice = advise(model, few)
    parts = dict(advice.parts)
    assert sum(parts.values()) == pytest.approx(advice.expected.total, rel=0.02)
    assert parts["computing"] == pytest.approx(100 / 16)
    assert parts["computing"] + parts[DIFFERENCES] == pytest.approx(advice.expected.ideal)
    helps = {one.what: one.total for one in advice.helps}
    even = total_of(model, EVEN, advice.split.tasks, advice.split.cores)
    assert helps["tasks that all take as long"] == even
    assert DIFFERENCES not in dict(advise(model, EVEN).parts)


def test_what_limits_may_be_the_differences(model: PipelineModel) -> None:
    heavy = Uneven(share=3.0, distribution="pareto")
    text = " ".join(sentences(advise(model, DivisibleWork(seconds=50.0, cores=16, uneven=heavy))))
    assert "on average" in text
    few = DivisibleWork(seconds=50.0, cores=16, most_tasks=16, uneven=heavy)
    assert "The bottleneck is uneven tasks" in " ".join(sentences(advise(model, few)))


def test_sentences_tell_the_assumption(model: PipelineModel) -> None:
    text = " ".join(sentences(advise(model, WORK)))
    assert "deviate by 50 % of their mean however the work is divided" in text
    log_normal = Uneven(share=0.5, distribution="log-normal", pieces=1600)
    work = replace(EVEN, most_tasks=16, uneven=log_normal)
    text = " ".join(sentences(advise(model, work)))
    assert "1,600 pieces whose times deviate by 50 % (log-normal)" in text
    assert "tasks of 100 pieces deviate by about 5 %" in text


def test_splits_to_try_are_expected_as_they_are_advised(model: PipelineModel) -> None:
    advice = advise(model, WORK)
    for one in candidates(advice):
        assert one.expected == total_of(model, WORK, one.case.tasks, one.case.cores)


@pytest.mark.parametrize(
    ("stddev", "distribution", "pieces", "what"),
    [
        ("5", None, None, "is not a share of the mean"),
        ("x%", None, None, "`x%` is not a deviation from 0% to 1000%"),
        ("-5%", None, None, "`-5%` is not a deviation from 0% to 1000%"),
        ("nan%", None, None, "`nan%` is not a deviation from 0% to 1000%"),
        ("2000%", "pareto", None, "`2000%` is not a deviation from 0% to 1000%"),
        ("101%", None, None, "a normal distribution cannot"),
        (None, "pareto", None, "--distribution is for times that differ"),
        (None, None, 10, "--pieces is for times that differ"),
    ],
)
def test_what_is_no_deviation_is_refused(
    stddev: str | None, distribution: str | None, pieces: int | None, what: str
) -> None:
    with pytest.raises(InputError, match=what):
        parse_uneven(stddev, distribution, pieces)


def test_deviations_are_shares() -> None:
    assert parse_uneven(None, None, None) is None
    assert parse_uneven("0%", "pareto", 10) is None
    assert parse_uneven("20%", None, None) == Uneven(share=0.2)
    assert parse_uneven("300%", "pareto", 7) == Uneven(share=3.0, distribution="pareto", pieces=7)


def test_more_tasks_than_pieces_are_refused() -> None:
    with pytest.raises(InputError, match="10 pieces cannot be divided into 11 tasks"):
        DivisibleWork(seconds=1.0, cores=1, most_tasks=11, uneven=Uneven(share=0.5, pieces=10))


def test_the_command_takes_a_deviation(
    model: PipelineModel, tmp_path: Path, gridbench: Run
) -> None:
    save_models([model], tmp_path / "model.json")
    done = gridbench(
        *("advise", "--work", "20s", "--cores", "16", "--task", "sleep", "--json"),
        *("--stddev", "50%", "--distribution", "log-normal", "--pieces", "200"),
        *("--from", "model.json", "--out", "advice"),
    )
    assert done.returncode == 0, done.stderr
    text = json.loads(done.stdout)
    uneven = {"share": 0.5, "distribution": "log-normal", "pieces": 200}
    assert text["work"]["uneven"] == uneven
    assert text["work"]["most_tasks"] == 200
    assert text["parts"][DIFFERENCES] > 0
    assert "deviating by 50 %, log-normal" in (tmp_path / "advice" / "report.html").read_text()


def test_half_of_paretos_times_lie_below_the_median_of_that_deviation() -> None:
    # One that deviates by its mean has an exponent of 1 and the root of 2.
    drawn = _drawn(Uneven(share=1.0, distribution="pareto"), 200_000, 0)
    assert drawn.min() >= 1
    assert np.median(drawn) == pytest.approx(2 ** (1 / (1 + math.sqrt(2))), rel=0.005)


def test_pieces_may_deviate_by_a_time() -> None:
    # A hundred pieces of 0.1 s.
    found = parse_uneven("20ms", None, 100, "10s")
    assert found is not None
    assert found.share == pytest.approx(0.2)
    assert found.pieces == 100
    brief = parse_uneven("20ms", None, 10, "500ms")
    assert brief is not None
    assert brief.share == pytest.approx(0.4)
    assert parse_uneven("0s", None, 100, "10s") is None
    assert parse_uneven("20ms", None, 100, "0s") is None
    for pieces, work in ((None, "10s"), (100, None)):
        with pytest.raises(InputError, match="`20ms` is not a share of the mean"):
            parse_uneven("20ms", None, pieces, work)
    with pytest.raises(InputError, match="`2s` is not a deviation from 0% to 1000%"):
        parse_uneven("2s", None, 100, "10s")
