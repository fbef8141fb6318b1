"""A grid on two hosts behind ssh does what a grid of this machine does."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid
from grids import CompileIdl
from hosts import nothing_is_left, on_hosts, rig_of, server
from processes import LONG, until

IDL = """
Module far;
Define scale(IN int n, IN double a[n], IN double by, OUT double r[n])
    { for (int i = 0; i < n; i++) r[i] = by * a[i]; }
Define ask(OUT int r[3], answer(OUT int a[3])) { answer(r); }
"""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(2) as rig:
        yield rig
        assert nothing_is_left(rig)


@pytest.fixture(scope="module")
def hosts(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """Two workers on each of two hosts."""
    with on_hosts(tmp_path_factory.mktemp("grid"), server(rig, "node1", "node2")) as grid:
        yield grid


def fib(n: int) -> int:
    if n < 2:
        return n
    grid = gridrpc.current_grid()
    one, other = grid.submit(fib, n - 1), grid.submit(fib, n - 2)
    return one.result() + other.result()


class Counter:
    def __init__(self, start: int) -> None:
        self.value = start

    def add(self, n: int) -> int:
        self.value += n
        return self.value


def where(seconds: float) -> str:
    time.sleep(seconds)
    return os.uname().nodename


def test_all_workers_of_all_hosts_are_used(hosts: Grid) -> None:
    assert hosts.workers == 4
    places = [call.result(LONG) for call in [hosts.submit(where, 0.1) for _ in range(8)]]
    assert set(places) == {"node1", "node2"}


def test_results_are_those_of_a_local_grid(hosts: Grid, grid: Grid) -> None:
    array = np.arange(100_000.0)
    for each in (hosts, grid):
        assert each.submit(remote.everything, 1, "b", c=[None]).result(LONG) == (
            1,
            "b",
            {"c": [None]},
        )
        assert each.submit(remote.total, array).result(LONG) == array.sum()
        np.testing.assert_array_equal(each.submit(remote.plus_one, array).result(LONG), array + 1)
        assert list(each.map(remote.add, range(500), range(500))) == list(range(0, 1000, 2))
        with pytest.raises(remote.Detailed) as raised:
            each.submit(remote.fail, "detailed").result(LONG)
        assert raised.value.code == 42


def test_shared_data_goes_to_each_host(hosts: Grid) -> None:
    shared = hosts.share(np.arange(50_000.0))
    calls = [hosts.submit(remote.total, shared) for _ in range(20)]
    assert {call.result(LONG) for call in calls} == {np.arange(50_000.0).sum()}


def test_results_are_arguments_of_other_calls(hosts: Grid) -> None:
    made = hosts.submit(remote.make_array, 1 << 20, 3)
    half = hosts.submit(remote.first_half, made)
    assert hosts.submit(remote.total, made, half).result(LONG) == 3 * (3 << 19)


def test_functions_make_calls_themselves(hosts: Grid) -> None:
    assert hosts.submit(fib, 8).result(LONG) == 21


def test_objects_live_on_a_host(hosts: Grid) -> None:
    with hosts.object(Counter, 10) as counter:
        assert [counter.add(n) for n in range(3)] == [10, 11, 13]


def test_calls_are_cancelled_and_miss_deadlines(hosts: Grid, tmp_path: Path) -> None:
    started = tmp_path / "started"
    call = hosts.submit(remote.tell_and_wait, str(started), str(tmp_path / "never"))
    assert until(started.exists)
    assert call.cancel()
    with pytest.raises(gridrpc.CallCancelled):
        call.result(LONG)
    late = hosts.submit(remote.wait_for, str(tmp_path / "never"), deadline=0.1)
    with pytest.raises(gridrpc.DeadlineExceeded):
        late.result(LONG)
    assert hosts.submit(remote.add, 1, 1).result(LONG) == 2


def test_calls_are_awaited(hosts: Grid) -> None:
    async def work() -> list[int]:
        return await asyncio.gather(*[hosts.submit(remote.add, n, n) for n in range(20)])

    assert asyncio.run(work()) == list(range(0, 40, 2))


def test_profiles_name_the_host_and_the_worker(hosts: Grid) -> None:
    calls = [hosts.submit(where, 0.1) for _ in range(8)]
    places = [(call.result(LONG), call.profile) for call in calls]
    assert all(profile.host == host for host, profile in places)
    assert {profile.worker for _, profile in places} == {0, 1, 2, 3}
    times = [(one.submit, one.sent, one.calc_out - one.calc_in) for _, one in places]
    assert all(submit <= sent and ran > 0.09 for submit, sent, ran in times)


def test_times_of_a_host_whose_clock_is_an_hour_ahead_are_those_of_this_one(
    tmp_path: Path,
) -> None:
    prefix = '["unshare", "--time", "--monotonic", "3600"]'
    table = f'[server.ahead]\nlauncher = "local"\nworkers = 1\nprefix = {prefix}\n'
    with on_hosts(tmp_path, table) as grid:
        call = grid.submit(time.monotonic)
        assert call.result(LONG) - time.monotonic() > 3500
        profile = call.profile
    times = [getattr(profile, name) for name in ("sent", "received", "calc_in", "calc_out")]
    error = profile.clock_error
    assert 0 < error < 0.1
    assert all(
        later - earlier > -error
        for earlier, later in itertools.pairwise([*times, profile.retrieve])
    )


def test_lines_of_workers_come_with_host_and_worker(
    hosts: Grid, capfd: pytest.CaptureFixture[str]
) -> None:
    hosts.submit(print, "a line").result(LONG)
    text = ""

    def come() -> bool:
        nonlocal text
        text += capfd.readouterr().out
        return "a line" in text

    assert until(come)
    assert re.search(r"^\[node[12] worker \d\] a line$", text, re.MULTILINE), text


@pytest.mark.parametrize("worker", ["native", "python"])
def test_module_functions_run_on_hosts(
    rig: Rig, compile_idl: CompileIdl, tmp_path: Path, worker: Any
) -> None:
    table = server(rig, "node1", "node2", workers=1)
    with on_hosts(tmp_path, table, worker=worker, modules=[compile_idl(IDL)]) as grid:
        scale, ask = grid.function("far/scale"), grid.function("far/ask")
        result = np.empty(50_000)
        scale(np.ones(50_000), 2.5, out=result)
        assert set(result) == {2.5}

        def answer(a: Any) -> None:
            a[:] = [4, 5, 6]

        assert list(ask(answer)) == [4, 5, 6]


def test_workers_here_and_there_make_one_grid(rig: Rig, tmp_path: Path) -> None:
    here = os.uname().nodename
    with on_hosts(tmp_path, server(rig, "node1", "node2"), workers=2) as grid:
        assert grid.workers == 6
        places = {call.result(LONG) for call in [grid.submit(where, 0.2) for _ in range(12)]}
        assert places == {here, "node1", "node2"}


def test_a_client_that_cannot_be_dialled_is_reached_through_ssh(rig: Rig, tmp_path: Path) -> None:
    with on_hosts(tmp_path, server(rig, "node1", addresses=["192.0.2.1"])) as grid:
        assert grid.submit(where, 0.0).result(LONG) == "node1"


def test_a_host_has_the_name_that_its_owner_gives_it(rig: Rig, tmp_path: Path) -> None:
    with rig.config.open("a") as config:
        config.write(f"Host fast\n    HostName {rig.address(1)}\n")
    # ssh takes the first that fits: users and keys stand further up.
    with on_hosts(tmp_path, server(rig, "fast", workers=1)) as grid:
        lost = grid.submit(remote.die, "exit").exception(LONG)
        assert isinstance(lost, gridrpc.WorkerLost)
        assert lost.host == "fast (node1)"
        call = grid.submit(remote.add, 1, 1)
        assert (call.result(LONG), call.profile.host) == (2, "fast")


def test_hosts_reach_an_address_of_ipv6(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    table = '[server.six]\nlauncher = "local"\nhosts = "n[1-2]"\nworkers = 1\naddresses = ["::1"]\n'
    with on_hosts(tmp_path, table) as grid:
        shared = grid.share(np.ones(100_000))
        calls = [grid.submit(np.sum, shared) for _ in range(8)]
        assert [call.result(LONG) for call in calls] == [100_000.0] * 8
        assert {call.profile.host for call in calls} == {"n1", "n2"}
