"""What each stage of a run took."""

from __future__ import annotations

import math

import pytest

import timelines
from gridbench.analysis.transfer import stage_times


def _rows() -> list[dict[str, object]]:
    """Two workers, two tasks each; the second block is handed over as the first comes back."""
    return [
        {"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 2.1, "worker": "a"},
        {"submit": 0.1, "calc_in": 1.5, "calc_out": 2.5, "retrieve": 2.7, "worker": "b"},
        {"submit": 0.4, "calc_in": 2.2, "calc_out": 3.2, "retrieve": 3.3, "worker": "a"},
        {"submit": 0.5, "calc_in": 2.9, "calc_out": 3.9, "retrieve": 4.2, "worker": "b"},
    ]


def test_stages_of_a_run() -> None:
    found = stage_times(timelines.table_of(_rows()), 2)
    assert (found.first_start, found.last_start) == (1.0, 1.5)
    assert found.submit_step == pytest.approx(0.1)
    assert found.submit_span == pytest.approx(0.5)
    assert found.start_span == pytest.approx(0.5)
    assert found.return_span == pytest.approx(0.6)
    assert found.first_dispatch == pytest.approx((1.0 + 1.4) / 2)
    # From when the workers were free, at 2.1 and 2.7.
    assert found.later_dispatch == pytest.approx((0.1 + 0.2) / 2)
    assert found.first_return == pytest.approx(0.15)
    assert found.later_return == pytest.approx(0.2)


def test_a_run_whose_clock_begins_elsewhere_has_the_same_stages() -> None:
    stamps = ("submit", "calc_in", "calc_out", "retrieve")
    moved = [row | {one: float(str(row[one])) + 8.0 for one in stamps} for row in _rows()]
    before, later = (
        stage_times(timelines.table_of(rows), 2).figures() for rows in (_rows(), moved)
    )
    for name in ("first_start", "last_start"):
        before[name] += 8.0
    assert later == pytest.approx(before)


def test_the_pace_of_a_block() -> None:
    rows = [row | {"queued": 0.2 + n / 10} for n, row in enumerate(_rows())]
    figures = stage_times(timelines.table_of(rows), 2).figures()
    assert figures["start_pace_step"] == pytest.approx(0.5)
    # From when the first was sent off, or computed, all of them count.
    assert figures["start_pace_span"] == pytest.approx(1.5 - 0.2)
    assert figures["start_pace_tasks"] == 2
    assert figures["return_pace_span"] == pytest.approx(2.7 - 2.0)
    untold = stage_times(timelines.table_of(_rows()), 2).figures()
    assert (untold["start_pace_span"], untold["start_pace_tasks"]) == (pytest.approx(0.5), 1)
    assert "start_pace_step" not in stage_times(timelines.table_of(_rows()[:1]), 2).figures()


def test_what_is_not_known_is_left_out() -> None:
    found = stage_times(timelines.table_of(_rows()[:1]), 2)
    assert "submit_step" not in found.figures()
    assert "later_dispatch" not in found.figures()
    assert found.figures()["first_start"] == 1.0
    failed = [row | {"status": "it failed"} for row in _rows()]
    assert stage_times(timelines.table_of(failed), 2).figures() == {}
    assert math.isnan(stage_times(timelines.table_of([{"submit": 1.0}]), 2).first_start)


def test_a_task_that_did_not_end_tells_nothing_of_its_worker() -> None:
    rows = [*_rows(), {"submit": 0.05, "calc_in": 0.5, "worker": "c"}]
    found = stage_times(timelines.table_of(rows), 3)
    assert (found.first_start, found.last_start) == (1.0, 1.5)
    # Its stamps are stamps all the same: it is one of the first block.
    assert found.submit_step == pytest.approx(0.05)
    assert found.start_span == pytest.approx(1.0)
    assert found.first_dispatch == pytest.approx((0.45 + 1.0 + 1.4) / 3)


def test_a_worker_that_got_its_next_task_early_was_free_for_it_at_once() -> None:
    rows = _rows()[:3]
    rows[2] |= {"calc_in": 2.05}
    # The result before came back at 2.1, when the task had begun.
    found = stage_times(timelines.table_of(rows), 2)
    assert found.later_dispatch == 0.0
    rows[2] |= {"submit": 2.02}
    assert stage_times(timelines.table_of(rows), 2).later_dispatch == 0.0
    rows[2] |= {"submit": 2.2, "calc_in": 2.5}
    found = stage_times(timelines.table_of(rows), 2)
    assert found.later_dispatch == pytest.approx(0.3)


def test_a_worker_that_joins_later_waited_from_the_submission_of_its_task() -> None:
    late = {"submit": 0.6, "calc_in": 3.0, "calc_out": 4.0, "retrieve": 4.5, "worker": "c"}
    found = stage_times(timelines.table_of([*_rows(), late]), 2)
    assert found.later_dispatch == pytest.approx((0.1 + 0.2 + 2.4) / 3)


def test_a_block_has_no_more_tasks_than_there_are() -> None:
    found = stage_times(timelines.table_of(_rows()), 100)
    assert found.start_span == pytest.approx(1.9)
    assert found.return_span == pytest.approx(2.1)
    assert math.isnan(found.later_return)
