"""The numbers of a run, on timelines whose answer is known."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.analysis.summary import distribution, ideal_time, summarise
from gridbench.timeline import SCHEMA

NAN = float("nan")


def row(tid: int, **values: Any) -> dict[str, Any]:
    default: dict[str, Any] = dict.fromkeys(SCHEMA.names[1:8], NAN)
    default |= {"worker": "", "host": "h", "bytes_in": 10, "bytes_shared": 0, "bytes_out": 1}
    return default | {"tid": tid, "status": "ok"} | values


def timeline(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), SCHEMA)


def ran(tid: int, worker: str, submit: float, calc_in: float, sleep: float = 1.0) -> dict[str, Any]:
    """A task that slept 0.1 longer than asked, wrote for 0.2, and came back 0.3 later."""
    return row(
        tid,
        worker=worker,
        sleep=sleep,
        slept=sleep + 0.1,
        submit=submit,
        calc_in=calc_in,
        calc_out=calc_in + sleep + 0.3,
        retrieve=calc_in + sleep + 0.6,
    )


def test_each_part_of_the_overhead_is_found() -> None:
    # Two workers: a does 1 and 3, b does 2. Task 3 waits for a, which ends 1 at 1.5.
    summary = summarise(
        timeline(ran(1, "a", 0.0, 0.2), ran(2, "b", 0.0, 0.4), ran(3, "a", 0.1, 1.9)), 4, 2
    )
    assert (summary.tasks, summary.ok, summary.failed, summary.missing) == (4, 3, 0, 1)
    assert (summary.workers_seen, summary.most_running) == (2, 2)
    assert summary.total == pytest.approx(3.5)
    assert summary.ideal == pytest.approx(2.0)
    assert summary.efficiency == pytest.approx(2.0 / 3.5)
    assert summary.first_calc_in == pytest.approx(0.2)
    assert summary.last_worker_calc_in == pytest.approx(0.4)
    assert (summary.startup.count, summary.startup.largest) == (2, pytest.approx(0.4))
    assert (summary.dispatch.count, summary.dispatch.p50) == (1, pytest.approx(0.4))
    assert summary.oversleep.mean == pytest.approx(0.1)
    assert summary.output.mean == pytest.approx(0.2)
    assert summary.giving_back.mean == pytest.approx(0.3)
    assert summary.overhead.p50 == pytest.approx(0.4 + 0.1 + 0.2 + 0.3)
    assert (summary.bytes_in, summary.bytes_out) == (30, 3)
    assert summary.to_dict() == asdict(summary) | {"clock_error": None}


def test_negative_intervals_are_counted_not_corrected() -> None:
    early = ran(1, "a", 0.0, 0.2) | {"retrieve": 1.4}
    summary = summarise(timeline(early), 1, 1)
    assert summary.giving_back.negative == 1
    assert summary.giving_back.p50 == pytest.approx(-0.1)


def test_failed_tasks_are_counted_and_have_no_part_in_the_times() -> None:
    failed = row(2, submit=0.0, retrieve=99.0, status="OSError: gone")
    summary = summarise(timeline(ran(1, "a", 0.0, 0.2), failed), 2, 1)
    assert (summary.ok, summary.failed, summary.missing) == (1, 1, 0)
    assert summary.total < 2


def test_a_run_without_any_result_has_a_summary() -> None:
    summary = summarise(SCHEMA.empty_table(), 5, 2)
    assert (summary.ok, summary.missing, summary.workers_seen) == (0, 5, 0)
    assert math.isnan(summary.total)
    text = json.dumps(summary.to_dict(), allow_nan=False)
    assert json.loads(text)["total"] is None
    failed = row(1, status="OSError: gone")
    assert summarise(timeline(failed), 1, 1).failed == 1


def test_the_ideal_time_is_that_of_the_first_free_core() -> None:
    assert ideal_time(np.array([1.0, 1.0, 1.0]), 2) == 2
    assert ideal_time(np.array([3.0, 1.0, 1.0, 1.0]), 2) == 3
    assert ideal_time(np.array([1.0, 2.0]), 100) == 2
    assert math.isnan(ideal_time(np.array([]), 3))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.integers(1, 10))
def test_the_ideal_time_lies_between_the_known_bounds(times: list[float], nodes: int) -> None:
    ideal = ideal_time(np.array(times), nodes)
    lower = max(*times, sum(times) / nodes)
    assert lower * (1 - 1e-9) <= ideal <= 2 * lower * (1 + 1e-9)


def test_percentiles_are_of_the_known_values_only() -> None:
    part = distribution(np.array([NAN, *range(101), NAN]))
    assert (part.count, part.p50, part.p90, part.p99, part.largest) == (101, 50, 90, 99, 100)


def test_what_nobody_knows_has_no_distribution() -> None:
    part = distribution(np.array([NAN, NAN]))
    assert (part.count, part.negative) == (0, 0)
    assert all(map(math.isnan, (part.mean, part.p50, part.p90, part.p99, part.largest)))


def test_an_interval_of_no_length_is_not_negative() -> None:
    part = distribution(np.array([0.0, -1.0, 2.0]))
    assert (part.count, part.negative, part.mean) == (3, 1, pytest.approx(1 / 3))


def test_processors_that_are_fewer_than_cores_make_the_ideal_time_longer() -> None:
    times = np.array([2.0, 2.0, 2.0, 2.0, NAN])
    assert ideal_time(times, 4) == 2
    assert ideal_time(times, 4, 2) == 4
    assert ideal_time(times, 4, 8) == 2
    assert summarise(timeline(ran(1, "a", 0.0, 0.2), ran(2, "b", 0.0, 0.4)), 2, 2, 1).ideal == 2


def test_the_ideal_time_takes_tasks_as_they_were_submitted() -> None:
    # The long one last: it begins when the two short ones have ended.
    rows = [ran(1, "a", 0.2, 0.3, 5.0), ran(2, "a", 0.0, 6.0), ran(3, "b", 0.1, 0.4)]
    assert summarise(timeline(*rows), 3, 2).ideal == 6.0


def test_a_task_whose_length_was_not_asked_for_is_taken_as_it_was() -> None:
    summary = summarise(timeline(ran(1, "a", 0.0, 0.2) | {"sleep": NAN, "slept": 3.0}), 1, 1)
    assert summary.ideal == 3.0
    assert summary.oversleep.mean == 0.0


def test_a_run_that_took_no_time_has_no_efficiency() -> None:
    stamps = dict.fromkeys(("submit", "calc_in", "calc_out", "retrieve", "sleep", "slept"), 0.0)
    summary = summarise(timeline(row(1, worker="a", **stamps)), 1, 1)
    assert summary.total == 0
    assert math.isnan(summary.efficiency)
    assert math.isnan(summary.tasks_per_second)


def test_a_run_of_less_than_a_second_has_an_efficiency() -> None:
    stamps = {"submit": 0.0, "calc_in": 0.125, "calc_out": 0.375, "retrieve": 0.5}
    summary = summarise(timeline(row(1, worker="a", sleep=0.25, slept=0.25, **stamps)), 1, 1)
    assert (summary.efficiency, summary.tasks_per_second) == (0.5, 2.0)


@pytest.mark.parametrize(
    ("efficiency", "took"), [(0.5, True), (1.01, True), (1.011, False), (NAN, True)]
)
def test_tasks_took_their_time_if_the_job_was_no_shorter_but_for_rounding(
    efficiency: float, took: bool
) -> None:
    summary = summarise(timeline(ran(1, "a", 0.0, 0.2)), 1, 1)
    assert replace(summary, efficiency=efficiency).took_their_time == took


def test_more_rows_than_tasks_are_none_that_are_missing() -> None:
    summary = summarise(timeline(ran(1, "a", 0.0, 0.2), ran(2, "a", 0.0, 2.0)), 1, 1)
    assert summary.missing == 0
    assert summary.tasks_per_second == pytest.approx(2 / 3.6)


def test_tasks_that_touch_do_not_run_at_the_same_time() -> None:
    def computing(*spans: tuple[float, float]) -> int:
        rows = [
            row(n, worker=f"w{n}", submit=0.0, calc_in=begin, calc_out=end, retrieve=9.0)
            for n, (begin, end) in enumerate(spans, 1)
        ]
        return summarise(timeline(*rows), len(rows), 4).most_running

    assert computing((0.0, 1.0), (1.0, 2.0)) == 1
    assert computing((0.0, 1.0), (0.9, 2.0), (0.95, 3.0)) == 3
    assert computing((0.0, 1.0), (0.9, 2.0), (1.5, 3.0)) == 2
    # One that took no time did run.
    assert computing((1.0, 1.0)) == 1
    assert computing() == 0
    assert computing((NAN, 1.0)) == 0


def test_a_worker_that_was_free_before_a_task_was_submitted_did_not_hold_it_up() -> None:
    rows = [ran(1, "a", 0.0, 0.2), ran(2, "a", 4.0, 4.5), ran(3, "b", 0.0, 0.7)]
    summary = summarise(timeline(*rows, ran(4, "b", 4.0, 4.25)), 4, 2)
    assert (summary.dispatch.count, summary.dispatch.largest) == (2, pytest.approx(0.5))
    assert (summary.startup.count, summary.startup.largest) == (2, pytest.approx(0.7))
    assert summary.last_worker_calc_in == 0.7


def test_a_task_without_a_known_end_is_no_workers_first() -> None:
    endless = row(2, worker="b", submit=0.0, calc_in=5.0, retrieve=9.0)
    summary = summarise(timeline(ran(1, "a", 0.0, 0.2), endless), 2, 2)
    assert (summary.workers_seen, summary.startup.count, summary.dispatch.count) == (1, 1, 1)
    assert summary.last_worker_calc_in == 0.2


def test_tasks_without_data_add_none() -> None:
    rows = [ran(1, "a", 0.0, 0.2) | {"bytes_in": 0}, ran(2, "a", 0.0, 2.0)]
    summary = summarise(timeline(*rows), 2, 1)
    assert (summary.bytes_in, summary.bytes_out) == (10, 2)
