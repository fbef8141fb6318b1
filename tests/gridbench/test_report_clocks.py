"""Which figures of a report are on the client's clock, and notes on coarse stamps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timelines
from gridbench.report.prose import notices
from gridbench.report.run_analysis import Study, study
from gridbench.report.source import Run

AHEAD = 0.5


def studied(ahead: float) -> Study:
    """One worker, whose host's clock is ahead: a task needs 10 ms there and 20 ms back."""
    rows = [
        {
            "submit": 1.1 * n,
            "calc_in": 1.1 * n + 0.01 + ahead,
            "calc_out": 1.1 * n + 1.01 + ahead,
            "retrieve": 1.1 * n + 1.03,
        }
        for n in range(20)
    ]
    return study(Run("one", Path("one"), timelines.table_of(rows), 20, 1, False, {}, ()))


def test_phases_are_between_stamps_of_one_clock() -> None:
    found = studied(AHEAD)
    (offset,) = found.offsets
    # The nearest that stamps allow: at most 10 ms less than the clock is ahead, or 20 ms more.
    assert offset.best == pytest.approx(AHEAD - 0.02)
    there, back = found.phases.dispatch + found.phases.input, found.phases.output
    assert np.asarray(there) == pytest.approx(np.full(20, 0.03))
    assert np.asarray(back) == pytest.approx(np.zeros(20), abs=1e-9)
    assert found.end == pytest.approx(1.1 * 19 + 1.03)


def test_how_many_tasks_run_is_drawn_from_the_same_stamps() -> None:
    moved, same = studied(AHEAD).concurrency, studied(0.0).concurrency
    assert moved.time == pytest.approx(same.time + 0.02)
    assert moved.running.tolist() == same.running.tolist()


@pytest.mark.parametrize(
    ("step", "text"), [(1.0, "multiples of 1.000 s"), (1e-3, "multiples of 1.000 ms"), (1e-4, "")]
)
def test_the_resolution_of_coarse_stamps_is_said(step: float, text: str) -> None:
    counts = ((0, 7, 13, 19), (3, 29, 37, 41), (11, 43, 53, 61))
    names = ("submit", "calc_in", "calc_out", "retrieve")
    rows = [
        {"worker": f"w{n}", **{name: one * step for name, one in zip(names, row, strict=True)}}
        for n, row in enumerate(counts)
    ]
    found = study(Run("one", Path("one"), timelines.table_of(rows), 3, 3, False, {}, ()))
    said = [one for one in notices(found) if "multiples" in one]
    assert [text in one for one in said] == [True] * bool(text)
