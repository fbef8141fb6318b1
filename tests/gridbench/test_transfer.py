"""Rates, spans, the rule of thumb and the line, on stamps whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.analysis.columns import Floats, seconds
from gridbench.analysis.scaling import fit_line
from gridbench.analysis.transfer import (
    _usual_step,
    arrivals,
    block_span,
    bytes_per_second,
    rate_mbps,
    smallest_step,
    time_per_task,
    transfer_load,
    transfer_time,
)
from gridbench.errors import InputError
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, simulate
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
    assert smallest_step(floats(2.0, 1.5)) == 0.5
    assert math.isnan(smallest_step(floats(1.0, math.nan)))


def test_the_span_of_a_block_leaves_out_later_tasks() -> None:
    stamps = floats(5.0, 1.0, 1.25, 2.0, 9.0)
    assert block_span(stamps, 3) == 1.0
    assert block_span(stamps, 2) == 0.25
    assert block_span(stamps, 5) == 8.0
    assert all(math.isnan(block_span(stamps, tasks)) for tasks in (0, 1, 6))
    assert time_per_task(1.0, 0.25, 3) == 0.25


def waves(*, size: int, count: int, step: float, every: float = 0.5) -> Floats:
    """When tasks compute whose workers start in waves, one task after the other in each."""
    return np.concatenate([n * every + step * np.arange(1, size + 1) for n in range(count)])


def pace_span(stamps: Floats, wait: float) -> float:
    """The span of the pace of all these tasks."""
    found = arrivals(stamps, len(stamps), wait=wait)
    assert found is not None
    return found.span


@pytest.mark.parametrize(("size", "step"), [(100, 80e-6), (100, 1e-3), (7, 0.06)])
def test_waits_for_the_next_wave_are_taken_off_a_span(size: int, step: float) -> None:
    # A wave of 8 ms leaves a gap of 0.492 s: no whole wait, and yet nothing but waiting.
    stamps = waves(size=size, count=4, step=step)
    assert pace_span(stamps, 0.5) == pytest.approx((4 * size - 1) * step)
    assert block_span(stamps, 4 * size) > 1.5


def test_waves_of_one_task_each_have_no_pace() -> None:
    # Nobody can tell the transfer from the wait.
    assert arrivals(waves(size=1, count=4, step=0.01), 4, wait=0.5) is None


def test_a_pause_that_is_no_wait_stays_in_the_span() -> None:
    stamps = waves(size=10, count=2, step=1e-3, every=0.7)
    assert pace_span(stamps, 0.5) == pytest.approx(0.709)
    # A twentieth of a wait from the next wave is too far from it, and a little less is not.
    assert pace_span(floats(0, 1, 2, 21), 20.0) == 21
    assert pace_span(floats(0, 1, 2, 20.99), 20.0) == 3


def test_a_step_that_is_hardly_longer_than_usual_is_no_wait() -> None:
    # The last ends half a second after the first, and takes a third more than the others.
    assert pace_span(floats(0.0, 0.15, 0.3, 0.5), 0.5) == pytest.approx(0.5)
    # Twice as long it is one; half as long again it is none yet.
    assert pace_span(floats(0.0, 0.1, 0.2, 0.3, 0.5), 0.5) == pytest.approx(0.4)
    assert pace_span(floats(0, 2, 4, 7), 7.0) == 7


def test_the_usual_step_is_that_of_steps_of_less_than_half_a_wait() -> None:
    # 0.245 s might be half a wait, by how exactly waves begin.
    assert _usual_step(floats(0.2, 0.245, 0.18, 0.245, 0.245, 0.5), 0.5) == pytest.approx(0.19)
    assert _usual_step(floats(0.245, 0.5), 0.5) == 0
    assert _usual_step(floats(9.5, 1, 3), 20.0) == 2


def test_a_first_worker_that_is_there_a_wait_before_is_not_the_base() -> None:
    def counted(second: float, begin: float = 0.0, tasks: int = 5) -> int:
        stamps = second * np.arange(5).clip(0, 1) + floats(0, 0, 0.01, 0.02, 0.03)
        found = arrivals(begin + stamps, tasks, wait=0.5)
        assert found is not None
        return found.tasks

    assert counted(0.48) == counted(0.475) == 3
    assert counted(0.47) == counted(0.47, begin=10.0) == 4
    # Of two tasks there is no other base than the first, but of three there is.
    assert counted(0.475, tasks=3) == 1
    assert arrivals(floats(0.0, 0.5), 2, wait=0.5) is None


def test_an_old_log_gives_the_span_without_the_waits_of_its_scheduler() -> None:
    _, table = read_task_log(SAMPLE)
    calc_in = seconds(table, "calc_in")
    assert block_span(calc_in, 8) == pytest.approx(5.668900 - 0.149273)
    # From the second task on there is one wait of 0.5 s: the rest are 4 ms.
    usual = 5.666589 - 5.666334
    assert pace_span(calc_in, 0.5) == pytest.approx(5.668900 - 5.665192 + usual, abs=4e-4)
    assert smallest_step(seconds(table, "submit")) == pytest.approx(0.002573 - 0.002208)


def test_the_pace_of_tasks_that_come_one_by_one() -> None:
    found = arrivals(floats(1.0, 1.1, 1.2, 1.3, 9.0), 4)
    assert found is not None
    assert (found.step, found.span, found.tasks) == (pytest.approx(0.1), pytest.approx(0.3), 3)
    assert found.noise == pytest.approx(0.0, abs=1e-9)
    assert arrivals(floats(1.0, 1.1), 3) is None
    assert arrivals(floats(1.0, 1.0), 2) is None


@pytest.mark.parametrize("hosts", [2, 3, 5])
def test_transfers_at_the_same_time_are_counted_by_what_came(hosts: int) -> None:
    # To each of the hosts one at a time: all that go together arrive together.
    groups = 30 // hosts
    stamps = np.repeat(np.arange(1, groups + 1) * 0.1 * hosts, hosts)
    stamps += 1e-3 * np.tile(np.arange(hosts), groups)
    found = arrivals(stamps, 30)
    assert found is not None
    assert found.step == pytest.approx(0.1, rel=0.02)
    assert found.tasks == 30 - hosts
    assert found.span / found.tasks == pytest.approx(0.1, rel=0.02)
    # When the first was sent off, too, all of it counts.
    reported = arrivals(stamps, 30, sent=0.0)
    assert reported is not None
    assert (reported.tasks, reported.span) == (30, pytest.approx(3.0, rel=0.02))


@pytest.mark.parametrize(("short", "scatter"), [(1.0, 0.0), (1.1, 0.95)])
def test_tasks_within_half_of_the_mean_step_belong_together(short: float, scatter: float) -> None:
    # Of steps of 3 and 1 s, by turns, the mean is 2 s: each pair of tasks took 4 s.
    found = arrivals(np.cumsum([0.0, *([3.0, short] * 8)]), 17)
    assert found is not None
    assert (found.step, found.tasks) == (pytest.approx((3 + short) / 2), 16)
    assert found.noise == pytest.approx(1.96 * 1.2533 * 1.4826 * scatter / math.sqrt(16))


def test_a_long_pause_does_not_make_one_group_of_all() -> None:
    stamps = np.append(0.01 * np.arange(30), 5.0 + 0.01 * np.arange(30))
    found = arrivals(stamps, 60)
    assert found is not None
    assert found.step == pytest.approx(0.01)


def test_the_scatter_of_steps_is_reported() -> None:
    random = np.random.default_rng(3)
    within = []
    for _ in range(200):
        found = arrivals(np.cumsum(random.normal(0.1, 0.01, 50)), 50)
        assert found is not None
        within.append(abs(found.step - 0.1) <= found.noise)
    assert 0.88 < float(np.mean(within)) < 1.0


@pytest.mark.parametrize("size", [0.1, 1.0])
@pytest.mark.parametrize("cores", [10, 100, 400])
def test_the_manager_of_symphony_has_its_rate(cores: int, size: float) -> None:
    """830 Mbit/s, as in its profile, with a first worker and waves as the report saw them."""
    paces = []
    for megabytes in (0.0, size):
        work = SimulatedWorkload(cores=cores, tasks=cores, sleep=30.0, bytes_in=megabytes * 2**20)
        stamps = simulate(work, system("symphony")).stamps
        paces.append(arrivals(stamps.calc_in, cores, wait=0.5))
    empty, full = paces
    assert empty is not None
    assert full is not None
    assert rate_mbps(size, full.step - empty.step) == pytest.approx(830, rel=1e-3)
    added = full.span - empty.span
    assert full.tasks == empty.tasks == cores - 2  # from the second on
    assert rate_mbps(size * full.tasks, added) == pytest.approx(830, rel=1e-3)


def test_transfers_hurt_when_the_link_is_not_done_before_the_first_task() -> None:
    # 400 cores x 10 MB at 1 Gbit/s are 32 s.
    assert transfer_load(400, 10, 1000, 30) == pytest.approx(32 / 30)
    assert transfer_load(100, 10, 1000, 30) < 1
    assert transfer_load(100, 10, 1000, 0.5) == pytest.approx(8 / 0.5)
    assert transfer_load(1, 10, 1000, 0) == math.inf
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
    # Two points are enough.
    line = fit_line(floats(1, 3), floats(0, 1))
    assert (line.slope, line.intercept) == (0.5, -0.5)


def test_one_place_makes_no_line() -> None:
    with pytest.raises(InputError, match="a line needs points at two places at least, not 1"):
        fit_line(floats(3.0, 3.0, math.nan), floats(1.0, 2.0, 3.0))


def test_the_noise_of_a_pace_is_that_of_a_median() -> None:
    found = arrivals(floats(0, 2, 5, 9, 14, 20), 6)
    assert found is not None
    # Steps of 2 to 6 s: they deviate from their median by 2, 1, 0, 1 and 2 s, by 1 s in the median.
    assert (found.step, found.span, found.tasks) == (4.0, 20.0, 5)
    assert found.noise == pytest.approx(1.96 * 1.2533 * 1.4826 / math.sqrt(5))
