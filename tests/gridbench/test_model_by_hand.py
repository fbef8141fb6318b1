"""How wrong a model is, how runs of a case differ, and what is beyond the measured: of a few runs
whose figures are worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import timelines
from gridbench.model import held_out as module
from gridbench.model.held_out import HeldOutCase, HeldOutRuns, repeated
from gridbench.model.observation import (
    Observation,
    RunTimes,
    Situation,
    alike,
    measure,
    range_of,
    together,
)
from gridbench.model.saved import errors_of
from synthetic import MB, PLACE

SITUATION = Situation(cores=2, sleep=np.full(4, 5.0))
"""Ten seconds without overhead."""


def _way(*cases: HeldOutCase) -> HeldOutRuns:
    return HeldOutRuns(name="random", what="a random 30 %", fitted=20, cases=cases)


def _case(predicted: float, *, measured: float = 20.0, ideal: float = 10.0) -> HeldOutCase:
    return HeldOutCase("run", measured, predicted, ideal)


def test_errors_are_shares_of_what_was_measured() -> None:
    case = _case(21.0)
    assert case.overhead_error == pytest.approx(0.1)
    assert case.total_error == pytest.approx(0.05)
    assert _case(18.0).overhead_error == pytest.approx(-0.2)


@pytest.mark.parametrize(("ideal", "weighty"), [(16.0, True), (16.1, False), (0.0, True)])
def test_an_overhead_of_a_fifth_of_the_total_is_worth_predicting(
    ideal: float, weighty: bool
) -> None:
    assert _case(21.0, ideal=ideal).weighty == weighty
    assert _way(_case(21.0, ideal=ideal)).weighty == ((_case(21.0, ideal=ideal),) * weighty)


def test_percentiles_of_overheads_are_of_weighty_cases_and_those_of_totals_of_all() -> None:
    cases = [_case(20.0 + n) for n in range(11)]
    light = _case(20.2, ideal=19.0)
    found = _way(*cases, *[light] * 10)
    # The sizes of errors: 0, 10, ... 100 % of the overhead; half of that, and ten of 1 %, of the
    # total.
    assert errors_of(found) == {
        "runs": 21,
        "runs_with_weighty_overhead": 11,
        "overhead_median": pytest.approx(0.5),
        "overhead_90th_percentile": pytest.approx(0.9),
        "total_median": pytest.approx(0.01),
        "total_90th_percentile": pytest.approx(0.4),
    }
    assert errors_of(_way(_case(19.0, ideal=20.0), _case(21.0, ideal=20.0))) == {
        "runs": 2,
        "runs_with_weighty_overhead": 0,
        "overhead_median": None,
        "overhead_90th_percentile": None,
        "total_median": pytest.approx(0.05),
        "total_90th_percentile": pytest.approx(0.05),
    }
    # Of errors of 2, 4 and 20 %.
    spread = errors_of(_way(*(_case(total, ideal=20.0) for total in (20.4, 20.8, 24.0))))
    assert spread["total_median"] == pytest.approx(0.04)
    assert spread["total_90th_percentile"] == pytest.approx(0.168)


def test_the_spread_is_a_robust_standard_deviation_of_logarithms() -> None:
    # Two thirds of a standard deviation is what half of a normal distribution lies within.
    factors = (0.1, -0.2, 0.3, -0.4, 0.5)
    found = _way(*(_case(10.0 + 10.0 * math.exp(one)) for one in factors))
    assert found.spread == pytest.approx(0.3 / 0.6745)
    # Who predicts no overhead at all has no logarithm; nor counts what is not worth predicting.
    beside = _way(*found.cases, _case(10.0), _case(9.0), _case(19.0, ideal=18.0))
    assert beside.spread == found.spread
    assert _way(_case(10.0)).spread == 0
    assert _way().spread == 0


def test_of_many_runs_three_tenths_are_held_out_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[list[str]] = []

    def fit(runs: Sequence[Observation], **_: object) -> None:
        fitted.append([run.name for run in runs])

    def judge(_: None, runs: Sequence[Observation]) -> tuple[HeldOutCase, ...]:
        return tuple(HeldOutCase(run.name, 20.0, 20.0, 10.0) for run in runs)

    monkeypatch.setattr(module, "fit", fit)
    monkeypatch.setattr(module, "judge", judge)
    runs = [replace(_run(20.0), name=str(number)) for number in range(1000)]
    random, cores, sizes = module.held_out(runs)
    held = [case.name for case in random.cases]
    assert 250 < len(held) < 350
    assert sorted(held + fitted[0]) == sorted(run.name for run in runs)
    assert (random.fitted, random.refused) == (1000 - len(held), "")
    # All are of as many cores, and have as much data.
    assert (cores.fitted, len(cores.cases), len(sizes.cases)) == (0, 1000, 1000)
    # One alone is not drawn.
    assert module.held_out(runs[:1])[0].refused == "no run was drawn"


def _run(total: float, *, others: float = 0.0, situation: Situation = SITUATION) -> Observation:
    measured = RunTimes(total, total / 10, math.nan, total / 100)
    return Observation(f"run of {total:g} s", PLACE, situation, measured, others=others)


def test_how_runs_of_a_case_differ_is_reported_by_the_others() -> None:
    # Overheads are 10, 12 and 20 s: beside the medians of the other two, 16, 15 and 11 s.
    found = repeated([_run(20.0), _run(22.0), _run(30.0)])
    assert found is not None
    assert (found.cases, found.runs) == (1, 3)
    assert found.median == pytest.approx(6 / 16)
    assert found.percentile_90 == pytest.approx(6 / 16 + 0.8 * (9 / 11 - 6 / 16))
    warm = replace(SITUATION, warm=True)
    more = repeated([*(_run(one) for one in (20.0, 22.0, 30.0)), *[_run(15.0, situation=warm)] * 2])
    assert more is not None
    assert (more.cases, more.runs) == (2, 5)


def test_cases_that_were_run_once_or_have_little_overhead_tell_nothing() -> None:
    assert repeated([_run(20.0)]) is None
    assert repeated([_run(12.4), _run(12.4)]) is None
    # They do not hide the cases after them.
    warm = replace(SITUATION, warm=True)
    found = repeated([_run(20.0), *[_run(20.0, situation=warm)] * 2])
    assert found is not None
    assert (found.cases, found.runs) == (1, 2)
    # A fifth of the total is enough.
    assert repeated([_run(12.5), _run(12.5)]) is not None


def test_runs_of_a_case_become_one_with_the_median_of_each_figure() -> None:
    (one,) = together([_run(20.0), _run(22.0), _run(30.0)])
    assert (one.name, one.ideal) == ("run of 20 s", 10.0)
    assert one.measured.total == 22.0
    assert one.measured.first_calc_in == pytest.approx(2.2)
    assert math.isnan(one.measured.last_worker_calc_in)
    logarithms = [math.log(overhead) for overhead in (10.0, 12.0, 20.0)]
    mean = sum(logarithms) / 3
    variance = sum((one - mean) ** 2 for one in logarithms) / 2
    assert one.uncertainty == pytest.approx(math.sqrt(variance / 3))
    (alone,) = together([_run(20.0)])
    assert alone.uncertainty == 0


def test_what_was_unsure_before_stays_so() -> None:
    (one,) = together([replace(_run(20.0), uncertainty=0.3), _run(20.0)])
    assert one.uncertainty == pytest.approx(0.3)
    (one,) = together([replace(_run(20.0), uncertainty=0.3), _run(10.0 + 10.0 * math.e**0.8)])
    # Two that differ by 0.8 have a standard error of 0.4.
    assert one.uncertainty == pytest.approx(0.5)


def test_overheads_below_a_millisecond_count_as_one() -> None:
    (one,) = together([_run(10.0), _run(10.0005)])
    assert one.uncertainty == 0
    (one,) = together([_run(10.0), _run(10.0 + 0.001 * math.e)])
    assert one.uncertainty == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("count", "busy", "stored"),
    [
        (4, (), 4),
        (4, (20.0,), 3),
        (4, (20.0, 21.0), 2),
        (4, (20.0, 21.0, 22.0), 4),
        (3, (20.0, 21.0), 3),
    ],
)
def test_undisturbed_runs_count_alone_if_they_are_half_of_all(
    count: int, busy: Sequence[float], stored: int
) -> None:
    runs = [_run(one, others=float(one in busy)) for one in (20.0, 21.0, 22.0, 23.0)[:count]]
    (found,) = alike(runs)
    assert len(found) == stored


def test_what_differs_in_any_way_is_no_run_of_the_same_case() -> None:
    one = _run(20.0)
    others = [
        replace(SITUATION, cores=3),
        replace(SITUATION, sleep=np.full(4, 5.1)),
        replace(SITUATION, bytes_in=1.0),
        replace(SITUATION, bytes_shared=1.0),
        replace(SITUATION, bytes_out=1.0),
        replace(SITUATION, warm=True),
    ]
    runs = [one, *(_run(20.0, situation=other) for other in others)]
    elsewhere = Observation("there", replace(PLACE, host="there"), SITUATION, one.measured)
    assert [len(some) for some in alike([*runs, elsewhere, one])] == [2, *[1] * 7]
    # What is not said of a case is that it has no data, and starts cold.
    said = replace(SITUATION, bytes_in=0.0, bytes_shared=0.0, bytes_out=0.0, warm=False)
    assert len(alike([one, _run(20.0, situation=said)])) == 1


# What was measured.

MEASURED = range_of(
    [
        Situation(cores=2, sleep=np.full(4, 0.1), bytes_in=MB),
        Situation(cores=8, sleep=np.full(80, 1.0), bytes_in=10.0 * MB),
    ]
)
INSIDE = Situation(cores=4, sleep=np.full(8, 0.5), bytes_in=2.0 * MB)


@pytest.mark.parametrize(
    ("changed", "text", "distance"),
    [
        ({}, (), 0.0),
        ({"cores": 2}, (), 0.0),
        ({"cores": 8}, (), 0.0),
        ({"cores": 16}, ("cores: 16 is outside what was measured, 2 to 8",), math.log(2)),
        ({"cores": 1}, ("cores: 1 is outside what was measured, 2 to 8",), math.log(2)),
        (
            {"sleep": np.full(240, 0.5)},
            ("tasks: 240 is outside what was measured, 4 to 80",),
            math.log(3),
        ),
        # Longer tasks and less data are nothing new, whatever else is.
        (
            {"sleep": np.full(8, 30.0), "bytes_in": 1.0, "bytes_out": 5.0},
            ("no run had output data, and this has 5 B",),
            math.log(10),
        ),
        (
            {"sleep": np.full(8, 30.0), "bytes_in": 40.0 * MB},
            ("task data: 40 MB is outside what was measured, 1 MB to 10 MB",),
            math.log(4),
        ),
        ({"sleep": np.full(8, 30.0)}, (), 0.0),
        ({"bytes_in": 1.0}, (), 0.0),
        (
            {"sleep": np.full(8, 0.05)},
            ("time of a task: 50.00 ms is outside what was measured, 100.0 ms to 1.000 s",),
            math.log(2),
        ),
        (
            {"bytes_in": 40.0 * MB},
            ("task data: 40 MB is outside what was measured, 1 MB to 10 MB",),
            math.log(4),
        ),
        ({"bytes_shared": 5.0}, ("no run had shared data, and this has 5 B",), math.log(10)),
        ({"bytes_out": 5.0}, ("no run had output data, and this has 5 B",), math.log(10)),
        ({"warm": True}, ("no run had a warm start",), math.log(10)),
        (
            {"cores": 16, "warm": True},
            (
                "cores: 16 is outside what was measured, 2 to 8",
                "no run had a warm start",
            ),
            math.log(20),
        ),
    ],
)
def test_what_is_beyond_the_measured_is_named_and_by_how_much(
    changed: dict[str, object], text: tuple[str, ...], distance: float
) -> None:
    situation = replace(INSIDE, **changed)  # type: ignore[arg-type]
    assert MEASURED.outside(situation) == text
    assert MEASURED.beyond(situation) == pytest.approx(distance)


def test_starts_of_both_kinds_are_known_if_runs_had_them() -> None:
    warm = replace(INSIDE, warm=True)
    assert range_of([INSIDE]).starts == ("cold",)
    assert range_of([warm]).starts == ("warm",)
    assert range_of([warm, INSIDE]).starts == ("cold", "warm")
    assert range_of([warm]).outside(INSIDE) == ("no run had a cold start",)


def test_tasks_take_longer_by_waking_up_and_by_making_output() -> None:
    # It slept 0.05 s longer than it was to, and wrote its output for 0.1 s.
    stamps = {"submit": 0.0, "calc_in": 0.125, "calc_out": 0.475, "retrieve": 0.5}
    table = timelines.table_of([stamps | {"sleep": 0.2, "slept": 0.25}])
    found = measure(table, Situation(cores=1, sleep=np.full(1, 0.2)))
    assert found.extra == pytest.approx(0.15)
    assert (found.total, found.first_calc_in, found.last_worker_calc_in) == (0.5, 0.125, 0.125)
