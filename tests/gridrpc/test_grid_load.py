"""Many threads, many calls, many workers, and the bounds of what may wait."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remote
from gridrpc import Grid, GridClosed, as_completed
from processes import LONG, alive, descendants, until


def in_threads(count: int, work: Any) -> None:
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "a thread waits forever"
    assert failed == []


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_many_threads_submit_and_wait(transport: Any) -> None:
    def work(number: int) -> None:
        for step in range(1_000):
            assert grid.submit(remote.add, number, step).result(LONG) == number + step
        calls = [grid.submit(remote.add, number, step) for step in range(1_000)]
        assert [call.result(LONG) for call in calls] == list(range(number, number + 1_000))

    with Grid(workers=2, transport=transport) as grid:
        in_threads(8, work)


def test_many_threads_wait_in_every_way(grid: Grid) -> None:
    def work(number: int) -> None:
        for _ in range(20):
            calls = [grid.submit(remote.same, n) for n in range(20)]
            if number % 3 == 0:
                assert len(list(as_completed(calls, LONG))) == 20
            elif number % 3 == 1:
                ended = threading.Barrier(2)
                calls[-1].add_done_callback(lambda _, ended=ended: ended.wait(LONG))
                ended.wait(LONG)
            else:
                assert list(grid.map(remote.same, range(20), ordered=False)) is not None
                for call in calls:
                    call.cancel()

    in_threads(9, work)


def test_submit_waits_at_the_bound_of_calls(tmp_path: Path) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    with Grid(workers=1, max_queued=10) as grid:
        first = grid.submit(remote.tell_and_wait, str(started), str(gate))
        assert until(started.exists)
        calls: list[Any] = []

        def submit_all() -> None:
            for n in range(50):
                calls.append(grid.submit(remote.nap, 0, n))

        thread = threading.Thread(target=submit_all)
        thread.start()
        assert until(lambda: len(calls) >= 10)
        thread.join(0.1)
        assert thread.is_alive()
        assert len(calls) == 10
        gate.touch()
        thread.join(LONG)
        first.result(LONG)
        assert [call.result(LONG) for call in calls] == list(range(50))


def test_submit_waits_at_the_bound_of_bytes(tmp_path: Path) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    array = np.ones(1_000_000, np.uint8)
    with Grid(workers=1, max_queued_bytes=3_500_000) as grid:
        grid.submit(remote.tell_and_wait, str(started), str(gate))
        assert until(started.exists)
        calls: list[Any] = []

        def submit_all() -> None:
            for _ in range(10):
                calls.append(grid.submit(remote.total, array))

        thread = threading.Thread(target=submit_all)
        thread.start()
        assert until(lambda: len(calls) >= 3)
        thread.join(0.1)
        assert thread.is_alive()
        assert len(calls) == 3
        gate.touch()
        thread.join(LONG)
        assert [call.result(LONG) for call in calls] == [1_000_000] * 10


def test_a_call_beyond_the_bound_goes_alone() -> None:
    with Grid(workers=1, max_queued_bytes=0, max_queued=0) as grid:
        calls = [grid.submit(remote.total, np.ones(100_000)) for _ in range(5)]
        assert [call.result(LONG) for call in calls] == [100_000] * 5


def test_closing_wakes_who_waits_at_the_bound(tmp_path: Path) -> None:
    grid = Grid(workers=1, max_queued=1)
    ends: list[BaseException] = []

    def submit() -> None:
        try:
            while True:
                grid.submit(remote.wait_for, str(tmp_path / "never"))
        except GridClosed as error:
            ends.append(error)

    threads = [threading.Thread(target=submit) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert until(lambda: "2 calls alive" in repr(grid) or "3 calls alive" in repr(grid))
    grid.close()
    for thread in threads:
        thread.join(LONG)
    assert len(ends) == 3


@pytest.mark.parametrize(
    ("worker", "count"), [("native", 100), ("native", 400), ("python", 100), ("python", 400)]
)
def test_many_workers(worker: Any, count: int, basics: Path) -> None:
    before = descendants()
    with Grid(workers=count, worker=worker, modules=[basics]) as grid:
        grid.wait_until_ready(LONG)
        processes = descendants() - before
        assert len(processes) == count + 1
        name = "basics/number" if worker == "native" else remote.same
        assert np.ravel(list(grid.map(name, range(1_000)))).tolist() == list(range(1_000))
    assert until(lambda: not alive(processes))


def test_quick_calls_do_not_wait_behind_a_slow_one(own_grid: Grid) -> None:
    grid = own_grid
    for call in [grid.submit(remote.nap, 0) for _ in range(500)]:
        call.result(60)
    for _ in range(3):
        slow = grid.submit(remote.nap, 2)
        quick = [grid.submit(remote.nap, 0) for _ in range(200)]
        for call in quick:
            call.result(60)
        assert not slow.done()
        # Calls that were taken back are skipped, and the worker continues with later ones.
        slow.result(60)
        for call in [grid.submit(remote.nap, 0) for _ in range(200)]:
            call.result(60)
