"""The best split, sizes at which a cost jumps, intervals, and the report's formula."""

from __future__ import annotations

import math

import pytest

from gridbench.analysis.scaling import jump, largest_good, sweet_spot
from gridbench.analysis.transfer import NINFG, SYMPHONY
from gridbench.errors import InputError
from gridbench.statistics.interval import Interval, measured


def _around(value: float, margin: float = 0.1) -> Interval:
    return Interval(value, value - margin, value + margin)


def test_intervals() -> None:
    assert measured([3.0, 1.0, 2.0], 0.5) == Interval(2.0, 0.5, 3.5)
    assert measured([math.nan], 0.5) is None
    gap = _around(3.0).minus(_around(1.0))
    assert (gap.value, gap.low, gap.high) == pytest.approx((2.0, 1.8, 2.2))
    assert gap.above(_around(1.5))
    assert not gap.above(_around(1.75))
    rate = _around(2.0).under(10.0)
    assert rate is not None
    assert (rate.low, rate.value, rate.high) == pytest.approx((10 / 2.1, 5.0, 10 / 1.9))
    uncertain = _around(0.05).under(10.0)
    assert uncertain is not None
    assert math.isinf(uncertain.high)
    assert _around(-1.0).under(10.0) is None
    assert _around(2.0).times(-1.0) == Interval(-2.0, -2.1, -1.9)


def test_the_best_number_of_tasks() -> None:
    best = sweet_spot({1: _around(100), 10: _around(12), 100: _around(3), 400: _around(3.15)})
    assert (best.tasks, best.as_good, best.at_edge) == (100, (100, 400), False)
    assert sweet_spot({1: _around(2), 10: _around(5)}).at_edge
    with pytest.raises(InputError, match="at least two to choose from, not 1"):
        sweet_spot({1: _around(2)})


def test_a_size_at_which_a_cost_jumps() -> None:
    costs = {0: _around(1), 10: _around(1.1), 100: _around(2.25), 1000: _around(9)}
    assert jump(costs) == 1000  # at 100 it is not certain
    assert jump(costs | {100: _around(2.4)}) == 100
    assert jump(costs, factor=20) is None
    # One that is high by accident is no jump.
    assert jump({0: _around(1), 10: _around(5), 100: _around(1.2)}) is None
    with pytest.raises(InputError, match="the cost without data"):
        jump({10: _around(1)})


def test_how_much_data_is_good() -> None:
    assert largest_good({0: 0.99, 10: 0.95, 100: 0.5, 1000: 0.93}, 0.9) == 10
    assert largest_good({0: 0.5, 10: 0.95}, 0.9) is None


def test_the_formula_of_the_report() -> None:
    # 100 tasks of 1 s and 1 MB on 100 cores, as in the report's text.
    total = SYMPHONY.total(tasks=100, cores=100, sleep=1.0, task_mb=1.0)
    assert total == pytest.approx(5.6 + 1.0 + 800 / 830)
    total = NINFG.total(tasks=200, cores=100, sleep=2.0, shared_mb=10.0, output_mb=0.1, queue=3.0)
    assert total == pytest.approx(4.2 + 15 + 2 + 8000 / 835 + 160 / 835 + 3)
    # Workers that have no task are not started; shared data goes to all cores.
    total = NINFG.total(tasks=10, cores=100, sleep=1.0, task_mb=2.0, shared_mb=0.5)
    assert total == pytest.approx(4.2 + 1.5 + 160 / 835 + 400 / 835 + 1)
    total = SYMPHONY.total(tasks=10, cores=5, sleep=1.0, shared_mb=2.0, output_mb=3.0)
    assert total == pytest.approx(5.6 + 80 / 880 + 1 + 240 / 570)


def test_what_lies_on_a_bound() -> None:
    # Its lower end is the upper one of the best: it may be as good.
    touching = {1: Interval(2.0, 1.0, 3.0), 2: Interval(4.0, 3.0, 5.0), 3: Interval(9.0, 8.0, 10.0)}
    assert sweet_spot(touching).as_good == (1, 2)
    # Of two with the same total the one with fewer tasks.
    assert sweet_spot({8: _around(2), 4: _around(2), 9: _around(3)}).tasks == 4
    # Twice as much has not jumped.
    twice = {0: Interval(1.0, 0.5, 1.5), 10: Interval(4.0, 3.0, 5.0)}
    assert jump(twice) is None
    assert jump({0: Interval(1.0, 0.5, 1.49), 10: Interval(4.0, 3.0, 5.0)}) == 10
    # A cost below 0 is none: anything that certainly costs has jumped.
    assert jump({0: Interval(-1.0, -2.0, -0.5), 10: Interval(0.2, 0.1, 0.3)}) == 10
    assert jump({0: Interval(-1.0, -2.0, -0.5), 10: Interval(0.2, -0.1, 0.3)}) is None
    assert jump({0: _around(1)}) is None
    assert largest_good({0: 0.9, 10: 0.89}, 0.9) == 0
