"""The engine `server`: a workload on a server that it starts, and on one that runs already."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gridbench.engines.base import Engine
from gridbench.engines.server_engine import ServerEngine
from gridbench.native import module
from gridbench_testbed.services.gridrpc_server import GridrpcServer
from running import MakeSetup, Run, went_well

_STAMPS = ("submit", "calc_in", "calc_out", "retrieve")


def test_a_workload_runs_on_a_server_of_its_own(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    words = ("--engine", "server", "--out", str(tmp_path / "out"))
    done = gridbench("run", make_setup(), *words)
    assert done.returncode in {0, 3}, done.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert went_well(record)
    assert record["engine"]["configuration"]["server"].startswith("started by gridbench")
    table = pq.read_table(tmp_path / "out" / "timeline.parquet")
    stamps = [table.column(name).to_pylist() for name in _STAMPS]
    assert len(stamps[0]) == 8
    assert all(list(times) == sorted(times) for times in zip(*stamps, strict=True))
    assert record["check"] == {"wanted": True, "tasks": 8, "wrong": 0}
    assert "left_behind" not in record or not record["left_behind"]


@pytest.mark.parametrize("tls", [False, True])
def test_a_workload_runs_on_a_server_that_is_named(
    tls: bool, gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    with GridrpcServer([module()], workers=2, tls=tls) as server:
        url = server.tls if tls else server.socket
        words = ("--engine", "server", "--server", url, "--out", str(tmp_path / "out"))
        done = gridbench("run", make_setup(), *words)
        assert done.returncode in {0, 3}, done.stderr
        assert server.pid, "it runs on"
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert went_well(record)
    assert record["engine"]["configuration"]["server"] == url


def test_hosts_of_ones_own_are_refused(gridbench: Run, make_setup: MakeSetup) -> None:
    done = gridbench("run", make_setup(), "--engine", "server", "--server", "local:?hosts=one")
    assert done.returncode == 2
    assert "name a server that many clients share" in done.stderr


def test_an_engine_that_is_closed_has_ended_its_server() -> None:
    engine: Engine = ServerEngine()
    engine.start(1)
    engine.wait_ready()
    assert engine.describe().name == "server"
    engine.close()
    engine.close()
