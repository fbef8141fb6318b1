"""The grids: how many cases each has, what is varied, and values that cannot be meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridbench.errors import InputError
from gridbench.formats import compact_size
from gridbench.quantities import (
    GB,
    KB,
    MB,
    exact_size,
    parse_cores,
    parse_list,
    parse_size,
    parse_stddev,
)
from gridbench.scenario.grids import (
    GridChoice,
    ScenarioCase,
    TaskTimes,
    cases_of,
    parse_scenarios,
    setup_of,
    write_workload,
)
from gridbench.workload.workload import read_workload


@pytest.mark.parametrize(
    ("scenario", "count"), [(1, 36), (2, 30), (3, 5), (4, 108), (5, 108), (6, 60)]
)
def test_the_full_grids(scenario: int, count: int) -> None:
    cases = cases_of(scenario, GridChoice())
    assert len(cases) == count
    assert len({case.key for case in cases}) == count
    assert {case.scenario for case in cases} == {scenario}


@pytest.mark.parametrize(
    ("scenario", "count"), [(1, 42), (2, 35), (3, 7), (4, 63), (5, 63), (6, 60)]
)
def test_the_grids_of_the_slides(scenario: int, count: int) -> None:
    cases = cases_of(scenario, GridChoice(slides=True))
    assert len(cases) == count
    largest = max(c.bytes_in + c.bytes_shared + c.bytes_out for c in cases)
    assert largest == {1: GB, 2: 2 * GB, 3: 0, 4: GB, 5: GB, 6: MB}[scenario]


def test_what_is_varied() -> None:
    first = cases_of(1, GridChoice())
    assert all(case.tasks == case.cores and case.sleep == 30 for case in first)
    assert {case.bytes_shared for case in first} == {0, *(10**n * KB for n in (1, 2)), MB,
                                                    10 * MB, 100 * MB}  # fmt: skip
    second = cases_of(2, GridChoice())
    assert all(case.bytes_in == case.bytes_out for case in second)
    assert {(case.cores, case.tasks) for case in second} == {(100, 200)}
    assert {case.tasks for case in cases_of(2, GridChoice(slides=True))} == {100}
    assert [case.tasks for case in cases_of(3, GridChoice())] == [1, 10, 100, 1000, 10000]
    fourth, fifth = cases_of(4, GridChoice()), cases_of(5, GridChoice())
    assert {case.tasks // case.cores for case in fourth} == {1, 2, 3}
    assert [c.bytes_in for c in fourth] == [c.bytes_out for c in fifth]
    assert not any(c.bytes_out for c in fourth)
    assert not any(c.bytes_in for c in fifth)


def test_work_is_split() -> None:
    cases = cases_of(6, GridChoice())
    work = {round(case.sleep * case.tasks, 9) for case in cases}
    assert work == {100.0, 10.0}
    assert max(c.tasks for c in cases if round(c.sleep * c.tasks) == 10) == 400
    assert max(c.tasks for c in cases) == 1000
    assert {case.bytes_in for case in cases} == {0, 10 * KB, 100 * KB, MB}
    divided = cases_of(6, GridChoice(split_data=True))
    assert len(divided) == 60
    assert {c.bytes_in for c in divided if c.tasks == 400} == {0, 26, 256, 2621}


def test_a_grid_is_cut_down() -> None:
    chosen = cases_of(4, GridChoice(cores=[2, 3], sizes=[0, 5]))
    assert len(chosen) == 2 * 3 * 2
    assert {(case.cores, case.bytes_in) for case in chosen} == {(2, 0), (2, 5), (3, 0), (3, 5)}
    assert [case.tasks for case in cases_of(3, GridChoice(quick=True))] == [1, 100, 10000]
    assert len(cases_of(1, GridChoice(quick=True))) == 9
    assert len(cases_of(1, GridChoice(optional=True))) == 38
    assert cases_of(1, GridChoice(optional=True))[-1].sleep == 120


def test_names_of_cases_tell_sizes_apart() -> None:
    one = ScenarioCase(scenario=4, cores=1, tasks=1, sleep=30, bytes_in=MB)
    other = ScenarioCase(scenario=4, cores=1, tasks=1, sleep=30, bytes_in=MB + 1)
    assert one.key == "1-cores-1-tasks-30s-in-1MB"
    assert one.key != other.key
    assert exact_size(1536) == "1536B"
    assert (compact_size(1536), compact_size(0), compact_size(10 * MB)) == ("1.5KB", "0", "10MB")


@pytest.mark.parametrize(
    ("words", "scenarios"),
    [
        (["6", "1"], [6, 1]),
        (["startup"], [3]),
        (["Split", "2"], [6, 2]),
        (["all"], [1, 2, 3, 4, 5, 6]),
        (["1-3", "split"], [1, 2, 3, 6]),
        (["1,3,input"], [1, 3, 4]),
        (["2-2"], [2]),
    ],
)
def test_scenarios_have_numbers_names_and_ranges(words: list[str], scenarios: list[int]) -> None:
    assert parse_scenarios(words) == scenarios


@pytest.mark.parametrize(
    "word", ["7", "0", "one", "x", "-1", "01", "", "3-1", "0-3", "1-7", "1-", "1,,2", "²", "9" * 50]
)
def test_unknown_scenarios_are_refused(word: str) -> None:
    with pytest.raises(InputError, match=r"unknown scenario `") as caught:
        parse_scenarios(["2", word])
    assert "1 shared, 2 task-time, 3 startup, 4 input, 5 output, 6 split" in caught.value.remedy


@pytest.mark.parametrize("words", [["1", "1"], ["startup", "3"], ["all", "2"], ["1-3", "2-4"]])
def test_a_scenario_is_given_once(words: list[str]) -> None:
    with pytest.raises(InputError, match=r"scenario \d \(.*\) is given twice"):
        parse_scenarios(words)


def test_a_misspelt_scenario_has_a_hint() -> None:
    with pytest.raises(InputError, match="unknown scenario `start-up`") as caught:
        parse_scenarios(["start-up"])
    assert caught.value.remedy.startswith("did you mean `startup`?")


@pytest.mark.parametrize(
    "text", ["-1", "1PB", "2000GB", "1e3", "ten", "", "1 2", "nan", "10KBs", "9" * 50]
)
def test_sizes_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--sizes"):
        parse_list("--sizes", f"0,{text}", parse_size)


@pytest.mark.parametrize("text", ["0", "-4", "1.5", "100001", "many", "1,,2", ""])
def test_cores_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--cores"):
        parse_list("--cores", text, parse_cores)


def test_values_are_understood() -> None:
    assert parse_list("--sizes", "0, 10KB,1.5mb,10KB", parse_size) == [0, 10 * KB, 1536 * KB]
    assert parse_list("--cores", "1,10", parse_cores) == [1, 10]
    assert parse_stddev("--stddev", "5") == (5.0, 0.0)
    assert parse_stddev("--stddev", "20%") == (0.0, 0.2)
    assert parse_stddev("--stddev", "200ms") == (0.2, 0.0)
    for text in ("-1", "x", "101e", "nan", "20000%"):
        with pytest.raises(InputError, match="--stddev"):
            parse_stddev("--stddev", text)


def test_a_case_as_a_workload(tmp_path: Path) -> None:
    case = ScenarioCase(scenario=6, cores=3, tasks=40, sleep=0.25, bytes_in=26, bytes_shared=MB)
    workload = read_workload(write_workload(case, TaskTimes(), tmp_path), 0.5)
    assert (workload.setup.ntasks, workload.setup.nnodes) == (40, 3)
    assert (workload.setup.task_bytes, workload.setup.shared_bytes) == (26, MB)
    assert setup_of(case).task_bytes == 26
    assert workload.sleeps == pytest.approx(np.full(40, 0.125))


def test_uneven_times_come_from_the_seed(tmp_path: Path) -> None:
    case = ScenarioCase(scenario=4, cores=3, tasks=50, sleep=30)
    times = TaskTimes(scale=0.1, stddev_share=0.2, seed=5)
    drawn = read_workload(write_workload(case, times, tmp_path), times.scale).sleeps
    assert drawn.std() == pytest.approx(0.6, rel=0.4)
    assert drawn == pytest.approx(times.draw(case), abs=1e-6)
    assert not np.allclose(drawn, TaskTimes(scale=0.1, stddev_share=0.2, seed=6).draw(case))
    assert TaskTimes(stddev=2.0).deviation(case) == 2.0
