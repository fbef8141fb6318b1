"""The numbers of a run, on timelines whose answer is known."""

from __future__ import annotations

import json
import math
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
