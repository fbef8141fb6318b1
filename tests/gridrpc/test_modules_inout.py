"""Functions of compiled modules: arrays that are changed in place, and results in given places."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened
from processes import LONG

#: Elements of an array that goes in the message, and of one that does not.
SIZES = [4, 100_000]

IDL = """
Module inout;
Globals {
#include <stdio.h>
}
Define double_it(IN int n, INOUT double a[n]) { for (int i = 0; i < n; i++) a[i] *= 2; }
Define filled(IN int n, IN double x, OUT double r[n]) { for (int i = 0; i < n; i++) r[i] = x; }
Define two(IN int n, IN double x, OUT double r[n], OUT int s[n])
    { for (int i = 0; i < n; i++) { r[i] = x; s[i] = i; } }
Define sum(IN int n, IN double a[n], OUT double r[1])
    { *r = 0; for (int i = 0; i < n; i++) *r += a[i]; }
Define changes_its_input(IN int n, IN double a[n], OUT double r[1]) { *r = a[0]; a[0] = -1; }
Define waits_for(IN string gate) { FILE *f = fopen(gate, "r"); fgetc(f); fclose(f); }
Define unfinished(IN int n, OUT double r[n]) { (void)r; }
Define by_columns(IN int n, INOUT double a[n][n], OUT double d[n][n]) Language "FORTRAN"
    { for (int i = 0; i < n * n; i++) { a[i] = -a[i]; d[i] = i; } }
"""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [np.empty, gridrpc.empty])
def test_inout_arrays_change_in_place(each_module_grid: Grid, size: int, make: Any) -> None:
    a = make(size)
    a[...] = np.arange(size)
    double_it = each_module_grid.function("inout/double_it")
    assert double_it(a) is None
    np.testing.assert_array_equal(a, 2.0 * np.arange(size))
    call = double_it.submit(a)
    assert call.result(LONG) is None
    np.testing.assert_array_equal(a, 4.0 * np.arange(size))


@pytest.mark.parametrize("size", SIZES)
def test_parts_of_arrays_change_in_place(each_module_grid: Grid, size: int) -> None:
    whole = gridrpc.empty((3, size))
    whole[...] = 1
    each_module_grid.function("inout/double_it")(whole[1])
    np.testing.assert_array_equal(whole[:, size - 1], [1, 2, 1])
    np.testing.assert_array_equal(whole[:, 0], [1, 2, 1])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [np.empty, gridrpc.empty])
def test_out_takes_results(each_module_grid: Grid, size: int, make: Any) -> None:
    place = make(size)
    result = each_module_grid.function("inout/filled")(size, 1.5, out=place)
    assert result is place
    np.testing.assert_array_equal(place, 1.5)
    numbers = make(size, np.int32)
    two = each_module_grid.function("inout/two")
    result = two(size, 2.5, out=(place, numbers))
    assert result.r is place
    assert result.s is numbers
    assert (place[-1], numbers[-1]) == (2.5, size - 1)
    result = two(size, 3.5, out={"s": numbers})
    assert result.s is numbers
    np.testing.assert_array_equal(result.r, 3.5)
    result = two(size, 4.5, out=(None, numbers))
    np.testing.assert_array_equal(result.r, 4.5)


@pytest.mark.parametrize(
    ("name", "out", "said"),
    [
        ("filled", np.empty(3), "argument `r` has 3 elements, but has to have 4"),
        ("filled", np.empty(4, np.float32), "argument `r` has elements of type float32"),
        ("filled", np.empty(8)[::2], "argument `r` has to be contiguous"),
        ("filled", [0.0] * 4, "argument `r` has to be a NumPy array"),
        ("filled", np.broadcast_to(1.0, 4), "argument `r` (is read-only|has to be contiguous)"),
        ("filled", b"x" * 32, "argument `r` has elements of type uint8"),
        ("filled", {"x": np.empty(4)}, "argument `x` is not one of its results"),
        ("filled", (np.empty(4), np.empty(4)), "argument `out` has 2 arrays for 1 results"),
        ("two", np.empty(4), "argument `out` has to be a tuple of 2 arrays"),
        ("two", (np.empty(4),), "argument `out` has 1 arrays for 2 results"),
    ],
)
def test_places_that_do_not_fit(module_grid: Grid, name: str, out: Any, said: str) -> None:
    with pytest.raises(gridrpc.ArgumentError, match=said):
        module_grid.function(f"inout/{name}")(4, 0.5, out=out)


def test_functions_without_results_take_no_out(module_grid: Grid) -> None:
    with pytest.raises((gridrpc.ArgumentError, TypeError), match="out"):
        module_grid.function("inout/double_it")(np.empty(3), out=np.empty(3))


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(3, np.float32), "has elements of type float32, but they have to be float64"),
        (np.zeros(3, np.int64), "has elements of type int64"),
        (np.zeros(6)[::2], r"has to be contiguous in C order \(numpy.ascontiguousarray"),
        (np.zeros(3)[::-1], "has to be contiguous"),
        (np.frombuffer(bytes(24)), "is read-only, but is to be changed in place"),
        ([1.0, 2.0], "has to be a NumPy array, which is changed in place, not list"),
        (1.5, "has to be a NumPy array, which is changed in place, not float"),
        (None, "has to be a NumPy array, which is changed in place, not NoneType"),
        (np.zeros(3, "M8[s]"), "argument `a`"),
        (np.zeros(3, object), "argument `a`"),
    ],
)
def test_arrays_that_cannot_be_changed_in_place(module_grid: Grid, array: Any, said: str) -> None:
    with pytest.raises(gridrpc.ArgumentError, match=said) as raised:
        module_grid.function("inout/double_it")(array)
    assert raised.value.parameter == "a"


def test_fortran_order_is_checked(module_grid: Grid) -> None:
    by_columns = module_grid.function("inout/by_columns")
    a = np.asfortranarray(np.arange(9.0).reshape(3, 3))
    d = by_columns(a)
    assert a[1, 0] == -3
    assert d[1, 0] == 1
    message = r"`a` has to be contiguous in Fortran order \(numpy.asfortranarray\(a\)\)"
    with pytest.raises(gridrpc.ArgumentError, match=message):
        by_columns(np.zeros((3, 3)))
    with pytest.raises(gridrpc.ArgumentError, match=r"`a` has shape \[3, 4\], but has to have"):
        by_columns(np.zeros((3, 4), order="F"))


@pytest.mark.parametrize("transport", ["unix", "tcp", "tls"])
@pytest.mark.parametrize("size", SIZES)
def test_what_a_function_does_to_its_input_stays_with_it(
    compile_idl: CompileIdl, transport: str, size: int
) -> None:
    with opened(
        workers=1, worker="native", transport=transport, modules=[compile_idl(IDL)]
    ) as grid:
        a = np.ones(size)
        assert grid.function("changes_its_input")(a)[0] == 1
        np.testing.assert_array_equal(a, 1)


def test_arrays_of_gridrpc_are_not_moved(module_grid: Grid) -> None:
    a = gridrpc.empty(1_000_000)
    a[...] = 1
    results = []
    for name, args, named in (
        ("double_it", (a,), {}),
        ("sum", (a,), {}),
        ("filled", (len(a), 3.0), {"out": a}),
    ):
        call = module_grid.function(name).submit(*args, **named)
        results.append(call.result(LONG))
        assert call.profile.bytes_in < 1_000
        assert call.profile.bytes_out < 1_000
    assert results[1][0] == 2e6
    np.testing.assert_array_equal(a, 3)


def test_empty_is_like_numpys() -> None:
    a = gridrpc.empty((3, 4), np.int16, order="F")
    assert (a.shape, a.dtype, a.flags.f_contiguous) == ((3, 4), np.int16, True)
    assert gridrpc.empty(5).dtype == float
    assert gridrpc.empty(0).shape == (0,)
    assert gridrpc.empty(()).shape == ()
    assert gridrpc.empty((2, 0, 3)).shape == (2, 0, 3)
    assert gridrpc.empty(np.int64(3)).shape == (3,)
    assert gridrpc.empty([2, np.int32(3)]).shape == (2, 3)
    with pytest.raises(ValueError, match="order is 'K'"):
        gridrpc.empty(3, order="K")
    with pytest.raises(TypeError):
        gridrpc.empty(2.5)
    like = gridrpc.empty_like(a)
    assert (like.shape, like.dtype, like.flags.f_contiguous) == ((3, 4), np.int16, True)
    with pytest.raises(TypeError, match="shared memory"):
        gridrpc.empty(3, object)
    with pytest.raises(ValueError, match="negative"):
        gridrpc.empty((3, -1))
    with pytest.raises((MemoryError, OverflowError, OSError)):
        gridrpc.empty(1 << 60)


@pytest.mark.parametrize("size", [0, *SIZES])
def test_results_may_be_written_and_outlive_the_grid(compile_idl: CompileIdl, size: int) -> None:
    with opened(workers=1, worker="native", modules=[compile_idl(IDL)]) as grid:
        result = grid.function("filled")(size, 1.5)
        views = [grid.function("two")(size, 2.5).r[1:]]
    del grid
    gc.collect()
    np.testing.assert_array_equal(result, 1.5)
    np.testing.assert_array_equal(views[0], 2.5)
    result[...] = 3
    np.testing.assert_array_equal(result, 3)


def test_calls_may_change_different_parts_of_one_array_at_once(each_module_grid: Grid) -> None:
    a = gridrpc.empty((16, 50_000))
    a[...] = np.arange(16.0)[:, np.newaxis]
    double_it = each_module_grid.function("double_it")
    for call in [double_it.submit(row) for row in a]:
        call.result(LONG)
    np.testing.assert_array_equal(a[:, 7], 2.0 * np.arange(16))


@pytest.mark.parametrize("own", [False, True])
def test_a_result_that_becomes_an_argument_moves_only_if_it_is_not_in_memory_of_gridrpc(
    module_grid: Grid, own: bool
) -> None:
    place = gridrpc.empty(100_000) if own else None
    result = module_grid.function("filled")(100_000, 2.0, out=place)
    call = module_grid.function("sum").submit(result)
    assert call.result(LONG)[0] == 2e5
    assert call.profile.bytes_in < 1_000 if own else call.profile.bytes_in >= 800_000


def test_what_a_function_does_to_a_result_that_it_is_given_stays_with_it(
    module_grid: Grid,
) -> None:
    result = module_grid.function("filled")(100_000, 2.0)
    assert module_grid.function("changes_its_input")(result)[0] == 2
    np.testing.assert_array_equal(result, 2)


def test_workers_use_the_memory_of_their_results_again(compile_idl: CompileIdl) -> None:
    places: dict[int | None, set[int]] = {}
    with opened(workers=4, worker="native", modules=[compile_idl(IDL)]) as grid:
        grid.wait_until_ready()
        for _ in range(10):
            calls = [grid.function("filled").submit(100_000, 2.0) for _ in range(8)]
            for call in calls:
                address = call.result(LONG).__array_interface__["data"][0]
                places.setdefault(call.profile.worker, set()).add(address)
            del call, calls
    # No more than a worker's share of what the client has at a time.
    assert all(len(addresses) <= 8 for addresses in places.values())
    assert len(set.union(*places.values())) == sum(map(len, places.values())), "no two share any"


def test_results_do_not_count_before_a_worker_makes_them(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with opened(
        workers=1, worker="native", modules=[compile_idl(IDL)], max_queued_bytes=1_000_000
    ) as grid:
        waits = grid.function("waits_for").submit(str(gate))
        # None of these would be taken before the first has ended, if results counted.
        calls = [grid.function("filled").submit(100_000, float(n)) for n in range(20)]
        assert not waits.done()
        gate.write_text("open")
        assert [call.result(LONG)[-1] for call in calls] == list(range(20))


def test_calls_and_arrays_that_nobody_keeps_do_no_harm(each_module_grid: Grid) -> None:
    double_it = each_module_grid.function("double_it")
    for _ in range(100):
        double_it.submit(np.ones(50_000))
    calls = [double_it.submit(np.ones(50_000)) for _ in range(20)]
    for call in calls[::2]:
        call.cancel()
    del calls, call
    gc.collect()
    assert each_module_grid.function("sum")(np.ones(50_000))[0] == 50_000


def test_two_grids_may_use_one_array(each_module_grid: Grid, module_grid: Grid) -> None:
    a = gridrpc.empty(50_000)
    a[...] = 1
    for grid in (each_module_grid, module_grid, each_module_grid):
        grid.function("double_it")(a)
    np.testing.assert_array_equal(a, 8)


def test_several_threads_may_use_the_same_arrays(each_module_grid: Grid) -> None:
    a = gridrpc.empty(50_000)
    a[...] = 1
    total = each_module_grid.function("sum")
    sums: list[float] = []

    def use() -> None:
        sums.extend(total(a)[0] for _ in range(20))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert sums == [50_000.0] * 80


def test_memory_does_not_grow_over_thousands_of_calls(each_module_grid: Grid) -> None:
    filled, double_it = each_module_grid.function("filled"), each_module_grid.function("double_it")
    plain, shared = np.zeros(50_000), gridrpc.empty(50_000)
    shared[...] = 0

    def calls(count: int) -> None:
        for _ in range(count):
            double_it(plain)
            double_it(shared)
            filled(50_000, 1.0)

    def used() -> int:
        gc.collect()
        return int(psutil.Process(os.getpid()).memory_info().rss)

    calls(100)
    before = used()
    calls(600)
    assert used() - before < 40e6
