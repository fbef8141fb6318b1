"""Calls, maps and objects that are bound to a server or a host run there and nowhere else."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid
from grids import CompileIdl, opened
from hosts import agents, configured, nothing_is_left, on_hosts, rig_of, server, signal_all
from processes import LONG, until

IDL = """
Module place;
Globals {
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
}
Define host(IN int item, OUT string name)
    { char own[256]; gethostname(own, sizeof own); *name = strdup(own); }
DefClass There { DefMethod host(OUT string name)
    { char own[256]; gethostname(own, sizeof own); *name = strdup(own); } }
"""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(3) as rig:
        yield rig
        assert nothing_is_left(rig)


@pytest.fixture(scope="module")
def hosts(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """A server of two hosts, one of a single host, and a worker of this machine."""
    folder = tmp_path_factory.mktemp("grid")
    pair, single = server(rig, "node1", "node2", name="pair"), server(rig, "node3", name="single")
    with on_hosts(folder, pair, single, workers=1) as grid:
        yield grid


#: Where calls of each server may run.
PLACES = {
    "pair": {"node1", "node2"},
    "single": {"node3"},
    "node2": {"node2"},
    "localhost": {socket.gethostname()},
}


def where(_: object = None, seconds: float = 0.0) -> str:
    time.sleep(seconds)
    return os.uname().nodename


def slowly(seconds: float) -> str:
    """As nobody knows how long it takes, no call of it is sent ahead."""
    return where(seconds=seconds)


def first(folder: str, name: str) -> str:
    """Waits in its first run until it is ended; the next ones return where they are."""
    tried = Path(folder) / name
    if tried.exists():
        return os.uname().nodename
    tried.touch()
    time.sleep(LONG)
    return "nobody ended it"


def used_there(array: np.ndarray[Any, Any]) -> tuple[str, float]:
    return where(), float(array.sum())


class Place:
    def host(self) -> str:
        return where()


@pytest.mark.parametrize("name", PLACES)
def test_calls_run_on_their_server(hosts: Grid, name: str) -> None:
    calls = [hosts.submit(where, 0, 0.01, server=name) for _ in range(12)]
    # Others continue meanwhile.
    others = {call.result(LONG) for call in [hosts.submit(where, 0, 0.05) for _ in range(14)]}
    assert {call.result(LONG) for call in calls} == PLACES[name]
    assert others - PLACES[name]


@pytest.mark.parametrize("name", PLACES)
def test_all_items_of_a_map_run_on_its_server(hosts: Grid, name: str) -> None:
    assert set(hosts.map(where, range(2000), server=name)) <= PLACES[name]
    alone = hosts.map(where, range(20), chunk=1, ordered=False, server=name)
    assert set(alone) <= PLACES[name]
    assert set(hosts.starmap(where, [(0, 0.001)] * 10, server=name)) <= PLACES[name]


@pytest.mark.parametrize("name", PLACES)
def test_objects_live_on_their_server(hosts: Grid, name: str) -> None:
    with hosts.object(Place, server=name) as place:
        assert place.host() in PLACES[name]


def test_results_of_other_servers_are_arguments(hosts: Grid) -> None:
    there = hosts.submit(where, server="single")
    assert hosts.submit(str.upper, there, server="node1").result(LONG) == "NODE3"


def test_large_results_go_to_the_server_that_needs_them(hosts: Grid) -> None:
    for made, used in (("single", "node2"), ("node2", "single"), ("single", "single")):
        large = hosts.submit(np.ones, 1_000_000, server=made)
        place, total = hosts.submit(used_there, large, server=used).result(LONG)
        assert ({place}, total) == (PLACES[used], 1e6)


def test_higher_priorities_go_first_on_a_server(hosts: Grid) -> None:
    slow = [hosts.submit(slowly, 0.3, server="node2") for _ in range(2)]
    order: list[int] = []
    calls = {
        hosts.submit(slowly, 0.05, server="node2", priority=priority): priority
        for priority in (0, 0, 0, 0, 5, 5)
    }
    for call in gridrpc.as_completed(calls, timeout=LONG):
        order.append(calls[call])
    assert order[:2] == [5, 5]
    assert all(call.done() for call in slow)


def test_unknown_names_are_reported_with_the_known_ones(hosts: Grid) -> None:
    for bind in (
        lambda: hosts.submit(where, server="par"),
        lambda: hosts.map(where, [1], server="par"),
        lambda: hosts.object(Place, server="par"),
    ):
        with pytest.raises(gridrpc.ServerNotFound) as message:
            bind()
        text = str(message.value)
        assert text.startswith('there is no server "par": ')
        assert text.endswith('"pair", "single", "node1", "node2", "node3" and "localhost"')


def test_a_grid_of_this_machine_knows_it_alone(grid: Grid) -> None:
    assert grid.submit(where, server="localhost").result(LONG) == socket.gethostname()
    with pytest.raises(gridrpc.ServerNotFound, match=r'"localhost"$'):
        grid.submit(where, server="node1")


def test_functions_of_modules_are_bound(rig: Rig, compile_idl: CompileIdl, tmp_path: Path) -> None:
    module = compile_idl(IDL)
    tables = [server(rig, "node1", name="one"), server(rig, "node2", "node3", name="others")]
    with on_hosts(tmp_path, *tables, worker="native", modules=[module]) as grid:
        host = grid.function("place/host", server="one")
        assert {host(item) for item in range(6)} == {"node1"}
        assert host.submit(0).result(LONG) == "node1"
        assert set(grid.map(host, range(500))) == {"node1"}
        assert set(grid.map("place/host", range(500), server="others")) <= {"node2", "node3"}
        assert grid.submit("place/host", 0, server="node3").result(LONG) == "node3"
        with grid.object("place/There", server="node2") as there:
            assert there.host() == "node2"
        # The same name without a server is bound to none.
        assert grid.function("place/host") is grid.function("place/host") is not host


def test_what_runs_again_runs_on_the_same_host(rig: Rig, tmp_path: Path) -> None:
    with on_hosts(tmp_path, server(rig, "node1", "node2", workers=1)) as grid:
        call = grid.submit(first, str(tmp_path), "tried", server="node2", idempotent=True)
        assert until((tmp_path / "tried").exists)
        signal_all(agents(rig, 2), signal.SIGKILL)
        # Its host is away, and those that are there are not asked.
        assert grid.submit(where, server="node1").result(LONG) == "node1"
        assert call.result(LONG) == "node2"


def test_a_server_that_cannot_be_started_ends_its_calls_alone(rig: Rig, tmp_path: Path) -> None:
    gone = server(rig, "nobody.invalid", name="gone")
    file = configured(tmp_path, server(rig, "node1", name="one"), gone)
    with opened(config=file) as grid:
        call = grid.submit(where, server="gone")
        blocked = grid.submit(str.upper, call)
        assert grid.submit(where).result(LONG) == "node1"
        with pytest.raises(gridrpc.StartError, match='no worker of server "gone" could be started'):
            call.result(LONG)
        with pytest.raises(gridrpc.DependencyFailed):
            blocked.result(LONG)
        # From now on it is reported at once.
        with pytest.raises(gridrpc.StartError, match=r"nobody\.invalid"):
            grid.submit(where, server="nobody.invalid")
        with pytest.raises(gridrpc.ObjectLost):
            grid.object(Place, server="gone")
        assert grid.submit(where, server="one").result(LONG) == "node1"
