"""What a simulated run keeps busy for how long, what would be gained without it, and the sentence
that this ends in: added up by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridbench.model.pipeline import Link, Manager, MessageCost, PipelineParameters, WorkerStart
from gridbench.simulate.account import Gain, Use, gains, limit, uses
from gridbench.simulate.simulation import SimulatedWorkload, Simulation, simulate
from gridbench.simulate.systems import Batch, Pressure, System


def _system(parameters: PipelineParameters, ready: float = 0.0) -> System:
    start_up = Batch(constant=ready, per_worker=0.0)
    return System(name="by hand", title="by hand", parameters=parameters, start_up=start_up)


def _busy(done: Simulation) -> dict[str, float]:
    return {use.what: use.busy for use in uses(done)}


def test_one_client_submits_and_takes_results_and_both_links_carry_data() -> None:
    one = _system(
        PipelineParameters(
            to_workers=Link(rate=10.0, per_message=0.5),
            from_workers=Link(rate=20.0),
            shared_rate=40.0,
            submit_cost=2.0,
            retrieve_cost=3.0,
            take_output=MessageCost(fixed=1.0, per_byte=0.1),
        )
    )
    work = SimulatedWorkload(
        cores=2, tasks=4, sleep=100.0, bytes_in=30.0, bytes_out=60.0, bytes_shared=80.0
    )
    done = simulate(work, one)
    assert _busy(done) == {
        "the client, submitting and taking results": pytest.approx(4 * (2 + 3 + 1 + 60 * 0.1)),
        # Shared data goes once to each of the two workers.
        "the link to the workers": pytest.approx(4 * (0.5 + 30 / 10) + 2 * 80 / 40),
        "the link from the workers": pytest.approx(4 * 60 / 20),
        "the workers, computing": pytest.approx(4 * 100 / 2),
    }
    assert all(use.share == pytest.approx(use.busy / done.total) for use in uses(done))
    shares = [use.share for use in uses(done)]
    assert shares == sorted(shares, reverse=True)


MANAGED = PipelineParameters(
    to_workers=Link(),
    from_workers=Link(),
    manager=Manager(inward=Link(rate=5.0, per_message=0.25), outward=Link(rate=15.0)),
    submit_cost=2.0,
    submit_per_byte=0.2,
    retrieve_cost=3.0,
    take_output=MessageCost(fixed=1.0, per_byte=0.1),
)
DATA = SimulatedWorkload(cores=2, tasks=4, sleep=100.0, bytes_in=30.0, bytes_out=60.0)


@pytest.mark.parametrize("lock", [False, True])
def test_with_a_manager_two_threads_of_the_client_and_two_links_more_are_busy(lock: bool) -> None:
    done = simulate(DATA, _system(replace(MANAGED, client_lock=lock)))
    # Copying a task's data does not need the lock.
    locked = {"the client's lock, submitting and taking results": 4 * (2 + 3 + 1 + 60 * 0.1)}
    assert _busy(done) == pytest.approx(
        {
            "the client, submitting": 4 * (2 + 30 * 0.2),
            "the client, taking results": 4 * (3 + 1 + 60 * 0.1),
            "the link from the client to the manager": 4 * (0.25 + 30 / 5),
            "the link from the manager to the client": 4 * 60 / 15,
            "the workers, computing": 4 * 100 / 2,
        }
        | (locked if lock else {})
    )


def test_what_takes_its_output_without_data_takes_no_time() -> None:
    done = simulate(replace(DATA, bytes_out=0.0), _system(MANAGED))
    assert _busy(done)["the client, taking results"] == pytest.approx(4 * 3)


def test_messages_that_go_at_once_keep_a_link_busy_together() -> None:
    # Five messages of 2 bytes/s fill 10 bytes/s.
    evenly = Link(rate=10.0, sharing="evenly", each=2.0)
    one = _system(PipelineParameters(to_workers=evenly, from_workers=evenly, shared_rate=100.0))
    busy = _busy(simulate(replace(DATA, bytes_shared=80.0), one))
    # Shared data comes no faster than a worker's own link takes it.
    assert busy["the link to the workers"] == pytest.approx((4 * 30 / 2 + 2 * 80 / 2) / 5)
    assert busy["the link from the workers"] == pytest.approx(4 * 60 / 2 / 5)


def test_processors_are_shared_by_client_and_workers() -> None:
    known = replace(
        MANAGED,
        processors=2.0,
        start=WorkerStart(serial=0.5, parallel=1.5),
        share=MessageCost(fixed=7.0),
        take_shared=MessageCost(fixed=1.0, per_byte=0.01),
        take=MessageCost(fixed=0.1, per_byte=0.02),
        make=MessageCost(fixed=0.2, per_byte=0.03),
    )
    each = (2 + 30 * 0.2) + (3 + 1 + 60 * 0.1) + (0.1 + 30 * 0.02) + (0.2 + 60 * 0.03)
    busy = _busy(simulate(DATA, _system(known)))
    assert busy["the machine's processors"] == pytest.approx((4 * each + 2 * (0.5 + 1.5)) / 2)
    busy = _busy(simulate(replace(DATA, bytes_shared=80.0), _system(known)))
    shared = 7 + 2 * (1 + 80 * 0.01)
    assert busy["the machine's processors"] == pytest.approx(
        (4 * each + 2 * (0.5 + 1.5) + shared) / 2
    )
    busy = _busy(simulate(DATA, _system(replace(known, start=None))))
    assert busy["the machine's processors"] == pytest.approx(4 * each / 2)


def test_a_manager_that_pages_keeps_its_disk_busy() -> None:
    done = replace(simulate(DATA, _system(MANAGED)), pressure=Pressure(disk_busy=12.5))
    assert _busy(done)["the manager's disk"] == 12.5


# What would be gained.


def _gains(work: SimulatedWorkload, one: System) -> dict[str, tuple[float, float]]:
    return {gain.without: (gain.total, gain.saved) for gain in gains(simulate(work, one))}


ONE = SimulatedWorkload(cores=1, tasks=1, sleep=10.0)
BARE = PipelineParameters(to_workers=Link(), from_workers=Link(), manager=Manager())


@pytest.mark.parametrize(
    "handling",
    [
        {"to_workers": Link(per_message=2.0)},
        {"from_workers": Link(per_message=2.0)},
        {"manager": Manager(inward=Link(per_message=2.0))},
        {"manager": Manager(outward=Link(per_message=2.0))},
        {"submit_cost": 2.0},
        {"retrieve_cost": 2.0},
        {"start_latency": 2.0},
        {"return_latency": 2.0},
        {"take": MessageCost(fixed=2.0)},
        {"make": MessageCost(fixed=2.0)},
    ],
)
def test_without_what_each_task_costs_only_the_task_remains(handling: dict[str, Any]) -> None:
    found = _gains(ONE, _system(replace(BARE, **handling)))
    assert found == {"work and waits for each task": (10.0, 2.0)}


def test_what_data_costs_is_not_what_each_task_costs() -> None:
    known = replace(
        BARE, from_workers=Link(rate=10.0), take_output=MessageCost(fixed=2.0, per_byte=0.1)
    )
    found = _gains(replace(ONE, bytes_out=30.0), _system(known))
    assert found == {
        "data": pytest.approx((10.0, 8.0)),
        "work and waits for each task": pytest.approx((16.0, 2.0)),
    }


def test_nothing_can_be_left_out_of_what_costs_nothing() -> None:
    assert _gains(ONE, _system(BARE)) == {}
    assert _gains(ONE, _system(replace(BARE, to_workers=Link(rate=1.0)))) == {}


def test_shared_data_is_left_out_alone_and_with_all_data() -> None:
    known = replace(BARE, to_workers=Link(rate=10.0), shared_rate=20.0)
    found = _gains(replace(ONE, bytes_shared=60.0, bytes_in=30.0), _system(known))
    assert found == {"data": (10.0, 6.0), "shared data": (13.0, 3.0)}
    # Work without data of other kinds has shared data to leave out as well.
    found = _gains(replace(ONE, bytes_shared=60.0), _system(known))
    assert found == {"data": (10.0, 3.0), "shared data": (10.0, 3.0)}


def test_start_up_is_left_out_whoever_tells_of_it() -> None:
    assert _gains(ONE, _system(BARE, ready=3.0)) == {"start-up": (10.0, 3.0)}
    own = replace(BARE, start=WorkerStart(constant=3.0), processors=4.0)
    assert _gains(ONE, _system(own)) == {"start-up": (10.0, 3.0)}


def test_tasks_that_differ_are_replaced_by_their_mean() -> None:
    done = simulate(replace(ONE, cores=2, tasks=2), _system(BARE), times=np.array([4.0, 16.0]))
    assert gains(done) == [Gain("differences between tasks", 10.0, 6.0)]


def test_of_more_than_50_000_tasks_nothing_is_left_out() -> None:
    many = replace(ONE, cores=1000, tasks=50_000, sleep=0.01)
    one = _system(BARE, ready=3.0)
    assert list(_gains(many, one)) == ["start-up"]
    assert _gains(replace(many, tasks=50_001), one) == {}


def test_what_takes_no_time_at_all_keeps_nothing_busy() -> None:
    done = simulate(replace(ONE, sleep=0.0), _system(BARE))
    assert (done.total, uses(done)) == (0.0, [])
    assert math.isnan(done.efficiency)
    short = simulate(replace(ONE, sleep=0.5), _system(replace(BARE, submit_cost=0.125)))
    assert short.efficiency == 0.8


def test_what_is_busy_for_a_moment_alone_is_reported_as_well() -> None:
    done = simulate(ONE, _system(replace(BARE, submit_cost=0.25)))
    assert _busy(done) == {"the client, submitting": 0.25, "the workers, computing": 10.0}


def test_the_largest_gain_comes_first() -> None:
    known = replace(BARE, to_workers=Link(rate=10.0), submit_cost=2.0)
    done = simulate(replace(ONE, bytes_in=30.0), _system(known, ready=1.0))
    assert [gain.without for gain in gains(done)] == [
        "data", "work and waits for each task", "start-up",
    ]  # fmt: skip


# The sentence.


def _done(*, cores: int = 1, ready: float = 0.0, cost: float = 0.0) -> Simulation:
    """Ten seconds of a task, and what is beside it."""
    return simulate(replace(ONE, cores=cores), _system(replace(BARE, submit_cost=cost), ready))


def test_what_is_busy_for_four_fifths_of_the_time_limits() -> None:
    gained = [Gain("data", 6.0, 6.0)]
    reported = limit(_done(), [Use("the link", 9.6, 0.8), Use("the client", 9.6, 0.8)], gained)
    assert reported == "The link: it is busy for 80 % of the time."
    reported = limit(_done(), [Use("the workers, computing", 9.6, 0.8)], gained)
    assert reported == "The tasks themselves: the workers compute for 80 % of the time."
    reported = limit(_done(), [Use("the link", 9.48, 0.79)], gained)
    assert reported.startswith("Data: without it the total would be 6.000 s")


def test_a_gain_of_more_than_two_hundredths_is_reported_and_the_best_of_them() -> None:
    busy = [Use("the link", 6.0, 0.5)]
    gained = [Gain("data", 9.0, 3.0), Gain("start-up", 8.4, 3.6), Gain("throttling", 12.0, 0.0)]
    reported = limit(_done(cost=2.0), busy, gained)
    assert reported == "Start-up: without it the total would be 8.400 s, 30 % less."
    reported = limit(_done(cost=2.0), busy, [Gain("data", 11.7, 0.3)])
    assert reported == "Data: without it the total would be 11.70 s, 2 % less."
    reported = limit(_done(cost=2.0), busy, [Gain("data", 11.8, 0.2)])
    assert reported == "Nothing alone: several things take their part."
    reported = limit(_done(cost=2.5), busy, [Gain("data", 12.25, 0.25)])
    assert reported == "Nothing alone: several things take their part."


def test_a_run_that_takes_hardly_longer_than_its_tasks_has_no_limit() -> None:
    nothing = "Nothing: it takes hardly longer than the tasks themselves."
    busy = [Use("the link", 1.0, 0.1)]
    assert limit(_done(cost=0.1), busy, []) == nothing
    assert limit(_done(cost=0.3), busy, []) != nothing
    assert limit(replace(_done(cost=2.5), ideal=12.25), busy, []) != nothing


def test_without_runs_that_leave_things_out_start_up_or_the_busiest_is_reported() -> None:
    link = [Use("the link", 5.0, 0.25)]
    reported = limit(_done(ready=6.0), link, [])
    assert reported == "Start-up: the last worker is there after 6.000 s of 16.00 s."
    reported = limit(_done(ready=5.0), link, [])
    assert reported == "Nothing alone: most used is the link, for 25 % of the time."
    assert limit(_done(ready=5.0), [], []) == "Nothing alone: several things take their part."
