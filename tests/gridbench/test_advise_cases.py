"""The short runs that advice is made from, listed for works of given sizes."""

from __future__ import annotations

import pytest

from gridbench.advise.calibration import calibrating, first_cases
from gridbench.advise.work import DivisibleWork
from gridbench.scenario.grids import ScenarioCase
from synthetic import MB

LONG, SHORT = 0.05, 0.002
"""Seconds of a task."""
BARE = DivisibleWork(seconds=1.0, cores=64)

Shape = tuple[int, int, float]
Data = tuple[int, int, int, int, int]


def _shape_of(cases: list[ScenarioCase]) -> list[Shape]:
    """Cores, tasks and seconds of those without data."""
    return [
        (one.cores, one.tasks, one.sleep)
        for one in cases
        if not (one.bytes_in or one.bytes_shared or one.bytes_out)
    ]


def _data(cases: list[ScenarioCase]) -> list[Data]:
    """Cores, tasks, and bytes of input, shared data and output of the others, with long tasks."""
    return [
        (one.cores, one.tasks, one.bytes_in, one.bytes_shared, one.bytes_out)
        for one in cases
        if (one.bytes_in or one.bytes_shared or one.bytes_out) and one.sleep == LONG
    ]


FIRST: list[Shape] = [
    (64, 64, LONG),
    (64, 1000, SHORT),
    (4, 8, SHORT),
    (16, 16, LONG),
    (4, 120, SHORT),
    (16, 1000, SHORT),
    (64, 1, LONG),
]


def test_without_data_seven_runs_are_the_first() -> None:
    assert _shape_of(first_cases(BARE)) == FIRST
    assert _data(first_cases(BARE)) == []


def test_calibrating_adds_one_two_and_six_tasks_for_each_core() -> None:
    assert _shape_of(calibrating(BARE)) == [
        *FIRST,
        (4, 4, LONG),
        (4, 8, LONG),
        (4, 24, SHORT),
        (16, 32, LONG),
        (16, 32, SHORT),
        (16, 96, SHORT),
        (64, 128, LONG),
        (64, 128, SHORT),
        (64, 384, SHORT),
    ]


@pytest.mark.parametrize(("cores", "tasks"), [(166, 996), (334, 1002), (400, 1200)])
def test_a_thousand_tasks_are_enough_unless_each_core_had_less_than_three(
    cores: int, tasks: int
) -> None:
    assert _shape_of(calibrating(DivisibleWork(seconds=1.0, cores=cores)))[-1] == (
        cores,
        tasks,
        SHORT,
    )


@pytest.mark.parametrize(
    ("cores", "workers", "numbers"),
    [
        (64, None, (4, 16, 64)),
        (64, 64, (4, 16, 64)),
        (64, 10, (4, 10, 10)),
        (400, None, (25, 100, 400)),
        # More than 400 are not tried.
        (401, None, (25, 100, 400)),
        (100_000, None, (25, 100, 400)),
        # A slope needs three numbers, if there are so many workers.
        (1, None, (1, 2, 3)),
        (1, 2, (1, 2, 2)),
        (1, 1, (1, 1, 1)),
        (16, None, (1, 4, 16)),
        (32, None, (2, 8, 32)),
    ],
)
def test_a_sixteenth_a_quarter_and_all_of_the_cores_are_tried(
    cores: int, workers: int | None, numbers: tuple[int, int, int]
) -> None:
    few, some, many = numbers
    found = _shape_of(first_cases(DivisibleWork(seconds=1.0, cores=cores), workers))
    assert found == list(
        dict.fromkeys(
            [
                (many, many, LONG),
                (many, 1000, min(SHORT, 0.125 * many / 1000)),
                (few, 2 * few, SHORT),
                (some, some, LONG),
                (few, 30 * few, SHORT),
                (some, 1000, min(SHORT, 0.125 * some / 1000)),
                (many, 1, LONG),
            ]
        )
    )


def test_a_thousand_tasks_take_an_eighth_of_a_second_on_few_cores() -> None:
    found = first_cases(DivisibleWork(seconds=1.0, cores=2, bytes_in=MB))
    times = [one.sleep * one.tasks / one.cores for one in found if one.tasks == 1000]
    assert times == pytest.approx([0.125] * 3)
    on_many = [one for one in _shape_of(first_cases(BARE)) if one[1] == 1000]
    assert on_many == [(64, 1000, SHORT), (16, 1000, SHORT)]


def test_data_is_tried_in_the_size_of_a_task_and_around_it() -> None:
    # On all 64 cores a task gets 10,000 of what is divided, and 5,000 of its own.
    work = DivisibleWork(seconds=1.0, cores=64, bytes_in=640_000, bytes_in_each=5000)
    first = [
        (64, 64, 15_000, 0, 0),
        # What each task gets may be better shared.
        (64, 64, 0, 5000, 0),
        (4, 8, 60_000, 0, 0),
        (4, 8, 0, 20_000, 0),
    ]
    assert _data(first_cases(work)) == first
    assert _data(calibrating(work)) == [
        *first,
        (16, 32, 7500, 0, 0),
        # No less than a page.
        (16, 32, 0, 4096, 0),
        (16, 16, 30_000, 0, 0),
        (16, 16, 0, 10_000, 0),
    ]


def test_output_is_tried_as_input_is() -> None:
    work = DivisibleWork(seconds=1.0, cores=64, bytes_out=640_000, bytes_out_each=5000)
    assert _data(first_cases(work)) == [(64, 64, 0, 0, 15_000), (4, 8, 0, 0, 60_000)]


def test_shared_data_is_tried_with_each_task_as_well() -> None:
    work = DivisibleWork(seconds=1.0, cores=64, bytes_shared=50_000)
    assert _data(first_cases(work)) == [
        (64, 64, 50_000, 0, 0),
        (64, 64, 0, 50_000, 0),
        (4, 8, 200_000, 0, 0),
        (4, 8, 0, 200_000, 0),
    ]


def test_no_run_moves_more_than_100_mb() -> None:
    work = DivisibleWork(seconds=1.0, cores=64, bytes_in=64_000 * MB, bytes_shared=800 * MB)
    assert _data(first_cases(work)) == [
        (64, 64, 100 * MB // 64, 0, 0),
        (64, 64, 0, 100 * MB, 0),
        (4, 8, 100 * MB // 8, 0, 0),
        (4, 8, 0, 100 * MB, 0),
    ]


def test_all_data_is_tried_among_a_thousand_short_tasks() -> None:
    work = DivisibleWork(
        seconds=1.0, cores=64, bytes_in=20e6, bytes_in_each=3000, bytes_out=4e6, bytes_out_each=2000
    )
    (found,) = [one for one in first_cases(work) if one.bytes_in and one.bytes_out]
    assert (found.cores, found.tasks, found.sleep) == (64, 1000, SHORT)
    assert (found.bytes_in, found.bytes_out) == (23_000, 6000)
    only_out = DivisibleWork(seconds=1.0, cores=64, bytes_out=4e6, bytes_out_each=2000)
    (found,) = [one for one in first_cases(only_out) if one.tasks == 1000 and one.bytes_out]
    assert (found.cores, found.bytes_in, found.bytes_out) == (64, 0, 6000)
    shared = first_cases(DivisibleWork(seconds=1.0, cores=64, bytes_shared=1e6))
    assert all(one.bytes_in == 0 for one in shared if one.tasks == 1000)
