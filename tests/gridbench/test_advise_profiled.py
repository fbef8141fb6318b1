"""A profile as what advice is made from: what each of its costs adds to a task, and half of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridbench.advise.profiled import Profiled
from gridbench.model.observation import Situation
from gridbench.model.pipeline import Link, Manager, MessageCost, PipelineParameters, WorkerStart
from gridbench.simulate.profiles import system
from gridbench.simulate.systems import Batch, StartUp, System, Throttling

BARE = PipelineParameters(to_workers=Link(), from_workers=Link(), manager=Manager())
ONE = Situation(cores=1, sleep=np.array([10.0]))
NOW = Batch(constant=0.0, per_worker=0.0)


def _profiled(
    parameters: PipelineParameters = BARE, start_up: StartUp = NOW, **more: Any
) -> Profiled:
    return Profiled(
        System(name="by hand", title="", parameters=parameters, start_up=start_up, **more)
    )


def _total(one: Profiled, situation: Situation = ONE, /, **changed: float) -> float:
    return float(one.totals([situation], changed)[0])


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
def test_what_each_task_costs_can_be_halved(handling: dict[str, Any]) -> None:
    one = _profiled(replace(BARE, **handling))
    assert _total(one) == 12.0
    assert _total(one, submit=0.5) == 11.0
    assert _total(one, submit=0.0) == 10.0
    assert _total(one, ONE, **{"start.all": 0.5, "in.all": 0.5}) == 12.0


def test_a_system_without_a_manager_has_its_costs_halved_too() -> None:
    one = _profiled(replace(BARE, manager=None, to_workers=Link(per_message=2.0)))
    assert (_total(one), _total(one, submit=0.5)) == (12.0, 11.0)


@pytest.mark.parametrize(
    ("name", "data"),
    [("in.all", "bytes_in"), ("out.all", "bytes_out"), ("shared.all", "bytes_shared")],
)
def test_each_kind_of_data_can_be_halved(name: str, data: str) -> None:
    link = Link(rate=10.0)
    one = _profiled(replace(BARE, to_workers=link, from_workers=link, shared_rate=10.0))
    situation = replace(ONE, **{data: 40.0})  # type: ignore[arg-type]
    assert _total(one, situation) == 14.0
    assert _total(one, situation, **{name: 0.5}) == 12.0
    others = {other: 0.5 for other in ("in.all", "out.all", "shared.all") if other != name}
    assert _total(one, situation, **others) == 14.0
    # And the links can be twice as fast.
    assert _total(one, situation, way=0.5) == 12.0


@pytest.mark.parametrize(
    "start",
    [
        {"constant": 2.0},
        {"prepare": 2.0},
        {"serial": 2.0},
        {"parallel": 2.0},
        {"adopt": 2.0},
    ],
)
def test_what_starts_workers_can_be_halved(start: dict[str, Any]) -> None:
    one = _profiled(replace(BARE, start=WorkerStart(**start), processors=4.0))
    assert _total(one) == 12.0
    assert _total(one, ONE, **{"start.all": 0.5}) == 11.0
    # Workers that are there already have been started.
    assert _total(one, replace(ONE, warm=True)) == 10.0


def test_the_start_up_of_a_batch_system_can_be_halved() -> None:
    one = _profiled(start_up=Batch(constant=3.0, per_worker=1.0))
    assert _total(one) == 14.0
    assert _total(one, ONE, **{"start.all": 0.5}) == 12.0
    assert _total(one, replace(ONE, warm=True)) == 10.0


def test_only_what_is_behind_links_can_have_faster_ones() -> None:
    costs = {"start.all", "shared.all", "in.all", "out.all", "submit"}
    assert dict(_profiled().values) == dict.fromkeys({*costs, "way"}, 1.0)
    one_host = _profiled(one_host=True)
    assert not one_host.linked
    assert dict(one_host.values) == dict.fromkeys(costs, 1.0)
    assert _total(one_host) == 10.0


def test_tasks_may_take_longer_than_those_that_are_simulated_by_themselves() -> None:
    month = 30 * 86_400.0
    assert _total(_profiled(), replace(ONE, sleep=np.array([month]))) == month


def test_a_prediction_has_no_interval() -> None:
    one = _profiled(replace(BARE, submit_cost=2.0), measured_cores=4)
    found = one.predict(ONE)
    assert (found.total, found.low, found.high, found.ideal) == (12.0, 12.0, 12.0, 10.0)
    assert found.extrapolated == ()
    assert one.unsure(ONE) == 0
    assert one.outside(replace(ONE, cores=4)) == ()
    assert one.outside(replace(ONE, cores=5)) == (
        "the profile is from runs with at most 4 cores, and this has more",
    )
    assert _profiled().outside(replace(ONE, cores=10_000)) == ()


def test_a_manager_that_throttles_is_followed_as_well() -> None:
    throttling = Throttling(memory=1e12, disk=1e9)
    one = _profiled(replace(BARE, submit_cost=2.0), throttling=throttling)
    both = one.totals([ONE, replace(ONE, sleep=np.array([1.0, 1.0]))])
    assert both.tolist() == [12.0, 5.0]
    assert Profiled(system("symphony")).name == "symphony"
