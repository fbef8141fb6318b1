"""Advice for work on servers of a grid: what is run there, and what is refused."""

from __future__ import annotations

import io
import json
import platform
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from gridbench.advise import runs as on_servers
from gridbench.advise.calibration import Search, calibrating, first_cases
from gridbench.advise.runs import among, host_of
from gridbench.advise.trying import participant_of
from gridbench.advise.work import DivisibleWork
from gridbench.engines.servers import ServerHost, Servers
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.model.observation import EnginePlace
from gridbench.model.saved import load_models, save_models
from running import Run
from synthetic import MB, observations, situations

_GRID = """\
[server.both]
launcher = "local"
hosts = ["node[1-2]"]
workers = 2
"""
SERVERS = Servers(
    Path("grid.toml"),
    (),
    (ServerHost("node1", "both", 2, "TCP"), ServerHost("node2", "both", 2, "TCP")),
)


def of(model: PipelineModel, place: EnginePlace) -> PipelineModel:
    return replace(model, fit=replace(model.fit, place=place))


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    """A file with a server of two hosts, which are this machine, with two workers each."""
    file = tmp_path / "grid.toml"
    file.write_text(_GRID)
    return file


@pytest.mark.parametrize("cores", [1, 2, 3, 40])
def test_no_run_has_more_workers_than_the_servers(cores: int) -> None:
    work = DivisibleWork(seconds=9.0, cores=cores, bytes_in=MB)
    every = calibrating(work)
    assert calibrating(work, 10_000) == every
    capped = calibrating(work, cores)
    assert {case.cores for case in capped} == {min(case.cores, cores) for case in every}
    assert set(first_cases(work, cores)) <= set(capped)
    assert Search(work, (), cores).left == capped
    assert max(case.cores for case in every) >= cores


def test_runs_on_some_hosts_of_the_servers_are_of_one_place() -> None:
    several = observations(situations()[:2])
    first, second = (
        replace(one, place=replace(one.place, transport="links", nodes=nodes, host=f"{nodes}"))
        for nodes, one in enumerate(several, 1)
    )
    found = among(first, SERVERS)
    assert found.place == among(second, SERVERS).place
    assert (found.place.nodes, found.place.transport) == (2, "links")
    assert found.place.host == host_of(SERVERS) == f"{platform.node()}, workers on node1 and node2"
    assert (found.situation, found.measured) == (first.situation, first.measured)
    assert host_of(None) == platform.node()


def test_advice_is_for_the_servers_that_are_named(
    tmp_path: Path, grid: Path, gridbench: Run
) -> None:
    command = ("advise", "--work", "1s", "--cores", "3", "--task", "sleep", "--out", "advice")
    done = gridbench(*command, "--grid", grid, "--json")
    assert done.returncode == 0, done.stderr
    assert "node2: 2 workers; TLS 1.3 over TCP; started by local" in done.stderr
    assert "calibrating gridrpc-native: at most" in done.stderr
    assert "a run was left out" not in done.stderr
    advice = json.loads(done.stdout)
    assert (advice["engine"], advice["origin"]) == ("gridrpc-native", None)
    assert advice["expected"]["low"] > advice["expected"]["ideal"] >= 1 / 3
    (model,) = load_models(tmp_path / "advice" / "model.json")
    place = model.fit.place
    assert place.host == host_of(SERVERS)
    assert (place.transport, place.nodes) == ("links", 2)
    # Other servers can have these names.
    assert not (tmp_path / "cache" / "gridbench").exists()

    trying = ("--from", "advice/model.json", "--try", "--rounds", "1", "--most-tasks", "3")
    done = gridbench(*command[:-1], "tried", "--grid", grid, *trying, "--json")
    assert done.returncode == 0, done.stderr
    trial = json.loads(done.stdout)["tried"]
    assert trial["splits"]
    assert not trial["failed"]
    assert trial["model_host"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--engine", "process-pool", "--server", "both"],
            ("the engine `process-pool` cannot run its workers on servers", "gridrpc-python"),
        ),
        (["--server", "one"], ("`one`", "are both")),
        (
            ["--server", "both", "--cores", "5"],
            ("--cores asks for 5, and the servers have 4 workers", "lower --cores"),
        ),
        (
            ["--server", "local:?workers=4"],
            ("the workers of servers that are URLs cannot be lowered to 1", "for --grid FILE"),
        ),
        (["--from", "model.json"], ("--from gives a model that is there", "add --try")),
        (["--profile", "symphony"], ("--grid is for an engine", "leave one of them out")),
    ],
    ids=["engine", "server", "cores", "URL", "from", "profile"],
)
def test_what_cannot_be_is_refused(
    model: PipelineModel, grid: Path, refused: Run, options: list[str], message: tuple[str, str]
) -> None:
    save_models([model], grid.with_name("model.json"))
    command = ("advise", "--work", "1s", "--cores", "4", "--out", "advice", "--grid", "grid.toml")
    done = refused(*command, *options)
    assert done.returncode == 2
    assert all(text in done.stderr for text in message), done.stderr
    assert not grid.with_name("advice").exists()


def test_a_model_of_workers_elsewhere_is_tried_on_servers_alone(model: PipelineModel) -> None:
    linked = of(model, replace(model.fit.place, engine="gridrpc-native", transport="links"))
    assert participant_of(linked, SERVERS).name == "gridrpc-native"
    with pytest.raises(InputError, match="behind links") as refused:
        participant_of(linked)
    assert "--grid or --server" in refused.value.remedy
    with pytest.raises(InputError, match="cannot run its workers on servers"):
        participant_of(of(model, replace(linked.fit.place, engine="process-pool")), SERVERS)


@pytest.mark.parametrize(
    ("workers", "cores", "message"),
    [
        (2, 2, ""),
        (4, 3, ""),
        (2, 3, "--cores asks for 3, and the servers have 2 workers"),
        (1, 1, "the servers have one worker, and advice compares runs on one with runs on several"),
    ],
)
def test_servers_need_as_many_workers_as_cores_and_two_at_least(
    monkeypatch: pytest.MonkeyPatch, workers: int, cores: int, message: str
) -> None:
    host = SimpleNamespace(describe=lambda: f"lab: {workers} workers on a host with a long name")
    given: Any = SimpleNamespace(workers=workers, hosts=[host])
    requested: list[object] = []
    fewer: list[object] = []

    def ask(*what: object, patience: float) -> object:
        requested.append((*what, patience))
        return given

    monkeypatch.setattr(on_servers, "ask", ask)
    monkeypatch.setattr(on_servers, "spread", lambda _, number: fewer.append(number))
    printed = io.StringIO()
    console = Console(file=printed, width=20)
    if message:
        with pytest.raises(InputError, match=message):
            on_servers.servers_for(None, ["lab"], cores, console)
        assert fewer == []
    else:
        assert on_servers.servers_for(None, ["lab"], cores, console) is given
        # Runs on one worker tell what more of them cost.
        assert fewer == [1]
    # Servers have three minutes to bring their workers.
    assert requested == [(None, ("lab",), 180.0)]
    assert printed.getvalue().splitlines() == [
        "asking the servers for their workers",
        host.describe(),
    ]
