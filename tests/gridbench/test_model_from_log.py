"""What a task log says of a run: worked out by hand."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timelines
from gridbench.model import model_kind as from_log
from gridbench.model.model_kind import PLACE
from gridbench.model.observation import Observation, RunTimes, Situation


@pytest.mark.parametrize(
    ("begins", "alone"),
    [
        ((1.0, 9.0), False),  # of two, either may be the one that is alone
        ((0.0, 5.0, 6.0), True),
        # Whichever worker it is.
        ((5.0, 0.0, 6.0), True),
        ((0.0, 5.0, 10.0), False),
        ((0.0, 5.1, 10.0), True),
        ((4.0, 5.0, 6.0, 7.0), False),
        ((3.0,), False),
    ],
)
def test_a_forerunner_is_further_from_the_second_than_that_from_the_last(
    begins: tuple[float, ...], alone: bool
) -> None:
    rows = [
        {"calc_in": begin + later, "calc_out": begin + later + 1, "worker": f"w{number}"}
        for number, begin in enumerate(begins)
        for later in (20.0, 0.0)
    ]
    assert from_log._forerunner(timelines.table_of(rows)) == alone


@pytest.mark.parametrize(
    ("slept", "requested"),
    [
        # What was slept longer is no more than 5 ms, or than what tasks differ by.
        ((1.0001, 1.0002, 1.0001), 1.0),
        ((1.234, 1.2345, 1.235), 1.23),
        ((12.346, 12.347, 12.346), 12.35),
        ((0.0001234, 0.0001234), 0.000123),
        ((30.004, 30.004), 30.0),
        ((30.006, 30.006), 30.01),
        ((1234567.8912, 1234567.8912), 1234567.89),
        ((1002.0, 1004.0, 1006.0), 1000.0),
    ],
)
def test_what_tasks_were_to_take_has_few_digits(slept: tuple[float, ...], requested: float) -> None:
    found = from_log._requested_times(np.array(slept))
    assert found == pytest.approx([requested] * len(slept), rel=1e-12)


@pytest.mark.parametrize(("largest", "even"), [(1.009, True), (1.011, False)])
def test_times_that_differ_by_a_hundredth_were_not_to_be_equal(largest: float, even: bool) -> None:
    slept = np.array([1.0, 1.0, 1.0, largest])
    found = from_log._requested_times(slept)
    assert (found == 1.0).all() == even
    assert even or found is slept


def _stamped(computed: float, slept: float, *, whole: bool = False) -> bool:
    start = 1.0 if whole else 1.234567
    row = {"submit": 0.0, "calc_in": start, "calc_out": start + computed, "slept": slept}
    return from_log._stamped(timelines.table_of([row] * 9))


def test_hosts_that_did_not_stamp_their_tasks_are_reported_by_tasks_that_took_no_time() -> None:
    assert _stamped(10.0, 10.0)
    assert _stamped(9.91, 10.0)
    assert not _stamped(9.89, 10.0)
    assert not _stamped(0.0, 10.0)
    # By clocks of whole seconds a task may seem a second shorter.
    assert _stamped(9.0, 10.0, whole=True)
    assert not _stamped(8.0, 10.0, whole=True)


def three_workers(error: float) -> RunTimes:
    """Of a log of three workers with a task of 1 s each; their clocks may be off by `error`, s."""
    rows = [
        {
            "submit": 0.0,
            "calc_in": begin + 0.1234567,
            "calc_out": begin + 1.1234567,
            "retrieve": begin + 1.2,
            "worker": f"w{begin:g}",
            "clock_error": error,
        }
        for begin in (1.0, 1.4, 1.9)
    ]
    situation = Situation(cores=3, sleep=np.ones(3))
    return from_log._measured(timelines.table_of(rows), situation)


def test_stamps_of_hosts_count_if_their_clocks_are_known_to_a_fifth() -> None:
    def measured(error: float) -> tuple[float, float]:
        found = three_workers(error)
        assert found.total == pytest.approx(3.1)
        return found.first_calc_in, found.last_worker_calc_in

    assert measured(1e-3) == pytest.approx((1.1234567, 2.0234567))
    # The interval that the stamps leave is wider than a fifth of either.
    assert all(map(math.isnan, measured(math.inf)))


@pytest.mark.parametrize(
    ("back", "serves"), [(3.0, True), (2.01, True), (2.0, False), (1.5, False)]
)
def test_a_log_whose_tasks_took_longer_than_it_did_cannot_serve(
    tmp_path: Path, back: float, serves: bool
) -> None:
    path = tmp_path / "my.log"
    path.write_text(
        "# NTasks=1 NNodes=1 InputFile=mine TaskDataSize=0 SharedDataSize=0 WriteDataSize=0\n"
        f"1 2.000000 0.000000 0.000001 1.900001 {back:.6f} node1\n"
    )
    found = from_log.observe_log(path)
    assert isinstance(found, Observation) == serves
    assert serves or found == "its total is shorter than its tasks take on so many cores"


def test_a_log_is_of_an_unknown_network() -> None:
    assert (PLACE.engine, PLACE.transport, PLACE.processors) == ("log", "network", 1)
    assert (PLACE.nodes, PLACE.kept_from, PLACE.link_rate, PLACE.keep_free) == (1, 0, None, None)


def test_times_that_differ_by_exactly_a_hundredth_were_to_be_equal() -> None:
    assert from_log._requested_times(np.array([100.0, 100.0, 101.0])).tolist() == [100.0] * 3


@pytest.mark.parametrize(
    ("error", "first", "last"),
    [(0.22, True, True), (0.23, False, True), (0.40, False, True), (0.41, False, False)],
)
def test_each_stamp_counts_if_a_fifth_of_it_is_more_than_its_clock_is_off(
    error: float, first: bool, last: bool
) -> None:
    # The first begins at 1.12 s, and the last worker at 2.02 s.
    found = three_workers(error)
    assert math.isfinite(found.first_calc_in) == first
    assert math.isfinite(found.last_worker_calc_in) == last


@pytest.mark.parametrize(
    ("margin", "first", "last"), [(0.24, True, True), (0.25, False, True), (0.5, False, False)]
)
def test_a_clock_that_is_off_by_just_a_fifth_does_not_tell(
    margin: float, first: bool, last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_log, "clock_margin", lambda *_, **__: margin)
    rows = [
        {"calc_in": begin, "calc_out": begin + 1.0, "worker": f"w{begin:g}"}
        for begin in (1.25, 2.5)
    ]
    situation = Situation(cores=2, sleep=np.ones(2))
    found = from_log._measured(timelines.table_of(rows), situation)
    assert math.isfinite(found.first_calc_in) == first
    assert math.isfinite(found.last_worker_calc_in) == last


@pytest.mark.parametrize(
    ("announced", "text"),
    [
        (3, "1 of its 3 tasks are missing"),
        (2, ""),
        (1, "it has more tasks than its header says"),
    ],
)
def test_a_log_has_as_many_tasks_as_its_header_says(
    tmp_path: Path, announced: int, text: str
) -> None:
    path = tmp_path / "my.log"
    path.write_text(
        f"# NTasks={announced} NNodes=2 InputFile=mine TaskDataSize=1 SharedDataSize=2"
        " WriteDataSize=3\n"
        "1 1.000000 0.000000 0.500001 1.500001 1.700002 node1\n"
        "2 1.000000 0.000000 0.600001 1.600001 1.800002 node2\n"
    )
    found = from_log.observe_log(path)
    if text:
        assert found == text
    else:
        assert isinstance(found, Observation)
        its = found.situation
        assert (its.bytes_in, its.bytes_shared, its.bytes_out) == (1024, 2048, 3072)


def test_what_a_log_is_warned_of_does_not_disturb_who_fits_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    read = from_log.read_task_log

    def warning(*arguments: Any, **more: Any) -> Any:
        warnings.warn("its stamps are coarse", stacklevel=1)
        return read(*arguments, **more)

    monkeypatch.setattr(from_log, "read_task_log", warning)
    path = tmp_path / "my.log"
    path.write_text(
        "# NTasks=1 NNodes=1 InputFile=mine TaskDataSize=0 SharedDataSize=0 WriteDataSize=0\n"
        "1 2.000000 0.000000 0.000001 2.000001 2.500000 node1\n"
    )
    assert isinstance(from_log.observe_log(path), Observation)
    assert not list(recwarn)
