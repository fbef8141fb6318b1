"""Tasks running over time, and the thinner curve for drawing."""

from __future__ import annotations

import numpy as np
import pytest

import timelines
from gridbench.analysis.breakdown import Distribution
from gridbench.analysis.summary import Concurrency, running_over_time, thinned

NAN = float("nan")


@pytest.mark.filterwarnings("error")
def test_by_hand():
    stamps = [(1.0, 3.0), (2.0, 4.0), (3.0, 4.0), (NAN, 4.0), (5.0, 5.0)]
    steps = running_over_time(
        timelines.table_of([{"calc_in": begin, "calc_out": end} for begin, end in stamps])
    )
    assert steps.time.tolist() == [1, 2, 3, 4, 5]
    # At 3 one ends and another begins: still two.
    assert steps.running.tolist() == [1, 2, 2, 0, 0]
    assert steps.most == 2
    assert steps.mean(5.0) == pytest.approx((1 + 2 + 2) / 5)
    # Until the second begins; until half of the first; before anything runs.
    assert [steps.mean(end) for end in (2.0, 1.5, 0.5)] == pytest.approx([1 / 2, 0.5 / 1.5, 0])
    assert all(np.isnan(steps.mean(end)) for end in (0.0, -0.5))


@pytest.mark.parametrize("wrong", [(1.5, NAN), (NAN, NAN), (4.0, 3.5)])
def test_tasks_without_both_stamps_in_their_order_do_not_count(wrong: tuple[float, float]):
    stamps = [(1.0, 3.0), wrong]
    steps = running_over_time(
        timelines.table_of([{"calc_in": begin, "calc_out": end} for begin, end in stamps])
    )
    assert steps.time.tolist() == [1, 3]
    assert steps.running.tolist() == [1, 0]


def test_nothing():
    steps = running_over_time(timelines.table_of([]))
    assert steps.most == 0
    assert np.isnan(steps.mean(NAN))
    assert len(thinned(steps, 10).time) == 0


def test_thinning_keeps_ends_peaks_and_gaps():
    table = timelines.made_run(5000, 50)
    steps = running_over_time(table)
    thin = thinned(steps, 400)
    assert len(thin.time) <= 410
    assert thin.most == steps.most
    assert (thin.time[0], thin.time[-1]) == (steps.time[0], steps.time[-1])
    assert set(zip(thin.time, thin.running, strict=True)) <= set(
        zip(steps.time, steps.running, strict=True)
    )


def test_percentiles_are_measured_values():
    spread = Distribution(np.arange(1.0, 101.0))
    assert spread.figures() == {"min": 1, "p50": 50, "p90": 90, "p99": 99, "max": 100, "mean": 50.5}
    values, share = Distribution(np.arange(10_000.0)).curve(500)
    assert len(values) <= 500
    assert values[-1] == 9999
    assert share[-1] == 1
    assert share[0] == pytest.approx(1e-4)


def test_few_values_are_all_on_the_curve_with_the_share_up_to_each():
    values, share = Distribution(np.array([1.0, 2.0, 4.0, 8.0])).curve(4)
    assert values.tolist() == [1, 2, 4, 8]
    assert share.tolist() == [0.25, 0.5, 0.75, 1]
    values, share = Distribution(np.array([])).curve(4)
    assert (len(values), len(share)) == (0, 0)


def test_a_curve_keeps_its_tails_and_leaves_out_some_of_its_middle():
    values, share = Distribution(np.arange(1.0, 1001.0)).curve(100)
    assert values[:25].tolist() == list(range(1, 26))
    assert values[-25:].tolist() == list(range(976, 1001))
    # Between them it continues in even steps.
    assert values[25:-25] == pytest.approx(np.linspace(26, 975, 50), abs=0.5)
    assert len(values) == 100
    assert share == pytest.approx(values / 1000)


def test_each_slice_keeps_its_first_lowest_highest_and_last_step():
    running = np.array([1, 2, 3, 2, 0, 1, 4, 5, 4, 3, 1, 0])
    steps = Concurrency(np.arange(12.0), running)
    # Eight points: two slices, of six steps each.
    thin = thinned(steps, 8)
    assert thin.time.tolist() == [0, 2, 4, 5, 6, 7, 11]
    assert thin.running.tolist() == [1, 3, 0, 1, 4, 5, 0]
    assert thinned(steps, 12) is steps
    assert thinned(steps, 11) is not steps
    # However few are requested, there is one slice.
    assert thinned(steps, 1).time.tolist() == [0, 4, 7, 11]
    # Slices are as long as each other in time, however many steps they have.
    crowded = Concurrency(np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 40.0]), running)
    assert thinned(crowded, 8).time.tolist() == [0, 4, 7, 10, 40]
    late = Concurrency(np.array([0.0, *range(30, 41)]), running)
    assert thinned(late, 8).time.tolist() == [0, 30, 33, 36, 40]
    # Whenever the run began.
    assert thinned(Concurrency(late.time + 20, running), 8).time.tolist() == [20, 50, 53, 56, 60]


def test_the_mean_counts_what_ran_until_the_end_asked_for():
    steps = Concurrency(np.array([1.0, 2.0, 4.0]), np.array([2, 1, 0]))
    assert steps.mean(3.0) == pytest.approx((2 + 1) / 3)
    assert steps.mean(8.0) == pytest.approx((2 + 2) / 8)
    assert np.isnan(steps.mean(0.0))
    # What ran before t = 0 does not count.
    assert Concurrency(np.array([-1.0, 1.0]), np.array([3, 0])).mean(2.0) == pytest.approx(1.5)
