"""The benchmark of a server: each part measures all that it shows, with small numbers."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks import server_inference as inference
from benchmarks import server_throughput as throughput
from benchmarks.figures import Area, Extent, Row
from benchmarks.measuring import measure
from benchmarks.programs import find_program, programs
from benchmarks.runner import AREAS
from benchmarks.server_clients import Clients
from gridbench.bench.points import Points
from gridbench.engines.environments import our_launch
from gridbench.engines.installing import PLACE
from quiet import as_if_quiet
from running import BENCHMARKS, DEADLINE, Run, until

#: Of these, peers need what a user installs by hand.
_WITH_PEERS = ("rate", "inference")


def _measured(area: Area) -> list[Row]:
    """The rows of one round."""
    samples = Points()
    measure(area, 1, samples)
    samples = as_if_quiet(samples)
    rows = area.rows(samples)
    assert [row.problems for row in rows] == [[]] * len(rows)
    assert all(row.ours.values for row in rows)
    assert [row.what for row in rows if row.target is not None and row.reached is None] == []
    return rows


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    _, missing = programs()
    assert missing == ""


@pytest.mark.parametrize("part", [part for part in AREAS["server"] if part not in _WITH_PEERS])
def test_every_row_of_a_part_is_measured(part: str) -> None:
    rows = _measured(AREAS["server"][part](Extent.TRIAL))
    lost = [row for row in rows if row.what.endswith("calls lost")]
    assert [row.ours.values for row in lost] == [[0.0]] * len(lost)
    assert lost or part not in {"soak", "restart", "tasks"}


def test_rates_are_measured_without_peers() -> None:
    rows = _measured(throughput.rate_area(Extent.TRIAL, peers=()))
    assert [row.what for row in rows if row.peer is not None] == []
    assert len([row for row in rows if row.limit is not None]) == 3


def test_rates_stand_beside_those_of_grpc() -> None:
    area = throughput.rate_area(Extent.TRIAL, peers=("gRPC (C++ echo)",))
    if missing := {case.missing for case in area.cases if case.missing}:
        pytest.skip("; ".join(sorted(missing)))
    rows = _measured(area)
    assert len([row for row in rows if row.peer is not None]) == 4


# Go compiles ghz, and not every machine has Go.
@pytest.mark.parametrize("tool", ["wrk", *(["ghz"] if find_program("ghz") else [])])
def test_load_generators_of_others_call_the_server(tool: str) -> None:
    area = inference.area(Extent.TRIAL, peers=())
    (case,) = [case for case in area.cases if case.name.endswith(tool)]
    if case.missing:
        pytest.skip(case.missing)
    samples = Points()
    measure(dataclasses.replace(area, cases=[case]), 1, samples)
    (point,) = samples.run
    assert point.why == ""
    assert all(value > 0 for value in point.values.values())
    assert len(point.values) == 4


def test_tritonclient_calls_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.util.find_spec("tritonclient"), "it is among the packages for tests"
    monkeypatch.setattr(inference, "launch_of", lambda _: our_launch())
    found = list(inference.by_triton(programs()[0], "gridrpc", 0.2))
    names = {name for one in found for name in one}
    assert len(names) == 8
    assert all(value > 0 for one in found for value in one.values())


def test_a_peer_that_is_not_installed_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    area = throughput.rate_area(Extent.TRIAL, peers=("Pyro5",))
    samples = Points()
    peer = [case for case in area.cases if case.name == "Pyro5"]
    measure(dataclasses.replace(area, cases=peer), 1, samples)
    problems = {problem for row in area.rows(samples) for problem in row.problems}
    assert any("run `gridbench engines install pyro5`" in problem for problem in problems)


def test_a_client_that_fails_is_reported_with_its_words() -> None:
    script = "import sys; print('ready', flush=True); sys.exit('no result for you')"
    with (
        Clients([[sys.executable, "-c", script]]) as clients,
        pytest.raises(RuntimeError, match="ended with 1: no result for you"),
    ):
        clients.reports()
    with pytest.raises(RuntimeError, match="ended with 3"), Clients([["sh", "-c", "exit 3"]]):
        pass


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_benchmark_that_is_ended(
    end: signal.Signals, environment: dict[str, str]
) -> None:
    bench = subprocess.Popen(
        [*BENCHMARKS, "server", "--case", "soak"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    family: list[psutil.Process] = []

    def clients_run() -> bool:
        family[:] = psutil.Process(bench.pid).children(recursive=True)
        return sum(one.name() == "load" for one in family if one.is_running()) == 64

    until(clients_run)
    bench.send_signal(end)
    _, errors = bench.communicate(timeout=DEADLINE)
    assert bench.returncode == 128 + end
    assert "Traceback" not in errors
    assert [one for one in family if one.is_running() and one.pid != os.getpid()] == []


def test_a_part_that_does_not_exist_is_reported(refused_benchmarks: Run) -> None:
    done = refused_benchmarks("server", "--case", "speed")
    assert done.returncode == 2
    assert "the cases are null, argument, first, rate, inference, tasks, idle, " in done.stderr
