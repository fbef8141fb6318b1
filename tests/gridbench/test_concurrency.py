"""Tasks running over time, and the thinner curve for drawing."""

from __future__ import annotations

import numpy as np
import pytest

import timelines
from gridbench.analysis.concurrency import running_over_time, thinned
from gridbench.analysis.overhead import Distribution

NAN = float("nan")


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
    assert 95 <= len(values) <= 100
    assert share == pytest.approx(values / 1000)
