"""Rates, spans, the rule of thumb and the line, on stamps whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.analysis.columns import Floats, seconds
from gridbench.analysis.line import fit_line
from gridbench.analysis.transfer import (
    block_span,
    bytes_per_second,
    rate_mbps,
    smallest_step,
    time_per_task,
    transfer_load,
    transfer_time,
)
from gridbench.errors import InputError
from gridbench.tasklog import read_task_log

SAMPLE = Path(__file__).parent / "data" / "symphony_sample.log"


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def test_a_megabyte_counts_as_eight_megabits() -> None:
    assert rate_mbps(100, 1.0) == 800
    assert transfer_time(100, 800) == 1.0
    assert bytes_per_second(8.0) == 1024 * 1024


@pytest.mark.parametrize("time", [0.0, -0.001, math.nan])
def test_no_time_has_no_rate(time: float) -> None:
    assert math.isnan(rate_mbps(1, time))


def test_the_smallest_step_is_that_of_sorted_stamps() -> None:
    assert smallest_step(floats(3.0, math.nan, 1.0, 1.5, 3.75)) == 0.5
    assert math.isnan(smallest_step(floats(1.0, math.nan)))


def test_the_span_of_a_block_leaves_out_later_tasks() -> None:
    stamps = floats(5.0, 1.0, 1.25, 2.0, 9.0)
    assert block_span(stamps, 3) == 1.0
    assert block_span(stamps, 3, base=1) == 0.75
    assert math.isnan(block_span(stamps, 6))
    assert math.isnan(block_span(stamps, 2, base=1))
    assert time_per_task(1.0, 0.25, 3) == 0.25


def test_whole_waits_are_taken_off_a_span() -> None:
    # Gaps of 0.1, 1.2 and 0.5: two waits of 0.5 in the second, one in the third.
    stamps = floats(0.0, 0.1, 1.3, 1.8)
    assert block_span(stamps, 4, wait=0.5) == pytest.approx(0.1 + 0.2 + 0.0)


def test_an_old_log_gives_the_span_without_the_waits_of_its_scheduler() -> None:
    _, table = read_task_log(SAMPLE)
    calc_in = seconds(table, "calc_in")
    assert block_span(calc_in, 8) == pytest.approx(5.668900 - 0.149273)
    # From the second task on there is one wait of 0.5 s: the rest are 9 ms.
    assert block_span(calc_in, 8, base=1, wait=0.5) == pytest.approx(0.508782 - 0.5)
    assert smallest_step(seconds(table, "submit")) == pytest.approx(0.002573 - 0.002208)


def test_transfers_hurt_when_the_link_is_not_done_before_the_first_task() -> None:
    # 400 cores x 10 MB at 1 Gbit/s are 32 s.
    assert transfer_load(400, 10, 1000, 30) == pytest.approx(32 / 30)
    assert transfer_load(100, 10, 1000, 30) < 1
    assert transfer_load(100, 10, 1000, 0) == math.inf
    assert transfer_load(100, 0, 1000, 0) == 0


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_a_line_through_points_of_a_line_is_that_line(intercept: float, slope: float) -> None:
    x = floats(0.0, 1.0, 5.0, 10.0, math.nan)
    line = fit_line(x, intercept + slope * x)
    assert line.intercept == pytest.approx(intercept, abs=1e-9)
    assert line.slope == pytest.approx(slope, abs=1e-9)
    assert line.at(2.0) == pytest.approx(intercept + 2 * slope, abs=1e-9)


def test_a_line_is_that_of_least_squares() -> None:
    # Residuals of 1 at the ends and 0 in the middle change the slope by their moment only.
    line = fit_line(floats(0, 1, 2), floats(0, 1, 5))
    assert (line.slope, line.intercept) == (pytest.approx(2.5), pytest.approx(-0.5))


def test_one_place_makes_no_line() -> None:
    with pytest.raises(InputError, match="a line needs points at two places at least, not 1"):
        fit_line(floats(3.0, 3.0, math.nan), floats(1.0, 2.0, 3.0))
