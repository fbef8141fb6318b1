"""A manager that is short of memory, followed by hand: one worker, and sizes that divide well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gridbench.advise.advice import advise
from gridbench.advise.profiled import Profiled
from gridbench.advise.prose import warnings
from gridbench.advise.work import DivisibleWork as AdviseWork
from gridbench.model.pipeline import Link, Manager, PipelineParameters
from gridbench.simulate.account import Gain, gains
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, Simulation, cautions_of, simulate
from gridbench.simulate.systems import Batch, Level, System, Throttling


def run(*, tasks: int, sleep: float, size: float, disk: float) -> Simulation:
    """Tasks of `size` bytes come to a manager with 100 bytes at 10 bytes per second; all other ways
    take no time."""
    free = Link()
    one = System(
        name="by hand",
        title="by hand",
        parameters=PipelineParameters(
            manager=Manager(inward=Link(rate=10.0), outward=free),
            to_workers=free,
            from_workers=free,
        ),
        start_up=Batch(constant=0.0, per_worker=0.0),
        throttling=Throttling(memory=100.0, disk=disk),
    )
    return simulate(SimulatedWorkload(cores=1, tasks=tasks, sleep=sleep, bytes_in=size), one)


def test_what_waits_is_written_and_read_again_before_it_is_sent() -> None:
    done = run(tasks=2, sleep=100.0, size=60.0, disk=2.0)
    # The first is with the worker when it has been written, at 36; then the second is, until 66.
    assert done.stamps.submit.tolist() == [6.0, 12.0]
    assert done.stamps.calc_in.tolist() == [6.0, 106.0 + 60.0 / 2.0]
    assert done.total == 236.0
    assert Gain("throttling", 206.0, 30.0) in gains(done)
    assert done.pressure is not None
    assert (done.pressure.most, done.pressure.paged) == (60.0, 1)
    assert done.pressure.disk_busy == 3 * 30.0
    assert done.pressure.worst == Level.SEVERE


def test_requests_are_taken_half_as_fast_in_each_of_the_first_steps() -> None:
    # From 10 on the second waits and takes half of the memory.
    done = run(tasks=3, sleep=100.0, size=50.0, disk=1.0)
    assert done.stamps.submit.tolist() == [5.0, 10.0, 10.0 + 2 * 5.0]
    # With three of 20 bytes that wait it is the second step, and the next takes four times as long.
    done = run(tasks=5, sleep=1000.0, size=20.0, disk=1e-3)
    assert done.stamps.submit[:4].tolist() == [2.0, 4.0, 6.0, 8.0]
    assert done.stamps.submit[4] == 8.0 + 4 * 2.0


def test_in_the_third_step_nothing_is_taken_and_the_newest_goes_to_disk() -> None:
    done = run(tasks=4, sleep=1000.0, size=40.0, disk=0.2)
    # Two wait at 12; the newer has been written at 212, and the fourth comes 4 s later.
    assert done.stamps.submit.tolist() == [4.0, 8.0, 12.0, 216.0]
    assert done.stamps.sent.tolist() == [4.0, 1004.0, 2204.0, 3404.0]
    assert done.pressure is not None
    assert (done.pressure.worst, done.pressure.paged) == (Level.CRITICAL, 2)


def test_a_manager_that_has_halted_takes_no_result() -> None:
    done = run(tasks=3, sleep=20.0, size=50.0, disk=0.1)
    # Full at 20. What is written from 5 on is with the worker already; the third is at 1005.
    assert done.stamps.calc_out[0] == 25.0
    assert done.stamps.retrieve[0] == 1005.0
    assert done.stamps.calc_in[1] == 1005.0
    assert done.pressure is not None
    assert done.pressure.worst == Level.HALT


def test_what_symphony_is_assumed_to_do_is_what_is_reported() -> None:
    symphony = system("symphony")
    reported = {one.name: one.value for one in symphony.given}
    known = symphony.throttling
    assert known is not None
    assert known.memory == reported["memory of the manager"] * 2**30 == 3 * 2**30
    assert known.disk == reported["disk for paging"] * 2**20 == 60 * 2**20
    assert known.slower == reported["slower, in each of the first steps"] == 1.1
    assert known.until_done
    assert known.proactive == reported["throttling begins at"] == 0.5
    # As its application profiles have them: 50, 40, 25 and 15 % are left.
    assert [1 - step for step in known.steps] == pytest.approx([0.5, 0.4, 0.25, 0.15])


def report_of(cores: int, tasks: int, sleep: float, mb_in: float, mb_out: float) -> tuple[str, ...]:
    work = SimulatedWorkload(
        cores=cores, tasks=tasks, sleep=sleep, bytes_in=mb_in * 2**20, bytes_out=mb_out * 2**20
    )
    done = simulate(work, system("symphony"))
    return cautions_of(done.case, done.system, done.pressure)


def test_a_manager_that_comes_near_to_throttling_is_reported() -> None:
    (near,) = report_of(400, 1200, 30.0, 1.0, 0.0)
    assert near.startswith("The manager holds up to 1.1")
    held, share = float(near.split()[5]), int(near.split(", ")[1].split(" %")[0])
    assert share == pytest.approx(100 * held / 1.5, abs=1)
    assert near.endswith(" of the 1.5 GB with which it begins to throttle.")
    assert report_of(400, 600, 30.0, 1.0, 0.0) == ()
    # Half of the memory and more: it throttles.
    (_, short) = report_of(400, 1200, 30.0, 10.0, 0.0)
    share = int(short.split(", ")[1].split(" %")[0])
    assert share >= 100


def test_tasks_that_take_no_time_ask_for_all_of_the_link() -> None:
    (reported,) = report_of(10, 20, 0.0, 0.001, 0.0)
    assert reported.startswith(
        "Tasks ask for all of what the client's link gives: where it was 78 %"
    )


def test_tasks_that_ask_for_70_percent_of_the_link_are_reported() -> None:
    done = run(tasks=1, sleep=1.0, size=7.0, disk=1.0)
    (reported,) = cautions_of(done.case, done.system, done.pressure)
    assert reported.startswith("Tasks ask for 70 % of what the client's link gives")
    less = run(tasks=1, sleep=1.0, size=6.9, disk=1.0)
    assert cautions_of(less.case, less.system, less.pressure) == ()


def test_only_a_manager_that_throttles_is_reported() -> None:
    done = simulate(
        SimulatedWorkload(cores=10, tasks=20, sleep=0.1, bytes_in=2.0**20), system("ninfg")
    )
    assert cautions_of(done.case, done.system, done.pressure) == ()


def test_advice_for_symphony_has_its_cautions() -> None:
    profiled = Profiled(system("symphony"))
    work = AdviseWork(seconds=1000.0, cores=100, bytes_in_each=10.0 * 2**20, body="spin")
    advice = advise(profiled, work)
    assert any(text.startswith("Tasks ask for ") for text in warnings(advice))
    small = advise(profiled, replace(work, bytes_in_each=0.0))
    assert small.cautions == ()
