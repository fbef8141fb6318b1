"""Offsets between clocks, as far as stamps tell, and what follows for what can be known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import timelines
from gridbench.analysis.clocks import (
    clock_margin,
    corrected,
    hosts_margin,
    largest_error,
    offsets,
    one_clock,
    resolution,
)
from gridbench.analysis.columns import Floats, seconds
from gridbench.tasklog import read_task_log

SAMPLE = Path(__file__).parent / "data" / "symphony_sample.log"


def _run(offset: float, *, tasks: int = 30, host: str = "node1"):
    """Tasks that take 10 ms there and 1 ms back, on a clock that is ahead by `offset`."""
    rows = [
        {
            "submit": 1.1 * n,
            "calc_in": 1.1 * n + 0.01 + 1e-4 * (n % 3) + offset,
            "calc_out": 1.1 * n + 1.01 + offset,
            "retrieve": 1.1 * n + 1.011 + 1e-4 * (n % 2),
            "host": host,
        }
        for n in range(tasks)
    ]
    return timelines.table_of(rows)


@pytest.mark.parametrize("offset", [0.0, 0.005, 0.5, -0.5])
def test_the_true_offset_lies_within(offset: float) -> None:
    (found,) = offsets(_run(offset))
    assert found.low <= offset <= found.high
    assert found.low == pytest.approx(offset - 0.001)
    assert found.high == pytest.approx(offset + 0.01)
    assert abs(found.best - offset) <= found.margin + 1e-12


def test_nothing_is_moved_without_need() -> None:
    table = _run(0.0005)
    assert offsets(table)[0].best == 0
    assert corrected(table, offsets(table)) is table


@pytest.mark.parametrize("offset", [0.5, -0.5])
def test_stamps_are_moved_as_far_as_needed(offset: float) -> None:
    table = _run(offset)
    moved = corrected(table, offsets(table))
    for first, second in (("submit", "calc_in"), ("calc_out", "retrieve")):
        gap = np.array(moved[second]) - np.array(moved[first])
        assert gap.min() >= -1e-9
    assert np.array(moved["submit"]) == pytest.approx(np.array(table["submit"]))
    assert offsets(moved)[0].best == pytest.approx(0)


def test_clocks_that_drift_are_not_hidden() -> None:
    rows = [
        {"submit": 0.0, "calc_in": 0.01, "calc_out": 1.01, "retrieve": 1.02},
        {"submit": 2.0, "calc_in": 3.01, "calc_out": 4.01, "retrieve": 3.02},
    ]
    (found,) = offsets(timelines.table_of(rows))
    assert found.low > found.high
    assert found.margin == pytest.approx((found.low - found.high) / 2)


def test_a_published_log() -> None:
    _, table = read_task_log(SAMPLE)
    found = {offset.host: offset for offset in offsets(table)}
    assert found["grid107"].best == 0
    # Its results came back up to 2.434 ms before they were ready by its clock.
    assert found["grid108"].best == pytest.approx(0.002434)
    moved = corrected(table, list(found.values()))
    assert (np.array(moved["retrieve"]) - np.array(moved["calc_out"])).min() >= -1e-9
    # Nobody waited for these results, so that clocks are known to some ms.
    assert clock_margin(table, same=False) < 0.01


def _errors(logged: pa.Table, truth: pa.Table) -> Floats:
    """How far the corrected stamps are from the true ones, seconds."""
    moved = corrected(logged, offsets(logged))
    stamps = [seconds(moved, name) - seconds(truth, name) for name in ("calc_in", "calc_out")]
    for first, second in (("submit", "calc_in"), ("calc_out", "retrieve")):
        assert (seconds(moved, second) - seconds(moved, first)).min() >= -1e-9
    return np.abs(np.concatenate(stamps))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("offset", [0.02, 5.0])
def test_clocks_that_are_behind_are_seen_as_well(offset: float, seed: int) -> None:
    logged, truth = timelines.skewed_run(offset=offset, seed=seed)
    wrong = _errors(logged, truth)
    # The least return, 1 ms, and by how much that of twelve to fifteen tasks may be longer.
    assert wrong.max() < 0.005
    assert wrong.max() <= clock_margin(logged, same=False)
    between = hosts_margin(logged, same=False)
    assert (
        np.ptp([o.best - t for o, t in zip(offsets(logged), _truth(logged, truth), strict=True)])
        <= 2 * between
    )
    assert between < 0.01


def _truth(logged: pa.Table, truth: pa.Table) -> list[float]:
    """The true offset of each host, in order of their names."""
    ahead = seconds(logged, "calc_in") - seconds(truth, "calc_in")
    hosts = np.array(logged["host"].to_pylist())
    return [float(ahead[hosts == host].mean()) for host in sorted(set(hosts))]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_clocks_that_are_right_are_left_alone(seed: int) -> None:
    logged, _ = timelines.skewed_run(offset=0.0, seed=seed)
    assert corrected(logged, offsets(logged)) is logged
    assert clock_margin(logged, same=False) < 0.02


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_drift_is_followed(seed: int) -> None:
    logged, truth = timelines.skewed_run(offset=5.0, drift=2e-3, tasks=3000, seed=seed)
    known = offsets(logged)
    assert sum(one.drift != 0 for one in known) > 10
    wrong = _errors(logged, truth)
    # Over 65 s such clocks run apart by up to 0.13 s.
    assert wrong.max() < 0.015
    assert float(np.median(wrong)) < 0.003
    assert wrong.max() <= clock_margin(logged, same=False)
    gains = np.diff(_ends(logged)) / np.diff(_ends(truth)) - 1
    for one, gain in zip(known, gains[:, 0].tolist(), strict=True):
        assert one.drift == pytest.approx(gain, abs=3e-4)


def _ends(table: pa.Table) -> Floats:
    """The first and the last calc-in of each host, in order of their names."""
    hosts, stamps = np.array(table["host"].to_pylist()), seconds(table, "calc_in")
    own = [stamps[hosts == host] for host in sorted(set(hosts))]
    return np.array([[one.min(), one.max()] for one in own])


def test_a_client_that_takes_results_ever_more_slowly_is_no_drift() -> None:
    logged, _ = timelines.skewed_run(tasks=3000)
    later = seconds(logged, "retrieve") * 1.002
    at = logged.schema.get_field_index("retrieve")
    slower = logged.set_column(at, "retrieve", pa.array(later))
    assert not any(one.drift for one in offsets(slower))


def test_resolution() -> None:
    assert resolution(_run(0.0)) in (0.0, 1e-6)
    rows = [{"submit": n, "calc_in": n + 1, "calc_out": n + 2, "retrieve": n + 2} for n in range(9)]
    assert resolution(timelines.table_of(rows)) == 1.0
    rows = [{name: round(value * 0.517, 3) for name, value in row.items()} for row in rows]
    assert resolution(timelines.table_of(rows)) == 1e-3
    assert resolution(timelines.table_of(rows[:1])) == 0.0
    assert resolution(timelines.made_run(50, 4)) == 0.0


def test_stamps_close_to_zero_are_no_whole_seconds() -> None:
    rows = [
        {"submit": n * 1.3e-5 + 4e-7, "calc_in": n * 1.3e-5 + 9e-7, "calc_out": n * 1.3e-5 + 9.3e-7,
         "retrieve": n * 1.3e-5 + 2.3e-6}
        for n in range(70)
    ]  # fmt: skip
    assert max(row["retrieve"] for row in rows) < 1e-3
    assert resolution(timelines.table_of(rows)) == 0.0
    whole = [{name: round(value, 6) for name, value in row.items()} for row in rows]
    assert resolution(timelines.table_of(whole)) == 1e-6
    # After a day the same holds.
    late = [{name: value + 86_400 for name, value in row.items()} for row in whole]
    assert resolution(timelines.table_of(late)) == 1e-6


def test_the_resolution_is_told_from_nine_stamps_on() -> None:
    row = {"submit": 1.0, "calc_in": 2.0, "calc_out": 3.0, "retrieve": 4.0}
    assert resolution(timelines.table_of([row, row])) == 0.0
    assert resolution(timelines.table_of([row, row | {"queued": 2.0}])) == 1.0


def test_one_machine_has_one_clock() -> None:
    table = _run(0.0, host="here")
    assert one_clock({"machine": {"host": "here"}}, table)
    assert not one_clock({"machine": {"host": "there"}}, table)
    assert not one_clock({}, table)
    assert clock_margin(table, same=True) <= 1e-6
    assert clock_margin(table, same=False) == pytest.approx(0.01)


def _known(error: float, offset: float = 0.0):
    rows = _run(offset).to_pylist()
    return timelines.table_of([row | {"clock_error": error} for row in rows])


def test_what_the_engine_knows_of_clocks_narrows_the_offset() -> None:
    (found,) = offsets(_known(20e-6))
    assert (found.low, found.high, found.best) == (-20e-6, 20e-6, 0)
    assert clock_margin(_known(20e-6), same=False) == pytest.approx(20e-6)
    assert largest_error(_known(20e-6)) == 20e-6
    # Less than the stamps tell is not made wider by it.
    (found,) = offsets(_known(0.5))
    assert found.low == pytest.approx(-0.001)
    assert found.high == pytest.approx(0.01)


def test_stamps_that_contradict_the_engine_count_alone() -> None:
    (found,) = offsets(_known(20e-6, offset=0.5))
    assert found.low == pytest.approx(0.499)
    assert found.best == pytest.approx(0.499)  # the nearest possible


def test_an_engine_that_says_nothing_of_clocks() -> None:
    assert np.isnan(largest_error(_run(0.0)))
    assert np.isnan(largest_error(_run(0.0).drop_columns("clock_error")))
