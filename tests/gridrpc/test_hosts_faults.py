"""Hosts, links, agents and workers that are lost at work: every call ends once."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gridrpc
import remote
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid, WorkerLost
from grids import queued
from hosts import (
    HEARTBEAT,
    agents,
    nothing_is_left,
    on_hosts,
    ours,
    rig_of,
    server,
    signal_all,
    spawners,
)
from processes import HERE, LONG, until

Calls = list[gridrpc.Call[Any]]


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(2) as rig:
        yield rig
        assert nothing_is_left(rig)


@pytest.fixture(scope="module")
def hosts(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """Two workers on each of two hosts. Whatever a test does to them, the next finds them all."""
    table = server(rig, "node1", "node2")
    with on_hosts(tmp_path_factory.mktemp("grid"), table, stall=0.2) as grid:
        yield grid


class Work:
    """Calls at work on all workers, and more that wait. They run until their ends are requested.

    Of those on `host`, half may be run again.
    """

    def __init__(self, grid: Grid, folder: Path, host: str, *, waiting: int = 20) -> None:
        grid.wait_until_ready(LONG)
        self.grid, self.folder, self.gate = grid, folder, folder / "gate"
        numbers = range(grid.workers)
        calls = {n: self._submit(n) for n in numbers}
        assert until(lambda: all(self._started(n).exists() for n in numbers))
        there = [n for n in numbers if self._started(n).read_text() == host]
        again = there[::2]
        for n in again:
            # The place of the one is the only free one, and so the other's.
            self._gate(n).touch()
            assert calls[n].result(LONG) == n
            self._started(n).unlink()
            self._gate(n).unlink()
            calls[n] = self._submit(n, idempotent=True)
            assert until(self._started(n).exists)
            assert self._started(n).read_text() == host
        self.calls: Calls = list(calls.values())
        self.calls += [self._submit(n, idempotent=True) for n in range(len(calls), waiting)]
        self.doomed: Calls = [calls[n] for n in there if n not in again]
        """Those that end if the host does."""

    def _started(self, n: int) -> Path:
        return self.folder / f"started{n}"

    def _gate(self, n: int) -> Path:
        return self.folder / f"gate{n}"

    def _submit(self, n: int, *, idempotent: bool = False) -> gridrpc.Call[Any]:
        gates = [str(self._gate(n)), str(self.gate)]
        started = str(self._started(n))
        return self.grid.submit(remote.tell_host_and_wait, started, gates, n, idempotent=idempotent)

    def lost(self) -> list[WorkerLost]:
        """The losses of those that must be lost; all others continue and return."""
        assert until(lambda: all(call.done() for call in self.doomed))
        losses = [call.exception() for call in self.doomed]
        self.gate.touch()
        ends = [call.exception(LONG) for call in self.calls]
        lost = [call for call, end in zip(self.calls, ends, strict=True) if end is not None]
        assert lost == [call for call in self.calls if call in self.doomed]
        self._returned()
        assert all(type(loss) is WorkerLost for loss in losses), losses
        return [loss for loss in losses if isinstance(loss, WorkerLost)]

    def all_return(self) -> None:
        """Nothing is lost."""
        self.gate.touch()
        assert [call.exception(LONG) for call in self.calls] == [None] * len(self.calls)
        self._returned()

    def _returned(self) -> None:
        numbered = enumerate(self.calls)
        assert all(call.result() == n for n, call in numbered if call not in self.doomed)

    def comes_back(self) -> None:
        """All workers are there again, and work."""
        self.grid.wait_until_ready(LONG)
        calls = [self.grid.submit(remote.add, n, n) for n in range(50)]
        assert [call.result(LONG) for call in calls] == list(range(0, 100, 2))


@pytest.fixture
def work(hosts: Grid, tmp_path: Path) -> Iterator[Work]:
    work = Work(hosts, tmp_path, "node1")
    yield work
    # Also when the test fails: the next one needs the workers.
    work.gate.touch()


@pytest.mark.parametrize("loss", ["cut", "drop"])
def test_nothing_is_lost_when_a_link_is_gone_for_a_moment(work: Work, rig: Rig, loss: str) -> None:
    getattr(rig, loss)(1)
    # That it is short is what this is about.
    time.sleep(HEARTBEAT / 3)
    rig.mend(1)
    work.all_return()
    assert agents(rig, 1)


@pytest.mark.parametrize("loss", ["cut", "drop"])
def test_a_host_behind_a_link_that_is_gone_is_lost_and_comes_back(
    work: Work, rig: Rig, loss: str
) -> None:
    before = agents(rig, 1)
    getattr(rig, loss)(1)
    try:
        (lost,) = work.lost()
    finally:
        rig.mend(1)
    assert (lost.host, lost.worker, lost.pid) == ("node1", None, None)
    assert f"host node1 failed: it was silent for {HEARTBEAT} s" in str(lost)
    assert "`heartbeat`" in str(lost)
    assert "idempotent=True" in str(lost)
    work.comes_back()
    assert until(lambda: not set(before) & set(agents(rig, 1))), "the agent ends by itself"


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGKILL, "its agent is gone"), (signal.SIGSTOP, "it was silent")]
)
def test_an_agent_that_is_killed_or_stopped_is_replaced(
    work: Work, rig: Rig, number: int, said: str
) -> None:
    before = set(ours(rig))
    old = set(agents(rig, 1)) | set(spawners(rig, 1))
    signal_all(agents(rig, 1), number)
    (lost,) = work.lost()
    assert lost.host == "node1"
    assert said in str(lost)
    work.comes_back()
    assert until(lambda: not old & set(ours(rig))), "nothing of it stays"
    assert len(ours(rig)) == len(before)


def test_an_agent_ends_with_its_ssh_session(work: Work, rig: Rig) -> None:
    """An agent that ends while calls run is a lost host, and no other error."""
    (agent,) = agents(rig, 1)
    parents = psutil.Process(agent).parents()
    session = next(parent for parent in parents if "sshd" in parent.name())
    session.kill()
    (lost,) = work.lost()
    assert lost.host == "node1"
    work.comes_back()
    assert agent not in agents(rig, 1)


def test_the_spawner_of_a_host_is_replaced(work: Work, rig: Rig) -> None:
    before = agents(rig, 1)
    signal_all(spawners(rig, 1), signal.SIGKILL)
    (lost,) = work.lost()
    assert lost.host == "node1"
    assert "the process that starts workers ended" in str(lost)
    work.comes_back()
    assert agents(rig, 1) == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_workers_of_a_host_are_replaced_that_are_killed_or_stopped(
    work: Work, rig: Rig, number: int
) -> None:
    workers = psutil.Process(spawners(rig, 1)[0]).children()
    signal_all([worker.pid for worker in workers], number)
    (lost,) = work.lost()
    assert (lost.host, lost.signal) == ("node1", signal.SIGKILL)
    assert lost.worker in range(4)
    work.comes_back()


def test_functions_end_their_workers(hosts: Grid) -> None:
    for how, status in (("exit", 7), ("sys.exit", 9)):
        lost = hosts.submit(remote.die, how).exception(LONG)
        assert isinstance(lost, WorkerLost)
        assert lost.host in {"node1", "node2"}
        assert (lost.status, lost.worker in range(4)) == (status, True)
        assert f"about to die by {how}" in lost.stderr
    hosts.wait_until_ready(LONG)


class Counter:
    def __init__(self) -> None:
        self.value = 0

    def add(self, n: int) -> int:
        self.value += n
        return self.value


def test_an_object_is_lost_with_its_host_and_others_stay(hosts: Grid, rig: Rig) -> None:
    # They are shared out among the hosts.
    with hosts.object(Counter) as one, hosts.object(Counter) as other:
        assert [one.add(1), other.add(1)] == [1, 1]
        signal_all(agents(rig, 1), signal.SIGKILL)

        def ends() -> list[gridrpc.ObjectLost]:
            found = []
            for counter in (one, other):
                # A call that was at work when its worker was lost ends in WorkerLost.
                try:
                    counter.add(1)
                except (gridrpc.ObjectLost, WorkerLost) as error:
                    found.append(error)
            return [error for error in found if isinstance(error, gridrpc.ObjectLost)]

        assert until(lambda: bool(ends()))
        (lost,) = ends()
    assert lost.host == "node1"
    hosts.wait_until_ready(LONG)


@pytest.mark.parametrize("what", ["argument", "result"])
def test_a_link_is_gone_in_the_middle_of_100_megabytes(hosts: Grid, rig: Rig, what: str) -> None:
    hosts.wait_until_ready(LONG)
    size = 100 << 20
    data = np.full(size, 3, np.uint8)

    def submit(*, idempotent: bool) -> gridrpc.Call[Any]:
        if what == "argument":
            return hosts.submit(remote.length, data, idempotent=idempotent)
        return hosts.submit(remote.make_array, size, 3, idempotent=idempotent)

    rig.link(1, rate=1e9)
    column = 1 if what == "argument" else 9

    def passed() -> int:
        """Bytes that have come to the host, or left it."""
        (line,) = (line for line in rig.run(1, "cat /proc/net/dev").splitlines() if "link:" in line)
        return int(line.split()[column])

    begin = passed()
    calls = [submit(idempotent=n != 1) for n in range(4)]
    assert until(lambda: passed() - begin > size // 4)
    rig.drop(1)
    try:
        ends = [call.exception(LONG) for call in calls]
    finally:
        rig.mend(1)
        rig.link(1)
    assert all(end is None for n, end in enumerate(ends) if n != 1), ends
    assert ends[1] is None or isinstance(ends[1], WorkerLost)
    results = [call.result() for call, end in zip(calls, ends, strict=True) if end is None]
    sizes = results if what == "argument" else [int(result.sum()) // 3 for result in results]
    assert set(sizes) == {size}
    hosts.wait_until_ready(LONG)


def test_a_host_dies_with_8_workers_and_100_calls(rig: Rig, tmp_path: Path) -> None:
    with on_hosts(tmp_path, server(rig, "node1:8", "node2")) as grid:
        work = Work(grid, tmp_path, "node1", waiting=100)
        rig.kill(1)
        lost = work.lost()
        assert len(lost) == 4
        assert {one.host for one in lost} == {"node1"}
        rig.boot(1)
        work.comes_back()
        assert grid.workers == 10


def test_calls_of_a_host_that_gives_up_its_workers_run_elsewhere(tmp_path: Path) -> None:
    broken, gate, never = (tmp_path / name for name in ("broken", "gate", "never"))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ntest -e {broken} && exit 1\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    settings = f'launcher = "local"\nworkers = 1\nenvironment = {{ PYTHONPATH = "{HERE}" }}\n'
    near = f"[server.near]\n{settings}"
    far = f'[server.far]\n{settings}python = "{python}"\n'
    with on_hosts(tmp_path, near, far) as grid:
        # Hosts hold calls of a function ahead that is known to be short.
        gate.touch()
        for n in range(100):
            assert grid.submit(remote.wait_for, str(gate), n).result(LONG) == n
        gate.unlink()
        worker = psutil.Process(grid.submit(remote.pid, server="far").result(LONG))
        spawner = psutil.Process(worker.ppid())
        agent = psutil.Process(spawner.ppid())
        held, lost = (
            grid.submit(remote.tell_and_wait, str(tmp_path / name), str(end), server=name)
            for name, end in (("near", gate), ("far", never))
        )
        assert until((tmp_path / "near").exists)
        assert until((tmp_path / "far").exists)
        waiting = [grid.submit(remote.wait_for, str(gate), n) for n in range(10)]
        assert queued(grid) == 0, "all of them are on the hosts"
        broken.touch()
        spawner.kill()
        assert type(lost.exception(LONG)) is WorkerLost
        assert until(lambda: not agent.is_running())
        gate.touch()
        assert [call.result(LONG) for call in waiting] == list(range(10))
        held.result(LONG)


#: What somebody says who has come to the port.
Stranger = Callable[[socket.socket], object]


def test_strangers_at_the_port_change_nothing(hosts: Grid, rig: Rig) -> None:
    ports = {one.laddr.port for one in psutil.Process().net_connections() if one.status == "LISTEN"}
    assert ports
    hello = bytes.fromhex("16030100c8010000c40303") + os.urandom(60)
    say: list[Stranger] = [
        lambda _: None,
        lambda one: one.send(os.urandom(200)),
        lambda one: one.send(hello),
        lambda one: one.send(b"GET / HTTP/1.1\r\n\r\n"),
    ]
    strangers = []
    try:
        for number in range(1000):
            one = socket.create_connection(("127.0.0.1", min(ports)), timeout=LONG)
            strangers.append(one)
            say[number % 4](one)
        calls = [hosts.submit(remote.add, n, n) for n in range(200)]
        assert [call.result(LONG) for call in calls] == list(range(0, 400, 2))
        # And an agent comes in between them.
        before = agents(rig, 1)
        signal_all(before, signal.SIGKILL)
        assert until(lambda: bool(agents(rig, 1)) and agents(rig, 1) != before)
        hosts.wait_until_ready(LONG)
        assert hosts.submit(remote.add, 1, 1).result(LONG) == 2
    finally:
        for one in strangers:
            one.close()
