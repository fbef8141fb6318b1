"""`gridbench placement run`: real servers behind links, and sentences about their runs."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import psutil
import pytest
from rich.console import Console

import linking
from golden import same_as_golden
from gridbench.errors import InputError
from gridbench.experiment import Bench
from gridbench.jsonl_store import Header
from gridbench.pages.document import markdown
from gridbench.placement.options import REAL_SCENARIO, RealPlacementParameters
from gridbench.placement.real_client import GivenServers
from gridbench.placement.real_document import document_of, policies_of
from gridbench.placement.real_experiment import (
    PlacementServers,
    RealPlacement,
    check_real,
    function_of,
)
from gridbench.placement.record import (
    BEST,
    REAL_FORM,
    PlacedCall,
    PlannedRealRun,
    RealPolicy,
    RealRun,
)
from gridbench.placement.scenario import (
    ClientGroup,
    PlacementScenario,
    ScenarioFunction,
    ScenarioServer,
    ServerLink,
)
from gridbench.placement.simulation import planned_calls
from gridbench.process.interrupt import Interrupt
from gridbench.schema import read_parameters
from gridrpc import Grid, Prediction
from judging import DISTURBED, QUIET, outcomes
from running import Run, until

NEEDS_LINKS = pytest.mark.skipif(bool(linking.why_not()), reason=linking.why_not())
HEADER = Header(
    machine={"host": "bench", "processor": "a processor", "cores": 4, "memory": 2**34},
    versions={"python": "3.11", "gridrpc": "0.1.0"},
    options={**REAL_SCENARIO.described(), "server_names": ["near", "wide", "far", "slow"]},
    started="2031-05-04T10:30:00+00:00",
    seed=1,
)
SMALL = PlacementScenario(
    name="small",
    servers=(
        ScenarioServer(name="fast", speed=1e9, link=ServerLink(rate=200e6)),
        ScenarioServer(name="slow", speed=0.25e9, link=ServerLink(rate=100e6, latency=0.005)),
    ),
    clients=(ClientGroup(name="clients"),),
    functions=(ScenarioFunction(name="work", bytes_in=100_000, bytes_out=100_000, operations=5e7),),
    interval=0.2,
)


def run_of(policy: RealPolicy, total: float, repeat: int = 0, servers: str = "0123") -> RealRun:
    """Each call takes a second, on the next of these servers."""
    calls = tuple(
        PlacedCall(number % 2, 0, int(server), 0.0, 0.1, 0.9, 1.0)
        for number, server in enumerate(servers)
    )
    return PlannedRealRun(policy=policy, repeat=repeat).recorded_as(RealRun,
        status="done", first=1.5 * total, total=total, simulated_first=1.4 * total,
        simulated={BEST: 8.2, "least-time": 8.7}.get(policy, 21.0), calls=calls, load=QUIET,
    )  # fmt: skip


RUNS = [
    run
    for repeat, factor in enumerate((1.0, 1.02, 1.01))
    for run in (
        run_of("least-time", 8.6 * factor, repeat, "0001112233"),
        run_of("round-robin", 20.0 * factor, repeat, "0123012301"),
        run_of(BEST, 8.0 * factor, repeat, "0001112222"),
    )
]


# ---- Documents and rules


def test_the_document_compares_policies_with_the_best_assignment() -> None:
    same_as_golden(markdown(document_of(HEADER, RUNS)), "placement-run/all.md")


def test_a_round_without_a_range_and_a_failed_run() -> None:
    failed = replace(RUNS[1], repeat=3, status="failed", why="client 0 was ended by signal 9")
    found = [RUNS[0], replace(RUNS[2], load=DISTURBED), failed]
    same_as_golden(markdown(document_of(HEADER, found)), "placement-run/one round.md")
    assert "Nothing was run yet" in markdown(document_of(HEADER, [failed]))


def test_ratios_are_of_the_same_round() -> None:
    least, best, _ = policies_of([*RUNS, replace(RUNS[0], repeat=9, total=1e9)])[::-1]
    assert least.policy == "least-time"
    assert least.by_best is not None
    assert least.by_best.value == pytest.approx(8.6 / 8.0)
    named = {one.policy: one for one in policies_of(RUNS)}
    assert named[BEST].by_best is not None
    assert named[BEST].by_best.value == pytest.approx(1.0)
    assert named["least-time"].share(3) == pytest.approx(0.2)
    assert named["least-time"].error == pytest.approx(8.7 / named["least-time"].total.value - 1)
    assert best.policy != "least-time"


def test_disturbed_rounds_are_left_out_where_others_are_not() -> None:
    busy = replace(RUNS[0], total=99.0, load=DISTURBED)
    (least,) = policies_of([busy, replace(RUNS[0], repeat=1)])
    assert least.total.value == pytest.approx(8.6)
    (least,) = policies_of([busy])
    assert least.total.value == pytest.approx(99.0)


def test_rules(tmp_path: Path) -> None:
    def judged(runs: list[RealRun]) -> dict[str, str]:
        folder = tmp_path / f"runs-{len(list(tmp_path.iterdir()))}"
        store = REAL_FORM.open(folder, HEADER, fresh=False)
        for one in runs:
            store.add(one)
        store.close()
        return outcomes(folder)

    assert set(judged(RUNS).values()) == {"kept"}
    other = replace(RUNS[0], calls=RUNS[0].calls[1:])
    for runs, rule in (
        ([*RUNS, replace(RUNS[0], repeat=3, status="failed", why="lost")], "complete"),
        ([other, *RUNS[1:]], "the same calls"),
        ([*RUNS[:2], *RUNS[3:]], "the best assignment is there"),
        (RUNS[:3], "repeated"),
        ([replace(one, load=DISTURBED) for one in RUNS], "nothing else was at work"),
    ):
        assert judged(runs)[rule] == "broken", rule


# ---- What cannot be run


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"interval": 0.0}, "announce themselves every 0.1 s"),
        ({"clients": (ClientGroup(name="a"), ClientGroup(name="b"))}, "on one machine"),
        ({"servers": (ScenarioServer(name="a", count=999, cores=99),)}, "256 at most"),
        (
            {"servers": (ScenarioServer(name="a", links={"clients": ServerLink(rate=1e6)}),)},
            "on one machine",
        ),
    ],
)
@NEEDS_LINKS
def test_scenarios_that_can_only_be_simulated(changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        check_real(replace(SMALL, **changed))  # type: ignore[arg-type]
    assert error.value.remedy


def test_a_batch_too_large_for_a_search_is_refused(gridbench: Run) -> None:
    refused = gridbench("placement", "run", "--calls", "5000", "--accept-load")
    assert refused.returncode == 2
    if not linking.why_not():
        assert "lower `calls`" in refused.stderr
    refused = gridbench("placement", "run", "--policies", "fastest")
    assert refused.returncode == 2
    assert "least-time" in refused.stderr


def test_given_servers_are_taken_in_turn() -> None:
    def prediction(address: str) -> Prediction:
        return Prediction(address, "lab", "ready", 1.0, 0.0, 0.0, 0.0, 1.0, 0.0)

    given = GivenServers()
    given.next.extend(["b:1", "a:1", "c:1"])
    ready = [prediction("a:1"), prediction("b:1")]
    assert [given(ready).address for _ in range(2)] == ["b:1", "a:1"]
    with pytest.raises(LookupError, match=r"c:1 takes no calls \(ready: a:1, b:1\)"):
        given(ready)


# ---- Real servers


@pytest.fixture(scope="module")
def servers() -> Iterator[PlacementServers]:
    with PlacementServers(SMALL) as running:
        yield running


@NEEDS_LINKS
def test_servers_have_their_speeds_and_links(servers: PlacementServers) -> None:
    with Grid(directory=servers.directory, policy="round-robin") as grid:
        work = grid.function(function_of(0))
        data = np.random.default_rng(1).integers(0, 256, 100_000, dtype=np.uint8)
        for _ in range(4):
            assert (work(data=data, m=50_000) == data[:50_000]).all()
        found = {servers.addresses[one.address]: one for one in work.predictions(data=data, m=1)}
    assert set(found) == {0, 1}
    # Times can only be longer than those of speeds and links.
    assert found[0].speed <= 1e9
    assert found[1].speed <= 0.25e9
    assert found[1].send > 100_000 / 12.5e6
    assert found[1].run >= 0.2


@NEEDS_LINKS
def test_policies_are_run_and_simulated(gridbench: Run, tmp_path: Path) -> None:
    command = [
        "placement", "run", "--calls", "12", "--rounds", "1", "--policies",
        "least-time,round-robin", "--accept-load", "--out", str(tmp_path / "runs"),
    ]  # fmt: skip
    ran = gridbench(*command)
    assert ran.returncode == 0, ran.stderr
    assert "least-time takes" in ran.stdout
    _, runs = REAL_FORM.read(tmp_path / "runs")
    assert {one.policy for one in runs} == {"least-time", "round-robin", BEST}
    plan = planned_calls(REAL_SCENARIO.with_workload(calls=12), 1)
    for one in runs:
        assert one.status == "done", one.why
        calls = [PlacedCall(*call) for call in one.calls]
        assert sorted((call.client, call.function) for call in calls) == sorted(
            zip(plan.client.tolist(), plan.function.tolist(), strict=True)
        )
        assert all(call.submitted <= call.started <= call.computed <= call.ended for call in calls)
        assert one.total == pytest.approx(
            max(call.ended for call in calls) - min(call.submitted for call in calls)
        )
        assert min(one.first, one.simulated, one.simulated_first) > 0
    turns = next(one for one in runs if one.policy == "round-robin")
    assert {PlacedCall(*call).server for call in turns.calls} == {0, 1, 2, 3}
    values = json.loads(gridbench("report", "runs", "--json").stdout)["results"]
    assert set(values["policies"]) == {"least-time", "round-robin", BEST}
    # Nothing is run twice.
    again = gridbench(*command)
    assert again.returncode == 0
    assert len(REAL_FORM.read(tmp_path / "runs")[1]) == 3


@NEEDS_LINKS
def test_a_client_that_ends_fails_its_run(tmp_path: Path) -> None:
    experiment = RealPlacement(read_parameters(RealPlacementParameters, {"calls": 8}))
    with Interrupt() as interrupt, ExitStack() as stack:
        bench = Bench(tmp_path, interrupt, Console(quiet=True), stack)
        experiment.prepare(bench)

        def kill() -> None:
            until(lambda: clients_of(os.getpid()))
            os.kill(clients_of(os.getpid())[0], signal.SIGKILL)

        case = PlannedRealRun(policy="random", repeat=0)
        killer = Thread(target=kill)
        killer.start()
        failed = experiment.run(case, bench)
        killer.join()
        assert failed.status == "failed"
        assert "was ended by signal 9" in failed.why
        assert experiment.outcome(failed) == f"failed: {failed.why}"
        # The servers continue.
        assert experiment.run(case, bench).status == "done"


def clients_of(parent: int) -> list[int]:
    """Processes of clients that this process has started."""
    found = []
    for one in psutil.Process(parent).children():
        with suppress(psutil.Error):
            if "gridbench.placement.real_client" in one.cmdline():
                found.append(one.pid)
    return found
