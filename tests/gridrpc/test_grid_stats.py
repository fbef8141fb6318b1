"""What a grid counts: `Grid.stats`."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

import gridrpc
from gridrpc import CallCounts, GridStats
from processes import until


def add(x: int, y: int) -> int:
    return x + y


def length(data: bytes) -> int:
    return len(data)


def zeros(size: int) -> bytes:
    return bytes(size)


def fail() -> None:
    raise ValueError("as it is to")


def die() -> None:
    os._exit(7)


def wait_for(file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.005)


def of(stats: GridStats, name: str) -> CallCounts:
    """Those of the one function of this file that has this name."""
    (one,) = [one for one in stats.functions if one.name.rpartition("/")[2] == name]
    return one


def test_calls_are_counted_by_function_and_by_what_came_of_them() -> None:
    with gridrpc.Grid(workers=2) as grid:
        for call in [grid.submit(add, i, 1) for i in range(50)]:
            call.result()
        grid.submit(fail).exception()
        stats = grid.stats()
    assert {one.name for one in stats.functions} == {f"{__name__}/add", f"{__name__}/fail"}
    added, failed = of(stats, "add"), of(stats, "fail")
    assert (added.submitted, added.returned, added.ended, added.alive) == (50, 50, 50, 0)
    assert (failed.submitted, failed.raised, failed.returned) == (1, 1, 0)
    assert added.seconds > 0
    assert (stats.calls.submitted, stats.calls.returned, stats.calls.raised) == (51, 50, 1)
    assert (stats.queued, stats.running, stats.busy) == (0, 0, 0)
    (here,) = stats.hosts
    assert (here.server, here.host, here.workers) == ("localhost", socket.gethostname(), 2)
    assert here.calls == 51
    assert (stats.pid, stats.host, stats.gridrpc) == (
        os.getpid(),
        socket.gethostname(),
        gridrpc.__version__,
    )
    assert Path(sys.executable).name in stats.program


def test_bytes_are_those_that_travel() -> None:
    megabyte = 1 << 20
    with gridrpc.Grid(workers=1) as grid:
        assert grid.submit(length, bytes(megabyte)).result() == megabyte
        assert len(grid.submit(zeros, 2 * megabyte).result()) == 2 * megabyte
        stats = grid.stats()
    assert megabyte <= of(stats, "length").argument_bytes < megabyte + 1000
    assert of(stats, "length").result_bytes < 1000
    assert 2 * megabyte <= of(stats, "zeros").result_bytes < 2 * megabyte + 1000


def test_lost_workers_and_calls_are_counted() -> None:
    with gridrpc.Grid(workers=1) as grid:
        with pytest.raises(gridrpc.WorkerLost):
            grid.submit(die).result()
        assert grid.submit(add, 1, 1).result() == 2
        stats = grid.stats()
    assert (of(stats, "die").lost, stats.calls.lost) == (1, 1)
    assert (stats.losses, stats.hosts[0].losses) == (1, 1)


def test_what_runs_and_what_waits_is_reported(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with gridrpc.Grid(workers=1) as grid:
        calls = [grid.submit(wait_for, str(go)) for _ in range(3)]
        assert until(lambda: grid.stats().busy == 1)
        stats = grid.stats()
        assert (stats.running, stats.queued, stats.calls.alive) == (1, 2, 3)
        assert stats.queued_bytes > 0
        assert calls[2].cancel()
        assert grid.stats().queued == 1
        late = grid.submit(wait_for, str(go), deadline=0.01)
        assert isinstance(late.exception(), gridrpc.DeadlineExceeded)
        go.touch()
        calls[0].result()
        calls[1].result()
        counts = of(grid.stats(), "wait_for")
    assert (counts.returned, counts.cancelled, counts.expired) == (2, 1, 1)
    assert counts.alive == 0


def test_functions_that_are_gone_stay_counted() -> None:
    with gridrpc.Grid(workers=1) as grid:
        for number in range(20):
            # Each takes the number of the one before, which nobody holds any more.
            assert grid.submit(lambda number=number: number).result() == number
        (made,) = grid.stats().functions
    assert made.name.endswith("<locals>.<lambda>")
    assert made.returned == 20


def test_hosts_are_reported_one_by_one() -> None:
    with gridrpc.Grid(workers=1, servers=["local:?workers=2"]) as grid:
        grid.wait_until_ready()
        assert grid.submit(add, 1, 1, server="local").result() == 2
        assert grid.submit(add, 1, 1).result() == 2
        with pytest.raises(gridrpc.WorkerLost):
            grid.submit(die, server="local").result()
        stats = grid.stats()
    here, there = stats.hosts
    assert (here.server, here.workers, here.losses) == ("localhost", 1, 0)
    assert (there.server, there.workers, there.losses) == ("local", 2, 1)
    assert (there.calls >= 1, here.calls + there.calls) == (True, 2)
    assert (stats.workers, of(stats, "add").returned) == (3, 2)


def test_workers_of_objects_are_told_apart() -> None:
    with gridrpc.Grid(workers=1) as grid:
        with grid.object(list) as numbers:
            numbers.append(1)
            (here,) = grid.stats().hosts
            assert (here.workers, here.reserved) == (1, 1)
        assert until(lambda: grid.stats().hosts[0].reserved == 0)
        assert grid.stats().losses == 0


def test_a_closed_grid_tells_what_there_was() -> None:
    with gridrpc.Grid(workers=1) as grid:
        assert grid.submit(add, 1, 1).result() == 2
    stats = grid.stats()
    assert (of(stats, "add").returned, stats.ready, stats.losses) == (1, 0, 0)
    assert stats.hosts[0].state == "ending"
