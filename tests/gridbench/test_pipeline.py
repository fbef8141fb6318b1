"""The pipeline model, on cases whose answer is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.analysis.columns import Floats
from gridbench.analysis.summary import ideal_time
from gridbench.errors import InputError
from gridbench.model.observation import EnginePlace, Situation
from gridbench.model.pipeline import (
    Link,
    Manager,
    MessageCost,
    PipelineCase,
    PipelineParameters,
    Sharing,
    WorkerStart,
    evaluate,
)
from gridbench.model.terms import Shape, run

FREE = PipelineParameters(to_workers=Link(), from_workers=Link())
"""Nothing costs anything."""
MANAGED = replace(FREE, manager=Manager(inward=Link(), outward=Link()))


def case(
    tasks: int, workers: int, sleep: float = 1.0, start_up: float = 0.0, **sizes: float
) -> PipelineCase:
    return PipelineCase(np.full(tasks, sleep), np.full(workers, start_up), **sizes)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize("parameters", [FREE, MANAGED])
@given(sleep=st.lists(st.floats(0, 100), min_size=1, max_size=40), workers=st.integers(1, 10))
def test_without_any_cost_the_total_is_ideal(
    parameters: PipelineParameters, sleep: list[float], workers: int
) -> None:
    stamps = evaluate(PipelineCase(floats(*sleep), np.zeros(workers)), parameters)
    assert stamps.total == pytest.approx(ideal_time(floats(*sleep), workers))


def test_latencies_add_up() -> None:
    stamps = evaluate(case(1, 1), replace(FREE, start_latency=0.25, return_latency=0.5))
    assert (stamps.submit[0], stamps.calc_in[0], stamps.calc_out[0]) == (0, 0.25, 1.25)
    assert stamps.total == 1.75


@pytest.mark.parametrize(("sharing", "starts"), [("in turn", [1, 2, 3]), ("evenly", [3, 3, 3])])
def test_a_block_of_tasks_shares_the_link(sharing: Sharing, starts: list[float]) -> None:
    link = Link(rate=100.0, sharing=sharing)
    stamps = evaluate(case(3, 3, bytes_in=100), replace(FREE, to_workers=link))
    assert stamps.calc_in.tolist() == starts


@pytest.mark.parametrize(("tasks", "start"), [(3, 4.0), (8, 8.0)])
def test_a_message_goes_no_faster_than_a_worker_takes_it(tasks: int, start: float) -> None:
    # Four of them fill the link.
    link = Link(rate=100.0, each=25.0, sharing="evenly")
    stamps = evaluate(case(tasks, tasks, bytes_in=100), replace(FREE, to_workers=link))
    assert stamps.calc_in.tolist() == pytest.approx([start] * tasks)


def test_messages_in_turn_wait_for_a_slow_worker() -> None:
    link = Link(rate=100.0, each=25.0)
    stamps = evaluate(case(3, 3, bytes_in=100), replace(FREE, to_workers=link))
    assert stamps.calc_in.tolist() == [4.0, 8.0, 12.0]


def test_a_message_takes_some_of_the_link_besides_its_bytes() -> None:
    link = Link(rate=100.0, per_message=0.5)
    stamps = evaluate(case(2, 2, bytes_in=100), replace(FREE, to_workers=link))
    assert stamps.calc_in.tolist() == [1.5, 3.0]


def test_with_a_manager_data_travels_while_workers_start() -> None:
    hop = Link(rate=100.0)
    parameters = replace(MANAGED, manager=Manager(inward=hop, outward=Link()), to_workers=hop)
    stamps = evaluate(case(2, 2, start_up=10.0, bytes_in=100), parameters)
    assert stamps.submit.tolist() == [1, 2]
    assert stamps.calc_in.tolist() == [11, 12]
    # Without one it waits for them.
    stamps = evaluate(case(2, 2, start_up=10.0, bytes_in=100), replace(FREE, to_workers=hop))
    assert stamps.submit.tolist() == [10, 10]
    assert stamps.calc_in.tolist() == [11, 12]


def test_the_slower_of_two_hops_sets_the_pace() -> None:
    slow, fast = Link(rate=100.0), Link(rate=400.0)
    parameters = replace(MANAGED, manager=Manager(inward=slow, outward=Link()), to_workers=fast)
    stamps = evaluate(case(4, 4, bytes_in=100), parameters)
    assert stamps.calc_in.tolist() == [1.25, 2.25, 3.25, 4.25]


def test_results_go_back_by_both_hops() -> None:
    parameters = replace(
        MANAGED,
        manager=Manager(inward=Link(), outward=Link(rate=100.0)),
        from_workers=Link(rate=200.0),
    )
    stamps = evaluate(case(2, 2, bytes_out=100), parameters)
    assert stamps.retrieve.tolist() == [1 + 0.5 + 1, 1 + 0.5 + 2]


def test_without_a_manager_a_worker_waits_until_the_client_has_its_result() -> None:
    stamps = evaluate(case(2, 1), replace(FREE, return_latency=0.5, retrieve_cost=0.25))
    assert stamps.submit.tolist() == [0, 1.75]
    # With one, the worker continues as soon as the manager has the result.
    stamps = evaluate(case(2, 1), replace(MANAGED, return_latency=0.5, retrieve_cost=0.25))
    assert stamps.calc_in.tolist() == [0, 1]


def test_a_client_that_takes_results_one_by_one_gives_each_worker_a_task_in_between() -> None:
    stamps = evaluate(case(6, 3, sleep=10.0), replace(FREE, retrieve_cost=0.5, submit_cost=0.25))
    # The first block: submitted one by one. The second: after taking a result each.
    assert stamps.submit.tolist() == [0.25, 0.5, 0.75, 11.0, 11.75, 12.5]


def test_shared_data_goes_to_each_worker_with_its_first_task() -> None:
    parameters = replace(FREE, shared_rate=100.0)
    stamps = evaluate(case(4, 2, start_up=1.0, bytes_shared=50), parameters)
    assert stamps.calc_in.tolist() == [1.5, 2.0, 2.5, 3.0]
    assert stamps.worker.tolist() == [0, 1, 0, 1]


def on_hosts(*hosts: int, ready: Floats | None = None, **sizes: float) -> PipelineCase:
    """A task for each of these workers, whose hosts are given."""
    count = len(hosts)
    starts = np.zeros(count) if ready is None else ready
    return PipelineCase(np.full(count, 9.0), starts, host=np.array(hosts), **sizes)


def test_shared_data_goes_to_each_host_once() -> None:
    parameters = replace(FREE, shared_rate=100.0)
    stamps = evaluate(on_hosts(0, 0, 1, 1, bytes_shared=50), parameters)
    assert stamps.worker.tolist() == [0, 1, 2, 3]
    assert stamps.calc_in.tolist() == [0.5, 0.5, 1.0, 1.0]


def test_a_worker_waits_for_what_is_on_its_way_to_its_host() -> None:
    # By a link with room for both at the same time, the second task is there before the data.
    link = Link(rate=100.0, sharing="evenly")
    parameters = replace(FREE, to_workers=link)
    stamps = evaluate(
        on_hosts(0, 0, bytes_in=10, bytes_shared=80), replace(parameters, shared_rate=100.0)
    )
    assert stamps.calc_in.tolist() == pytest.approx([1.0, 1.0])


def test_hosts_in_a_chain_have_shared_data_when_the_first_has() -> None:
    parameters = replace(FREE, shared_rate=100.0, chained_from=50)
    stamps = evaluate(on_hosts(0, 1, 2, 3, bytes_shared=50), parameters)
    assert stamps.calc_in.tolist() == [0.5, 0.5, 0.5, 0.5]
    # Of less than is worth a chain the client sends it to each.
    stamps = evaluate(on_hosts(0, 1, 2, 3, bytes_shared=49), parameters)
    assert stamps.calc_in.tolist() == pytest.approx([0.49, 0.98, 1.47, 1.96])


def test_a_host_that_joins_a_chain_late_gets_all_from_its_neighbour() -> None:
    parameters = replace(FREE, shared_rate=100.0, chained_from=0)
    for start in (0.2, 3.0):
        ready = floats(0.0, start, start, start)
        stamps = evaluate(on_hosts(0, 1, 1, 2, ready=ready, bytes_shared=50), parameters)
        # Its own data passes the client's link; the shared data does not.
        assert stamps.calc_in.tolist() == pytest.approx([0.5, *[start + 0.5] * 3])


def test_each_worker_takes_shared_data_of_its_host() -> None:
    parameters = replace(FREE, shared_rate=100.0, take_shared=MessageCost(per_byte=0.01))
    stamps = evaluate(on_hosts(0, 0, 0, bytes_shared=50), parameters)
    assert stamps.calc_in.tolist() == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize("megabytes", [0.5, 8])
def test_links_carry_shared_data_by_hosts_and_not_by_workers(megabytes: float) -> None:
    shape = Shape(movement="network")
    place = EnginePlace(
        engine="made-up", version="1", host="here", processors=2, transport="links", nodes=4
    )
    size = megabytes * 2**20

    def last(cores: int, nodes: int) -> float:
        situation = Situation(cores=cores, sleep=np.full(cores, 30.0), bytes_shared=size, warm=True)
        values = {"shared.way": 1e-8}
        return float(run(shape, values, replace(place, nodes=nodes), situation).calc_in.max())

    alone = size * 1e-8
    # From 1 MiB on hosts hand it on to each other.
    times = 1 if megabytes > 1 else 4
    assert last(4, 4) == last(40, 4) == pytest.approx(alone * times)
    assert last(40, 1) == pytest.approx(alone)


def test_a_case_has_a_host_for_each_worker() -> None:
    with pytest.raises(InputError, match="a host for each worker"):
        PipelineCase(np.ones(2), np.zeros(2), host=np.zeros(3, dtype=np.int64))


def test_the_first_worker_works_while_the_others_start() -> None:
    stamps = evaluate(PipelineCase(np.full(9, 1.0), floats(0.0, 4.5)), MANAGED)
    assert stamps.worker.tolist() == [0, 0, 0, 0, 0, 1, 0, 1, 0]
    assert stamps.total == 7.0


@given(
    tasks=st.integers(1, 60),
    workers=st.integers(1, 20),
    sleep=st.floats(0, 10),
    size=st.floats(0, 1e6),
    managed=st.booleans(),
)
@pytest.mark.parametrize("sharing", ["in turn", "evenly"])
def test_stamps_stand_in_order_and_no_stage_is_faster_than_it_can(
    sharing: Sharing, *, tasks: int, workers: int, sleep: float, size: float, managed: bool
) -> None:
    link = Link(rate=1e5, per_message=1e-3, sharing=sharing)
    parameters = PipelineParameters(
        to_workers=link,
        from_workers=link,
        manager=Manager(inward=link, outward=link) if managed else None,
        submit_cost=0.01,
        retrieve_cost=0.02,
        start_latency=0.1,
        return_latency=0.1,
    )
    stamps = evaluate(case(tasks, workers, sleep, bytes_in=size, bytes_out=size), parameters)
    assert np.all(stamps.submit >= 0.01)
    assert np.all(stamps.calc_in - stamps.submit >= 0.1 - 1e-9)
    assert np.allclose(stamps.calc_out - stamps.calc_in, sleep)
    assert np.all(stamps.retrieve - stamps.calc_out >= 0.12 - 1e-9)
    assert stamps.total >= tasks * link.work(size) * (1 - 1e-9) + sleep
    assert stamps.total >= math.ceil(tasks / workers) * sleep
    # A worker has one task at a time.
    for worker in range(workers):
        mine = stamps.worker == worker
        assert np.all(stamps.calc_in[mine][1:] >= stamps.calc_out[mine][:-1])


@pytest.mark.parametrize(
    ("sleep", "ready", "sizes", "message"),
    [
        ([], [0.0], {}, "the task times of a case must be finite numbers, at least one"),
        ([1.0], [math.nan], {}, "the start-up times of a case must be finite numbers"),
        ([-1.0], [0.0], {}, "the task times of a case must not be below 0: -1 s"),
        ([1.0], [0.0], {"bytes_in": -1.0}, "not a data size in bytes: -1"),
        ([1.0], [0.0], {"bytes_shared": math.inf}, "not a data size in bytes: inf"),
    ],
)
def test_an_impossible_case_is_refused(
    sleep: list[float], ready: list[float], sizes: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        PipelineCase(floats(*sleep), floats(*ready), **sizes)


ONE_HOST = replace(MANAGED, processors=2)
"""A runtime in the client, on a machine with two processors."""


def test_workers_come_up_one_after_another() -> None:
    start = WorkerStart(constant=1.0, prepare=0.5, serial=0.25, parallel=2.0)
    stamps = evaluate(case(3, 3), replace(MANAGED, start=start))
    # 1 s and three times 0.5 s before the first is made.
    assert stamps.calc_in.tolist() == [4.75, 5.0, 5.25]


def test_tasks_may_have_to_wait_until_all_workers_are_made() -> None:
    start = WorkerStart(serial=1.0, all_first=True)
    stamps = evaluate(case(3, 3), replace(MANAGED, start=start))
    assert stamps.calc_in.tolist() == [3, 3, 3]


def test_starting_workers_and_making_output_share_the_processors() -> None:
    start = WorkerStart(serial=1.0, parallel=4.0)
    # Made after 1 s, 2 s and so on; two processors serve those that make and those that start.
    alone = evaluate(case(1, 1), replace(ONE_HOST, start=start)).calc_in[0]
    crowded = evaluate(case(4, 4, sleep=9.0), replace(ONE_HOST, start=start)).calc_in
    assert alone == 5
    # 4 x 1 s and 4 x 4 s of work on two processors; one idles in the first second and
    # in the last.
    assert crowded.max() == pytest.approx(11)
    make = replace(ONE_HOST, make=MessageCost(per_byte=0.01))
    stamps = evaluate(case(4, 4, bytes_out=100), make)
    assert stamps.calc_out.tolist() == pytest.approx([3, 3, 3, 3])


def test_a_worker_takes_shared_data_once_and_task_data_each_time() -> None:
    parameters = replace(
        ONE_HOST,
        share=MessageCost(per_byte=0.01),
        take_shared=MessageCost(per_byte=0.02),
        take=MessageCost(fixed=0.5, per_byte=0.001),
    )
    stamps = evaluate(case(2, 1, bytes_in=100, bytes_shared=100), parameters)
    assert stamps.calc_in.tolist() == pytest.approx([1 + 2 + 0.6, 3.6 + 1 + 0.6])


def test_memory_for_input_is_new_until_a_task_has_left_some() -> None:
    parameters = replace(ONE_HOST, new_input=MessageCost(fixed=0.1, per_byte=0.01))
    stamps = evaluate(case(3, 1, bytes_in=100), replace(parameters, most_outstanding=1))
    # The first task's memory takes 1.1 s, and serves the others as well.
    assert stamps.submit.tolist() == pytest.approx([1.1, 2.1, 3.1])
    assert evaluate(case(3, 1, bytes_in=100), replace(parameters, kept_from=101)).total == 3


def test_a_worker_maps_memory_for_input_that_it_has_not_seen() -> None:
    parameters = replace(ONE_HOST, map_input=MessageCost(per_byte=0.01), most_outstanding=1)
    # The same memory serves all tasks, and the worker has it from the first on.
    assert evaluate(case(3, 1, bytes_in=100), parameters).calc_in.tolist() == [1, 2, 3]
    # Another worker does each task, and has not.
    assert evaluate(case(3, 3, bytes_in=100), parameters).calc_in.tolist() == [1, 3, 5]
    # Memory that is not kept is other memory next time.
    unkept = replace(parameters, most_left=0)
    assert evaluate(case(3, 1, bytes_in=100), unkept).calc_in.tolist() == [1, 3, 5]


def test_each_worker_makes_memory_for_outputs_unless_the_client_has_done_with_some() -> None:
    parameters = replace(ONE_HOST, new_output=MessageCost(fixed=0.1, per_byte=0.01))
    stamps = evaluate(case(6, 2, bytes_out=100), parameters)
    assert stamps.calc_out.tolist() == pytest.approx([2.1, 2.1, 3.1, 3.1, 4.1, 4.1])
    # The client is slower: the first result is still there when the second is made.
    slow = evaluate(case(3, 1, bytes_out=100), replace(parameters, retrieve_cost=1.5))
    assert slow.calc_out.tolist() == pytest.approx([2.1, 4.2, 5.2])


def test_the_worker_that_was_used_last_is_used_first() -> None:
    tasks = replace(case(4, 3), sleep=np.array([1.0, 2.0, 3.0, 1.0]))
    busy = replace(MANAGED, most_outstanding=3)
    assert evaluate(tasks, busy).worker.tolist() == [0, 1, 2, 0]
    spaced = replace(MANAGED, most_outstanding=1)
    assert evaluate(tasks, spaced).worker.tolist() == [0, 1, 2, 0]
    last = replace(spaced, last_used_first=True)
    assert evaluate(tasks, last).worker.tolist() == [2, 2, 2, 2]


def test_the_client_takes_a_worker_in_when_it_has_come_up() -> None:
    start = WorkerStart(serial=0.1, adopt=1.0)
    stamps = evaluate(case(4, 2), replace(ONE_HOST, start=start))
    # One worker after the other, and each before the result that comes at the same time.
    assert stamps.calc_in.tolist() == pytest.approx([1.1, 2.1, 2.1, 3.1])


def test_a_worker_that_has_come_up_is_used_if_no_other_is_idle() -> None:
    one_by_one = replace(ONE_HOST, start=WorkerStart(serial=0.1), most_outstanding=1)
    last = replace(one_by_one, last_used_first=True)
    assert evaluate(case(3, 3), last).worker.tolist() == [0, 0, 0]
    assert evaluate(case(3, 3), one_by_one).worker.tolist() == [0, 1, 2]


def test_the_client_maps_outputs_in_memory_that_is_new() -> None:
    parameters = replace(ONE_HOST, map_output=MessageCost(per_byte=0.01), most_outstanding=1)
    stamps = evaluate(case(3, 1, bytes_out=100), parameters)
    # The second output and the third lie where the first was.
    assert stamps.retrieve.tolist() == pytest.approx([2, 3, 4])
    assert evaluate(case(3, 1, bytes_out=100), replace(parameters, kept_from=101)).total == 3


def test_a_task_sent_ahead_travels_while_its_worker_computes() -> None:
    parameters = replace(MANAGED, to_workers=Link(rate=100.0))
    alone = evaluate(case(3, 1, bytes_in=50), parameters)
    ahead = evaluate(case(3, 1, bytes_in=50), replace(parameters, ahead=1))
    assert alone.calc_in.tolist() == [0.5, 2, 3.5]
    assert ahead.calc_in.tolist() == [0.5, 1.5, 2.5]


def test_submission_waits_where_no_more_data_may_wait() -> None:
    parameters = replace(MANAGED, submit_per_byte=0.001)
    free = evaluate(case(4, 1, bytes_in=100), parameters)
    held = evaluate(case(4, 1, bytes_in=100), replace(parameters, most_waiting_bytes=100))
    assert free.submit.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    # One computes and one waits; the next is taken up when that one goes to the worker.
    assert held.submit.tolist() == pytest.approx([0.1, 0.2, 1.2, 2.2])
    assert held.total == free.total


def test_submission_waits_for_room_in_the_client() -> None:
    stamps = evaluate(case(4, 4), replace(MANAGED, most_outstanding=2))
    assert stamps.submit.tolist() == [0, 0, 1, 1]


def test_under_a_lock_the_client_submits_or_takes_results_but_copies_meanwhile() -> None:
    costs = replace(ONE_HOST, submit_cost=1.0, retrieve_cost=1.0)
    free = evaluate(case(3, 3), costs)
    assert free.submit.tolist() == pytest.approx([1, 2, 3])
    assert free.retrieve.tolist() == pytest.approx([3, 4, 5])
    # At 2 the first result and the third task wait for it, and have it one after the other.
    locked = replace(costs, client_lock=True)
    stamps = evaluate(case(3, 3), locked)
    assert stamps.submit.tolist() == pytest.approx([1, 2, 4])
    assert stamps.retrieve.tolist() == pytest.approx([3, 5, 6])
    copies = replace(locked, submit_cost=0.0, submit_per_byte=1.0)
    stamps = evaluate(case(3, 3, sleep=0.0, bytes_in=1), copies)
    assert stamps.submit.tolist() == pytest.approx([1, 2, 3])
    assert stamps.retrieve.tolist() == pytest.approx([2, 3, 4])


def test_without_a_manager_there_is_nothing_to_start_workers() -> None:
    with pytest.raises(InputError, match="manager"):
        replace(FREE, start=WorkerStart())
