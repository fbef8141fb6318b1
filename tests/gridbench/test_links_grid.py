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
from gridbench.run.load import load_run
from gridbench.run.participants import find_participant
from gridbench.scenario.results import read_cases
from gridbench_testbed.links.network import Network
from gridrpc import Grid, WorkerLost
from linking import (
    in_namespace,
    left_of,
    moved,
    ready_behind,
    skip_without_links,
    workers_in,
    workers_of,
)
from running import DEADLINE, Run, until

skip_without_links()

MB = 1 << 20


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network(2, 2e9) as network:
        yield network


@pytest.fixture(params=["python", "native"])
def linked(request: pytest.FixtureRequest, network: Network) -> Iterator[Grid]:
    """Five workers in two nodes."""
    with ready_behind(network, 5, worker=request.param) as grid:
        yield grid


def echo(grid: Grid, data: Any) -> Any:
    function = "gridbench_tasks/echo" if grid.config.worker == "native" else np.array
    return grid.submit(function, data).result(DEADLINE)


@pytest.mark.usefixtures("linked")
def test_workers_are_shared_out_among_the_nodes(network: Network) -> None:
    assert [len(workers_in(node)) for node in network.namespaces] == [3, 2]
    assert len(workers_of(psutil.Process())) == 5
    # The client stays where it is.
    nodes = [in_namespace(node) for node in network.namespaces]
    assert in_namespace(Path("/proc/self/ns/net")) not in nodes
    assert in_namespace(Path("/proc/thread-self/ns/net")) not in nodes


@pytest.mark.usefixtures("linked")
def test_there_is_one_connection_to_each_node(network: Network) -> None:
    connections = psutil.Process().net_connections("tcp")
    there = [one for one in connections if one.status == psutil.CONN_ESTABLISHED]
    # The door is open for IPv6 as well, and writes addresses so.
    peers = [one.raddr.ip.removeprefix("::ffff:") for one in there]
    assert sorted(ip for ip in peers if ip in network.node_addresses) == network.node_addresses


def test_results_tell_the_node_that_they_come_from(network: Network) -> None:
    with ready_behind(network, 2) as grid:
        calls = [grid.submit(os.stat, "/proc/self/ns/net") for _ in range(40)]
        where = {call.result(DEADLINE).st_ino for call in calls}
        hosts = {grid._native.host_of(call.profile.worker) for call in calls}
    assert where <= {in_namespace(node) for node in network.namespaces}
    assert hosts <= {"node1", "node2"}


def test_large_arrays_come_back_unchanged(linked: Grid) -> None:
    data = np.random.default_rng(1).integers(0, 256, 10 * MB, np.uint8)
    for _ in range(4):
        assert np.array_equal(np.frombuffer(echo(linked, data), np.uint8), data)


@pytest.mark.parametrize("worker", ["python", "native"])
def test_what_calls_carry_passes_the_link_of_their_node(worker: Any, network: Network) -> None:
    first, second = (node.name for node in network.namespaces)
    size = 4 * MB
    with ready_behind(network, 1, worker=worker) as grid:
        before = [moved("link", namespace=node) for node in (first, second)]
        client = moved(network.client_interface)
        # Nothing that could be compressed, as happens by itself where a link seems slow.
        echo(grid, np.random.default_rng(2).integers(0, 256, size, np.uint8))
        near, far = (moved("link", namespace=node) for node in (first, second))
        client_after = moved(network.client_interface)
    # There and back; headers take less than a tenth, with what is sent again.
    assert size < near[0] - before[0][0] < 1.1 * size
    assert size < near[1] - before[0][1] < 1.1 * size
    assert size < client_after[0] - client[0] < 1.1 * size
    assert size < client_after[1] - client[1] < 1.1 * size
    assert far[0] - before[1][0] < size / 10


def test_shared_data_goes_to_each_node_once(network: Network) -> None:
    data = np.random.default_rng(2).integers(0, 256, MB, np.uint8)
    with ready_behind(network, 6) as grid:
        before = [moved("link", namespace=node.name)[0] for node in network.namespaces]
        shared = grid.share(data)
        # Not a function of this file, which a worker could import only without other tests.
        sums = [grid.submit(np.sum, shared) for _ in range(200)]
        assert {int(call.result(DEADLINE)) for call in sums} == {int(data.sum())}
        workers = {call.profile.worker for call in sums}
        after = [moved("link", namespace=node.name)[0] for node in network.namespaces]
    assert len(workers) > 2
    # Once to each node that needed it, however many of its workers do.
    for old, new in zip(before, after, strict=True):
        assert new - old < 1.3 * MB
    assert sum(after) - sum(before) > MB


def test_a_lost_worker_is_replaced_in_its_node(linked: Grid, network: Network) -> None:
    before = workers_of(psutil.Process())
    killed = {workers_in(node)[0] for node in network.namespaces}
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not killed & set(workers_of(psutil.Process())))
    until(lambda: len(workers_of(psutil.Process())) == len(before))
    linked.wait_until_ready(DEADLINE)
    assert [len(workers_in(node)) for node in network.namespaces] == [3, 2]
    # Nothing else has been started again.
    assert set(workers_of(psutil.Process())) > set(before) - killed
    data = np.arange(9, dtype=np.uint8)
    assert np.array_equal(np.frombuffer(echo(linked, data), np.uint8), data)


def test_a_worker_that_a_call_ends(network: Network) -> None:
    with ready_behind(network, 1) as grid:
        with pytest.raises(WorkerLost, match="exited with status 3"):
            grid.submit(os._exit, 3).result(DEADLINE)
        here = grid.submit(os.stat, "/proc/self/ns/net").result(DEADLINE)
    assert here.st_ino == in_namespace(network.namespaces[0])


def test_nothing_is_left_of_a_killed_client() -> None:
    program = """
from gridbench.engines.gridrpc_engines import servers_in
from gridbench_testbed.links.network import Network
from gridrpc import Grid
import time
with Network(2, 1e9) as network:
    grid = Grid(servers=servers_in(network.namespaces, 3))
    grid.wait_until_ready()
    print("ready", flush=True)
    time.sleep(1000)
"""
    client = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    workers = workers_of(psutil.Process(client.pid))
    assert len(workers) == 3
    client.kill()
    client.communicate(timeout=DEADLINE)
    until(lambda: not any(psutil.pid_exists(pid) for pid in workers))
    with Network(1, 1e9):
        assert left_of(client.pid) == []


@pytest.mark.parametrize("kind", [PythonEngine, NativeEngine])
def test_engines_run_their_tasks_in_the_nodes(kind: Any, network: Network) -> None:
    engine = kind()
    engine.use_namespaces([str(node) for node in network.namespaces])
    assert [engine.shared_copies(workers, warm=False) for workers in (1, 2, 9)] == [1, 2, 2]
    size = MB
    try:
        engine.start(2)
        engine.wait_ready()
        configuration = engine.describe().configuration
        assert len(configuration["servers"]) == 2
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


@pytest.mark.parametrize("kind", [PythonEngine, NativeEngine])
def test_nothing_that_tasks_return_is_compressed(kind: Any) -> None:
    # It is one byte repeated, and gridrpc would compress it by itself on a link as slow as this.
    outputs = 8
    with Network(1, 100e6) as slow:
        engine = kind()
        engine.use_namespaces([str(node) for node in slow.namespaces])
        try:
            engine.start(1)
            engine.wait_ready()
            shared = engine.share(np.zeros(1, np.uint8))
            before = moved(slow.client_interface)
            for tid in range(outputs):
                engine.submit(Task(tid, 0.0, np.zeros(1, np.uint8), MB), shared)
            assert [engine.next_outcome().error for _ in range(outputs)] == [""] * outputs
            after = moved(slow.client_interface)
        finally:
            engine.close()
    assert outputs * MB < after[0] - before[0]


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
        assert len(record["engine"]["configuration"]["servers"]) == 2
        assert table.num_rows == result.tasks
