"""Figures of synchronised rounds whose answers are worked out by hand, and what holds for any."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.errors import InputError
from gridbench.sync.cases import cases_of, in_order, number_of, numbers_of
from gridbench.sync.figures import (
    clock_error,
    fence,
    figures_of,
    frequent_stragglers,
    parallelism,
    phases_of,
    stragglers,
    straggling_hosts,
    task_times,
)
from gridbench.sync.record import FILE, FORM, Phase, Round, TaskRun
from sync_rounds import DISTURBED, four, round_of, sweep, task_of, write_folder


def alike(*seconds: float, hosts: int = 1, **more: object) -> Round:
    """Tasks that begin together and take so long, on hosts in turn."""
    return round_of(
        [
            task_of(number, 0.0, time, host=f"node{number % hosts}")
            for number, time in enumerate(seconds)
        ],
        **more,
    )


def test_the_figures_of_four_tasks() -> None:
    found = figures_of(four())
    assert (found.tasks, found.ok) == (4, 4)
    assert found.skew == pytest.approx(0.003)
    assert found.span == pytest.approx(0.012)
    assert found.simultaneity == pytest.approx(5 / 12)
    assert found.running == pytest.approx(35 / 12)
    assert (found.shortest, found.median, found.longest) == pytest.approx((0.005, 0.01, 0.01))
    # The worst of node0 is task 2 with 0.3 ms, and of node1 task 3 with 0.4 ms.
    assert found.clock_error == pytest.approx(0.0007)
    assert found.stragglers == ()


def test_tasks_running_over_time() -> None:
    found = parallelism(four().tasks)
    assert found.times.tolist() == [0.0, 0.001, 0.002, 0.003, 0.008, 0.010, 0.011, 0.012]
    assert found.running.tolist() == [1, 2, 3, 4, 3, 2, 1, 0]
    assert found.integral() == pytest.approx(0.035)


def test_rates_are_by_the_slowest_task_and_the_sum_of_all_is_beside_them() -> None:
    found = figures_of(four()).phases
    assert list(found) == ["mkdir", "write"]
    mkdir, write = found["mkdir"], found["write"]
    assert (mkdir.tasks, mkdir.operations, mkdir.seconds) == (4, 400, 0.008)
    assert mkdir.rate == pytest.approx(400 / 0.008)
    assert mkdir.rate_summed == pytest.approx(50_000 + 25_000 + 100 / 0.006 + 12_500)
    assert math.isnan(mkdir.bandwidth)
    assert write.bandwidth == pytest.approx(1e9)
    assert write.bandwidth_summed == pytest.approx(2.5e9)
    assert math.isnan(write.rate)
    assert write.latency is None


def test_latencies_of_several_workers_are_bounds() -> None:
    latency = figures_of(four()).phases["mkdir"].latency
    assert latency is not None
    assert latency.p50 == pytest.approx(0.25)  # the median of 0.1, 0.2, 0.3, 0.4
    assert (latency.p90, latency.p99, latency.max) == pytest.approx((0.8, 1.2, 1.6))


def test_a_phase_that_a_task_names_twice_is_one_that_took_as_long_as_both() -> None:
    twice = [Phase(name="stat", seconds=1.0, operations=10), Phase(name="stat", seconds=3.0)]
    found = phases_of([task_of(0, 0.0, 4.0, phases=twice)])["stat"]
    assert (found.tasks, found.seconds, found.rate) == (1, 4.0, 2.5)


def test_a_phase_in_no_time_has_no_rate() -> None:
    instant = [Phase(name="read", seconds=0.0, bytes=10)]
    assert math.isnan(phases_of([task_of(0, 0.0, 1.0, phases=instant)])["read"].bandwidth)


def test_clocks_of_one_host_agree() -> None:
    assert clock_error([task_of(n, 0.0, 1.0, clock_error=0.001) for n in range(3)]) == 0.0
    errors = [("a", 0.001), ("b", 0.004), ("c", 0.002), ("b", 0.003)]
    tasks = [
        task_of(n, 0.0, 1.0, host=host, clock_error=error) for n, (host, error) in enumerate(errors)
    ]
    assert clock_error(tasks) == pytest.approx(0.006)


def test_tasks_that_failed_count_for_the_start_and_not_for_what_was_done() -> None:
    did = [Phase(name="write", seconds=1.0, bytes=100)]
    one = round_of(
        [
            task_of(0, 0.0, 2.0, phases=did),
            task_of(1, 0.5, 0.6, status="failed", phases=did, exit=1),
            task_of(2, 0.7, None, status="lost"),
            task_of(3, None, None, status="lost"),
        ]
    )
    found = figures_of(one)
    assert (found.tasks, found.ok) == (4, 1)
    assert found.skew == pytest.approx(0.7)
    assert found.span == pytest.approx(2.0)
    # Of the two whose end is known, both ran from 0.5 to 0.6 s.
    assert found.simultaneity == pytest.approx(0.05)
    assert found.longest == 2.0
    assert found.phases["write"].bytes == 100


def test_nothing_is_known_where_no_task_began() -> None:
    found = figures_of(round_of([task_of(0, None, None, status="lost")]))
    values = (found.skew, found.span, found.simultaneity, found.running, found.median)
    assert all(map(math.isnan, values))
    assert parallelism([]).integral() == 0.0


def test_one_task_is_simultaneous_with_itself() -> None:
    found = figures_of(round_of([task_of(0, 0.1, 0.6)]))
    assert (found.skew, found.simultaneity, found.running) == (0.0, 1.0, 1.0)
    instant = figures_of(round_of([task_of(0, 0.1, 0.1), task_of(1, 0.1, 0.1)]))
    assert (instant.span, instant.simultaneity, instant.running) == (0.0, 1.0, 2.0)


def test_a_straggler_is_beyond_the_fence_and_5_percent_above_the_median() -> None:
    # Quartiles 1.0 and 1.2, so that the fence is 1.2 + 3 x 0.2 = 1.8.
    assert fence([1.0, 1.0, 1.1, 1.2, 1.2]) == pytest.approx(1.8)
    one = alike(1.0, 1.0, 1.1, 1.1, 1.1, 1.2, 1.2, 1.9)
    assert [task.worker for task in stragglers(one)] == [7]
    # Nearly alike: the fence is at 1.0, and 5 % above the median is what counts.
    assert stragglers(alike(*[1.0] * 9, 1.04)) == []
    assert [task.worker for task in stragglers(alike(*[1.0] * 9, 1.06))] == [9]
    assert stragglers(alike(1.0, 1.0, 1.0, 99.0)) == []
    assert fence([14.0, 14.0, 14.0, 86.35963275133214]) == fence([]) == math.inf


def test_a_task_that_failed_late_is_a_failure_and_no_straggler() -> None:
    one = alike(*[1.0] * 9, 5.0)
    tasks = (*one.tasks[:-1], replace(one.tasks[-1], status="timeout"))
    assert stragglers(replace(one, tasks=tasks)) == []


def test_workers_and_hosts_that_are_often_late_are_reported() -> None:
    slow = [1.0] * 12
    slow[3] = slow[9] = 4.0
    rounds = [alike(*slow, hosts=6, repeat=n) for n in range(3)]
    rounds += [alike(*[1.0] * 12, hosts=6, repeat=3)]
    assert straggling_hosts(rounds[0]) == ["node3"]
    found = [(one.host, one.worker, one.times, one.rounds) for one in frequent_stragglers(rounds)]
    assert found == [("node3", None, 3, 4), ("node3", 3, 3, 4), ("node3", 9, 3, 4)]
    # Two rounds show nothing, nor does a worker that is late in half of them.
    assert frequent_stragglers(rounds[:2]) == []
    assert frequent_stragglers([*rounds[:2], rounds[3], replace(rounds[3], repeat=4)]) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4k", 4096),
        ("1.5M", 1.5 * 2**20),
        ("2GiB", 2**31),
        ("64 ", 64),
        ("1e3", 1000),
        ("512B", 512),
        ("", None),
        ("k", None),
        ("4 k", None),
        ("1e999", None),
        ("-1", None),
        ("fast", None),
    ],
)
def test_numbers_and_sizes_of_parameters(text: str, number: float | None) -> None:
    assert number_of(text) == number


def test_the_order_of_parameters() -> None:
    assert in_order(["1m", "4k", "64k", "4k"]) == ["4k", "64k", "1m"]
    assert in_order(["wal", "off", "wal"]) == ["wal", "off"]
    assert numbers_of(["1k", "1024"]) is None


def test_figures_of_a_case_are_of_the_rounds_that_count() -> None:
    rounds = [
        alike(1.0, 1.0, repeat=0),
        alike(9.0, 9.0, repeat=1, load=DISTURBED),
        alike(3.0, 3.0, repeat=2),
    ]
    (case,) = cases_of(rounds)
    assert case.counts
    span = case.span()
    assert span is not None
    assert (span.value, span.low, span.high) == (2.0, 1.0, 3.0)
    assert case.shown.repeat == 0
    # If none counts, all do, with a note.
    (alone,) = cases_of(rounds[1:2])
    assert not alone.counts
    assert alone.values(lambda f: f.span) == [9.0]


def test_the_clocks_widen_the_range_of_the_skew_and_not_below_nothing() -> None:
    tasks = [
        task_of(0, 0.0, 1.0, host="a", clock_error=0.002),
        task_of(1, 0.003, 1.0, host="b", clock_error=0.004),
    ]
    (case,) = cases_of([round_of(tasks)])
    skew = case.skew()
    assert skew is not None
    assert (skew.value, skew.low, skew.high) == pytest.approx((0.003, 0.0, 0.009))


def test_cases_are_in_order_of_start_parameter_and_workers() -> None:
    rounds = [
        alike(*[1.0] * workers, parameter=parameter, start=start)
        for start in ("exec", "entry")
        for parameter in ("1m", "4k")
        for workers in (10, 2)
    ]
    found = [(case.start, case.parameter, case.workers) for case in cases_of(rounds)]
    assert found == [
        (start, parameter, workers)
        for start in ("entry", "exec")
        for parameter in ("4k", "1m")
        for workers in (2, 10)
    ]


def test_a_folder_is_read_back(tmp_path: Path) -> None:
    rounds = sweep((2, 4), ("4k",), 2, samples=2)
    folder = write_folder(tmp_path / "results", rounds)
    assert FORM.read(folder)[1] == rounds == FORM.read(folder / FILE)[1]
    # One that failed was made again; a later attempt takes the place of an earlier one.
    again = replace(rounds[0], prepared_in=9.0)
    assert FORM.read(write_folder(folder, [*rounds, again]))[1] == [again, *rounds[1:]]
    with pytest.raises(InputError, match="holds no synchronised rounds"):
        FORM.read(tmp_path)


times = st.floats(0, 1e4, allow_nan=False)
rounds = st.lists(st.tuples(times, times), min_size=1, max_size=30).map(
    lambda pairs: [
        task_of(number, began, began + seconds) for number, (began, seconds) in enumerate(pairs)
    ]
)


@given(rounds)
def test_simultaneity_is_a_share(tasks: list[TaskRun]) -> None:
    found = figures_of(round_of(tasks))
    assert 0 <= found.simultaneity <= 1
    assert 0 < found.running <= len(tasks) * (1 + 1e-9) or found.span == 0 or not found.longest
    assert found.skew <= found.span * (1 + 1e-9) + 1e-9


@given(rounds)
def test_the_tasks_running_are_as_many_as_there_are_and_last_as_long(tasks: list[TaskRun]) -> None:
    found = parallelism(tasks)
    assert found.running.min() >= 0
    assert found.running.max() <= len(tasks)
    assert found.running[-1] == 0
    assert (np.diff(found.times) > 0).all()
    assert found.integral() == pytest.approx(float(task_times(tasks).sum()), abs=1e-6)


amounts = st.tuples(st.integers(0, 10**9), st.floats(1e-3, 1e3))


@given(st.lists(amounts, min_size=1, max_size=20))
def test_the_sum_of_the_tasks_own_rates_is_never_below_that_of_all(
    message: list[tuple[int, float]],
) -> None:
    tasks = [
        task_of(n, 0.0, 1.0, phases=[Phase(name="a", seconds=seconds, bytes=size)])
        for n, (size, seconds) in enumerate(message)
    ]
    found = phases_of(tasks)["a"]
    if found.bytes:
        assert found.bandwidth_summed >= found.bandwidth * (1 - 1e-9)
    else:
        assert math.isnan(found.bandwidth)


@given(st.lists(st.floats(0, 100), max_size=30))
def test_at_most_a_quarter_of_the_tasks_are_stragglers(seconds: list[float]) -> None:
    late = stragglers(alike(*seconds))
    assert len(late) <= len(seconds) / 4
    assert len(late) == 0 or len(seconds) >= 5
