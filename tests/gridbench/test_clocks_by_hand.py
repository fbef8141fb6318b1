"""Offsets of clocks and how sure they are, of a few tasks, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import timelines
from gridbench.analysis import clocks
from gridbench.analysis.clocks import (
    Offset,
    ReturnLines,
    clock_margin,
    corrected,
    hosts_margin,
    offsets,
    resolution,
)
from gridbench.analysis.columns import seconds

THERE = 100.0
"""Seconds from submit to calc-in."""
#: 1.96 standard errors of the median of five hosts, whose median absolute deviation is 1 s.
DOUBT = 1.96 * 1.2533 * 1.4826 / math.sqrt(5)


def _task(host: str, back: float, at: float = 50.0, there: float = THERE) -> dict[str, Any]:
    """A task of 1 s."""
    stamps = {"submit": at, "calc_in": at + there, "calc_out": at + there + 1}
    return {**stamps, "retrieve": at + there + 1 + back, "host": host}


def _offsets(*backs: float, there: float = THERE) -> list[Offset]:
    """Of hosts a, b, ..., each with one task that comes back after so many seconds."""
    rows = [_task(chr(ord("a") + n), back, there=there) for n, back in enumerate(backs)]
    return offsets(timelines.table_of(rows[::-1]))


def _figures(one: Offset) -> Sequence[float]:
    return (one.low, one.high, one.best, one.margin, one.between)


def test_hosts_with_one_task_each() -> None:
    # The usual return is 1 s, and differs by 1 s: the shortest possible one is not known to be
    # longer than nothing. The largest deviation, 3 s, may be that of any host's clock.
    a, b, c, d, e = _offsets(-1.0, 0.0, 1.0, 2.0, 4.0)
    assert [one.host for one in (a, b, c, d, e)] == ["a", "b", "c", "d", "e"]
    # What came back before it had ended is of a clock that is ahead by 1 s at least.
    assert _figures(a) == pytest.approx((1, 100, 1, 3 + 1 + DOUBT, 3))
    assert _figures(b) == pytest.approx((0, 100, 0, 3 + 1 + DOUBT, 3))
    assert _figures(c) == pytest.approx((-1, 100, 0, 4 + 1 + DOUBT, 4))
    assert _figures(d) == pytest.approx((-2, 100, 0, 5 + 1 + DOUBT, 5))
    assert _figures(e) == pytest.approx((-4, 100, 0, 7 + 1 + DOUBT, 7))


def test_a_clock_that_may_be_right_is_left_alone() -> None:
    # Its task came back at the very moment that it ended, the others 3 s later.
    assert _offsets(0.0, 2.999, 3.0, 3.001, 3.002)[0].best == 0


def test_a_clock_that_is_three_times_the_scatter_off_is_moved() -> None:
    # The usual return is 1 s; ten of 21 hosts are 2 s from it, and one may be further off.
    near = [1.0 * (-1) ** n for n in range(20)]
    assert _offsets(*near, 6.0)[-1].best == 0
    moved = _offsets(*near, 6.1)[-1]
    assert moved.best == pytest.approx(-6.1)
    assert moved.between == pytest.approx(2)


@pytest.mark.parametrize(
    ("there", "least"), [(THERE, 3.0), (0.5, 3.0), (0.0, 2.998), (-1.0, 1.998)]
)
def test_the_shortest_way_there_and_back_limits_what_all_clocks_are_moved_by(
    there: float, least: float
) -> None:
    # All come back after 3 s but for milliseconds: that long is the least return, and all clocks
    # are ahead by 0 to 3 s less. Where tasks seem to begin before they were submitted the clocks
    # are behind, and there and back it takes no more than 1.998 s.
    backs = (2.998, 2.999, 3.0, 3.001, 3.002)
    for one, back in zip(_offsets(*backs, there=there), backs, strict=True):
        assert (one.low, one.high) == pytest.approx((-back, there))
        likely = least - back
        assert one.best == (pytest.approx(likely) if there < 0 else 0)
        assert one.between == pytest.approx(abs(one.best - likely) + 0.002)
        assert one.margin == pytest.approx(
            max(
                min(one.between + least, one.best + back),
                min(one.between + least, there - one.best),
            )
        )


def test_of_four_hosts_with_one_task_each_nothing_is_known_but_the_bounds() -> None:
    for one, back in zip(_offsets(1.0, 2.0, 3.0, 4.0), (1.0, 2.0, 3.0, 4.0), strict=True):
        assert _figures(one) == pytest.approx((-back, THERE, 0, THERE, THERE))


def _several(backs: Sequence[float], host: str = "a") -> list[dict[str, Any]]:
    """Tasks of one host."""
    return [_task(host, back, at=float(n)) for n, back in enumerate(backs)]


def test_hosts_with_several_tasks_scatter_as_their_other_returns() -> None:
    # The least of n is above x with the n-th power of the probability that one is. Of five tasks
    # it lies, with 95 %, among the lowest 45 % of the others: 1 - 0.05 ** (1 / 5) is 0.45.
    backs = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    rows = [*_several(backs), *_several([0.0, 0.1], "b")]
    a, b = offsets(timelines.table_of(rows))
    # Other returns are 0.1, 0.1, 0.2, 0.3, 0.4, 0.5. The third of them is at 0.39, of six tasks;
    # the fifth at 0.78, of two.
    assert a.between == pytest.approx(0.2)
    assert b.between == pytest.approx(0.4)
    assert (a.best, b.best) == (0, 0)
    # Of two hosts nobody can say that their clocks are as often ahead as behind.
    assert [one.margin for one in (a, b)] == pytest.approx([THERE, THERE])


@pytest.mark.parametrize(("tasks", "between"), [(5, THERE), (6, 0.2)])
def test_the_scatter_is_told_from_five_other_returns_on(tasks: int, between: float) -> None:
    (found,) = offsets(timelines.table_of(_several([n / 10 for n in range(tasks)])))
    assert found.between == pytest.approx(between)


def test_the_least_return_is_the_usual_one_if_it_differs_less_than_that() -> None:
    # Three hosts, whose least returns are 1.0, 1.1 and 1.2 s, with others up to 0.5 s longer.
    rows = [
        row
        for host, least in (("a", 1.0), ("b", 1.1), ("c", 1.2))
        for row in _several([least + n / 10 for n in range(6)], host)
    ]
    a, b, c = offsets(timelines.table_of(rows))
    # It is 1.1 s, or less by what all clocks are ahead: that is not known. Of 15 others, three
    # of each length, the sixth is 0.2 s above: 0.39 of them are less for six tasks.
    assert [one.best for one in (a, b, c)] == [0, 0, 0]
    assert [one.between for one in (a, b, c)] == pytest.approx([0.3, 0.2, 0.3])
    assert [one.margin for one in (a, b, c)] == pytest.approx([1.4, 1.3, 1.4])


@pytest.mark.parametrize("less", [2.0, 0.5])
def test_stamps_that_contradict_each_other_leave_half_of_what_they_differ_by(less: float) -> None:
    rows = [_task("a", -3.0, there=3 - less), *_several([1, 1.1, 1.2, 1.3, 1.4, 1.5], "b")]
    a, b = offsets(timelines.table_of(rows))
    assert _figures(a) == pytest.approx((3, 3 - less, 3 - less / 2, less / 2, less / 2))
    # Other hosts are compared without it.
    assert (b.best, b.between) == (0, pytest.approx(0.2))


def test_a_host_that_the_engine_knows_is_not_compared_with_others() -> None:
    known = [{**_task("a", 0.5, there=2.0), "clock_error": 1.0}]
    (a,) = offsets(timelines.table_of(known))
    assert _figures(a) == pytest.approx((-0.5, 1, 0, 1, 1))
    # Of two tasks the larger error counts.
    known.append({**_task("a", 0.5, there=2.0), "clock_error": 1.5})
    (a,) = offsets(timelines.table_of(known))
    assert _figures(a) == pytest.approx((-0.5, 1.5, 0, 1.5, 1.5))


def test_stamps_are_moved_by_the_offset_of_their_host_and_its_drift() -> None:
    rows = [_task("a", 1.0, at=0.0), _task("b", 1.0, at=0.0), _task("b", 1.0, at=10.0)]
    known = Offset(
        host="b", tasks=2, low=0, high=9, best=2.0, margin=1, between=1, drift=0.01, middle=90.0
    )
    moved = corrected(timelines.table_of(rows), [known])
    # Ahead by 2 s at 90 s, and by 10 ms more with each second.
    assert seconds(moved, "calc_in").tolist() == pytest.approx([100, 97.9, 107.8])
    assert seconds(moved, "calc_out").tolist() == pytest.approx([101, 98.89, 108.79])
    assert seconds(moved, "submit").tolist() == [0, 0, 10]
    assert seconds(moved, "retrieve").tolist() == [102, 102, 112]
    assert known.at(np.array([90.0, 190.0])) == pytest.approx([2, 3])


def test_a_drift_alone_moves_stamps_too() -> None:
    known = Offset(
        host="a", tasks=1, low=0, high=9, best=0.0, margin=1, between=1, drift=0.1, middle=90.0
    )
    moved = corrected(timelines.table_of([_task("a", 1.0, at=0.0)]), [known])
    assert seconds(moved, "calc_in").tolist() == pytest.approx([99])


def test_the_margin_is_that_of_the_least_certain_host() -> None:
    rows = [_task(chr(ord("a") + n), back) for n, back in enumerate((-1.0, 0.0, 1.0, 2.0, 4.0))]
    table = timelines.table_of(rows)
    assert clock_margin(table, same=False) == pytest.approx(8 + DOUBT)
    assert hosts_margin(table, same=False) == pytest.approx(7)
    assert clock_margin(table, same=True) == hosts_margin(table, same=True) == 1.0


def test_no_margin_is_below_a_microsecond() -> None:
    table = timelines.made_run(50, 4)
    assert clock_margin(table, same=True) == hosts_margin(table, same=True) == 1e-6


def test_a_drift_that_does_not_show_may_move_a_clock_by_what_returns_scatter() -> None:
    # Hosts drift by 10 ms in a second, not at all in 10 s, and not at all in 100 s.
    host = np.array([0, 0, 1, 1, 1, 2, 2, 2])
    retrieve = np.array([0.0, 50.0, 3.0, 13.0, 8.0, 0.0, 100.0, 50.0])
    above = np.array([0.1, 0.3, 0.0, 0.5, 0.7, 0.0, 0.4, 0.1])
    nothing = np.zeros(8)
    stamps = clocks._Stamps(host, nothing, nothing, nothing, retrieve, 3)
    lines = ReturnLines(np.zeros(3), np.array([0.01, 0.0, 0.0]), np.zeros(3))
    found = clocks._unseen(stamps, lines, above)
    # By the usual distance from its line; as far as the largest drift gets in that time; and by
    # three times the usual distance.
    assert found == pytest.approx([0.2, 0.1, 0.3])
    back = ReturnLines(np.zeros(3), -lines.slope, np.zeros(3))
    assert clocks._unseen(stamps, back, above) == pytest.approx(found)


def test_a_clock_is_off_by_no_more_than_its_bounds_allow() -> None:
    # It is ahead by 2 s, and by 1.5 to 2.2 s; how much all clocks are is known to 1 s.
    lines = ReturnLines(np.array([-2.0]), np.zeros(1), np.zeros(1))
    aligned = clocks._Aligned(lines, 0.0, 1.0, np.array([0.1]))
    found = clocks._offset(clocks._HostClock(0, "a", 3), 1.5, 2.2, aligned)
    assert _figures(found) == pytest.approx((1.5, 2.2, 2.0, 0.5, 0.1))


def test_hosts_among_which_one_drifts_scatter_by_what_does_not_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged, _ = timelines.skewed_run(offset=5.0, drift=2e-3, tasks=3000, seed=1)
    before = offsets(logged)
    assert any(one.drift for one in before)
    monkeypatch.setattr(clocks, "_unseen", lambda stamps, *_: np.full(stamps.hosts, 9.0))
    for one, was in zip(offsets(logged), before, strict=True):
        bound = max(was.high - was.best, 0)
        assert one.between > was.between or was.between == pytest.approx(bound)


def test_where_all_come_back_before_they_end_the_least_return_is_not_below_nothing() -> None:
    # The usual return is 2 s below nothing: the clocks are ahead. How far beyond nothing the least
    # return may be is what five hosts leave unsure of the mean offset.
    a, b, c, d, e = _offsets(-4.0, -3.0, -2.0, -1.0, 1.0)
    assert _figures(a) == pytest.approx((4, 100, 4, 3 + DOUBT, 3))
    assert [one.best for one in (b, c, d)] == [3, 2, 1]
    assert [one.between for one in (b, c, d)] == pytest.approx([3, 3, 3])
    assert _figures(e) == pytest.approx((-1, 100, 0, 4 + DOUBT, 4))


def test_a_host_whose_tasks_have_no_stamps_is_left_out_and_others_are_not() -> None:
    blind = {"submit": 0.0, "host": "a"}
    there = {"submit": 0.0, "calc_in": 1.0, "host": "b"}
    back = {"calc_out": 1.0, "retrieve": 1.5, "host": "c"}
    found = offsets(timelines.table_of([_task("b", 1.0), blind, there, back, _task("c", 1.0)]))
    assert [(one.host, one.tasks) for one in found] == [("b", 1), ("c", 1)]
    # It is no host by which those can be compared, either: four are too few.
    four = [_task(host, 1.0) for host in "bcde"]
    assert offsets(timelines.table_of([blind, *four])) == offsets(timelines.table_of(four))


def test_a_clock_whose_bounds_meet_limits_the_least_return_of_all() -> None:
    # Its clock is behind by 1 s, and there and back takes no time: the least return is none.
    rows = [_task("a", 1.0, there=-1.0), *(_task(host, 3.0) for host in "bcdef")]
    a, *others = offsets(timelines.table_of(rows))
    assert _figures(a) == (-1, -1, -1, 0, 0)
    # Others are behind by 3 s, or right, as least returns scatter by 2 s.
    assert [_figures(one) for one in others] == [(-3, THERE, 0, 5, 5)] * 5


def test_least_returns_that_scatter_by_what_they_last_tell_nothing_of_the_shortest() -> None:
    # By 1.4826 s: their median deviation is 1 s.
    usual = 1.4826
    rows = [
        {"submit": -100.0, "calc_in": -1.0, "calc_out": 0.0, "retrieve": back, "host": f"h{n}"}
        for n, back in enumerate((usual - 3, usual - 1, usual, usual, usual + 3))
    ]
    assert offsets(timelines.table_of(rows))[0].best == 3 - usual


def test_an_engine_that_knows_its_clocks_exactly_leaves_no_offset() -> None:
    (exact,) = offsets(timelines.table_of([{**_task("a", 0.5, there=2.0), "clock_error": 0.0}]))
    assert _figures(exact) == (0, 0, 0, 0, 0)
    # Without drift there is no time at which the offset is another.
    assert (exact.drift, exact.middle) == (0, 0)


def test_one_host_that_the_engine_knows_stays_as_it_is_among_others() -> None:
    # Its bounds are narrower than what the engine says. All others come back after 3 s, so that by
    # them alone its clock would be ahead by a second.
    known = {**_task("z", 0.5, there=1.0), "clock_error": 1.5}
    others = [_task(chr(ord("a") + n), 3 + 0.001 * (-1) ** n) for n in range(21)]
    *_, last = offsets(timelines.table_of([*others, known]))
    assert last.host == "z"
    assert _figures(last) == pytest.approx((-0.5, 1, 0, 1, 1))


def test_the_return_of_a_host_with_one_task_may_be_as_late_as_nearly_all_others() -> None:
    # With 95 % it is among the lowest 95 % of the six others.
    rows = [*_several([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]), *_several([0.0, 0.1], "b"), _task("c", 0.0)]
    a, b, c = offsets(timelines.table_of(rows))
    assert [one.between for one in (a, b, c)] == pytest.approx([0.2, 0.4, 0.5])
    # Three can be said so, and all of these have the same least return.
    assert [one.margin for one in (a, b, c)] == pytest.approx([0.2, 0.4, 0.5])
    # Of 61 others these are 57.
    rows = [*_several([n / 10 for n in range(62)]), _task("b", 0.0)]
    assert offsets(timelines.table_of(rows))[1].between == pytest.approx(5.8)


@pytest.mark.parametrize(("off", "step"), [(0.8e-9, 1.0), (1.2e-9, 0.0)])
def test_a_stamp_may_be_a_nanosecond_off_its_step(off: float, step: float) -> None:
    rows = [_task("a", 1.0, at=float(n)) for n in range(3)]
    rows[1]["submit"] += off
    assert resolution(timelines.table_of(rows)) == step


def test_a_clock_that_must_be_ahead_is_as_unsure_as_its_bounds_are_apart() -> None:
    # Its task came back 3 s before it had ended, and began 4 s after it was submitted.
    known = {**_task("a", -3.0, there=4.0), "clock_error": 5.0}
    (a,) = offsets(timelines.table_of([known]))
    assert _figures(a) == pytest.approx((3, 4, 3, 1, 1))
