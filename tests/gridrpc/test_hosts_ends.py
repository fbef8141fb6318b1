"""Clients that end, in whatever way: nothing of theirs stays on any host."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridbench_testbed.links.sshd import Rig
from hosts import (
    HEARTBEAT,
    agents,
    configured,
    nothing_is_left,
    on_hosts,
    ours,
    rig_of,
    server,
    signal_all,
)
from processes import LONG, descendants, running, start_script, until

#: A heartbeat for what is over after ten of them, seconds.
SHORT = 0.5

#: A client whose calls run forever, on all workers; or which has only asked for them.
CLIENT = """
    import sys

    import gridrpc
    import remote

    with gridrpc.Grid(config="grid.toml") as grid:
        if {at_work}:
            grid.wait_until_ready(60)
            calls = [grid.submit(remote.nap, 600) for _ in range(8)]
        print("ready", flush=True)
        sys.stdin.readline()
        grid.close()
        print("closed", flush=True)
"""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(2) as rig:
        yield rig


#: As long hosts may be silent, and ends may take: longer than any test waits. So
#: what ends within that time ends on request, and not by a time-out.
NEVER = 600.0


def client(
    rig: Rig, folder: Path, *, at_work: bool = True, heartbeat: float = NEVER
) -> subprocess.Popen[str]:
    configured(folder, server(rig, "node1", "node2", heartbeat=heartbeat, stop_timeout=NEVER))
    started = start_script(folder, CLIENT.format(at_work=at_work))
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def end(process: subprocess.Popen[str]) -> str:
    """Waits for it; what it has written meanwhile."""
    text, _ = process.communicate("\n", LONG)
    return text


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_client_is_ended_by_a_signal(rig: Rig, tmp_path: Path, number: int) -> None:
    with client(rig, tmp_path) as process:
        here = descendants(process.pid)
        assert ours(rig)
        os.killpg(process.pid, number)
        process.wait(LONG)
        assert nothing_is_left(rig)
        assert until(lambda: not running(here)), "its own ssh end as well"


@pytest.mark.parametrize("delay", [0, 0.1, 0.2, 0.3, 0.5])
@pytest.mark.parametrize("killed", [True, False])
def test_a_client_ends_while_hosts_are_starting(
    rig: Rig, tmp_path: Path, delay: float, *, killed: bool
) -> None:
    with client(rig, tmp_path, at_work=False) as process:
        here = descendants(process.pid)
        # What there is by then differs from one time to the next, as it does with users.
        time.sleep(delay)
        here |= descendants(process.pid)
        if killed:
            process.kill()
        else:
            assert end(process) == "closed\n"
        process.wait(LONG)
        assert nothing_is_left(rig)
        assert until(lambda: not running(here))


def test_a_client_closes_its_grid_with_calls_at_work(rig: Rig, tmp_path: Path) -> None:
    with client(rig, tmp_path) as process:
        assert end(process) == "closed\n"
        assert nothing_is_left(rig)


def test_a_client_is_killed_whose_agent_is_stopped(rig: Rig, tmp_path: Path) -> None:
    with client(rig, tmp_path) as process:
        signal_all(agents(rig, 1), signal.SIGSTOP)
        process.kill()
        assert nothing_is_left(rig)


def test_a_client_is_killed_behind_a_link_that_is_gone(rig: Rig, tmp_path: Path) -> None:
    with client(rig, tmp_path, heartbeat=SHORT) as process:
        rig.drop(1)
        try:
            process.kill()
            assert nothing_is_left(rig), "agents end when they hear nothing for ten heartbeats"
        finally:
            rig.mend(1)


def test_a_client_that_was_stopped_continues_with_its_hosts(rig: Rig, tmp_path: Path) -> None:
    """By Ctrl-Z, a debugger, or as a laptop sleeps."""
    with client(rig, tmp_path, heartbeat=HEARTBEAT) as process:
        before = [agents(rig, node) for node in rig.nodes]
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(3 * HEARTBEAT)
        os.kill(process.pid, signal.SIGCONT)
        # Whoever was taken for lost would be gone by then.
        time.sleep(HEARTBEAT)
        assert [agents(rig, node) for node in rig.nodes] == before
        end(process)
        assert nothing_is_left(rig)


def test_a_client_that_was_stopped_for_long_asks_for_its_hosts_again(
    rig: Rig, tmp_path: Path
) -> None:
    with client(rig, tmp_path, heartbeat=SHORT) as process:
        os.kill(process.pid, signal.SIGSTOP)
        assert nothing_is_left(rig)
        os.kill(process.pid, signal.SIGCONT)
        assert until(lambda: all(agents(rig, node) for node in rig.nodes))
        end(process)
        assert nothing_is_left(rig)


def test_a_connection_that_sessions_share_keeps_no_port(rig: Rig, tmp_path: Path) -> None:
    ssh = ["ssh", "-F", str(rig.config), "-o", f"ControlPath={tmp_path}/%n"]
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    subprocess.run([*ssh, "-M", "-N", "-f", "node1"], check=True, **quiet)
    try:
        table = server(rig, "node1", command=" ".join(ssh))
        with on_hosts(tmp_path, table) as grid:
            assert grid.submit(os.getpid).result(LONG)
            assert "127.0.0.1" in rig.run(1, "ss -ltn")
        assert until(lambda: "127.0.0.1" not in rig.run(1, "ss -ltn"))
    finally:
        subprocess.run([*ssh, "-O", "exit", "node1"], check=True, **quiet)
