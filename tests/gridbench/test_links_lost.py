"""Nodes that cannot be reached: when a grid is opened, and when a worker is to be replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from gridbench.links.network import Network
from gridrpc import ConfigError, Grid, StartError, WorkerLost
from linking import in_namespace, skip_without_links, workers_of
from running import DEADLINE, until

skip_without_links()


@contextmanager
def grid_in(network: Network, worker: Any = "python") -> Iterator[Grid]:
    """Two workers in two nodes, which have answered."""
    grid = Grid(2, worker=worker, transport="tcp", namespaces=network.namespaces)
    try:
        grid.wait_until_ready(DEADLINE)
        yield grid
    finally:
        grid.close()


def set_link(network: Network, node: int, state: str) -> None:
    """Have the switch pass nothing from or to a node, `down`, or all, `up`."""
    command = ["ip", "-n", network.switch.name, "link", "set", "dev", f"port{node}", state]
    subprocess.run(command, check=True)


@contextmanager
def without_way(addresses: list[str]) -> Iterator[None]:
    """While active, connections to these addresses fail at once."""
    added = []
    try:
        for address in addresses:
            subprocess.run(["ip", "route", "add", "unreachable", f"{address}/32"], check=True)
            added.append(address)
        yield
    finally:
        for address in added:
            subprocess.run(["ip", "route", "delete", "unreachable", f"{address}/32"], check=True)


def kill_worker(number: int) -> None:
    os.kill(workers_of(psutil.Process())[number], signal.SIGKILL)


def tries(address: str) -> set[int]:
    """The ports from which this process tries to connect to an address that does not answer."""
    connections = psutil.Process().net_connections("tcp4")
    trying = [one for one in connections if one.status == psutil.CONN_SYN_SENT]
    return {one.laddr.port for one in trying if one.raddr.ip == address}


@pytest.mark.parametrize("worker", ["python", "native"])
def test_calls_go_on_while_a_worker_cannot_be_replaced(worker: Any) -> None:
    function = "builtin/echo" if worker == "native" else bytes
    with Network(2, 1e9) as network, grid_in(network, worker) as grid:
        address = network.node_addresses[1]
        set_link(network, 2, "down")
        kill_worker(1)
        for _ in range(2):  # the first try, and another if this machine stands still meanwhile
            until(lambda: tries(address))
            before = tries(address)
            for _ in range(200):
                assert grid.submit(function, b"data").result(DEADLINE) == b"data"
            if before & tries(address):
                break
        else:
            pytest.fail("no 200 calls have ended before a try has")
        # A node that comes back while it is tried gets its worker again.
        set_link(network, 2, "up")
        grid.wait_until_ready(DEADLINE)
        node = Path(f"/proc/{workers_of(psutil.Process())[1]}/ns/net")
        assert in_namespace(node) == in_namespace(network.namespaces[1])


def test_a_grid_can_be_closed_while_a_node_is_tried() -> None:
    with Network(2, 1e9) as network, grid_in(network) as grid:
        address = network.node_addresses[1]
        set_link(network, 2, "down")
        kill_worker(1)
        until(lambda: tries(address))
        grid.close()
        assert not tries(address)
    until(lambda: not workers_of(psutil.Process()))


def test_a_worker_that_is_given_up_is_told_and_the_others_go_on() -> None:
    with Network(2, 1e9) as network, grid_in(network) as grid:
        address = network.node_addresses[1]
        with without_way([address]):
            kill_worker(1)
            said = "too few workers could be started: worker 1 .* no connection to the network"
            with pytest.raises(StartError, match=f"{said} namespace .* at {address}: "):
                # It has all its workers until the loss has been noticed.
                until(lambda: grid.wait_until_ready(DEADLINE))
        assert grid.submit(abs, -1).result(DEADLINE) == 1
        with pytest.raises(WorkerLost, match="exited with status 3"):
            grid.submit(os._exit, 3).result(DEADLINE)
        here = grid.submit(os.stat, "/proc/self/ns/net").result(DEADLINE)
        assert here.st_ino == in_namespace(network.namespaces[0])


def test_calls_end_when_no_worker_can_be_replaced() -> None:
    with Network(2, 1e9) as network:
        grid = Grid(2, transport="tcp", namespaces=network.namespaces)
        grid.wait_until_ready(DEADLINE)
    # The network is gone. Packets would go to wherever this machine sends what it has no way for.
    with without_way(network.node_addresses), grid:
        for pid in workers_of(psutil.Process()).values():
            os.kill(pid, signal.SIGKILL)
        until(lambda: not workers_of(psutil.Process()))
        # The call may still go to a worker whose end the grid has not heard of, and then goes back.
        with pytest.raises(StartError, match="no connection to the network namespace"):
            grid.submit(os.getpid, idempotent=True).result(DEADLINE)


def test_a_node_that_does_not_answer_when_a_grid_is_opened() -> None:
    with Network(2, 1e9) as network:
        node, address = network.namespaces[1], network.node_addresses[1]
        set_link(network, 2, "down")
        said = f"no connection to the network namespace `{node}` at {address}: "
        with pytest.raises(ConfigError, match=said):
            Grid(1, transport="tcp", namespaces=network.namespaces)


def test_nodes_are_tried_at_once_when_a_grid_is_opened_and_other_threads_run() -> None:
    with Network(2, 1e9) as network, ThreadPoolExecutor(1) as pool:

        def are_tried_at_once() -> bool:
            opening = pool.submit(Grid, 1, transport="tcp", namespaces=network.namespaces)
            at_once = False
            while not opening.done():
                at_once = at_once or all(map(tries, network.node_addresses))
                time.sleep(0.02)
            assert isinstance(opening.exception(), ConfigError)
            return at_once

        for node in (1, 2):
            set_link(network, node, "down")
        until(are_tried_at_once)
