"""Functions of compiled modules: ranges and strides of arrays that travel in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from processes import LONG

#: Elements of an array that goes in the message, and of one that would not.
SIZES = [10, 200_000]

IDL = """
Module ranges;
Define sum(IN int n, IN int start, IN int end, IN int step, IN double a[n : start, end, step],
           OUT double r[1])
    { *r = 0; for (int i = 0; i < n; i++) *r += a[i]; }
Define negate(IN int n, IN int start, IN int end, IN int step,
              INOUT double a[n : start, end, step])
    { for (int i = 0; i < n; i++) a[i] = -a[i]; }
Define ones(IN int n, IN int start, IN int end, IN int step, OUT double r[n : start, end, step])
    { for (int i = 0; i < n; i++) r[i] = 1; }
Define whole(IN int n, IN int start, INOUT double a[n : start, n]) Shrink "no"
    { for (int i = 0; i < n; i++) a[i] = -a[i]; }
Define block(IN int n, IN int m, INOUT int a[n : 1, n - 1][m : 0, m, 2])
    { for (int i = 0; i < n * m; i++) a[i] += 1000; }
Define columns(IN int n, IN int m, INOUT int a[n : 1, 3][m : 1, m, 2]) Language "FORTRAN"
    { for (int i = 0; i < n * m; i++) a[i] += 1000; }
"""

RANGES = [(0, 0, 0), (0, 0, 1), (3, 0, 1), (0, 5, 1), (2, 9, 3), (5, 5, 1), (0, 0, 2), (9, 0, 7)]


def chosen(size: int, start: int, end: int, step: int) -> slice:
    """What a range means: an end of 0 is the size, a step of 0 is 1."""
    return slice(start, end or size, step or 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("start", "end", "step"), RANGES)
def test_only_the_elements_of_a_range_go_in(
    each_module_grid: Grid, size: int, start: int, end: int, step: int
) -> None:
    a = np.arange(size) + 1.0
    part = a[chosen(size, start, end, step)]
    call = each_module_grid.function("ranges/sum").submit(start, end, step, a)
    assert call.result(LONG)[0] == part.sum()
    assert part.nbytes <= call.profile.bytes_in < part.nbytes + 200


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("part", RANGES)
@pytest.mark.parametrize("make", [np.empty, gridrpc.empty])
def test_only_the_elements_of_a_range_change(
    each_module_grid: Grid, size: int, part: tuple[int, int, int], make: Any
) -> None:
    start, end, step = part
    a = make(size)
    a[...] = np.arange(size) + 1.0
    expected = a.copy()
    expected[chosen(size, start, end, step)] *= -1
    call = each_module_grid.function("ranges/negate").submit(start, end, step, a)
    call.result(LONG)
    np.testing.assert_array_equal(a, expected)
    count = len(a[chosen(size, start, end, step)])
    assert call.profile.bytes_in < 8 * count + 200
    assert call.profile.bytes_out < 8 * count + 200


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("start", "end", "step"), RANGES)
def test_only_the_elements_of_a_range_come_back(
    each_module_grid: Grid, size: int, start: int, end: int, step: int
) -> None:
    expected = np.zeros(size)
    expected[chosen(size, start, end, step)] = 1
    ones = each_module_grid.function("ranges/ones")
    result = ones(size, start, end, step)
    np.testing.assert_array_equal(result, expected)
    place = np.full(size, 5.0)
    expected[expected == 0] = 5
    ones(size, start, end, step, out=place)
    np.testing.assert_array_equal(place, expected)


def test_without_shrink_all_elements_travel(each_module_grid: Grid) -> None:
    a = np.ones(100)
    call = each_module_grid.function("ranges/whole").submit(50, a)
    call.result(LONG)
    np.testing.assert_array_equal(a, -1)


@pytest.mark.parametrize("n", [4, 500])
def test_ranges_of_tables(each_module_grid: Grid, n: int) -> None:
    a = np.arange(n * 6, dtype=np.int32).reshape(n, 6)
    expected = a.copy()
    expected[1 : n - 1, ::2] += 1000
    each_module_grid.function("ranges/block")(a)
    np.testing.assert_array_equal(a, expected)
    b = np.asfortranarray(np.arange(n * 5, dtype=np.int32).reshape(n, 5))
    expected = b.copy()
    expected[1:3, 1::2] += 1000
    each_module_grid.function("ranges/columns")(b)
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize(
    ("start", "end", "step", "said"),
    [
        (0, 11, 1, "the end of dimension 1 of `a` is 11, above its size 10"),
        (6, 5, 1, "the start of dimension 1 of `a` is 6, above its end 5"),
        (-1, 5, 1, "the start of dimension 1 of `a` is -1, below 0"),
        (0, -5, 1, "the end of dimension 1 of `a` is -5, below 0"),
        (0, 5, -1, "the step of dimension 1 of `a` is -1, below 0"),
    ],
)
def test_ranges_that_make_no_sense(
    module_grid: Grid, start: int, end: int, step: int, said: str
) -> None:
    with pytest.raises(gridrpc.ArgumentError, match=said) as raised:
        module_grid.function("ranges/sum")(start, end, step, np.zeros(10))
    assert raised.value.parameter == "a"
