"""The simulation of calls on servers, against formulas of queues and by hand."""

from __future__ import annotations

import dataclasses
import math
import statistics

import numpy as np
import pytest

from gridbench.errors import InputError
from gridbench.placement.record import POLICIES, ServerPolicy, totals_of
from gridbench.placement.scenario import (
    DEFAULT_SCENARIO,
    WORKLOADS,
    ClientGroup,
    PlacementScenario,
    ScenarioFunction,
    ScenarioServer,
    ServerLink,
    WorkloadKind,
)
from gridbench.placement.simulation import (
    PlannedCalls,
    alone,
    best_assignment,
    mean_bound,
    planned_calls,
    simulate,
    total_bound,
)

FAST = ServerLink(rate=1e12, latency=0.0)
CLASSES = 2000
"""Functions whose operations are quantiles of the exponential distribution with mean 1."""
QUANTILES = -np.log1p(-(np.arange(CLASSES) + 0.5) / CLASSES)


def queue(servers: int, cores: int) -> PlacementScenario:
    """Servers of so many cores, each of one operation per second, without transfers."""
    return PlacementScenario(
        name="queue",
        servers=(ScenarioServer(name="s", count=servers, cores=cores, speed=1.0, link=FAST),),
        clients=(ClientGroup(name="c"),),
        functions=tuple(
            ScenarioFunction(name=f"f{number}", operations=float(operations))
            for number, operations in enumerate(QUANTILES)
        ),
        interval=0.0,
    )


def responses(
    scenario: PlacementScenario, rate: float, policy: ServerPolicy, seeds: int = 12
) -> list[float]:
    """Mean response times of runs with Poisson arrivals, without the first tenth of the calls."""
    found = []
    for seed in range(seeds):
        draw = np.random.default_rng(seed)
        count = 40_000
        at = np.cumsum(draw.exponential(1 / rate, count))
        plan = PlannedCalls(
            at=at,
            client=np.zeros(count, dtype=np.int64),
            function=draw.integers(CLASSES, size=count),
        )
        run = simulate(scenario, policy, seed, plan=plan)
        found.append(float(run.calls.response[count // 10 :].mean()))
    return found


def erlang_c(cores: int, rate: float) -> float:
    """Mean response time of M/M/c with service rate 1."""
    load = rate / cores
    terms = [rate**k / math.factorial(k) for k in range(cores)]
    last = rate**cores / math.factorial(cores) / (1 - load)
    return last / (sum(terms) + last) / (cores - rate) + 1


def holds(values: list[float], expected: float) -> bool:
    """Whether the 99.9 % interval of the mean has the expected value, and is narrow."""
    error = statistics.stdev(values) / len(values) ** 0.5
    return abs(statistics.fmean(values) - expected) < 4.44 * error and error < 0.03 * expected


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_core_is_the_queue_m_m_1(load: float) -> None:
    assert holds(responses(queue(1, 1), load, "least-time"), 1 / (1 - load))


@pytest.mark.parametrize(("cores", "load"), [(2, 0.7), (4, 0.8), (16, 0.9)])
def test_several_cores_are_the_queue_m_m_c(cores: int, load: float) -> None:
    rate = cores * load
    assert holds(responses(queue(1, cores), rate, "least-time"), erlang_c(cores, rate))


def test_random_servers_are_as_many_queues_m_m_1() -> None:
    assert holds(responses(queue(4, 1), 4 * 0.6, "random"), 1 / (1 - 0.6))


def test_the_least_load_lies_between_one_queue_and_separate_ones() -> None:
    least = statistics.fmean(responses(queue(4, 1), 4 * 0.8, "least-load"))
    assert erlang_c(4, 4 * 0.8) < least < 0.5 / (1 - 0.8)


def small(**changed: object) -> PlacementScenario:
    """The built-in scenario with a short workload."""
    return DEFAULT_SCENARIO.with_workload(**({"duration": 30.0} | changed))


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_call_ends_once_and_in_order(policy: ServerPolicy, kind: WorkloadKind) -> None:
    scenario = small(kind=kind)
    plan = planned_calls(scenario, 1)
    calls = simulate(scenario, policy, 1).calls
    assert len(calls) == len(plan) if kind != "steps" else 0 < len(calls) <= len(plan)
    assert (calls.submitted <= calls.started).all()
    assert (calls.started < calls.computed).all()
    assert (calls.computed <= calls.ended).all()
    shortest = alone(scenario)[0][calls.function, calls.server]
    assert (calls.response >= shortest * (1 - 1e-9)).all()
    totals = totals_of(scenario, calls)
    assert totals.calls == len(calls)
    assert math.isclose(sum(totals.shares), 1.0)
    assert all(0 <= busy <= 1 + 1e-9 for busy in totals.utilisation)
    assert totals.mean >= mean_bound(scenario, calls)


def test_no_core_computes_two_calls_at_a_time() -> None:
    scenario = small(load=1.5)
    calls = simulate(scenario, "least-load", 3).calls
    for number, server in enumerate(scenario.each_server()):
        own = calls.server == number
        events = sorted(
            [(at, 1) for at in calls.started[own].tolist()]
            + [(at, -1) for at in calls.computed[own].tolist()]
        )
        running = np.cumsum([change for _, change in events])
        assert running.max() <= server.slots
        assert running[-1] == 0


def test_a_client_of_the_paper_has_one_call_at_a_time() -> None:
    scenario = small(kind="steps", step=0.3)
    calls = simulate(scenario, "random", 1).calls
    for client in range(scenario.client_count):
        own = calls.client == client
        assert (calls.submitted[own][1:] >= calls.ended[own][:-1]).all()


def test_the_same_seed_gives_the_same_run_and_all_policies_the_same_calls() -> None:
    scenario = small()
    one, again = (simulate(scenario, "random", 5).calls for _ in range(2))
    assert one.rows() == again.rows()
    other = simulate(scenario, "least-time", 5).calls
    assert (other.submitted == one.submitted).all()
    assert (other.function == one.function).all()
    assert simulate(scenario, "random", 6).calls.rows() != one.rows()


def test_load_is_the_work_that_arrives_by_capacity() -> None:
    scenario = small(duration=2000.0, load=0.5)
    plan = planned_calls(scenario, 1)
    operations = np.array([one.operations for one in scenario.functions])[plan.function].sum()
    assert operations / scenario.capacity / 2000 == pytest.approx(0.5, rel=0.05)
    bursts = planned_calls(small(kind="bursts", duration=2000.0, load=0.5), 1)
    assert len(bursts) == pytest.approx(len(plan), rel=0.15)
    assert (bursts.at.reshape(-1, 10) == bursts.at[::10, None]).all()


def test_a_server_whose_calls_use_all_cores_runs_one_at_a_time() -> None:
    one = dataclasses.replace(queue(1, 4), functions=(ScenarioFunction(name="f", operations=4.0),))
    server = dataclasses.replace(one.servers[0], call_cores="all")
    everything = dataclasses.replace(one, servers=(server,))
    plan = PlannedCalls(
        at=np.zeros(4), client=np.zeros(4, dtype=np.int64), function=np.zeros(4, dtype=np.int64)
    )
    assert simulate(one, "random", plan=plan).calls.ended.tolist() == [4.0] * 4
    assert simulate(everything, "random", plan=plan).calls.ended.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_the_best_assignment_is_that_of_all_of_a_small_batch() -> None:
    scenario = small(kind="batch", calls=8)
    plan = planned_calls(scenario, 2)
    found = best_assignment(scenario, plan)
    assert found is not None
    kinds = plan.function.tolist()
    least = math.inf
    # Calls of one function are exchangeable: all numbers of calls on each server.
    for number in range(4**8):
        servers = [number // 4**place % 4 for place in range(8)]
        ordered = all(
            kinds[a] != kinds[b] or servers[a] <= servers[b]
            for a in range(8)
            for b in range(a + 1, 8)
        )
        if ordered:
            ended = simulate(scenario, servers, plan=plan).calls.ended.max()
            least = min(least, float(ended))
    assert found.total <= 1.02 * least
    assert total_bound(scenario, plan) <= least
    for policy in POLICIES:
        assert simulate(scenario, policy, plan=plan).totals.total >= least * (1 - 1e-9)


def test_too_many_calls_to_search_have_a_bound_only() -> None:
    scenario = small(kind="batch", calls=2001)
    plan = planned_calls(scenario, 1)
    assert best_assignment(scenario, plan) is None
    assert simulate(scenario, "least-time", plan=plan).totals.total >= total_bound(scenario, plan)


def test_a_workload_without_calls_or_with_too_many_is_refused() -> None:
    with pytest.raises(InputError, match="has no call"):
        planned_calls(small(duration=0.001, load=0.01), 1)
    with pytest.raises(InputError, match="20,000,000 can be simulated"):
        planned_calls(small(duration=1e6, load=3.0).scaled(servers=10_000), 1)


def test_a_watch_can_stop_a_simulation() -> None:
    def stop(ended: int) -> None:
        if ended:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(small(duration=3000.0), "random", watch=stop)


def test_clients_with_the_same_old_loads_do_not_all_choose_one_server() -> None:
    scenario = DEFAULT_SCENARIO.scaled(100, 10_000).with_workload(kind="poisson", load=0.6)
    scenario = scenario.with_workload(duration=20.0).with_interval(3.0)
    plan = planned_calls(scenario, 1)
    policies: tuple[ServerPolicy, ...] = ("least-time", "two-choices", "least-load")
    means = {one: simulate(scenario, one, plan=plan).totals.mean for one in policies}
    assert means["least-time"] < 1.5 * means["two-choices"]
    assert means["least-load"] > 5 * means["two-choices"]
