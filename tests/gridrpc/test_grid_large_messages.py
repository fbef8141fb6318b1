"""Large arguments and results of more hosts than may send at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gridrpc
import remote
from gridrpc import Grid, WorkerLost, as_completed
from processes import LONG

HOSTS = 18
LARGE, LOT = 300_000, 5 << 20  # bytes


def many_hosts(worker: Any, modules: Iterable[Path] = (), encryption: str = "none") -> Grid:
    """A grid of hosts, all on this machine, with a worker each."""
    hosts = f"hosts=h[1-{HOSTS}]&workers=1&encryption={encryption}&output=plain"
    return Grid(servers=f"local:?{hosts}", worker=worker, modules=modules)


def agents() -> list[psutil.Process]:
    """The agents of this process's grids."""
    found = []
    for child in psutil.Process().children():
        # One of another test may end just now.
        with suppress(psutil.NoSuchProcess):
            if "agent" in child.cmdline():
                found.append(child)
    return found


@pytest.fixture(scope="module", params=["none", "tls"])
def native(request: pytest.FixtureRequest, basics: Path) -> Iterator[Grid]:
    with many_hosts("native", [basics], request.param) as grid:
        grid.wait_until_ready()
        yield grid


@pytest.fixture(scope="module")
def python() -> Iterator[Grid]:
    with many_hosts("python") as grid:
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
    for number, call in enumerate([python.submit(large_error, n) for n in range(2 * HOSTS)]):
        with pytest.raises(KeyError) as raised:
            call.result(timeout=LONG)
        (array,) = raised.value.args
        assert array.nbytes == LARGE
        assert (array == number).all()


def test_hosts_that_are_lost_keep_nobody_waiting(basics: Path) -> None:
    with many_hosts("native", [basics]) as grid:
        grid.wait_until_ready()
        calls = [grid.submit("basics/filled", 0.0, LOT) for _ in range(6 * HOSTS)]
        next(as_completed(calls, timeout=LONG))
        for agent in agents()[:3]:
            agent.send_signal(signal.SIGKILL)
        lost = 0
        for call in as_completed(calls, timeout=LONG):
            try:
                assert len(call.result()) == LOT
            except WorkerLost:
                lost += 1
        assert lost < len(calls) / 2
        # Those that come in their places send as the others do.
        grid.wait_until_ready()
        again = [grid.submit("basics/filled", 0.0, LOT) for _ in range(2 * HOSTS)]
        assert {len(call.result(timeout=LONG)) for call in again} == {LOT}


def test_leaving_the_grid_waits_for_all(basics: Path) -> None:
    with many_hosts("native", [basics]) as grid:
        calls = [grid.submit("basics/filled", 0.0, 1 << 20) for _ in range(10 * HOSTS)]
    assert [len(call.result(timeout=0)) for call in calls] == [1 << 20] * len(calls)


def test_closing_at_once_ends_what_waits(basics: Path) -> None:
    grid = many_hosts("native", [basics])
    calls = [grid.submit("basics/filled", 0.0, 20 << 20) for _ in range(10 * HOSTS)]
    next(as_completed(calls, timeout=LONG))
    grid.close()
    errors = [call.exception(timeout=LONG) for call in calls]
    assert any(isinstance(error, gridrpc.GridError) for error in errors)
    assert all(error is None or isinstance(error, gridrpc.GridError) for error in errors)


def test_arguments_are_whole(native: Grid) -> None:
    sizes = [8 if number % 3 else LARGE for number in range(300)]
    arrays = [np.arange(number, number + size, dtype=float) for number, size in enumerate(sizes)]
    calls = [native.submit("basics/doubled", array) for array in arrays]
    for array, call in zip(arrays, calls, strict=True):
        np.testing.assert_array_equal(2 * array, call.result(timeout=LONG))


def test_shared_data_goes_before_the_arguments_of_its_first_call(native: Grid) -> None:
    shared = native.share(np.arange(LARGE))
    data = np.ones(LARGE, np.uint8)
    calls = [native.submit("basics/sums", data, shared) for _ in range(5 * HOSTS)]
    sums = {tuple(call.result(timeout=LONG).tolist()) for call in calls}
    assert sums == {(LARGE, LARGE * (LARGE - 1) // 2)}


def test_workers_that_are_lost_with_their_arguments(native: Grid) -> None:
    first = [native.submit("basics/number", 1) for _ in range(200)]
    pids = {call.profile.pid for call in as_completed(first, timeout=LONG)}
    data, others = np.zeros(LOT, np.uint8), np.zeros(1, np.int64)
    calls = [native.submit("basics/sums", data, others) for _ in range(4 * HOSTS)]
    killed = sorted(pids)[-8:]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    lost = sum(isinstance(call.exception(timeout=LONG), WorkerLost) for call in calls)
    assert lost <= len(killed)


def test_cancelled_arguments(native: Grid) -> None:
    data, others = np.zeros(LOT, np.uint8), np.zeros(1, np.int64)
    calls = [native.submit("basics/sums", data, others) for _ in range(4 * HOSTS)]
    cancelled = [call for call in calls[::2] if call.cancel()]
    assert all(call.cancelled() for call in cancelled)
    done = [call for call in calls if not call.cancelled()]
    assert all(call.exception(timeout=LONG) is None for call in done)
    assert native.submit("basics/number", 1).result(timeout=LONG)[0] == 1
