"""Lanes: no two tasks at once in one, no more of them than needed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import timelines
from gridbench.analysis.lanes import assign_lanes
from gridbench.analysis.summary import running_over_time

intervals = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 20), st.sampled_from("ab")), max_size=40
)


def rows_of(found, **more):
    return timelines.table_of(
        [
            {"calc_in": float(start), "calc_out": float(start + length), "worker": where, **more}
            for start, length, where in found
        ]
    )


@given(intervals)
def test_lanes_are_disjoint_and_as_few_as_possible(found):
    table = rows_of(found)
    lanes = assign_lanes(table)
    needed = 0
    for where in "ab":
        mine = [(start, start + length) for start, length, w in found if w == where]
        needed += max((sum(s <= t < e for s, e in mine) for t, _ in mine), default=0)
    assert len(lanes.names) == needed
    assert len(set(lanes.names)) == needed
    for row, before in enumerate(lanes.previous):
        if before >= 0:
            assert lanes.lane[before] == lanes.lane[row]
            assert table["calc_out"][int(before)].as_py() <= table["calc_in"][row].as_py()
    # Walking back from the last task of each lane meets every task once.
    met = []
    for last in lanes.last:
        row = int(last)
        while row >= 0:
            met.append(row)
            row = int(lanes.previous[row])
    assert sorted(met) == list(range(len(found)))


@given(intervals)
def test_as_many_lanes_busy_as_tasks_run(found):
    table = rows_of([(start, length, "a") for start, length, _ in found])
    assert len(assign_lanes(table).names) == running_over_time(table).most


def test_free_longest_comes_next():
    lanes = assign_lanes(rows_of([(0, 3, "a"), (0, 2, "a"), (4, 1, "a"), (4, 1, "a")]))
    assert lanes.names == ("a #1", "a #2")
    assert lanes.lane.tolist() == [1, 0, 0, 1] or lanes.lane.tolist() == [0, 1, 1, 0]
    assert lanes.previous.tolist() == [-1, -1, 1, 0]


def test_workers_are_lanes_in_natural_order():
    lanes = assign_lanes(rows_of([(0, 1, "w10"), (0, 1, "w2"), (2, 1, "w10"), (0, 1, "w")]))
    assert lanes.names == ("w", "w2", "w10")
    assert lanes.lane.tolist() == [2, 1, 2, 0]


def test_same_worker_name_on_two_hosts_and_no_names_at_all():
    row = {"calc_in": 0.0, "calc_out": 1.0}
    two = timelines.table_of([row | {"host": "x"}, row | {"host": "y"}])
    assert assign_lanes(two).names == ("x/w1", "y/w1")
    # Of one of them the host is not known.
    unknown = timelines.table_of([row | {"host": ""}, row | {"host": "y"}])
    assert assign_lanes(unknown).names == ("/w1", "y/w1")
    none = timelines.table_of([row | {"host": "", "worker": ""}])
    assert assign_lanes(none).names == ("unknown",)


def test_tasks_without_stamps_are_in_no_lane():
    rows = [{}, {"calc_in": 0.0}, {"calc_out": 1.0}, {"calc_in": 0.0, "calc_out": 1.0}]
    lanes = assign_lanes(timelines.table_of(rows))
    assert lanes.lane.tolist() == [-1, -1, -1, 0]
    assert lanes.previous.tolist() == [-1] * 4
    assert lanes.last.tolist() == [3]
    assert np.array_equal(assign_lanes(timelines.table_of([])).lane, [])


def test_workers_of_several_hosts_are_reported_with_their_host():
    row = {"calc_in": 0.0, "calc_out": 1.0}
    apart = [row | {"host": "x", "worker": "1"}, row | {"host": "y", "worker": "2"}]
    assert assign_lanes(timelines.table_of(apart)).names == ("x/1", "y/2")
    # On one host, or where the host is the worker, that would say nothing.
    together = [row | {"host": "x", "worker": "1"}, row | {"host": "x", "worker": "2"}]
    assert assign_lanes(timelines.table_of(together)).names == ("1", "2")
    alone = [row | {"host": "x", "worker": "x"}, row | {"host": "y", "worker": ""}]
    assert assign_lanes(timelines.table_of(alone)).names == ("x", "y")
    nowhere = [row | {"host": "", "worker": "1"}, row | {"host": "y", "worker": "2"}]
    assert assign_lanes(timelines.table_of(nowhere)).names == ("1", "2")


#: In the order in which they are shown: numbers of any length, with zeros before them or without.
NAMES = (
    *("v3", "w", "w0", "w1", "w01", "w2", "w2a9", "w2a10", "w007", "w10"),
    *("w99999999999999", "w100000000000000", f"w1{'0' * 4999}", f"w{'9' * 5000}", "w-1"),
)


@given(st.permutations(NAMES))
def test_numbers_of_workers_are_numbers_however_long_they_are(names: list[str]) -> None:
    row = {"calc_in": 0.0, "calc_out": 1.0}
    table = timelines.table_of([row | {"worker": name} for name in names])
    assert assign_lanes(table).names == NAMES
