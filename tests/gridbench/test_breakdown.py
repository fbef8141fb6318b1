"""The breakdown: worked by hand, and sums that hold for any timeline."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import timelines
from gridbench.analysis.breakdown import (
    handling,
    input_begin,
    job_cost,
    job_end,
    round_trip,
    task_phases,
)
from gridbench.analysis.lanes import assign_lanes

NAN = float("nan")
# One worker of two that were requested. Task 2 is in the queue while task 1 runs and is sent
# off, by the engine's stamp, at 3.5; task 3 is submitted only when the worker has long been free.
HAND = [
    {"submit": 0.5, "calc_in": 2.0, "calc_out": 3.1, "retrieve": 3.3},
    {"submit": 0.6, "queued": 3.5, "calc_in": 3.6, "calc_out": 4.6, "retrieve": 4.7},
    {"submit": 6.0, "calc_in": 6.2, "calc_out": 7.2, "retrieve": 7.5},
]


def test_job_by_hand_cold():
    table = timelines.table_of(HAND)
    cost = job_cost(table, assign_lanes(table), 2, cold=True)
    assert cost is not None
    assert (cost.workers, cost.total) == (2, 7.5)
    assert cost.parts() == pytest.approx(
        {
            "start_up": 2.0 / 2,
            "submission": (6.0 - 4.7) / 2,
            "dispatch": ((3.5 - 3.3) + (6.2 - 6.0)) / 2,
            "input": (3.6 - 3.5) / 2,
            "sleep": 3.0 / 2,
            "extra": 0.1 / 2,
            "output": (0.2 + 0.1 + 0.3) / 2,
            "idle_end": 0.0,
            "never_used": 7.5 / 2,
        }
    )
    assert cost.cost == pytest.approx(7.5 - 1.5)


def test_job_by_hand_warm():
    table = timelines.table_of(HAND)
    cost = job_cost(table, assign_lanes(table), 1, cold=False)
    assert cost is not None
    assert cost.start_up == 0
    assert cost.submission == pytest.approx(0.5 + 1.3)
    assert cost.dispatch == pytest.approx(1.5 + 0.2 + 0.2)
    assert sum(cost.parts().values()) == pytest.approx(7.5)


def test_tasks_by_hand():
    table = timelines.table_of(HAND)
    phases = task_phases(table, assign_lanes(table), cold=True)
    assert phases.start_up == pytest.approx([1.5, 0, 0])
    assert phases.queue == pytest.approx([0, 2.7, 0])
    assert phases.dispatch == pytest.approx([0, 0.2, 0.2])
    assert phases.input == pytest.approx([0, 0.1, 0])
    assert phases.extra == pytest.approx([0.1, 0, 0])
    assert phases.output == pytest.approx([0.2, 0.1, 0.3])
    assert phases.total() == pytest.approx([2.8, 4.1, 1.5])
    assert phases.means()["queue"] == pytest.approx(0.9)
    assert round_trip(phases).values == pytest.approx([0.5, 1.8, 3.1])
    assert handling(phases).values == pytest.approx([0.4, 0.5])


def test_input_begins_when_worker_and_task_are_there():
    table = timelines.table_of(HAND)
    assert input_begin(table, assign_lanes(table), cold=False) == pytest.approx([0.5, 3.5, 6.0])


def test_on_a_cold_start_the_input_of_each_workers_first_task_begins_with_its_submit():
    row = {"submit": 0.5, "queued": 1.0, "calc_in": 2.0, "calc_out": 3.0, "retrieve": 3.0}
    later = {"submit": 0.5, "queued": 3.5, "calc_in": 4.0, "calc_out": 5.0, "retrieve": 5.0}
    table = timelines.table_of([row, row | {"worker": "w2"}, later, later | {"worker": "w2"}])
    lanes = assign_lanes(table)
    assert input_begin(table, lanes, cold=True) == pytest.approx([0.5, 0.5, 3.5, 3.5])
    assert input_begin(table, lanes, cold=False) == pytest.approx([1.0, 1.0, 3.5, 3.5])


def test_idle_at_the_end():
    row = {"submit": 0.0, "calc_in": 1.0}
    table = timelines.table_of(
        [
            row | {"calc_out": 2.0, "retrieve": 2.0},
            row | {"calc_out": 5.0, "retrieve": 5.0, "sleep": 4.0, "worker": "w2"},
        ]
    )
    cost = job_cost(table, assign_lanes(table), 2, cold=True)
    assert cost is not None
    assert cost.idle_end == pytest.approx(3.0 / 2)
    assert cost.never_used == 0


def test_retrieve_before_calc_out_keeps_its_sign():
    table = timelines.table_of(
        [{"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 1.997}]
    )
    phases = task_phases(table, assign_lanes(table), cold=True)
    assert phases.output == pytest.approx([-0.003])


def test_nothing_known():
    table = timelines.table_of([{"status": "failed"}] * 2)
    lanes = assign_lanes(table)
    assert job_cost(table, lanes, 2, cold=True) is None
    assert np.isnan(job_end(table))
    phases = task_phases(table, lanes, cold=True)
    assert round_trip(phases).count == 0
    assert all(np.isnan(value) for value in phases.means().values())
    assert all(np.isnan(value) for value in round_trip(phases).figures().values())


stamps = st.one_of(st.floats(-5, 50), st.just(NAN))
row = st.fixed_dictionaries(
    {
        "submit": stamps,
        "queued": stamps,
        "calc_in": stamps,
        "calc_out": stamps,
        "retrieve": stamps,
        "sleep": st.floats(0, 10),
        "worker": st.sampled_from(["w1", "w2", "w3"]),
    }
)


@settings(deadline=None)
@given(st.lists(row, max_size=12), st.integers(1, 5), st.booleans())
def test_the_sums_hold_for_any_stamps(rows, nnodes, cold):
    # calc-out lies at or after calc-in: both are of one clock.
    rows = [r | {"calc_out": np.fmax(r["calc_in"], r["calc_out"])} for r in rows]
    table = timelines.table_of(rows)
    lanes = assign_lanes(table)
    cost = job_cost(table, lanes, nnodes, cold=cold)
    if cost is not None:
        assert sum(cost.parts().values()) == pytest.approx(cost.total, abs=1e-6)
    phases = task_phases(table, lanes, cold=cold)
    trip = np.array(table["retrieve"]) - np.array(table["submit"])
    known = np.isfinite(trip) & (lanes.lane >= 0)
    assert phases.total()[known] == pytest.approx(trip[known], abs=1e-6)
    begin = input_begin(table, lanes, cold=cold)
    assert (begin[known] <= np.array(table["calc_in"])[known]).all()


def test_a_task_that_did_not_end_is_no_workers_first():
    ended = {"submit": 0.5, "calc_in": 2.0, "calc_out": 3.0, "retrieve": 3.5}
    table = timelines.table_of([ended, {"submit": 0.5, "calc_in": 1.0, "queued": 0.75}])
    lanes = assign_lanes(table)
    phases = task_phases(table, lanes, cold=True)
    assert phases.start_up == pytest.approx([1.5, 0.0])
    # And what its stamps do not tell is not made up.
    assert np.isnan(phases.total()[1])
    assert input_begin(table, lanes, cold=True) == pytest.approx([0.5, 0.75])
    assert handling(phases).count == 0


def test_a_task_that_was_sent_off_as_it_began_has_no_input_phase():
    row = {"submit": 1.0, "calc_in": 2.0, "calc_out": 3.0, "retrieve": 3.0}
    cases = ((1.0, (1.0, 0.0)), (1.25, (0.25, 0.75)), (2.0, (1.0, 0.0)), (2.5, (1.0, 0.0)))
    for queued, expected in cases:
        table = timelines.table_of([row | {"queued": queued}])
        phases = task_phases(table, assign_lanes(table), cold=False)
        assert (phases.dispatch[0], phases.input[0]) == pytest.approx(expected)
        begin = input_begin(table, assign_lanes(table), cold=False)
        assert begin == pytest.approx([queued if queued < 2 else 1.0])


def test_more_workers_than_asked_for_count():
    row = {"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 2.0}
    table = timelines.table_of([row, row | {"worker": "w2"}])
    cost = job_cost(table, assign_lanes(table), 1, cold=True)
    assert cost is not None
    assert (cost.workers, cost.start_up, cost.never_used) == (2, 1.0, 0.0)


def test_the_end_is_the_last_result_or_the_last_task():
    rows = [{"calc_in": 0.0, "calc_out": 5.0}, {"calc_in": 0.0, "calc_out": 2.0, "retrieve": 3.0}]
    assert job_end(timelines.table_of(rows)) == 3.0
    assert job_end(timelines.table_of(rows[:1])) == 5.0


def test_workers_that_were_never_used_take_their_share_of_the_time():
    table = timelines.table_of(HAND)
    cost = job_cost(table, assign_lanes(table), 4, cold=True)
    assert cost is not None
    assert cost.never_used == pytest.approx(7.5 * 3 / 4)
    assert cost.start_up == pytest.approx(2.0 / 4)
    assert sum(cost.parts().values()) == pytest.approx(7.5)


def test_a_worker_whose_last_result_is_not_known_was_free_when_its_task_had_ended():
    row = {"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0}
    other = row | {"calc_out": 4.0, "retrieve": 5.0, "sleep": 3.0, "worker": "w2"}
    table = timelines.table_of([row, other])
    cost = job_cost(table, assign_lanes(table), 2, cold=True)
    assert cost is not None
    # From 2 to 5; and the other's result was on its way for a second.
    assert (cost.idle_end, cost.output) == pytest.approx((3 / 2, 1 / 2))


def test_handling_is_all_but_the_sleep_of_a_task_that_did_not_wait():
    table = timelines.table_of(HAND)
    phases = task_phases(table, assign_lanes(table), cold=False)
    # 1.5 s to the worker, 0.1 s longer than its sleep, and 0.2 s back.
    assert phases.handling() == pytest.approx([1.8, 0.4, 0.5])


def test_means_are_reported_of_tasks_that_did_not_say_when_they_were_submitted():
    row = {"calc_in": 1.0, "calc_out": 2.25, "retrieve": 2.75}
    table = timelines.table_of([row])
    means = task_phases(table, assign_lanes(table), cold=False).means()
    assert (means["extra"], means["output"], means["sleep"]) == (0.25, 0.5, 1.0)
    assert np.isnan(means["queue"] + means["dispatch"])


@pytest.mark.parametrize(
    ("begin", "longer", "extra"), [(1.0, 0.8e-8, 0.0), (0.0, 1e-8, 0.0), (1.0, 1.2e-8, 1.2e-8)]
)
def test_what_stamps_are_rounded_by_is_no_extra_time(begin, longer, extra):
    row = {"submit": 0.0, "calc_in": begin, "calc_out": 2 * begin + longer, "retrieve": 3.0}
    row["sleep"] = begin
    table = timelines.table_of([row])
    phases = task_phases(table, assign_lanes(table), cold=True)
    assert phases.extra[0] == pytest.approx(extra, abs=1e-12)
