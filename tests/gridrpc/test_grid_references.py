"""Arrays that calls of Python functions refer to instead of copying them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Grid

#: Below the threshold, in a small segment, in one with huge pages.
SIZES = [1_000, 40_000, 400_000]


def shared(size: int) -> Any:
    array = gridrpc.empty(size)
    array[:] = np.arange(float(size))
    return array


@pytest.mark.parametrize("size", SIZES[1:])
def test_an_array_of_gridrpc_is_not_copied(grid: Grid, size: int) -> None:
    array = shared(size)
    for part in (array, array[size // 4 :], array.reshape(-1, 10)):
        call = grid.submit(remote.total, part)
        assert call.result(60) == part.sum()
        assert call.profile.bytes_in < 1_000
        assert not grid.submit(remote.writeable, part).result(60)
    # What is small is copied after all.
    assert grid.submit(remote.writeable, array[:100]).result(60)
    array[0] = 12.5
    assert grid.submit(remote.total, array).result(60) == array.sum()


def test_it_cannot_be_changed_by_the_function(grid: Grid) -> None:
    array = shared(40_000)
    with pytest.raises(ValueError, match="read-only"):
        grid.submit(remote.fill, array).result(60)
    np.testing.assert_array_equal(array, np.arange(40_000.0))


@pytest.mark.parametrize("size", SIZES)
def test_what_comes_back_of_it_is_a_copy(each_grid: Grid, size: int) -> None:
    array = shared(size)
    result = each_grid.submit(remote.same, array).result(60)
    array[:] = -1
    np.testing.assert_array_equal(result, np.arange(float(size)))


def test_its_memory_stays_while_a_worker_has_kept_it(lone_grid: Grid) -> None:
    for turn in range(3):
        array = shared(40_000)
        # Kept twice, and let go of once.
        for name in ("one", "other"):
            lone_grid.submit(remote.keep, name, array).result(60)
        lone_grid.submit(remote.drop, "other").result(60)
        del array
        gc.collect()
        others = [shared(40_000) for _ in range(3)]
        for other in others:
            other[:] = turn
        back = lone_grid.submit(remote.give, "one").result(60)
        np.testing.assert_array_equal(back, np.arange(40_000.0))
        lone_grid.submit(remote.drop, "one").result(60)


@pytest.mark.parametrize("size", SIZES)
def test_an_argument_that_is_returned(each_grid: Grid, size: int) -> None:
    array = np.arange(float(size))
    results = [each_grid.submit(remote.same, array + step).result(60) for step in range(5)]
    results[0][:] = -1
    assert (array == np.arange(float(size))).all()
    for step in range(1, 5):
        np.testing.assert_array_equal(results[step], array + step)
    half = each_grid.submit(remote.first_half, array).result(60)
    np.testing.assert_array_equal(half, array[: size // 2])


def test_an_argument_that_is_returned_is_not_copied(grid: Grid) -> None:
    call = grid.submit(remote.same, np.ones(400_000))
    assert call.result(60).sum() == 400_000
    assert call.profile.bytes_out < 1_000


@pytest.mark.parametrize("size", SIZES)
def test_a_change_comes_back_with_the_argument(each_grid: Grid, size: int) -> None:
    array = np.zeros(size)
    assert (each_grid.submit(remote.plus_one, array).result(60) == 1).all()
    assert (array == 0).all()


@pytest.mark.parametrize("size", SIZES)
def test_results_do_not_share_memory(each_grid: Grid, size: int) -> None:
    array = np.arange(float(size))
    whole, head, tail = each_grid.submit(remote.overlapping, array).result(60)
    whole[:] = -1
    np.testing.assert_array_equal(head, array[:-1])
    np.testing.assert_array_equal(tail, array[1:])


@pytest.mark.parametrize("size", SIZES)
def test_an_argument_that_is_returned_and_kept(lone_grid: Grid, size: int) -> None:
    array = np.arange(float(size))
    result = lone_grid.submit(remote.keep_and_give, "argument", array).result(60)
    result[:] = -1
    stored = lone_grid.submit(remote.give, "argument").result(60)
    np.testing.assert_array_equal(stored, array)
    lone_grid.submit(remote.drop, "argument").result(60)


@pytest.mark.parametrize("size", SIZES)
def test_a_result_made_by_gridrpc(each_grid: Grid, size: int) -> None:
    results = [each_grid.submit(remote.make_shared, size, value).result(60) for value in range(5)]
    for value, result in enumerate(results):
        assert (result == value).all()
        result[:] = -1
    del results
    assert (each_grid.submit(remote.make_shared, size, 9).result(60) == 9).all()


@pytest.mark.parametrize("size", SIZES)
def test_a_result_made_by_gridrpc_and_kept(lone_grid: Grid, size: int) -> None:
    made = lone_grid.submit(remote.make_shared, size, 4, "made").result(60)
    made[:] = -1
    assert (lone_grid.submit(remote.give, "made").result(60) == 4).all()


def test_memory_of_returned_arguments_goes(grid: Grid) -> None:
    result = grid.submit(remote.same, np.ones(400_000)).result(60)
    gone = weakref.ref(result)
    view = result[10:]
    del result
    gc.collect()
    assert (view == 1).all()
    del view
    gc.collect()
    assert gone() is None
    again = grid.submit(remote.same, np.zeros(400_000)).result(60)
    assert (again == 0).all()
