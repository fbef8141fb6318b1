"""Nodes that are lost, or do not come: effects on calls and on the other nodes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from gridbench.engines.gridrpc_engines import servers_in
from gridbench_testbed.links.network import Network
from gridrpc import Grid, StartError, WorkerLost
from linking import (
    grid_behind,
    in_namespace,
    ready_behind,
    skip_without_links,
    workers_in,
    workers_of,
)
from running import DEADLINE, until

skip_without_links()

HEARTBEAT = 1.5
SILENT = f"host node2 .* failed: it was silent for {HEARTBEAT} s"


def set_link(network: Network, node: int, state: str) -> None:
    """Have the switch pass nothing from or to a node, `down`, or all, `up`."""
    command = ["ip", "-n", network.switch.name, "link", "set", "dev", f"port{node}", state]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("worker", ["python", "native"])
def test_calls_continue_while_a_node_is_away_and_it_comes_back(worker: Any) -> None:
    function = "gridbench_tasks/echo" if worker == "native" else bytes
    with (
        Network(2, 1e9) as network,
        ready_behind(network, 2, worker=worker, heartbeat=HEARTBEAT, start_timeout=5) as grid,
    ):
        set_link(network, 2, "down")
        until(lambda: len(workers_of(psutil.Process())) == 1)
        for _ in range(200):
            assert bytes(grid.submit(function, b"data").result(DEADLINE)) == b"data"
        set_link(network, 2, "up")
        until(lambda: [len(workers_in(node)) for node in network.namespaces] == [1, 1])
        grid.wait_until_ready(DEADLINE)


def test_calls_on_a_node_that_is_cut_off_end_or_run_elsewhere() -> None:
    with Network(2, 1e9) as network, ready_behind(network, 2, heartbeat=HEARTBEAT) as grid:
        cut = in_namespace(network.namespaces[1])
        # One for each worker; the idempotent one that is on the second node runs again.
        calls = [grid.submit(time.sleep, 2 * HEARTBEAT, idempotent=True) for _ in range(2)]
        until(lambda: all(call.profile.sent for call in calls))
        set_link(network, 2, "down")
        cut_at = time.monotonic()
        for call in calls:
            assert call.result(DEADLINE) is None
        assert time.monotonic() - cut_at > 1.5 * HEARTBEAT
        here = grid.submit(os.stat, "/proc/self/ns/net").result(DEADLINE)
        assert here.st_ino != cut


def test_a_call_on_a_node_that_is_cut_off_is_lost_with_it() -> None:
    with Network(2, 1e9) as network, ready_behind(network, 2, heartbeat=HEARTBEAT) as grid:
        calls = [grid.submit(time.sleep, 2 * HEARTBEAT) for _ in range(2)]
        until(lambda: all(call.profile.sent for call in calls))
        set_link(network, 2, "down")
        errors = [call.exception(DEADLINE) for call in calls]
        (lost,) = [error for error in errors if error is not None]
        with pytest.raises(WorkerLost, match=SILENT):
            raise lost


def test_a_grid_can_be_closed_while_a_node_is_away() -> None:
    with Network(2, 1e9) as network:
        with ready_behind(network, 2, heartbeat=HEARTBEAT):
            set_link(network, 2, "down")
            until(lambda: len(workers_of(psutil.Process())) == 1)
            started = time.monotonic()
        assert time.monotonic() - started < DEADLINE / 10
        until(lambda: not workers_of(psutil.Process()))


def test_a_node_that_does_not_come_is_reported_with_its_name() -> None:
    with Network(2, 1e9) as network, grid_behind(network, 2, start_timeout=0.5) as grid:
        set_link(network, 2, "down")
        said = "host node2 failed: its agent did not dial this client within 0.5 s"
        with pytest.raises(StartError, match=said):
            grid.wait_until_ready(DEADLINE)
        # The other one is there.
        assert grid.submit(abs, -1).result(DEADLINE) == 1


def test_a_namespace_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    with Grid(servers=servers_in([missing], 1)) as grid:
        with pytest.raises(StartError, match="host node1 failed: its agent ended before") as caught:
            grid.wait_until_ready(DEADLINE)
        assert f"cannot open {missing}" in str(caught.value)
