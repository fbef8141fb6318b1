"""Chunks of `map` give what calls of their own would give; "auto" chooses their size."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Grid
from grids import opened
from processes import LONG, until

Chunk = int | Literal["auto"]
CHUNKS = pytest.mark.parametrize("chunk", [1, 7, "auto"])


@CHUNKS
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("unknown_length", [False, True])
def test_results(each_grid: Grid, chunk: Chunk, ordered: bool, unknown_length: bool) -> None:
    items = (n for n in range(5_000)) if unknown_length else range(5_000)
    results = list(each_grid.map(remote.same, items, chunk=chunk, ordered=ordered))
    assert (results if ordered else sorted(results)) == list(range(5_000))


KINDS: dict[str, list[Any]] = {
    "plain": [1, 2.5, None, True, "text", b"bytes", 1 << 100, -1, "\udcff", "__main__"],
    "containers": [[1], {"a": (2, 3)}, (4,), {5}, [], {}],
    "arrays": [np.arange(n) for n in range(10)],
    "mixed": [1, [2], "three", np.float64(4), np.arange(5), lambda: 6, None],
}


@CHUNKS
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_items(each_grid: Grid, chunk: Chunk, kind: str) -> None:
    items = KINDS[kind] * 60
    for got, item in zip(each_grid.map(remote.same, items, chunk=chunk), items, strict=True):
        assert type(got) is type(item)
        if isinstance(item, np.ndarray):
            np.testing.assert_array_equal(got, item)
        else:
            assert got() == 6 if callable(item) else got == item


@CHUNKS
def test_two_iterables_over_one_iterator(grid: Grid, chunk: Chunk) -> None:
    numbers = iter(range(2_000))
    pairs = list(grid.map(remote.everything, numbers, numbers, chunk=chunk))
    assert pairs == [(n, n + 1, {}) for n in range(0, 2_000, 2)]


@CHUNKS
def test_an_object_that_is_given_twice_arrives_as_two(grid: Grid, chunk: Chunk) -> None:
    given: list[Any] = []
    results = list(grid.map(remote.append, itertools.repeat(given), range(500), chunk=chunk))
    assert results == [[n] for n in range(500)]
    assert given == []


@CHUNKS
def test_results_are_as_they_were_when_the_function_returned(lone_grid: Grid, chunk: Chunk) -> None:
    results = list(lone_grid.map(remote.grow, range(200), chunk=chunk))
    assert results == [list(range(n + 1)) for n in range(200)]


def raises(grid: Grid, function: Callable[..., Any], chunk: Chunk) -> tuple[list[Any], Exception]:
    """Results before the error of item 1,500, and the error."""
    seen: list[Any] = []
    results = grid.map(function, itertools.repeat(1_500), range(3_000), chunk=chunk)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the caller looks at it
        seen.extend(results)
    assert list(results) == []
    assert until(lambda: " 0 calls alive" in repr(grid))
    return seen, caught.value


@CHUNKS
@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (remote.fail_at, ValueError),
        (remote.stop_at, RuntimeError),  # what a generator makes of it
        (remote.lock_at, TypeError),
        (remote.refusing_at, remote.Detailed),
    ],
)
def test_an_error_comes_behind_the_results_before_it(
    grid: Grid, chunk: Chunk, function: Callable[..., Any], kind: type[Exception]
) -> None:
    seen, error = raises(grid, function, chunk)
    assert len(seen) == 1_500
    assert isinstance(error, kind)


@pytest.mark.parametrize("chunk", [7, "auto"])
def test_an_error_keeps_its_trace(grid: Grid, chunk: Chunk) -> None:
    _, error = raises(grid, remote.fail_at, chunk)
    trace = str(error.__cause__)
    assert "in fail_at" in trace
    assert "gridrpc" not in trace.replace("tests/gridrpc", "")


@CHUNKS
def test_an_item_that_does_not_pickle_comes_behind_the_results_before_it(
    grid: Grid, chunk: Chunk
) -> None:
    items: list[Any] = [*range(1_000), remote.Lock(), *range(1_000)]
    seen: list[Any] = []
    with pytest.raises(TypeError, match="stays where it is"):
        seen.extend(grid.map(remote.same, items, chunk=chunk))
    assert seen == list(range(1_000))


@CHUNKS
def test_items_that_raise(grid: Grid, chunk: Chunk) -> None:
    def items() -> Iterator[int]:
        yield from range(1_000)
        raise OSError("no more items")

    seen: list[Any] = []
    with pytest.raises(OSError, match="no more items"):
        seen.extend(grid.map(remote.same, items(), chunk=chunk))
    assert seen == list(range(1_000))


@pytest.mark.parametrize("chunk", [1, 7, "auto"])
def test_an_item_that_loses_its_worker_raises_in_its_place(own_grid: Grid, chunk: Chunk) -> None:
    seen: list[Any] = []
    with pytest.raises(gridrpc.WorkerLost) as lost:
        seen.extend(own_grid.map(remote.crash_at, [500] * 1_000, range(1_000), chunk=chunk))
    assert seen == list(range(500))
    assert lost.value.status == 3
    assert lost.value.__notes__ == ["gridrpc: map, item 500 (the first one is 0)"]
    assert own_grid.submit(remote.same, 1).result(LONG) == 1


#: Results of different kinds, and some larger than what is kept of one chunk.
RESULTS = ["numbers", "plain", "scalars", "arrays", "mixed", "large"]


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_lost_worker_costs_the_item_that_it_ran(
    tmp_path: Path, kind: str, transport: str, ordered: bool
) -> None:
    notes, items, bad = str(tmp_path / "notes"), range(600), {100, 399}
    with opened(workers=2, transport=transport) as grid:
        for number in bad:
            results = list(
                grid.map(
                    remote.once,
                    *map(itertools.repeat, (notes, kind, number)),
                    items,
                    chunk=200,
                    ordered=ordered,
                    return_exceptions=True,
                )
            )
            lost = [one for one in results if isinstance(one, gridrpc.WorkerLost)]
            assert [one.signal for one in lost] == [9]
            assert f"map, item {number} " in lost[0].__notes__[0]
            expected = [remote.results_of_kind(kind, n) for n in items if n != number]
            others = [one for one in results if one is not lost[0]]
            if ordered:
                assert results[number] is lost[0]
                assert list(map(repr, others)) == list(map(repr, expected))
                assert list(map(type, others)) == list(map(type, expected))
            else:
                assert sorted(map(repr, others)) == sorted(map(repr, expected))
    ran = sorted(map(int, Path(notes).read_text().split()))
    assert ran == sorted([*items, *items]), "each item ran once in each of two maps"


def test_a_worker_that_is_killed_costs_one_item_of_a_journalled_map(
    own_grid: Grid, tmp_path: Path
) -> None:
    notes, items = str(tmp_path / "notes"), range(300)
    work = functools.partial(remote.once, notes, "numbers")
    journal = tmp_path / "work.journal"
    results = own_grid.map(
        work, itertools.repeat(150), items, chunk=100, journal=journal, return_exceptions=True
    )
    kinds = [type(one) is gridrpc.WorkerLost for one in results]
    assert kinds == [n == 150 for n in items]
    assert sorted(map(int, Path(notes).read_text().split())) == list(items)


def test_an_idempotent_chunk_is_lost_by_one_item_too(own_grid: Grid) -> None:
    results = own_grid.map(
        remote.crash_at,
        itertools.repeat(30),
        range(100),
        chunk=50,
        idempotent=True,
        return_exceptions=True,
    )
    assert [isinstance(one, gridrpc.WorkerLost) for one in results] == [n == 30 for n in range(100)]


def test_every_item_can_lose_its_worker(own_grid: Grid) -> None:
    results = list(own_grid.map(os._exit, range(6), chunk=3, return_exceptions=True))
    assert [one.status for one in results] == list(range(6))


def test_a_child_of_an_item_leaves_results_alone(lone_grid: Grid) -> None:
    results = lone_grid.map(remote.fork_once, range(100), chunk=50)
    assert list(results) == list(range(100))


def calls_made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Filled with the numbers of items that calls from here on take."""
    from gridrpc._grain import Grain

    sizes: list[int] = []
    learn = Grain.learn

    def noting(self: Grain, cost: Any, items: int) -> None:
        sizes.append(items)
        learn(self, cost, items)

    monkeypatch.setattr(Grain, "learn", noting)
    return sizes


def test_nothing_is_learned_from_a_call_without_results() -> None:
    from gridrpc._grain import Grain

    grain = Grain(None, lambda: 3, 2, None, 1 << 20)
    grain.learn((0, 1, 2, 3, 10), 0)
    assert (grain.ahead(), grain.size()) == (6, 1)


def test_small_items_are_put_together(own_grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = calls_made(monkeypatch)
    assert list(own_grid.map(remote.same, range(20_000))) == list(range(20_000))
    assert sizes[:4] == [1, 1, 1, 1]
    assert len(sizes) < 2_000
    assert sum(sizes) == 20_000


@pytest.mark.parametrize("kind", ["python", "native"])
def test_what_one_map_has_learned_the_next_one_knows(
    kind: str, monkeypatch: pytest.MonkeyPatch, basics: Path
) -> None:
    sizes = calls_made(monkeypatch)
    function = remote.same if kind == "python" else "basics/number"
    with opened(workers=2, worker=kind, modules=[basics]) as grid:
        for _ in range(2):
            assert np.ravel(list(grid.map(function, range(1_000)))).tolist() == [*range(1_000)]
        sizes.clear()
        assert np.ravel(list(grid.map(function, range(100)))).tolist() == list(range(100))
        assert len(sizes) <= 16, "as many chunks as balance needs, and no more"
        assert sum(sizes) == 100


@pytest.mark.parametrize("settings", [{"deadline": LONG}, {"idempotent": True}, {"chunk": 1}])
def test_calls_of_their_own_where_they_are_wanted(
    grid: Grid, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    sizes = calls_made(monkeypatch)
    assert list(grid.map(remote.same, range(2_000), **settings)) == list(range(2_000))
    assert sizes == [1] * 2_000


def test_long_and_large_items_are_not_put_together(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = calls_made(monkeypatch)
    assert list(grid.map(remote.nap, [0.05] * 10)) == [None] * 10
    assert len(list(grid.map(remote.same, [np.zeros(1 << 20, np.uint8)] * 30))) == 30
    assert sizes == [1] * 40


def test_the_last_chunks_are_small(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = calls_made(monkeypatch)
    assert list(grid.map(remote.same, range(30_000))) == list(range(30_000))
    assert max(sizes[-3:]) < max(sizes) / 10


@pytest.mark.parametrize("ordered", [True, False])
def test_items_that_take_longer_than_those_before_do_not_pile_up(
    own_grid: Grid, ordered: bool
) -> None:
    times = [0.0] * 20_000 + [0.02] * 40
    results = list(own_grid.map(remote.timed, iter(times), ordered=ordered))
    assert len(results) == len(times)
    slow = sorted(results, key=lambda result: result[2] - result[1])[-40:]
    # A chunk had room for all of them; neither worker has been left with most of them.
    ran = [pid for pid, _, _ in slow]
    assert max(map(ran.count, set(ran))) <= 30


def test_items_that_get_large_are_few_at_a_time() -> None:
    taken = 0

    def items() -> Iterator[Any]:
        nonlocal taken
        for taken in range(1, 10_001):
            yield taken
        for taken in range(10_001, 10_301):
            yield np.full(100_000, taken)

    with Grid(workers=2, max_queued_bytes=4_000_000) as grid:
        for number, result in enumerate(grid.map(remote.same, items()), 1):
            if number <= 10_000:
                assert result == number
            else:
                assert (result == number).all()
                # One slice of them was taken before the first was seen.
                assert number < 10_200 or taken <= number + 10


def test_closing_gives_up_what_is_under_way(grid: Grid) -> None:
    results: Any = grid.map(remote.same, itertools.count())
    assert list(itertools.islice(results, 3_000)) == list(range(3_000))
    results.close()
    assert list(results) == []
    assert until(lambda: " 0 calls alive" in repr(grid))


def test_functions_by_name(grid: Grid) -> None:
    assert list(grid.map("math/sqrt", [n * n for n in range(3_000)])) == list(range(3_000))
    with pytest.raises(gridrpc.FunctionNotFound, match="no_such"):
        list(grid.map("math/no_such", range(10), chunk=5))


def test_a_function_is_taken_as_it_is_when_map_is_called(grid: Grid) -> None:
    added = 1

    def add(n: int) -> int:
        return n + added

    results = grid.map(add, range(3_000))
    first = next(results)
    added = 1_000
    assert [first, *results] == list(range(1, 3_001))


@pytest.mark.parametrize("chunk", [7, "auto"])
def test_shared_data(each_grid: Grid, chunk: Chunk) -> None:
    shared = each_grid.share(np.ones(10_000))
    totals = each_grid.map(remote.total, itertools.repeat(shared), [shared] * 500, chunk=chunk)
    assert list(totals) == [20_000.0] * 500


def test_arguments_in_shared_memory_that_functions_keep(own_grid: Grid) -> None:
    arrays = [np.full(8_192, n, np.uint16) for n in range(300)]
    list(own_grid.map(remote.keep, map(str, range(300)), arrays, chunk=20))
    list(own_grid.map(remote.same, arrays, chunk=20))
    for n in range(300):
        try:
            stored = own_grid.submit(remote.give, str(n)).result(LONG)
        except KeyError:  # the other worker has it
            continue
        assert (stored == n).all()


def add_one(array: Any) -> Any:
    array += 1
    return array


@pytest.mark.parametrize("chunk", [10, "auto"])
def test_small_arrays_are_each_functions_own(grid: Grid, chunk: Chunk) -> None:
    array = np.arange(5.0)
    items = [array] * 50 + [array + 10] * 50
    results = list(grid.map(add_one, items, chunk=chunk))
    assert all((result == item + 1).all() for result, item in zip(results, items, strict=True))
    assert (array == np.arange(5.0)).all()


ALIKE: dict[str, list[Any]] = {
    "numbers of NumPy": [np.float64(n) for n in range(20)],
    "truths of NumPy": [np.bool_(n % 2) for n in range(20)],
    "numbers of both": [1, np.float64(2.5)] * 10,
    "arrays": [np.arange(3) + n for n in range(20)],
    "tables": [np.full((2, 3), n, np.float32) for n in range(20)],
    "tables by columns": [np.full((2, 3), float(n), order="F") for n in range(20)],
    "arrays of another byte order": [np.arange(3, dtype=">f8") + n for n in range(20)],
    "arrays without dimensions": [np.array(n) for n in range(20)],
    "arrays without elements": [np.zeros(0) for _ in range(20)],
    "arrays of two lengths": [np.zeros(3), np.zeros(4)] * 10,
    "arrays of two types": [np.zeros(3), np.zeros(3, int)] * 10,
    "records": [np.zeros(2, [("a", "f4")]) for _ in range(20)],
    "dates": [np.array(["2020-01-01"], "M8[D]") + n for n in range(20)],
    "objects": [np.array([None, n]) for n in range(20)],
    "a subclass": [np.ma.masked_array([1, n], [False, True]) for n in range(20)],
}


@pytest.mark.parametrize("items", ALIKE.values(), ids=ALIKE)
def test_arrays_and_numbers_arrive_as_they_were(grid: Grid, items: list[Any]) -> None:
    for item, came in zip(items, grid.map(remote.same, items, chunk=7), strict=True):
        assert type(came) is type(item)
        if isinstance(item, (np.ndarray, np.generic)):
            assert (came.dtype, came.shape) == (item.dtype, item.shape)
            assert came.flags.f_contiguous == item.flags.f_contiguous
        assert np.array_equal(came, item)
