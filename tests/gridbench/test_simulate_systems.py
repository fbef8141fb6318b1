"""The systems that can be simulated: what their runs take, added up from the figures of
their parts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from gridbench.errors import InputError
from gridbench.model.pipeline import WorkerStart
from gridbench.simulate import comparison as published_runs
from gridbench.simulate.comparison import against_published
from gridbench.simulate.document import heading, links
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, Simulation, simulate
from gridbench.simulate.systems import Batch, OneByOne

MB = 2**20
MBIT = 2**20 / 8
"""Bytes, as the report counts them."""
ONE = SimulatedWorkload(cores=1, tasks=1, sleep=10.0)


def _given(name: str) -> dict[str, float]:
    """The figures of a system that are shown with their sources."""
    return {one.name: one.value for one in system(name).given}


def _overhead(name: str, work: SimulatedWorkload, start_up: float | None = 0.0) -> float:
    done = simulate(work, system(name), start_up=start_up)
    return done.total - done.ideal


def test_what_symphony_is_made_of() -> None:
    known, symphony = _given("symphony"), system("symphony")
    assert known["client submits a task"] == pytest.approx((0.010433 - 0.001650) / 24)
    assert known["manager dispatches a task"] == pytest.approx(0.008294 / 100)
    assert known["client takes a result"] == pytest.approx(0.060 / 400)
    assert known["the same with data, besides"] == pytest.approx((1.199 - 0.060) / 400 - 0.00015)
    assert symphony.start_up.ready(203).tolist()[:3] == [0.479117, 5.08, 5.58]
    # 100 instances come at once, after the first two.
    assert symphony.start_up.ready(203).tolist()[101:103] == [5.58, 6.08]
    assert symphony.start_up.ready(203).tolist()[201:] == [6.08, 6.58]
    assert known["second instance"] == 5.08
    assert known["instances in a step"] == 100
    assert known["start-up of the first instance"] == 0.479117
    assert symphony.throttling is not None
    assert symphony.throttling.memory == known["memory of the manager"] * 2**30 == 3 * 2**30
    assert symphony.throttling.disk == known["disk for paging"] * MB == 60 * MB
    assert symphony.throttling.slower == known["slower, in each of the first steps"] == 1.1
    assert symphony.throttling.until_done
    steps = [symphony.throttling.level(share * 3 * 2**30) for share in (0.49, 0.51, 0.61, 0.76)]
    assert steps == [0, 1, 2, 3]
    assert known["throttling begins at"] == 0.5


def test_one_task_on_symphony_goes_by_two_hops_each_way() -> None:
    known = _given("symphony")
    each = sum(
        known[name]
        for name in (
            "client submits a task",
            "manager dispatches a task",
            "client takes a result",
        )
    )
    assert _overhead("symphony", ONE) == pytest.approx(each)
    into = 8 * (1 / 513 + 1 / 830)
    assert _overhead("symphony", replace(ONE, bytes_in=MB)) == pytest.approx(each + into)
    back = 8 * (1 / 830 + 1 / 570) + known["the same with data, besides"]
    assert _overhead("symphony", replace(ONE, bytes_out=MB)) == pytest.approx(each + back)
    shared = _overhead("symphony", replace(ONE, bytes_shared=MB))
    assert shared == pytest.approx(each + 8 / 880)
    assert _overhead("symphony", ONE, None) == pytest.approx(each + 0.479117, abs=1e-3)


def test_one_task_on_ninfg_goes_straight_to_its_node() -> None:
    each = 0.09 + 0.0006 + 0.0035 + 0.075
    assert _overhead("ninfg", ONE) == pytest.approx(each)
    hop = 8 / 835
    assert _overhead("ninfg", replace(ONE, bytes_in=MB)) == pytest.approx(each + hop)
    assert _overhead("ninfg", replace(ONE, bytes_out=MB)) == pytest.approx(each + hop + 0.01193)
    assert _overhead("ninfg", replace(ONE, bytes_shared=MB)) == pytest.approx(each + hop)
    assert system("ninfg").start_up == Batch(constant=4.2, per_worker=0.15)
    known = _given("ninfg")
    assert (known["allocation"], known["allocation, for each core"]) == (4.2, 0.15)


def test_one_task_on_condor_is_matched_and_started() -> None:
    known = _given("condor")
    exact = replace(system("condor"), resolution=0.0)

    def overhead(work: SimulatedWorkload, start_up: float | None = 0.0) -> float:
        return simulate(work, exact, start_up=start_up).total - 10.0

    each = known["start of a task, one after another"] + known["process of a task"]
    assert each == pytest.approx(0.08 + 0.5)
    assert overhead(ONE) == pytest.approx(each)
    for data in ({"bytes_in": MB}, {"bytes_out": MB}, {"bytes_shared": MB}):
        assert overhead(replace(ONE, **data)) == pytest.approx(each + 8 / 835)
    assert system("condor").start_up == OneByOne(constant=10.0, per_worker=0.01)
    assert (known["matching"], known["matching, for each core"]) == (10.0, 0.01)
    assert known["all transfers together, from one machine"] == 835
    assert system("condor").resolution == known["stamps"] == 1.0


def test_one_task_on_gridrpc_takes_as_long_as_its_messages() -> None:
    known = _given("gridrpc")
    each = 2 * 25e-6 + 2 * 1e-4
    assert _overhead("gridrpc", ONE) == pytest.approx(each)
    assert known["client submits a task, and takes its result"] == 50e-6
    assert known["on the way, there and back"] == 2e-4
    # Frames of 1,538 bytes on the link have 1,448 of data.
    hop = MB * 8 / (1e9 * 1448 / 1538)
    for data in ({"bytes_in": MB}, {"bytes_out": MB}, {"bytes_shared": MB}):
        assert _overhead("gridrpc", replace(ONE, **data)) == pytest.approx(each + hop)
    assert known["all transfers in one direction"] == pytest.approx(1000 * 1448 / 1538)
    assert system("gridrpc").start_up == OneByOne(constant=0.115, per_worker=0.000243)
    assert (known["first worker"], known["each further worker"]) == (0.115, 0.000243)


@pytest.mark.parametrize(
    ("name", "cores"), [("symphony", 400), ("ninfg", 100), ("condor", None), ("gridrpc", 5000)]
)
def test_how_many_cores_it_was_measured_with(name: str, cores: int | None) -> None:
    assert system(name).measured_cores == cores
    assert system(name).link == 1e9


def test_rates_of_all_links_change_with_the_network() -> None:
    slow = system("symphony").on_link(1e8).parameters
    assert slow.manager is not None
    assert slow.manager.inward.rate == pytest.approx(513 * MBIT / 10)
    assert slow.manager.outward.rate == pytest.approx(570 * MBIT / 10)
    own = system("symphony").behind(8e6).parameters
    assert (own.to_workers.each, own.from_workers.each) == (1e6, 1e6)
    with pytest.raises(InputError, match="on one machine, where there are no links"):
        replace(system("gridrpc"), one_host=True).behind(1e8)


def test_a_start_up_that_is_given_replaces_that_of_the_system() -> None:
    known = system("gridrpc")
    own = replace(known.parameters, start=WorkerStart(constant=3.0), processors=4.0)
    first = 0.115 + 0.000243
    for one, usual in ((replace(known, parameters=own), 3.0 + first), (known, first)):
        started = [simulate(ONE, one, start_up=start).total for start in (None, 0.0, 1.0)]
        assert started[2] - started[1] == pytest.approx(1.0, abs=1e-3)
        assert started[0] - started[1] == pytest.approx(usual, abs=0.02)


# Their sentences.


def test_the_heading_says_what_was_requested() -> None:
    work = SimulatedWorkload(
        cores=1000, tasks=2000, sleep=1.5, stddev=0.25, bytes_in=MB, bytes_shared=2048
    )
    assert heading(work) == (
        "2,000 tasks of 1.5 +- 0.25 s on 1,000 cores, input 1MB, shared 2KB, output 0"
    )
    assert heading(replace(work, stddev=0.0)).startswith("2,000 tasks of 1.5 s on 1,000 cores")
    assert links(system("ninfg")) == "links of 1 Gbit/s"
    assert links(replace(system("ninfg"), one_host=True)) == "one host"


# The runs of the report.


def test_the_published_runs_are_simulated_with_their_own_work() -> None:
    into_nodes, back, symphony, ninfg = against_published(lambda *_: None)
    spans = {one.what: one.simulated for one in into_nodes.rows}
    # The manager starts one task after the other.
    assert spans["0 KB, 100 cores"] == pytest.approx(99 * 0.008294 / 100)
    # With data, which has come to it before they are there, it sends that to one after the other.
    assert spans["1 MB, 100 cores"] == pytest.approx(99 * (8 / 830 + 0.008294 / 100))
    spans = {one.what: one.simulated for one in back.rows}
    assert spans["0 KB, 400 cores"] == pytest.approx(399 * 0.06 / 400)
    assert spans["10 MB, 100 cores"] == pytest.approx(99 * 80 / 570, rel=0.01)
    for found in (symphony, ninfg):
        rows = {one.what: one for one in found.rows}
        for tasks, sleep in ((1, 100), (10, 10), (25, 4), (50, 2), (100, 1), (400, 0.25)):
            ideal = sleep * math.ceil(tasks / 100)
            for data in ("no data", "1 MB"):
                name = f"{tasks} task{'s' if tasks > 1 else ''}, {data}"
                assert rows[name].ideal == pytest.approx(ideal)
    # 400 MB through the client's link take 6.2 s each way, beside the start-up and the tasks.
    both = {one.what: one for one in symphony.rows}
    small, large = (both[f"400 tasks of 1 s, {size} in and out"] for size in ("100 KB", "1 MB"))
    assert small.ideal == large.ideal == 4.0
    assert 9.6 < small.simulated < 10.0
    assert 400 * 8 / 513 + 5.58 < large.simulated < 400 * 8 / 513 + 6.58
    assert "As many tasks as cores, of 30 s. All instances start after 5.6 s" in into_nodes.how
    assert "On up to 100 cores." in symphony.how
    assert "On up to 100 cores." in ninfg.how


def test_published_spans_are_of_data_that_goes_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[SimulatedWorkload] = []

    def noted(work: SimulatedWorkload, *arguments: Any, **more: Any) -> Simulation:
        works.append(work)
        return simulate(work, *arguments, **more)

    monkeypatch.setattr(published_runs, "simulate", noted)
    into_nodes, back, *_ = against_published(lambda *_: None)
    count = len(into_nodes.rows)
    assert {work.bytes_out for work in works[:count]} == {0.0}
    assert {work.bytes_in for work in works[count : count + len(back.rows)]} == {0.0}
    assert max(work.bytes_in for work in works[:count]) >= 2**20
