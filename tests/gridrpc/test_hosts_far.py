"""Maps over a host behind a long link: as many calls are under way as it can run meanwhile."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid
from hosts import agents, nothing_is_left, on_hosts, rig_of, server, signal_all
from processes import LONG, until

#: To the host, one way, seconds, and its workers.
DELAY = 0.04
WORKERS = 32
#: Calls that a map has under way at most if all hosts are near.
NEAR = 256
ITEM = 0.002
COUNT = 6_000


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(1, DELAY) as rig:
        yield rig
        assert nothing_is_left(rig)


@pytest.fixture(scope="module")
def far(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    table = server(rig, "node1", workers=WORKERS, heartbeat=10.0)
    with on_hosts(tmp_path_factory.mktemp("grid"), table) as grid:
        yield grid


def numbered(number: int) -> int:
    time.sleep(ITEM)
    return number


class Taken:
    """Items, and how many of them a map has taken."""

    def __init__(self, count: int = COUNT) -> None:
        self._count = count
        self.count = 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self._count):
            self.count = number + 1
            yield number


@pytest.mark.parametrize("ordered", [True, False])
def test_more_calls_are_under_way_than_near_hosts_need(far: Grid, *, ordered: bool) -> None:
    taken = Taken()
    results, ahead = [], 0
    for result in far.map(numbered, taken, chunk=1, ordered=ordered):
        ahead = max(ahead, taken.count - len(results))
        results.append(result)
    assert (results if ordered else sorted(results)) == [*range(COUNT)]
    assert ahead > 2 * NEAR


def test_chunks_are_in_order_as_well(far: Grid) -> None:
    taken = Taken()
    assert list(far.map(numbered, taken)) == [*range(COUNT)]


def test_calls_that_must_not_be_in_doubt_stay_few(far: Grid, tmp_path: Path) -> None:
    taken = Taken(1_000)
    ahead = 0
    for given, _ in enumerate(far.map(numbered, taken, journal=tmp_path / "journal", chunk=1)):
        ahead = max(ahead, taken.count - given)
    # Two for each worker, and results that came meanwhile.
    assert ahead < 2 * NEAR


def test_the_end_of_a_map_cancels_all_calls(far: Grid) -> None:
    results = far.map(numbered, Taken(), chunk=1)
    for given, _ in enumerate(results):
        if given == COUNT // 2:
            break
    results.close()
    assert until(lambda: far.stats().running == far.stats().queued == 0)


def test_a_lost_host_costs_no_result(far: Grid, rig: Rig) -> None:
    results = far.map(numbered, Taken(), chunk=1, idempotent=True)
    first = [next(results) for _ in range(COUNT // 3)]
    lost = threading.Thread(target=signal_all, args=(agents(rig, 1), signal.SIGKILL))
    lost.start()
    assert first + list(results) == [*range(COUNT)]
    lost.join(LONG)
