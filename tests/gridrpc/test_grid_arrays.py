"""Arrays as arguments and results: what they are, where they lie, and who may change them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import remote
from gridrpc import Grid

KIB = 1 << 10
#: Around every place where the way that bytes take may change.
SIZES = [0, 1, 32 * KIB - 1, 32 * KIB, 64 * KIB, 64 * KIB + 1, 512 * KIB, 1 << 20, 20_000_000]


def numbers(size: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


@pytest.mark.parametrize("size", SIZES)
def test_sizes(each_grid: Grid, size: int) -> None:
    array = numbers(size)
    result = each_grid.submit(remote.same, array).result(60)
    np.testing.assert_array_equal(result, array)
    assert result.dtype == array.dtype
    both = each_grid.submit(remote.everything, array, more=array[::-1].copy()).result(60)
    np.testing.assert_array_equal(both[0], array)
    np.testing.assert_array_equal(both[1]["more"], array[::-1])


RECORD = np.dtype([("name", "U8"), ("at", "f8", (3,)), ("n", "i4")])
ARRAYS: dict[str, Any] = {
    "scalar": np.array(3.5),
    "C order": np.arange(60_000.0).reshape(100, 200, 3),
    "Fortran order": np.asfortranarray(np.arange(60_000.0).reshape(100, 200, 3)),
    "every second": np.arange(60_000.0)[::2],
    "reversed": np.arange(60_000.0)[::-1],
    "inner block": np.arange(90_000.0).reshape(300, 300)[5:200, 7:250],
    "transposed": np.arange(60_000.0).reshape(100, 200, 3).transpose(1, 0, 2),
    "broadcast": np.broadcast_to(np.arange(300.0), (200, 300)),
    "empty with shape": np.empty((0, 5, 3)),
    "bool": np.arange(50_000) % 3 == 0,
    "complex": np.arange(9_000) * 1j,
    "half": np.arange(9_000, dtype=np.float16),
    "big-endian": np.arange(9_000, dtype=">f8"),
    "text": np.array(["a", "bcd", "\N{SNOWMAN}"] * 5_000),
    "records": np.array([("one", (1, 2, 3), 4)] * 3_000, RECORD),
    "dates": np.arange("2000-01", "2010-01", dtype="datetime64[D]").repeat(20),
    "spans": np.arange(9_000).astype("timedelta64[ms]"),
    "objects": np.array([None, "text", [1, 2], 3.5] * 100, object),
    "masked": np.ma.masked_array(np.arange(9_000), np.arange(9_000) % 2 == 0),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_kinds(each_grid: Grid, kind: str) -> None:
    array = ARRAYS[kind]
    result = each_grid.submit(remote.same, array).result(60)
    assert type(result) is type(array)
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(result, array)


def test_fortran_order_stays(each_grid: Grid) -> None:
    array = np.asfortranarray(np.arange(10_000.0).reshape(100, 100))
    seen = each_grid.submit(remote.describe, array).result(60)
    assert seen == ("ndarray", "<f8", (100, 100), True, True)
    assert each_grid.submit(remote.same, array).result(60).flags.f_contiguous


@pytest.mark.parametrize("size", [10, 100_000])
def test_what_is_read_only_stays_so(each_grid: Grid, size: int) -> None:
    array = np.arange(size)
    assert each_grid.submit(remote.writeable, array).result(60)
    assert each_grid.submit(remote.same, array).result(60).flags.writeable
    array.flags.writeable = False
    assert not each_grid.submit(remote.writeable, array).result(60)
    np.testing.assert_array_equal(each_grid.submit(remote.same, array).result(60), array)


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_change_does_not_reach_the_caller(each_grid: Grid, size: int) -> None:
    array = np.arange(float(size))
    assert each_grid.submit(remote.fill, array).result(60) == -size
    np.testing.assert_array_equal(array, np.arange(float(size)))
    # Nor the next call, though its argument may lie where this one did.
    assert each_grid.submit(remote.total, array).result(60) == array.sum()


@pytest.mark.parametrize("size", [10, 100_000])
def test_the_caller_may_change_an_array_after_submit(each_grid: Grid, size: int) -> None:
    array = np.zeros(size)
    calls = []
    for step in range(20):
        array[:] = step
        calls.append(each_grid.submit(remote.total, array))
    assert [call.result(60) for call in calls] == [step * size for step in range(20)]


@pytest.fixture(scope="module", params=["unix", "tcp"])
def lone_each(request: pytest.FixtureRequest) -> Iterator[Grid]:
    with Grid(workers=1, transport=request.param) as grid:
        yield grid


@pytest.mark.parametrize("size", [1_000, 40_000, 300_000])
def test_an_argument_kept_by_the_worker_stays_as_it_was(lone_each: Grid, size: int) -> None:
    stored = numbers(size, 1)
    lone_each.submit(remote.keep, "argument", stored).result(60)
    part = numbers(size, 2)
    lone_each.submit(remote.keep, "part", {"view": part}).result(60)
    for seed in range(10, 30):
        other = numbers(size, seed)
        np.testing.assert_array_equal(lone_each.submit(remote.same, other).result(60), other)
        lone_each.submit(remote.fill, other.astype(np.int8)).result(60)
    np.testing.assert_array_equal(lone_each.submit(remote.give, "argument").result(60), stored)
    back = lone_each.submit(remote.give, "part").result(60)["view"]
    np.testing.assert_array_equal(back, part)
    for name in ("argument", "part"):
        lone_each.submit(remote.drop, name).result(60)
    for seed in range(30, 40):
        other = numbers(size, seed)
        np.testing.assert_array_equal(lone_each.submit(remote.same, other).result(60), other)


def test_an_argument_kept_by_an_error_or_a_cycle(lone_each: Grid) -> None:
    def fail_with_cycle(array: Any) -> None:
        cycle: list[Any] = [array]
        cycle.append(cycle)
        raise ValueError(int(array[0]))

    for seed in range(60):
        array = numbers(100_000, seed)
        error = lone_each.submit(fail_with_cycle, array).exception(60)
        assert error is not None
        assert error.args == (int(array[0]),)


@pytest.mark.parametrize("size", [1_000, 40_000, 300_000])
def test_results_kept_by_the_client_stay_as_they_were(each_grid: Grid, size: int) -> None:
    calls = [each_grid.submit(remote.make_array, size, value) for value in range(50)]
    stored = [call.result(60) for call in calls]
    views = [array[10:20] for array in stored[::2]]
    del stored[::2]
    del calls
    gc.collect()
    for value in range(60, 90):
        assert (each_grid.submit(remote.make_array, size, value).result(60) == value).all()
    assert [int(view[0]) for view in views] == list(range(0, 50, 2))
    assert all((array == value).all() for array, value in zip(stored, range(1, 50, 2), strict=True))


def test_results_can_be_changed(each_grid: Grid) -> None:
    results = [each_grid.submit(remote.make_array, 100_000, 1).result(60) for _ in range(3)]
    results[0][:] = 7
    assert (results[1] == 1).all()
    assert (results[2] == 1).all()


def test_results_outlive_their_worker_and_their_grid() -> None:
    with Grid(workers=1) as grid:
        first = grid.submit(remote.make_array, 1_000_000, 5).result(60)
        unread = grid.submit(remote.make_array, 1_000_000, 6)
        assert grid.submit(remote.die, "kill").exception(60) is not None
        assert (unread.result(60) == 6).all()
        other = grid.submit(remote.make_array, 1_000_000, 7).result(60)
        later = grid.submit(remote.make_array, 1_000_000, 8)
    assert (first == 5).all()
    assert (other == 7).all()
    assert (later.result(60) == 8).all()


@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("count", [900, 1_023, 2_000])
def test_many_arrays_in_one_call(each_grid: Grid, count: int, size: int) -> None:
    if size > 3:
        count //= 10
    arrays = [np.full(size, n, np.int32) for n in range(count)]
    results = each_grid.submit(remote.same, arrays).result(60)
    assert [int(array[-1]) for array in results] == list(range(count))
    shared = {"list": arrays, "tuple": (0, arrays[1])}
    expected = size * (count * (count - 1) // 2 + 1)
    assert each_grid.submit(remote.total_nested, shared).result(60) == expected


def test_the_same_array_twice_is_the_same_array(grid: Grid) -> None:
    array = numbers(100_000)
    assert grid.submit(lambda a, b: a is b, array, array).result(60)


def test_arrays_from_many_threads(each_grid: Grid) -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for step in range(25):
            array = numbers(20_000 + 3_000 * seed, 1000 * seed + step)
            if not np.array_equal(each_grid.submit(remote.same, array).result(60), array):
                wrong.append((seed, step))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("threshold", [0, 1, 1 << 40])
def test_thresholds(threshold: int) -> None:
    with Grid(workers=1, shared_threshold=threshold, keep_free=0) as grid:
        for size in (0, 1, 100, 700_000):
            array = numbers(size)
            np.testing.assert_array_equal(grid.submit(remote.same, array).result(60), array)
