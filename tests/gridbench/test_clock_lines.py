"""Drift of hosts' clocks, worked out by hand: when a slope below the return times is believed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.analysis.clocks import ReturnLines, least_returns

Host = Sequence[tuple[float, float]]
"""Times and returns of its tasks, seconds."""


def _lines(*hosts: Host) -> ReturnLines:
    number = np.concatenate([np.full(len(host), n) for n, host in enumerate(hosts)])
    points = np.array([point for host in hosts for point in host])
    # The order of tasks makes no difference.
    order = np.random.default_rng(1).permutation(len(points))
    return least_returns(number[order], points[order, 0], points[order, 1], len(hosts))


def _sloping(slope: float, tasks: int = 10) -> Host:
    """Returns that become longer, from 1 s on; tasks end once a second."""
    return [(float(n), 1 + slope * n) for n in range(tasks)]


def _flat(tasks: int = 10) -> Host:
    """Every other return takes as long as the first, and the others 10 ms longer."""
    return [(float(n), 1 + 0.01 * (n % 2)) for n in range(tasks)]


@pytest.mark.parametrize("slope", [0.01, -0.01, 0.02, -0.02])
def test_the_line_is_that_of_the_points(slope: float) -> None:
    lines = _lines(_sloping(slope))
    assert lines.slope == pytest.approx([slope])
    assert lines.middle == pytest.approx([4.5])
    assert lines.level == pytest.approx([1 + 4.5 * slope])
    heights = lines.at(np.array([0, 0]), np.array([0.0, 14.5]))
    assert heights == pytest.approx([1, 1 + 14.5 * slope])


@pytest.mark.parametrize(("slope", "text"), [(0.02, True), (0.0201, False), (0.0, False)])
def test_no_clock_gains_more_than_20_ms_in_a_second(slope: float, text: bool) -> None:
    # Half of the tasks end one second after the others.
    lines = _lines([(float(late), slope * late) for late in (0, 1) for _ in range(5)])
    assert (lines.slope[0] != 0) == text
    if not text:
        assert lines.level[0] == 0
        assert lines.middle[0] == 0


@pytest.mark.parametrize(("tasks", "text"), [(9, False), (10, True)])
def test_a_drift_is_told_from_ten_tasks_on(tasks: int, text: bool) -> None:
    assert (_lines(_sloping(0.01, tasks)).slope[0] != 0) == text


@pytest.mark.parametrize(
    ("hosts", "tasks", "text"), [(9, 10, 1), (10, 10, 0), (11, 19, 0), (11, 20, 1)]
)
def test_few_tasks_show_no_drift_if_only_one_host_of_ten_has_it(
    hosts: int, tasks: int, text: int
) -> None:
    lines = _lines(_sloping(0.01, tasks), *([_flat()] * (hosts - 1)))
    assert np.count_nonzero(lines.slope) == text


def test_hosts_with_too_few_tasks_are_not_among_the_ten() -> None:
    few = [(0.0, 1.0), (1.0, 1.0)]
    assert _lines(_sloping(0.01), *([few] * 20)).slope[0] == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("slopes", "text"),
    [
        # Two hosts are too few to tell.
        ([0.01] * 2, True),
        ([0.01] * 3, False),
        ([0.01] * 9 + [0.0], False),
        ([0.01] * 8 + [0.0] * 2, True),
        # Those that are a third more or less than the usual one are others.
        ([0.01] * 9 + [-0.01], False),
        ([0.01] * 8 + [-0.01] * 2, True),
        ([3 / 512] * 8 + [3.9 / 512] * 2, False),
        ([3 / 512] * 8 + [4 / 512] * 2, True),
        ([3 / 512] * 8 + [2.1 / 512] * 2, False),
        ([3 / 512] * 8 + [2 / 512] * 2, True),
        ([-0.01] * 10, False),
    ],
)
def test_what_nine_of_ten_hosts_have_is_of_the_client(slopes: list[float], text: bool) -> None:
    lines = _lines(*(_sloping(slope) if slope else _flat() for slope in slopes))
    assert lines.slope == pytest.approx(slopes if text else [0.0] * len(slopes))


@pytest.mark.parametrize(("late", "text"), [(4 / 129, True), (4 / 128, False)])
def test_a_drift_has_to_move_the_clock_by_three_times_what_returns_scatter(
    late: float, text: bool
) -> None:
    # By 12 / 128 s in 12 s. Seven of 13 tasks return later than the line says.
    host = [(float(n), 1 + n / 128 + (late if 1 <= n <= 7 else 0)) for n in range(13)]
    assert (_lines(host).slope[0] != 0) == text
    # It does not matter when the run began, nor how long it took.
    for begin, scale in ((1000.0, 1.0), (0.0, 1 / 64)):
        moved = [(begin + scale * time, 1 + scale * (returned - 1)) for time, returned in host]
        assert (_lines(moved).slope[0] != 0) == text


@pytest.mark.parametrize(("late", "text"), [(9 / 129, True), (9 / 128, False)])
def test_a_line_has_to_bring_returns_down_to_half_of_what_they_scatter(
    late: float, text: bool
) -> None:
    # Between two far points there is always a line. Those that are early return `late` above it,
    # and 9 / 128 s more above the least of all.
    early = [(9.0, 1 + 9 / 128 + late)] * 9
    assert (_lines([(0.0, 1.0), *early, (128.0, 2.0)]).slope[0] != 0) == text


def test_the_line_is_the_edge_below_the_middle_of_the_run() -> None:
    # A clock that is set at 10 s: before and after it gains, by another rate for each half.
    times = np.arange(21.0)
    bent = 1 + np.where(times <= 10, times, 10 * times - 90) / 1024
    late = [(float(t), float(r)) for t, r in zip(times, bent, strict=True)]
    # More tasks late than early move the middle beyond the bend.
    lines = _lines([*late, late[-1], late[-1]])
    assert lines.middle[0] == pytest.approx((sum(times) + 20 + 20) / 23)
    assert lines.slope[0] == pytest.approx(10 / 1024)


@pytest.mark.filterwarnings("error")
def test_tasks_that_end_at_the_same_time_have_no_slope() -> None:
    assert _lines([(1.0, 1 + n / 100) for n in range(30)]).slope[0] == 0


def test_a_host_without_tasks_has_no_least_return() -> None:
    host, times, returns = np.array([0, 0]), np.array([0.0, 1.0]), np.array([2.0, 1.5])
    lines = least_returns(host, times, returns, 2)
    assert lines.level.tolist() == [1.5, np.inf]


@given(
    slope=st.floats(0.002, 0.018),
    late=st.lists(st.floats(0, 0.001), min_size=30, max_size=60),
    seed=st.integers(0, 1000),
)
def test_no_return_lies_below_a_line(slope: float, late: list[float], seed: int) -> None:
    times = np.sort(np.random.default_rng(seed).uniform(0, 100, len(late)))
    returns = 1 + slope * times + np.array(late)
    hosts = np.zeros(len(late), dtype=np.int64)
    lines = least_returns(hosts, times, returns, 1)
    above = returns - lines.at(hosts, times)
    assert above.min() >= -1e-9
    # It touches two of them.
    if lines.slope[0]:
        assert np.sort(above)[1] == pytest.approx(0, abs=1e-9)


def test_tasks_that_end_at_the_same_time_do_not_hide_those_after_them() -> None:
    twice = [(0.0, 1.5), (4.0, 1.5), (9.0, 1.5)]
    assert _lines([*twice, *_sloping(0.01)]).slope == pytest.approx([0.01])
