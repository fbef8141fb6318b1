"""map: lazy, bounded, in order or not, in chunks or one by one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remote
from gridrpc import Grid, WorkerLost
from processes import LONG, until


@pytest.mark.parametrize("chunk", [1, 3, 1_000])
@pytest.mark.parametrize("ordered", [True, False])
def test_results(each_grid: Grid, chunk: int, ordered: bool) -> None:
    results = list(
        each_grid.map(pow, range(500), itertools.repeat(2), chunk=chunk, ordered=ordered)
    )
    expected = [n * n for n in range(500)]
    assert (results if ordered else sorted(results)) == expected


@pytest.mark.parametrize("chunk", [1, 7, "auto"])
@pytest.mark.parametrize("ordered", [True, False])
def test_an_error_tells_its_item(grid: Grid, chunk: Any, ordered: bool) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        list(grid.map(divmod, [7] * 100, [1] * 41 + [0] + [1] * 58, chunk=chunk, ordered=ordered))
    assert raised.value.__notes__ == ["gridrpc: map, item 41 (the first one is 0)"]
    with pytest.raises(WorkerLost) as lost:
        list(grid.map(os._exit, range(3), chunk=3))
    assert lost.value.__notes__ == ["gridrpc: map, item 0 (the first one is 0)"]


def test_the_shortest_iterable_counts(grid: Grid) -> None:
    assert list(grid.map(remote.add, range(3), range(100))) == [0, 2, 4]
    assert list(grid.map(remote.same, [])) == []
    assert list(grid.map(remote.same, [], chunk=5)) == []


@pytest.mark.parametrize("chunk", [1, 5])
@pytest.mark.parametrize("ordered", [True, False])
def test_items_are_taken_as_they_are_needed(grid: Grid, chunk: int, ordered: bool) -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = grid.map(remote.same, items(), chunk=chunk, ordered=ordered)
    assert taken == 0
    first = list(itertools.islice(results, 2_000))
    assert len(set(first)) == 2_000
    assert not ordered or first == list(range(1, 2_001))
    assert taken <= 2_000 + 300 * chunk
    results.close()  # type: ignore[attr-defined]


def test_large_items_are_few_at_a_time() -> None:
    taken = 0

    def items() -> Iterator[Any]:
        nonlocal taken
        for taken in range(1, 41):
            yield np.full(1_000_000, taken, np.uint8)

    with Grid(workers=2, max_queued_bytes=4_000_000) as grid:
        for number, result in enumerate(grid.map(remote.same, items()), 1):
            assert (result == number).all()
            assert taken <= number + 8


def test_ordered_results_wait_for_the_first(own_grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    def items() -> Iterator[tuple[str, int]]:
        yield str(gate), 0
        for n in range(1, 4):
            yield str(tmp_path), n

    results = own_grid.map(remote.wait_for, *zip(*items(), strict=True), ordered=False)
    assert [next(results) for _ in range(3)] == [1, 2, 3]
    gate.touch()
    assert list(results) == [0]


@pytest.mark.parametrize("chunk", [1, 4])
def test_an_error_in_the_middle(grid: Grid, chunk: int) -> None:
    results = grid.map(remote.fail_at, itertools.repeat(8), range(100), chunk=chunk)
    assert [next(results) for _ in range(8)] == list(range(8))
    with pytest.raises(ValueError, match="item 8"):
        next(results)
    assert list(results) == []
    assert until(lambda: " 0 calls alive" in repr(grid))


def test_items_that_raise(grid: Grid) -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise OSError("no more items")

    seen = []
    with pytest.raises(OSError, match="no more items"):
        seen.extend(grid.map(remote.same, items()))
    assert until(lambda: " 0 calls alive" in repr(grid))


def test_items_that_do_not_pickle(grid: Grid) -> None:
    with pytest.raises(TypeError, match="stays where it is"):
        list(grid.map(remote.same, [1, remote.Lock(), 2]))
    assert until(lambda: " 0 calls alive" in repr(grid))


@pytest.mark.parametrize("ordered", [True, False])
def test_giving_up_cancels_what_is_under_way(tmp_path: Path, ordered: bool) -> None:
    with Grid(workers=2) as grid:
        items = [str(tmp_path), *[str(tmp_path / "never")] * 50]
        results = grid.map(remote.wait_for, items, range(51), ordered=ordered)
        assert next(results) == 0
        del results
        assert until(lambda: " 0 calls alive" in repr(grid))
        assert grid.submit(remote.same, 1).result(LONG) == 1


def test_maps_within_maps(grid: Grid) -> None:
    inner = grid.map(remote.add, range(300), itertools.repeat(1))
    outer = grid.map(remote.add, inner, itertools.repeat(1))
    assert list(outer) == list(range(2, 302))


def test_lost_workers(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    with Grid(workers=1) as grid:
        results = grid.map(remote.count_and, [str(file)] * 3, ["crash twice"] * 3, idempotent=True)
        assert list(results) == [3, 4, 5]


def test_wrong_use(grid: Grid) -> None:
    with pytest.raises(TypeError, match="at least one"):
        grid.map(remote.same)
    with pytest.raises(ValueError, match="chunk is 0"):
        grid.map(remote.same, [1], chunk=0)
    with pytest.raises(TypeError, match="not iterable"):
        grid.map(remote.same, 3)  # type: ignore[arg-type]
    for chunk in ("automatic", 2.5, -1):
        with pytest.raises(ValueError, match="chunk is"):
            grid.map(remote.same, [1], chunk=chunk)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="deadline"):
        list(grid.map(remote.same, [1], deadline=-1))
