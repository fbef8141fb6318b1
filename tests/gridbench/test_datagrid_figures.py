"""Figures of data grids: worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datagrid_cases import (
    DISTURBED,
    campaign,
    four,
    killed,
    made,
    tasks_of,
    windows_of,
    write_folder,
)
from gridbench.datagrid.cases import compared_loops, fitted, repeats_of, sweeps_of
from gridbench.datagrid.figures import (
    correctness,
    figures_of,
    merged,
    quantile,
    quantiles,
    tail,
    verdict,
)
from gridbench.datagrid.record import (
    FORM,
    Checked,
    DataGridCase,
    Latencies,
    OperationCounts,
    TaskTimeline,
    WarmUp,
    write_timeline,
)
from gridbench.datagrid.tables import line_name
from gridbench.datagrid.windows import dip, steadiness, working
from gridbench.errors import InputError
from gridbench.timeline import SCHEMA


def histogram(counts: dict[int, int], **more: str) -> Latencies:
    return Latencies(
        operation=more.get("operation", "read"),
        counted="service",
        values=tuple(sorted(counts)),
        counts=tuple(counts[value] for value in sorted(counts)),
    )


def checked(**more: int | bool) -> Checked:
    values: dict[str, int | bool] = {
        "expected": 1000,
        "found": 1000,
        "read": 1000,
        "missing": 0,
        "wrong": 0,
        "updates": 50,
        "updates_expected": 50,
    }
    return Checked(**(values | more))  # type: ignore[arg-type]


def test_operations_and_bytes_per_second() -> None:
    found = figures_of(four())
    assert (found.operations, found.throughput, found.bandwidth) == (40, 20.0, 20 * 1024)
    # An update reads its object and writes it.
    mixed = replace(four(), counts=OperationCounts(reads=10, updates=10, inserts=5, shared=3))
    assert figures_of(mixed).throughput == 14.0
    assert figures_of(mixed).bandwidth == (10 + 20 + 5 + 3) * 1024 / 2
    assert math.isnan(figures_of(replace(four(), counts=OperationCounts(scans=4))).bandwidth)


def test_latencies_of_an_operation() -> None:
    found = figures_of(four()).latency("read")
    assert found is not None
    assert found.count == 40
    assert found.p50 == pytest.approx(0.010)
    assert found.p90 == pytest.approx(0.020)
    # Of 40, the 99th percentile is the 40th.
    assert found.p99 == found.p999 == found.max == pytest.approx(0.2)
    assert found.mean == pytest.approx((20 * 10 + 16 * 20 + 3 * 50 + 200) / 40 * 1e-3)
    assert figures_of(four()).latency("update") is None


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=60), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_quantile_is_that_of_all_values(values: list[int], share: float) -> None:
    counts = {value: values.count(value) for value in values}
    expected = np.quantile(values, share, method="inverted_cdf")
    assert quantile(histogram(counts), share) == pytest.approx(float(expected) * 1e-9)


@given(
    st.lists(st.dictionaries(st.integers(1, 1000), st.integers(1, 9), min_size=1), min_size=1),
    st.floats(0.01, 1),
)
def test_a_merged_quantile_lies_between_those_of_the_parts(
    parts: list[dict[int, int]], share: float
) -> None:
    each = [quantile(histogram(part), share) for part in parts]
    (together,) = merged(map(histogram, parts))
    assert min(each) <= quantile(together, share) <= max(each)
    assert sum(together.counts) == sum(sum(part.values()) for part in parts)


def test_operations_are_not_merged_with_others() -> None:
    both = merged([histogram({1: 2}), histogram({5: 1}, operation="update"), histogram({1: 1})])
    assert [(one.operation, one.counts) for one in both] == [("read", (3,)), ("update", (1,))]
    assert quantiles(Latencies(operation="read", counted="service", values=(), counts=())) is None
    with pytest.raises(ValueError, match="no quantiles"):
        quantile(histogram({}), 0.5)


def test_the_tail_ends_at_the_slowest_of_all() -> None:
    points = tail(histogram({1000: 9_999, 2_000_000: 1}), 50)
    assert points[0] == (1.0, pytest.approx(1e-6))
    assert points[-1] == (10_000.0, pytest.approx(2e-3))
    assert [place for place, _ in points] == sorted(place for place, _ in points)
    assert points[-2][1] == pytest.approx(1e-6)
    assert tail(histogram({1: 1})) == []


def test_task_times_with_and_without_start_up() -> None:
    found = figures_of(four())
    assert found.without_start_up is not None
    assert found.with_start_up is not None
    without = found.without_start_up
    assert (without.tasks, without.median) == (2, pytest.approx(0.6))
    assert (without.shortest, without.longest) == (pytest.approx(0.5), pytest.approx(0.7))
    # The clients' first tasks wait 3 s for their connection.
    whole = found.with_start_up
    assert (whole.tasks, whole.shortest) == (4, pytest.approx(0.5))
    assert (whole.median, whole.longest) == (pytest.approx((0.7 + 4.0) / 2), pytest.approx(4.2))


def test_cold_tasks_are_the_first_ones_where_they_were_measured() -> None:
    found = figures_of(replace(four(), cold=(2.0, 9.0))).with_start_up
    assert found is not None
    # 5 s and 12 s with the 3 s to connect; 0.5, 0.7, 1 and 1.2 s of the tasks after the warm-up.
    assert (found.tasks, found.shortest, found.longest) == (6, pytest.approx(0.5), 12.0)
    assert found.median == pytest.approx((1.0 + 1.2) / 2)


def test_single_tasks_of_warm_clients_count_as_without_start_up() -> None:
    single = replace(
        four(), tasks=tasks_of((0, 1), (0, 1), (0.0, 0.0), (1.0, 1.2), (10, 10), ("", ""))
    )
    found = figures_of(single).without_start_up
    assert found is not None
    assert found.median == pytest.approx(1.1)
    assert figures_of(replace(single, warm_up=None)).without_start_up is None
    assert figures_of(replace(four(), tasks=TaskTimeline())).with_start_up is None


def test_memory_and_balance() -> None:
    found = figures_of(four()).memory
    assert found is not None
    assert found.imbalance == pytest.approx(400 / (1000 / 3))
    mean = 1000 / 3
    variance = (2 * (300 - mean) ** 2 + (400 - mean) ** 2) / 3
    assert found.variation == pytest.approx(math.sqrt(variance) / mean)
    # Of what is in use, which is of this case alone, and not of what is resident.
    assert found.each == (200 * 2**20,) * 3
    assert found.mean == 100 * 2**20
    assert found.times_data == pytest.approx(300 * 2**20 / (1000 * 1024))
    member = replace(four().members[0], entries=-1, memory=0, used=0)
    unknown = replace(four(), members=(member,))
    reported = figures_of(unknown).memory
    assert reported is not None
    assert all(
        map(
            math.isnan, (reported.imbalance, reported.variation, reported.mean, reported.times_data)
        )
    )
    assert figures_of(replace(four(), members=())).memory is None


def with_windows(*operations: int) -> DataGridCase:
    end = len(operations) * 0.1
    return replace(
        four(),
        tasks=tasks_of((0,), (0,), (0.0,), (end,), (sum(operations),), ("",)),
        windows=windows_of(0.1, operations, (0,) * len(operations)),
    )


def test_a_run_is_steady_if_its_halves_agree() -> None:
    level = steadiness(with_windows(*(100, 104, 96, 100, 100) * 4))
    assert (level.windows, level.steady) == (20, True)
    assert level.change == pytest.approx(0.0)
    slower = steadiness(with_windows(*(100,) * 10, *(80,) * 10))
    assert slower.steady is False
    assert slower.change == pytest.approx(-20 / 90)
    # What scatters by more than the halves differ says nothing.
    assert steadiness(with_windows(0, 40, 0, 40, 0, 0, 40, 10, 40, 10, 0, 40)).steady
    assert steadiness(with_windows(*(100,) * 9)).steady is None
    assert steadiness(replace(four(), tasks=TaskTimeline())).steady is None


def test_windows_after_the_first_client_has_ended_do_not_count() -> None:
    # Client 0 ends at 1.5 s, client 1 at 1.9 s.
    assert working(four()) == 15
    falls = replace(four(), windows=windows_of(0.1, (2,) * 15 + (1,) * 5, (0,) * 20))
    assert steadiness(falls).steady


def test_the_dip_after_a_kill() -> None:
    windows = [100] * 10 + [40, 0, 0, 0, 30, 95, 80, *[100] * 20]
    case = killed(windows, at=1.05)
    errors = [0] * 11 + [3, 4] + [0] * (len(windows) - 13)
    case = replace(case, windows=replace(case.windows, errors=tuple(errors)))
    found = dip(case)
    assert found is not None
    assert (found.level, found.lowest, found.depth) == (1000, 0, 1.0)
    assert found.stalled == pytest.approx(0.3)
    # The window at 1.5 s has 95 %, and 95 % on average with the four after it.
    assert found.recovered == pytest.approx(1.5 - 1.05)
    assert found.errors == 7


def test_a_level_that_does_not_hold_is_no_recovery() -> None:
    found = dip(killed([100] * 10 + [0, 95, 50, 95, 50, 95, 50, *[100] * 10]))
    assert found is not None
    # 95 + 50 + ... is not enough on average until the window at 1.7 s.
    assert found.recovered == pytest.approx(0.7)
    never = dip(killed([100] * 10 + [10] * 20))
    assert never is not None
    assert never.recovered is None
    assert never.depth == pytest.approx(0.9)


def test_a_kill_that_nobody_felt_is_recovered_from_at_once() -> None:
    found = dip(killed([100] * 30))
    assert found is not None
    assert (found.recovered, found.depth, found.stalled) == (0.0, 0.0, 0.0)
    assert dip(four()) is None
    # Killed before there is a level to compare with, or after all had ended.
    assert dip(killed([100] * 30, at=0.1)) is None
    assert dip(killed([100] * 30, at=3.5)) is None


@given(
    level=st.integers(50, 5000),
    before=st.integers(5, 30),
    stalled=st.integers(1, 20),
)
def test_the_length_of_a_stall_is_found(level: int, before: int, stalled: int) -> None:
    found = dip(killed([level] * before + [0] * stalled + [level] * 20, at=before * 0.1))
    assert found is not None
    assert found.recovered == pytest.approx(stalled * 0.1)
    assert found.stalled == pytest.approx(stalled * 0.1)


@given(
    slope=st.floats(0.001, 100),
    constant=st.floats(0.0001, 10),
    sizes=st.lists(st.floats(0.001, 10), min_size=3, max_size=8, unique=True),
)
def test_a_line_is_found(slope: float, constant: float, sizes: list[float]) -> None:
    spread = max(sizes) / min(sizes)
    if spread < 2:
        sizes = [*sizes, 2 * max(sizes)]
    found = fitted(sizes, [slope * size + constant for size in sizes])
    assert found is not None
    for size in sizes:
        assert found.at(size) == pytest.approx(slope * size + constant, rel=1e-6)
    assert found.per_mb.low <= slope * (1 + 1e-6)
    assert found.per_mb.high >= slope * (1 - 1e-6)


def test_the_line_of_the_slides_comes_back_with_bounds() -> None:
    sizes = [1 / 1024, 100 / 1024, 1, 10] * 2
    scatter = [1.02, 0.97, 1.01, 0.99, 0.98, 1.03, 0.99, 1.01]
    times = [(7.2 * size + 0.2) * by for size, by in zip(sizes, scatter, strict=True)]
    found = fitted(sizes, times)
    assert found is not None
    assert found.per_mb.low < 7.2 < found.per_mb.high
    assert found.constant.low < 0.2 < found.constant.high
    assert found.per_mb.high - found.per_mb.low < 0.5
    two = fitted([1, 2], [1, 3])
    assert two is not None
    assert (two.per_mb.value, two.constant.value) == (pytest.approx(2), pytest.approx(-1))
    assert math.isinf(two.per_mb.high)
    assert fitted([1, 1], [1, 3]) is None


def test_contention_and_more_members() -> None:
    groups = repeats_of(campaign(["hazelcast"]))
    clients = [sweep for sweep in sweeps_of(groups, "NNodes") if sweep.first.case.label == "read"]
    (sweep,) = clients
    times, rates = sweep.relative_times(), sweep.relative_rates()
    assert [place for place, _ in times] == [1, 10, 100]
    # 100 clients on 3 members wait 100/12 times as long.
    assert times[0][1] == 1
    assert times[1][1] == pytest.approx(1, rel=0.1)
    assert times[2][1] == pytest.approx(100 / 12, rel=0.1)
    assert rates[2][1] == pytest.approx(100 / times[2][1], rel=0.15)
    members = [sweep for sweep in sweeps_of(groups, "MNodes") if sweep.first.case.label == "read"]
    assert members[0].relative_times()[-1][1] == pytest.approx(1 / 8, rel=0.1)


def test_the_fit_over_object_sizes() -> None:
    (sweep,) = (
        sweep
        for sweep in sweeps_of(repeats_of(campaign(["hazelcast"])), "ObjectSize")
        if sweep.first.case.label == "update"
    )
    task, operation = sweep.task_fit(), sweep.operation_fit()
    assert task is not None
    assert operation is not None
    # 100 updates of 0.88 ms and 8.8 ms for each MB.
    assert task.per_mb.value == pytest.approx(0.88, rel=0.05)
    assert task.constant.value == pytest.approx(0.088, rel=0.05)
    assert operation.per_mb.value == pytest.approx(0.0088, rel=0.15)
    assert operation.constant.value == pytest.approx(0.00088, rel=0.15)


def test_cases_of_ones_own_are_a_sweep_if_they_are_alike() -> None:
    def own(**more: object) -> DataGridCase:
        return made(scenario=None, **more)  # type: ignore[arg-type]

    groups = repeats_of([own(size=1), own(size=100), own(size=100, clients=20)])
    (sweep,) = sweeps_of(groups, "ObjectSize")
    assert [group.case.parameters["ObjectSize"] for group in sweep.groups] == [1, 100]
    (sweep,) = sweeps_of(groups, "NNodes")
    assert [group.case.parameters["NNodes"] for group in sweep.groups] == [10, 20]
    assert sweeps_of(groups, "MNodes") == []


def test_fewer_operations_of_large_objects_are_on_the_same_line() -> None:
    """As they are made where objects do not find room."""
    small, large = made(size=1), made(size=10240)
    few = replace(
        large,
        parameters=large.parameters | {"NRepeats": 25},
        tasks=replace(
            large.tasks,
            began=tuple(time / 4 for time in large.tasks.began),
            ended=tuple(time / 4 for time in large.tasks.ended),
        ),
    )
    (whole,) = sweeps_of(repeats_of([small, large]), "ObjectSize")
    (part,) = sweeps_of(repeats_of([small, few]), "ObjectSize")
    for one, other in zip(whole.groups, part.groups, strict=True):
        ours, theirs = part.task_time(other), whole.task_time(one)
        assert ours is not None
        assert theirs is not None
        assert ours.value == pytest.approx(theirs.value)
    one_fit, other_fit = whole.task_fit(), part.task_fit()
    assert one_fit is not None
    assert other_fit is not None
    assert other_fit.per_mb.value == pytest.approx(one_fit.per_mb.value)


def test_a_scenario_with_several_sizes_has_a_sweep_of_each() -> None:
    cases = [
        made(scenario=2, size=size, clients=clients) for size in (1, 100) for clients in (1, 10)
    ]
    found = sweeps_of(repeats_of(cases), "NNodes")
    assert [[sweep.place(group) for group in sweep.groups] for sweep in found] == [[1, 10]] * 2
    assert [sweep.apart for sweep in found] == [("ObjectSize",)] * 2
    assert [line_name(sweep) for sweep in found] == ["Hazelcast, 1 KB", "Hazelcast, 100 KB"]


def test_what_the_closed_loop_leaves_out() -> None:
    closed = replace(four(), latencies=(histogram({1_000_000: 999, 100_000_000: 1}),))
    late = Latencies(
        operation="read", counted="intended", values=(1_000_000, 50_000_000), counts=(900, 100)
    )
    opened = replace(closed, loop="open", rate=20.0, latencies=(histogram({1_000_000: 1000}), late))
    (found,) = compared_loops(repeats_of([closed, opened]))
    assert found.closed_service is not None
    assert found.service is not None
    assert found.intended is not None
    assert (found.closed_service.value, found.service.value) == (
        pytest.approx(1e-3),
        pytest.approx(1e-3),
    )
    assert found.intended.value == pytest.approx(50e-3)
    assert found.factor == pytest.approx(50)
    (alone,) = compared_loops(repeats_of([opened]))
    assert (alone.closed, alone.factor) == (None, pytest.approx(50))


@pytest.mark.parametrize(
    ("more", "outcome", "reported"),
    [
        ({}, "right", ""),
        ({"updates": 52, "in_doubt": 4, "doubtful": 2, "found": 1002}, "right", ""),
        ({"in_doubt": 4, "doubtful": 2, "found": 1001}, "wrong", "1 of 1,000 objects lost"),
        ({"updates": 53, "in_doubt": 2}, "wrong", "1 update more in the values than were made"),
        ({"updates": 49}, "wrong", "1 update of 50 lost"),
        ({"wrong": 2}, "wrong", "2 values read that nobody had written"),
        ({"missing": 3, "found": 997}, "wrong", "3 of 1,000 objects lost"),
        ({"found": 1001}, "wrong", "1 object more than were stored"),
        ({"updates": 40, "may_collide": True}, "lost", "10 updates of 50 lost, as tasks updated"),
    ],
)
def test_whether_the_data_are_right(more: dict[str, int], outcome: str, reported: str) -> None:
    found = correctness(replace(four(), checked=checked(**more)))
    assert found.outcome == outcome
    assert reported in "; ".join(found.told)
    assert bool(found.told) == bool(reported)


def test_atomic_updates_do_not_collide() -> None:
    data = checked(updates=40, may_collide=True)
    assert correctness(replace(four(), checked=data, updates="atomic")).outcome == "wrong"


def test_two_members_killed_may_lose_what_one_may_not() -> None:
    data = checked(missing=3, found=997, updates=45)
    one = killed([100] * 30, checked=data)
    first, *others = one.members
    both = (replace(first, killed_at=1.0), *others)
    two = replace(one, kill=(0, 1), members=both)
    assert correctness(one).outcome == "wrong"
    assert correctness(two).outcome == "lost"
    assert correctness(two).lost == 3
    assert correctness(two).updates == -5
    assert verdict(one)[0] == "failed"
    assert verdict(two)[0] == "valid"


def test_what_was_not_checked_is_not_called_right() -> None:
    assert correctness(replace(four(), checked=None)).outcome == "not checked"
    assert correctness(replace(four(), checked=None, wrong=1)).outcome == "wrong"


@pytest.mark.parametrize(
    ("more", "judged", "why"),
    [
        ({}, "valid", ""),
        ({"status": "failed", "why": "no member joined"}, "failed", "no member joined"),
        ({"wrong": 1}, "failed", "1 value read that nobody had written"),
        ({"load": DISTURBED}, "invalid", "other programs disturbed it"),
        ({"warm_up": None}, "invalid", "there was no warm-up"),
        (
            {"warm_up": WarmUp(seconds=30, steady=False)},
            "invalid",
            "throughput did not become steady in the warm-up; --warm S gives it more time",
        ),
        ({"errors": {"timeout": 2}}, "invalid", "2 operations failed"),
        (
            {"loop": "open", "rate": 30.0},
            "invalid",
            "of 30.0 /s offered only 20.0 /s were done, so that latencies grow with the length",
        ),
        ({"loop": "open", "rate": 20.5}, "valid", ""),
        (
            {"windows": windows_of(0.1, (3,) * 8 + (2,) * 12, (0,) * 20)},
            "invalid",
            "throughput fell by 39 % from the first half of the run to the second",
        ),
    ],
)
def test_what_a_claim_may_rest_on(more: dict[str, object], judged: str, why: str) -> None:
    found, reasons = verdict(replace(four(), **more))  # type: ignore[arg-type]
    assert found == judged
    assert why in "; ".join(reasons)
    assert bool(reasons) == bool(why)


def test_errors_and_a_dip_after_a_kill_do_not_make_it_invalid() -> None:
    windows = [100] * 10 + [0] * 10 + [100] * 5
    assert verdict(killed(windows, errors={"gone": 4}))[0] == "valid"


def test_members_that_were_not_killed_excuse_nothing() -> None:
    data = checked(missing=3, found=997)
    case = replace(four(), kill=(0, 1))
    assert verdict(case) == ("invalid", ["no member was killed, as all tasks ended before"])
    assert correctness(replace(case, checked=data)).outcome == "wrong"


@pytest.mark.parametrize(
    ("tasks", "clients", "done"), [(4, 2, 30.0), (3, 2, 22.5), (1, 2, 30.0), (5, 4, 18.75)]
)
def test_an_open_loop_whose_clients_have_not_as_many_tasks_keeps_up(
    tasks: int, clients: int, done: float
) -> None:
    parameters = four().parameters | {"NTasks": tasks, "NNodes": clients}
    case = replace(four(), loop="open", rate=30.0, parameters=parameters)
    made = case.counts.reads
    assert verdict(replace(case, seconds=made / done))[0] == "valid"
    assert verdict(replace(case, seconds=made / done / 0.9))[0] == "invalid"


def test_repeats_are_put_together_and_only_valid_ones_count() -> None:
    slow = replace(four(), repeat=1, seconds=4.0, load=DISTURBED)
    fast = replace(four(), repeat=2, seconds=1.0)
    (group,) = repeats_of([slow, four(), fast])
    assert group.counts
    throughput = group.interval(lambda f: f.throughput)
    assert throughput is not None
    assert (throughput.value, throughput.low, throughput.high) == (30.0, 20.0, 40.0)
    assert group.reasons == ["other programs disturbed it"]
    (alone,) = repeats_of([slow])
    assert not alone.counts
    assert [found.throughput for found in alone.figures] == [10.0]


def test_a_latency_of_repeats_is_that_of_all_operations() -> None:
    other = replace(four(), repeat=1, latencies=(histogram({10_000_000: 360}),))
    (group,) = repeats_of([four(), other])
    found = group.latency("read", lambda q: q.p99)
    assert found is not None
    # Of 400, the 396th: 380 take 10 ms, 16 take 20 ms.
    assert found.value == pytest.approx(0.020)
    assert (found.low, found.high) == (pytest.approx(0.010), pytest.approx(0.2))
    assert group.main == "read"


def test_cases_stand_by_scenario_and_size_with_engines_side_by_side() -> None:
    groups = repeats_of(campaign(["ignite", "hazelcast"], 1))
    first = [(g.case.scenario, g.case.label, g.case.title) for g in groups[:4]]
    assert first[:2] == [(1, "read", "Apache Ignite"), (1, "read", "Hazelcast")]
    assert [g.case.parameters["ObjectSize"] for g in groups[:4]] == [1, 1, 100, 100]
    assert groups[-1].case.scenario is None


def test_the_last_attempt_at_a_case_is_read(tmp_path: Path) -> None:
    failed = replace(four(), status="failed", why="no")
    folder = write_folder(tmp_path / "out", [failed, four(), made()])
    header, cases = FORM.read(folder)
    assert header.options["repeats"] == 3
    assert [case.status for case in cases] == ["done", "done"]
    assert cases[0] == four()
    assert FORM.read(folder / "datagrid.jsonl")[1] == cases
    with pytest.raises(InputError, match="holds no cases of a data grid"):
        FORM.read(tmp_path)


def test_the_timeline_is_one_that_other_tools_read(tmp_path: Path) -> None:
    case = replace(four(), tasks=replace(four().tasks, why=("", "", "gone\naway", "")))
    path = tmp_path / "timelines" / "case.parquet"
    write_timeline(case, path)
    table = pq.read_table(path)
    assert table.schema.equals(SCHEMA)
    assert table["tid"].to_pylist() == [0, 1, 2, 3]
    assert table["calc_in"].to_pylist() == [0.0, 0.0, 1.0, 1.2]
    assert table["retrieve"].to_pylist() == [1.0, 1.2, 1.5, 1.9]
    assert table["worker"].to_pylist() == ["client 0", "client 1", "client 0", "client 1"]
    assert table["status"].to_pylist() == ["ok", "gone away", "ok", "ok"]
    with pytest.raises(InputError, match="cannot write the timeline"):
        write_timeline(case, path / "below.parquet")
