"""Large arguments and results over TCP, of more workers than may be sent to, or send, at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Grid, WorkerLost, as_completed
from processes import LONG

WORKERS = 24
LARGE, LOT = 300_000, 5 << 20  # bytes


@pytest.fixture(scope="module")
def native(basics: Path) -> Iterator[Grid]:
    with Grid(workers=WORKERS, worker="native", transport="tcp", modules=[basics]) as grid:
        grid.wait_until_ready()
        yield grid


@pytest.fixture
def python() -> Iterator[Grid]:
    with Grid(workers=WORKERS, transport="tcp") as grid:
        grid.wait_until_ready()
        yield grid


@pytest.mark.parametrize("size", [8, 4_096, 4_097, LARGE // 8])
def test_results_are_whole(native: Grid, size: int) -> None:
    arrays = [np.arange(number, number + size, dtype=float) for number in range(200)]
    for chunk in (1, "auto"):
        results = native.map("basics/doubled", arrays, chunk=chunk)
        for array, result in zip(arrays, results, strict=True):
            np.testing.assert_array_equal(2 * array, result)


def test_small_ones_pass_large_ones(native: Grid) -> None:
    sizes = [LARGE if number % 3 else 8 for number in range(300)]
    calls = [native.submit("basics/filled", 0.001, size) for size in sizes]
    assert len(list(as_completed(calls, timeout=LONG))) == len(calls)
    assert [len(call.result()) for call in calls] == sizes


def test_of_python_functions(python: Grid) -> None:
    results = python.map(remote.same, [np.full(LARGE, n, np.uint8) for n in range(60)], chunk=1)
    assert [int(result.max()) for result in results] == list(range(60))


def large_error(number: int) -> Any:
    raise KeyError(np.full(LARGE, number, np.uint8))


def test_large_errors(python: Grid) -> None:
    for number, call in enumerate([python.submit(large_error, n) for n in range(2 * WORKERS)]):
        with pytest.raises(KeyError) as raised:
            call.result(timeout=LONG)
        (array,) = raised.value.args
        assert array.nbytes == LARGE
        assert (array == number).all()


def test_who_is_lost_keeps_nobody_waiting(python: Grid) -> None:
    pids = sorted({call.result() for call in [python.submit(remote.pid) for _ in range(50)]})
    calls = [python.submit(os.urandom, LOT) for _ in range(4 * WORKERS)]
    for pid in pids[:3]:
        os.kill(pid, signal.SIGKILL)
    lost = 0
    for call in as_completed(calls, timeout=LONG):
        try:
            assert len(call.result()) == LOT
        except WorkerLost:
            lost += 1
    assert lost <= 3


def test_leaving_the_grid_waits_for_all(basics: Path) -> None:
    with Grid(workers=WORKERS, worker="native", transport="tcp", modules=[basics]) as grid:
        calls = [grid.submit("basics/filled", 0.0, 1 << 20) for _ in range(10 * WORKERS)]
    assert [len(call.result(timeout=0)) for call in calls] == [1 << 20] * len(calls)


def test_closing_at_once_ends_what_waits(basics: Path) -> None:
    grid = Grid(workers=WORKERS, worker="native", transport="tcp", modules=[basics])
    calls = [grid.submit("basics/filled", 0.0, 20 << 20) for _ in range(10 * WORKERS)]
    calls[0].wait()
    grid.close()
    with pytest.raises(gridrpc.GridError):
        calls[-1].result(timeout=LONG)


def test_arguments_are_whole(native: Grid) -> None:
    sizes = [8 if number % 3 else LARGE for number in range(300)]
    arrays = [np.arange(number, number + size, dtype=float) for number, size in enumerate(sizes)]
    calls = [native.submit("basics/doubled", array) for array in arrays]
    for array, call in zip(arrays, calls, strict=True):
        np.testing.assert_array_equal(2 * array, call.result(timeout=LONG))


def test_shared_data_goes_before_the_arguments_of_its_first_call(native: Grid) -> None:
    shared = native.share(np.arange(LARGE))
    data = np.ones(LARGE, np.uint8)
    calls = [native.submit("basics/sums", data, shared) for _ in range(5 * WORKERS)]
    sums = {tuple(call.result(timeout=LONG).tolist()) for call in calls}
    assert sums == {(LARGE, LARGE * (LARGE - 1) // 2)}


def test_a_worker_that_takes_nothing_holds_up_only_its_own(python: Grid) -> None:
    pids = sorted({call.result() for call in [python.submit(remote.pid) for _ in range(200)]})
    stopped = pids[8:]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        # More than a socket takes.
        data = np.zeros(3 * LOT, np.uint8)
        calls = [python.submit(remote.length, data) for _ in range(2 * WORKERS)]
        others = as_completed(calls, timeout=LONG)
        assert [next(others).result() for _ in range(WORKERS)] == [len(data)] * WORKERS
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert {call.result(timeout=LONG) for call in calls} == {len(data)}


def test_a_lost_worker_that_waits_for_its_arguments(python: Grid) -> None:
    pids = sorted({call.result() for call in [python.submit(remote.pid) for _ in range(200)]})
    data = np.zeros(LOT, np.uint8)
    calls = [python.submit(remote.length, data) for _ in range(4 * WORKERS)]
    for pid in pids[-8:]:
        os.kill(pid, signal.SIGKILL)
    lost = sum(isinstance(call.exception(timeout=LONG), WorkerLost) for call in calls)
    assert lost <= 8
    assert {call.result() for call in calls if call.exception() is None} == {len(data)}


def test_cancelled_arguments(native: Grid) -> None:
    data = np.zeros(LOT, np.uint8)
    others = np.zeros(1, np.int64)
    calls = [native.submit("basics/sums", data, others) for _ in range(4 * WORKERS)]
    cancelled = [call for call in calls[::2] if call.cancel()]
    assert all(call.cancelled() for call in cancelled)
    done = [call for call in calls if not call.cancelled()]
    assert all(call.exception(timeout=LONG) is None for call in done)
    assert native.submit("basics/number", 1).result(timeout=LONG)[0] == 1
