"""Results that calls on other hosts need go from host to host, without the client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import gridrpc
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid
from hosts import agents, configured, nothing_is_left, on_hosts, rig_of, server, signal_all
from processes import HERE, LONG, until
from test_hosts_results import LARGE, SMALL, facts, memory, ones, plus, slow_ones

#: Over this link a large result takes 3.2 s, bits per second.
SLOW = 20e6


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(2) as rig:
        yield rig
        assert nothing_is_left(rig)


@pytest.fixture(scope="module")
def hosts(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """Two workers on each of two hosts, which keep no memory that is free."""
    tables = [server(rig, f"node{node}", name=f"at{node}") for node in (1, 2)]
    with on_hosts(tmp_path_factory.mktemp("grid"), *tables, keep_free=0) as grid:
        yield grid


def through_client(rig: Rig) -> int:
    """Bytes that have come to the client from the hosts so far."""
    names = psutil.net_if_addrs().items()
    (name,) = [n for n, all_ in names if any(one.address == rig.client_address for one in all_)]
    return int(psutil.net_io_counters(pernic=True)[name].bytes_recv)


def test_a_result_goes_to_the_host_of_the_call_that_needs_it(hosts: Grid, rig: Rig) -> None:
    before = through_client(rig)
    made = [hosts.submit(slow_ones, n, server="at1") for n in range(2)]
    found = [hosts.submit(facts, one, server="at2") for one in made]
    assert [call.result(LONG) for call in found] == [(0.0, "node2"), (1.0, "node2")]
    # The second call finds it there.
    assert hosts.submit(facts, made[1], server="at2").result(LONG) == (1.0, "node2")
    assert through_client(rig) - before < SMALL
    assert float(made[1].result(LONG)[-1]) == 1.0


def test_results_of_several_hosts_become_arguments_of_one_call(hosts: Grid, rig: Rig) -> None:
    before = through_client(rig)
    one, other = (hosts.submit(slow_ones, n, server=f"at{n}") for n in (1, 2))
    both = hosts.submit(plus, one, other)
    twice = hosts.submit(plus, one, one, server="at2")
    found = hosts.submit(facts, both), hosts.submit(facts, twice, server="at1")
    assert found[0].result(LONG)[0] == 3.0
    assert found[1].result(LONG) == (2.0, "node1")
    assert through_client(rig) - before < SMALL


def test_copies_leave_with_the_result(hosts: Grid, rig: Rig) -> None:
    def use(count: int) -> int:
        for n in range(count):
            made = hosts.submit(slow_ones if n == 0 else ones, n, server="at1")
            assert hosts.submit(facts, made, server="at2").result(LONG)[0] == n
        del made
        return memory(rig, 1) + memory(rig, 2)

    before = use(3)
    assert until(lambda: use(10) - before < 5 * LARGE)


def test_a_host_that_cannot_be_reached_gets_results_through_the_client(
    hosts: Grid, rig: Rig
) -> None:
    rig.run(1, f"ip route add unreachable {rig.address(2)}/32")
    try:
        before = through_client(rig)
        made = hosts.submit(slow_ones, 5, server="at1")
        found = [hosts.submit(facts, made, server="at2") for _ in range(3)]
        assert [call.result(LONG) for call in found] == [(5.0, "node2")] * 3
        assert LARGE < through_client(rig) - before < LARGE + SMALL
    finally:
        rig.run(1, f"ip route del unreachable {rig.address(2)}/32")
    assert hosts.stats().results_not_moved > 0
    # A new agent is dialled again.
    signal_all(agents(rig, 2), signal.SIGKILL)
    assert until(lambda: hosts.submit(os.getpid, server="at2").exception(LONG) is None)
    before = through_client(rig)
    made = hosts.submit(slow_ones, 6, server="at1")
    assert hosts.submit(facts, made, server="at2").result(LONG) == (6.0, "node2")
    assert through_client(rig) - before < SMALL


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_host_is_lost_meanwhile(hosts: Grid, rig: Rig, lost: int, *, idempotent: bool) -> None:
    hosts.wait_until_ready(LONG)
    made = hosts.submit(slow_ones, 7, server="at1", idempotent=idempotent)
    assert hosts.submit(facts, made, server="at1").result(LONG)[0] == 7.0
    rig.link(1, SLOW)
    try:
        used = hosts.submit(facts, made, server="at2", idempotent=idempotent)
        time.sleep(0.7)
        signal_all(agents(rig, lost), signal.SIGKILL)
        rig.link(1)
        failed = used.exception(LONG)
        if idempotent or (lost == 2 and failed is None):
            assert failed is None
            assert used.result(LONG) == (7.0, "node2")
        elif lost == 1:
            assert isinstance(failed, gridrpc.DependencyFailed), failed
            assert isinstance(made.exception(LONG), gridrpc.WorkerLost)
        else:
            assert isinstance(failed, gridrpc.WorkerLost), failed
    finally:
        rig.link(1)
    hosts.wait_until_ready(LONG)


def test_a_link_is_cut_meanwhile(hosts: Grid, rig: Rig) -> None:
    hosts.wait_until_ready(LONG)
    made = hosts.submit(slow_ones, 8, server="at1", idempotent=True)
    assert hosts.submit(facts, made, server="at1").result(LONG)[0] == 8.0
    rig.link(1, SLOW)
    used = hosts.submit(facts, made, server="at2", idempotent=True)
    time.sleep(0.7)
    rig.drop(1)
    time.sleep(2.0)
    rig.mend(1)
    rig.link(1)
    assert used.result(LONG) == (8.0, "node2")
    hosts.wait_until_ready(LONG)


def test_cancelled_calls_leave_nothing(hosts: Grid, rig: Rig) -> None:
    made: Any = hosts.submit(slow_ones, 9, server="at1")
    assert hosts.submit(facts, made, server="at1").result(LONG)[0] == 9.0
    rig.link(1, SLOW)
    try:
        used = hosts.submit(facts, made, server="at2")
        time.sleep(0.5)
        assert used.cancel()
        with pytest.raises(gridrpc.CallCancelled):
            used.result(LONG)
    finally:
        rig.link(1)
    again = hosts.submit(facts, made, server="at2")
    assert again.result(LONG) == (9.0, "node2")


def test_the_end_of_the_client_ends_all(rig: Rig, tmp_path: Path) -> None:
    tables = [server(rig, f"node{node}", name=f"at{node}") for node in (1, 2)]
    file = configured(tmp_path, *tables)
    before = {node: set(agents(rig, node)) for node in (1, 2)}
    program = f"""
        import time, gridrpc
        from test_hosts_results import facts, slow_ones
        if __name__ == "__main__":
            grid = gridrpc.Grid(config={str(file)!r})
            grid.wait_until_ready(60)
            made = grid.submit(slow_ones, 1, server="at1")
            grid.submit(facts, made, server="at1").result(60)
            print("ready", flush=True)
            used = grid.submit(facts, made, server="at2")
            time.sleep(60)
    """
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": str(HERE)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert client.stdout is not None
    try:
        rig.link(1, SLOW)
        assert client.stdout.readline() == b"ready\n"
        time.sleep(0.5)
    finally:
        client.kill()
        client.wait(LONG)
        rig.link(1)
        client.stdout.close()
    assert until(lambda: all(set(agents(rig, node)) <= before[node] for node in (1, 2)))
