"""Grids whose workers live behind links: where they are, and what passes the links."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gridbench.engines.base import Cannot, Task
from gridbench.engines.gridrpc_engines import NativeEngine, PythonEngine
from gridbench.engines.process_pool import ProcessPoolEngine
from gridbench.errors import InputError
from gridbench.links.network import Network
from gridbench.run.load import load_run
from gridbench.run.participants import find_participant
from gridbench.scenario.results import read_cases
from gridrpc import ConfigError, Grid, WorkerLost
from linking import in_namespace, left_of, moved, skip_without_links, workers_of
from running import DEADLINE, Run, until

skip_without_links()

MB = 1 << 20


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network(2, 2e9) as network:
        yield network


@pytest.fixture(params=["python", "native"])
def linked(request: pytest.FixtureRequest, network: Network) -> Iterator[Grid]:
    """Four workers in two nodes."""
    grid = Grid(4, worker=request.param, transport="tcp", namespaces=network.namespaces)
    try:
        grid.wait_until_ready(DEADLINE)
        yield grid
    finally:
        grid.close()


def echo(grid: Grid, data: Any) -> Any:
    function = "builtin/echo" if grid.config.worker == "native" else np.array
    return grid.submit(function, data).result(DEADLINE)


@pytest.mark.usefixtures("linked")
def test_worker_i_lives_in_node_i_modulo_their_number(network: Network) -> None:
    nodes = [in_namespace(node) for node in network.namespaces]
    workers = workers_of(psutil.Process())
    assert sorted(workers) == [0, 1, 2, 3]
    for number, pid in workers.items():
        assert in_namespace(Path(f"/proc/{pid}/ns/net")) == nodes[number % 2]
    # The client stays where it is.
    assert in_namespace(Path("/proc/self/ns/net")) not in nodes
    assert in_namespace(Path("/proc/thread-self/ns/net")) not in nodes


def test_large_arrays_come_back_unchanged(linked: Grid) -> None:
    data = np.random.default_rng(1).integers(0, 256, 10 * MB, np.uint8)
    for _ in range(4):
        assert np.array_equal(np.frombuffer(echo(linked, data), np.uint8), data)


@pytest.mark.parametrize("worker", ["python", "native"])
def test_what_calls_carry_passes_the_link_of_their_node(worker: Any, network: Network) -> None:
    first, second = (node.name for node in network.namespaces)
    size = 4 * MB
    with Grid(1, worker=worker, transport="tcp", namespaces=network.namespaces) as grid:
        grid.wait_until_ready(DEADLINE)
        before = [moved("link", namespace=node) for node in (first, second)]
        client = moved(network.client_interface)
        echo(grid, np.ones(size, np.uint8))
        near, far = (moved("link", namespace=node) for node in (first, second))
        client_after = moved(network.client_interface)
    # There and back; headers take less than a tenth, with what is sent again.
    assert size < near[0] - before[0][0] < 1.1 * size
    assert size < near[1] - before[0][1] < 1.1 * size
    assert size < client_after[0] - client[0] < 1.1 * size
    assert size < client_after[1] - client[1] < 1.1 * size
    assert far[0] - before[1][0] < size / 10


def test_shared_data_goes_to_each_worker(network: Network) -> None:
    data = np.random.default_rng(2).integers(0, 256, MB, np.uint8)
    with Grid(2, transport="tcp", namespaces=network.namespaces) as grid:
        grid.wait_until_ready(DEADLINE)
        before = [moved("link", namespace=node.name)[0] for node in network.namespaces]
        shared = grid.share(data)
        # Not a function of this file, which a worker could import only without other tests.
        sums = [grid.submit(np.sum, shared) for _ in range(40)]
        assert {int(call.result(DEADLINE)) for call in sums} == {int(data.sum())}
        after = [moved("link", namespace=node.name)[0] for node in network.namespaces]
    # Once to each worker that needed it, and never twice.
    assert MB < sum(after) - sum(before) < 2.4 * MB


def test_a_lost_worker_is_replaced_in_its_node(linked: Grid, network: Network) -> None:
    before = workers_of(psutil.Process())
    for number in (1, 2):
        os.kill(before[number], signal.SIGKILL)
    until(lambda: not {before[1], before[2]} & set(workers_of(psutil.Process()).values()))
    until(lambda: workers_of(psutil.Process()).keys() == before.keys())
    linked.wait_until_ready(DEADLINE)
    after = workers_of(psutil.Process())
    nodes = [in_namespace(node) for node in network.namespaces]
    for number, pid in after.items():
        assert in_namespace(Path(f"/proc/{pid}/ns/net")) == nodes[number % 2]
    data = np.arange(9, dtype=np.uint8)
    assert np.array_equal(np.frombuffer(echo(linked, data), np.uint8), data)


def test_a_worker_that_a_call_ends(network: Network) -> None:
    with Grid(1, transport="tcp", namespaces=network.namespaces) as grid:
        with pytest.raises(WorkerLost, match="exited with status 3"):
            grid.submit(os._exit, 3).result(DEADLINE)
        here = grid.submit(os.stat, "/proc/self/ns/net").result(DEADLINE)
    assert here.st_ino == in_namespace(network.namespaces[0])


def test_one_namespace_may_be_given_alone(network: Network) -> None:
    with Grid(1, transport="tcp", namespaces=str(network.namespaces[1])) as grid:
        here = grid.submit(os.stat, "/proc/self/ns/net").result(DEADLINE)
        assert grid.config.namespaces == (str(network.namespaces[1]),)
    assert here.st_ino == in_namespace(network.namespaces[1])


def test_nothing_is_left_of_a_killed_client() -> None:
    program = """
from gridbench.links.network import Network
from gridrpc import Grid
import time
with Network(2, 1e9) as network, Grid(3, transport="tcp", namespaces=network.namespaces) as grid:
    grid.wait_until_ready()
    print("ready", flush=True)
    time.sleep(1000)
"""
    client = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    workers = workers_of(psutil.Process(client.pid)).values()
    assert len(workers) == 3
    client.kill()
    client.communicate(timeout=DEADLINE)
    until(lambda: not any(psutil.pid_exists(pid) for pid in workers))
    with Network(1, 1e9):
        assert left_of(client.pid) == []


def test_a_namespace_without_an_address() -> None:
    name = f"linktest-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        with pytest.raises(ConfigError, match=f"`/run/netns/{name}` has no IPv4 address"):
            Grid(1, transport="tcp", namespaces=f"/run/netns/{name}")
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.mark.parametrize("kind", [PythonEngine, NativeEngine])
def test_engines_run_their_tasks_in_the_nodes(kind: Any, network: Network) -> None:
    engine = kind()
    engine.use_namespaces([str(node) for node in network.namespaces])
    assert engine.shared_copies(3, warm=False) == 3
    size = MB
    try:
        engine.start(2)
        engine.wait_ready()
        configuration = engine.describe().configuration
        assert configuration["transport"] == "tcp"
        assert configuration["namespaces"] == tuple(map(str, network.namespaces))
        before = moved(network.client_interface)
        shared = engine.share(np.zeros(1000, np.uint8))
        engine.submit(Task(1, 0.0, np.ones(size, np.uint8), 2 * size), shared)
        outcome = engine.next_outcome()
        after = moved(network.client_interface)
    finally:
        engine.close()
    assert (outcome.tid, outcome.error) == (1, "")
    assert outcome.output is not None
    assert len(outcome.output) == 2 * size
    assert size < after[1] - before[1] < 1.2 * size
    assert 2 * size < after[0] - before[0] < 2.2 * size


def test_other_engines_say_that_they_cannot() -> None:
    assert not ProcessPoolEngine.takes_namespaces
    with pytest.raises(Cannot, match="process-pool cannot put its workers into network"):
        ProcessPoolEngine().use_namespaces(["/run/netns/one"])
    with pytest.raises(InputError, match=r"process-pool cannot put.*\nhint: choose gridrpc-native"):
        find_participant("process-pool").use_namespaces(["/run/netns/one"])


def test_scenarios_run_behind_links(gridbench: Run, tmp_path: Path) -> None:
    small = ("--cores", "2", "--sizes", "100KB", "--time-scale", "0.0001", "--quick")
    engines = ("--engine", "gridrpc-native", "--engine", "gridrpc-python")
    links = ("--nodes", "2", "--link", "1gbit")
    ran = gridbench("scenario", "4", *small, *engines, *links, "--out", "out")
    assert ran.returncode == 0, ran.stderr
    results = read_cases(tmp_path / "out")
    assert {result.engine for result in results} == {"gridrpc-native", "gridrpc-python"}
    for result in results:
        # Whether a case counts depends on what else this machine does; that it ran does not.
        assert result.status in ("done", "invalid")
        assert (result.transport, result.nodes, result.link_rate) == ("links", 2, 1e9)
        record, table = load_run(tmp_path / "out" / result.folder)
        assert record["engine"]["configuration"]["transport"] == "tcp"
        assert len(record["engine"]["configuration"]["namespaces"]) == 2
        assert table.num_rows == result.tasks
