"""Code written for `multiprocessing.Pool`, on a grid and on that class itself."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

import gridrpc
import remote
from gridrpc import Grid, Pool
from processes import LONG, descendants, running, until


@pytest.fixture(scope="module", params=["gridrpc", "multiprocessing"])
def pool(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The same tests hold for both."""
    if request.param == "gridrpc":
        with Pool(2) as pool:
            yield pool
    else:
        with multiprocessing.get_context("spawn").Pool(2) as other:
            yield other


@pytest.fixture
def own_pool() -> Iterator[Pool]:
    with Pool(2) as pool:
        yield pool


def test_apply(pool: Any) -> None:
    assert pool.apply(remote.everything, (1, 2), {"a": 3}) == (1, 2, {"a": 3})
    with pytest.raises(ValueError, match="item 3"):
        pool.apply(remote.fail_at, (3, 3))


def test_apply_async(pool: Any) -> None:
    result = pool.apply_async(remote.add, (1, 2))
    result.wait(LONG)
    assert result.ready()
    assert result.successful()
    assert result.get() == result.get(timeout=1) == 3
    failed = pool.apply_async(remote.fail_at, (3, 3))
    failed.wait(LONG)
    assert not failed.successful()
    with pytest.raises(ValueError, match="item 3"):
        failed.get()


def test_what_is_not_there_yet(pool: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    result = pool.apply_async(remote.wait_for, (str(gate), "there"))
    assert not result.ready()
    with pytest.raises(ValueError, match="not ready"):
        result.successful()
    with pytest.raises(multiprocessing.TimeoutError):
        result.get(timeout=0.01)
    gate.touch()
    assert result.get(LONG) == "there"


def test_callbacks(pool: Any) -> None:
    came: list[Any] = []
    ended = threading.Semaphore(0)

    def noted(value: Any) -> None:
        came.append(value)
        ended.release()

    pool.apply_async(remote.add, (1, 2), callback=noted, error_callback=noted)
    assert ended.acquire(timeout=LONG)
    pool.map_async(remote.same, range(3), callback=noted)
    assert ended.acquire(timeout=LONG)
    pool.apply_async(remote.fail_at, (3, 3), error_callback=noted)
    assert ended.acquire(timeout=LONG)
    assert came[:2] == [3, [0, 1, 2]]
    assert isinstance(came[2], ValueError)


@pytest.mark.parametrize("chunksize", [None, 1, 7])
def test_maps(pool: Any, chunksize: int | None) -> None:
    assert pool.map(abs, range(-50, 0), chunksize) == [*range(50, 0, -1)]
    assert pool.map(abs, iter([])) == []
    assert pool.starmap(pow, zip(range(20), itertools.repeat(2)), chunksize) == [
        n * n for n in range(20)
    ]
    assert pool.starmap_async(pow, [[2, 3], (3, 2)]).get(LONG) == [8, 9]
    assert pool.map_async(abs, [-1, -2]).get(LONG) == [1, 2]


def test_a_map_with_an_error(pool: Any) -> None:
    with pytest.raises(ValueError, match="item 3"):
        pool.starmap(remote.fail_at, [(3, n) for n in range(6)])


@pytest.mark.parametrize("chunksize", [1, 5])
def test_lazy_maps(pool: Any, chunksize: int) -> None:
    assert list(pool.imap(abs, range(-20, 0), chunksize)) == [*range(20, 0, -1)]
    unordered = pool.imap_unordered(abs, (n for n in range(-20, 0)), chunksize)
    assert sorted(unordered) == [*range(1, 21)]


def fail_at_3(n: int) -> int:
    return remote.fail_at(3, n)


def test_an_error_of_a_lazy_map_and_what_follows(pool: Any) -> None:
    results = pool.imap(fail_at_3, range(6))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="item 3"):
        next(results)
    assert list(results) == [4, 5]


def test_items_that_end_with_an_error(pool: Any) -> None:
    def items() -> Iterator[int]:
        yield -1
        raise LookupError("no more items")

    results = pool.imap(abs, items())
    assert next(results) == 1
    with pytest.raises(LookupError, match="no more items"):
        next(results)


def test_a_lazy_result_that_is_not_there_yet(pool: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    results = pool.imap(remote.wait_for, [str(gate)])
    with pytest.raises(multiprocessing.TimeoutError):
        results.next(timeout=0.01)
    gate.touch()
    results.next(timeout=LONG)
    with pytest.raises(StopIteration):
        results.next()


def test_its_own_state(pool: Any) -> None:
    with pytest.raises(ValueError, match="Pool is still running"):
        pool.join()
    with pytest.raises(NotImplementedError):
        pickle.dumps(pool)
    with pytest.raises(ValueError, match="Chunksize"):
        pool.imap(abs, [1], 0)
    assert "state=RUN pool_size=2" in repr(pool)


def test_closing_runs_what_was_submitted(own_pool: Pool) -> None:
    results = own_pool.map_async(remote.nap, [0.01] * 10)
    lazy = own_pool.imap(abs, range(-5, 0))
    one = own_pool.apply_async(abs, (-7,))
    own_pool.close()
    for submit in (own_pool.apply_async, own_pool.imap):
        with pytest.raises(ValueError, match="Pool not running"):
            submit(abs, (1,))
    own_pool.join()
    assert results.ready()
    assert one.get() == 7
    assert list(lazy) == [5, 4, 3, 2, 1]


def test_terminating_gives_up_what_runs(own_pool: Pool) -> None:
    own_pool.apply(abs, (-1,))
    workers = running(descendants())
    running_one = own_pool.apply_async(remote.nap, (60,))
    mapped = own_pool.map_async(remote.nap, [60] * 10)
    lazy = own_pool.imap(remote.nap, [60] * 10)
    own_pool.terminate()
    own_pool.join()
    assert not running_one.successful()
    for get in (running_one.get, mapped.get, lazy.next):
        with pytest.raises((gridrpc.GridClosed, CancelledError)):
            get()
    assert until(lambda: len(running(workers)) < len(workers))


def test_a_lost_worker_costs_its_call(own_pool: Pool) -> None:
    lost = own_pool.apply_async(remote.die, ("kill",))
    with pytest.raises(gridrpc.WorkerLost):
        lost.get(LONG)
    assert own_pool.map(abs, [-1, -2]) == [1, 2]


def test_its_arguments(grid: Grid) -> None:
    with Pool(1, initializer=remote.keep, initargs=("a", 5)) as pool:
        assert pool.apply(remote.give, ("a",)) == 5
    with Pool(1, maxtasksperchild=1) as pool:
        assert len({pool.apply(remote.pid) for _ in range(3)}) == 3
    with Pool(grid=grid) as pool:
        assert pool.apply(abs, (-3,)) == 3
    assert grid.submit(abs, -4).result() == 4
    with pytest.raises(ValueError, match="at least 1"):
        Pool(0)
    with pytest.raises(TypeError, match="no effect on a grid that is open already"):
        Pool(2, grid=grid)
