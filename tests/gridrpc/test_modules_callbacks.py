"""Functions of compiled modules that call functions of the client back."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened
from processes import LONG

IDL = """
Module back;
Define integral(IN double from, IN double to, IN int steps, OUT double r[1],
                f(IN double x, OUT double y[1]))
    {
        *r = 0;
        for (int i = 0; i < steps; i++) {
            double y;
            f(from + (i + 0.5) * (to - from) / steps, &y);
            *r += y * (to - from) / steps;
        }
    }
Define spell(said(IN string text), listed(IN int n, IN string texts[n]))
    { char *texts[] = {"a", 0, "\\303\\244"}; said("word"); said(0); listed(3, texts); }
Define tell(IN int times, told()) { while (times-- > 0) told(); }
Define ask(OUT int r[3], answer(OUT int a[3])) { answer(r); }
Define progress(IN int n, INOUT double a[n], shown(IN int n, IN double a[n], IN int percent))
    {
        for (int i = 0; i < n; i++)
            a[i] *= 2;
        shown(n, a, 100);
    }
Define improve(IN int n, INOUT double a[n], IN int times, better(IN int k, INOUT double a[n]))
    { while (times-- > 0) better(times, a); }
Define both(IN int n, OUT int r[n], first(IN int i, OUT int a[1]), second(IN int i, OUT int a[1]))
    { for (int i = 0; i < n; i++) (i % 2 ? second : first)(i, r + i); }
Define types(OUT int ok[1], check(IN char c, IN unsigned long u, IN float f, IN dcomplex z,
                                  IN short s[2], IN scomplex zs[2]))
    {
        short s[2] = {-1, 2};
        float zs[4] = {1, 2, 3, 4};
        double z[2] = {1.5, -2.5};
        check(-7, ~0ul, 0.5f, *(gridrpc_dcomplex *)z, s, (gridrpc_scomplex *)zs);
        *ok = 1;
    }
Define strided(OUT int r[6], part(IN int n, INOUT int a[n : 1, n, 2]))
    { for (int i = 0; i < 6; i++) r[i] = i; part(6, r); }
Define table(see(IN int n, IN int m, IN int a[n][m], OUT int b[m][n]), OUT int r[3][2])
    { int a[6] = {0, 1, 2, 3, 4, 5}; see(2, 3, a, r); }
Define fortran_table(see(IN int n, IN int m, IN int a[n][m], OUT int b[m][n]), OUT int r[3][2])
    Language "FORTRAN"
    { int a[6] = {0, 1, 2, 3, 4, 5}; see(2, 3, a, r); }
Define large(IN int n, OUT double r[1], make(IN int n, OUT double a[n]))
    {
        double *a = __builtin_malloc(n * sizeof *a);
        make(n, a);
        *r = 0;
        for (int i = 0; i < n; i++)
            *r += a[i];
        __builtin_free(a);
    }
Define goes_on(OUT int r[1], fails()) { fails(); fails(); *r = 5; }
"""


def test_the_function_computes_with_what_comes_back(each_module_grid: Grid) -> None:
    def square(x: float, y: Any) -> None:
        y[0] = x * x

    call = each_module_grid.function("back/integral").submit(0.0, 3.0, 200, square)
    assert call.result(LONG)[0] == pytest.approx(9, rel=1e-4)
    profile = call.profile
    assert profile.callbacks == 200
    assert 0 < profile.callback_time <= profile.calc_out - profile.calc_in


def test_callbacks_without_arguments(each_module_grid: Grid) -> None:
    text: list[int] = []
    each_module_grid.function("tell")(5, lambda: text.append(1))
    assert text == [1] * 5


def test_callbacks_that_only_give(each_module_grid: Grid) -> None:
    def answer(a: Any) -> None:
        a[:] = [4, 5, 6]

    assert each_module_grid.function("ask")(answer).tolist() == [4, 5, 6]
    assert each_module_grid.function("ask")(lambda a: None).tolist() == [0, 0, 0]  # noqa: ARG005


def test_callbacks_see_arrays(each_module_grid: Grid) -> None:
    seen: list[Any] = []
    a = np.arange(1000.0)
    each_module_grid.function("progress")(a, lambda n, a, p: seen.append((n, a.copy(), p)))
    ((n, array, percent),) = seen
    assert (n, percent) == (1000, 100)
    np.testing.assert_array_equal(array, 2.0 * np.arange(1000))


@pytest.mark.parametrize("size", [3, 100_000])
def test_callbacks_change_arrays_of_the_function(each_module_grid: Grid, size: int) -> None:
    def better(k: int, a: Any) -> None:
        a += k

    a = np.zeros(size)
    each_module_grid.function("improve")(a, 4, better)
    np.testing.assert_array_equal(a, 3 + 2 + 1 + 0)


def test_several_callbacks_are_told_apart(each_module_grid: Grid) -> None:
    def first(i: int, a: Any) -> None:
        a[0] = 100 + i

    def second(i: int, a: Any) -> None:
        a[0] = 200 + i

    both = each_module_grid.function("both")
    assert both(4, first, second).tolist() == [100, 201, 102, 203]
    assert both(4, second=first, first=second).tolist() == [200, 101, 202, 103]


def test_arguments_of_callbacks_of_every_kind(each_module_grid: Grid) -> None:
    seen: list[Any] = []
    assert each_module_grid.function("types")(lambda *all_: seen.append(all_))[0] == 1
    ((c, u, f, z, s, zs),) = seen
    assert (c, u, f, z) == (-7, 2**64 - 1, 0.5, 1.5 - 2.5j)
    assert (s.tolist(), s.dtype) == ([-1, 2], np.int16)
    assert (zs.tolist(), zs.dtype) == ([1 + 2j, 3 + 4j], np.complex64)


def test_ranges_of_arrays_of_callbacks(each_module_grid: Grid) -> None:
    def part(n: int, a: Any) -> None:
        assert a.tolist() == [0, 1, 0, 3, 0, 5]
        a[:] = 10 * n

    assert each_module_grid.function("strided")(part).tolist() == [0, 60, 2, 60, 4, 60]


@pytest.mark.parametrize(("name", "order"), [("table", "C"), ("fortran_table", "F")])
def test_tables_have_the_order_of_the_function(
    each_module_grid: Grid, name: str, order: Any
) -> None:
    expected = np.arange(6).reshape((2, 3), order=order)

    def see(_n: int, _m: int, a: Any, b: Any) -> None:
        np.testing.assert_array_equal(a, expected)
        b[...] = a.T

    result = each_module_grid.function(name)(see)
    np.testing.assert_array_equal(result, expected.T)


def test_large_results_of_callbacks(each_module_grid: Grid) -> None:
    def make(n: int, a: Any) -> None:
        a[:] = np.arange(n)

    for _ in range(3):
        assert each_module_grid.function("large")(300_000, make)[0] == sum(range(300_000))


def test_an_error_of_a_callback_is_the_error_of_the_call(each_module_grid: Grid) -> None:
    class Stop(Exception):
        pass

    error = Stop("enough")
    times: list[int] = []

    def fails() -> None:
        times.append(1)
        raise error

    with pytest.raises(Stop, match="enough") as raised:
        each_module_grid.function("goes_on")(fails)
    assert raised.value is error
    assert len(times) == 1, "no callback is run after one that has failed"
    assert any("fails" in str(entry) for entry in raised.traceback)
    assert each_module_grid.function("ask")(lambda a: a.fill(1)).tolist() == [1, 1, 1]


def test_a_callback_may_fail_with_more_text_than_a_message_holds(each_module_grid: Grid) -> None:
    def fails() -> None:
        raise ValueError("x" * 1_100_000)

    for _ in range(3):
        with pytest.raises(ValueError, match="x" * 100):
            each_module_grid.function("goes_on")(fails)
    assert each_module_grid.function("ask")(lambda a: a.fill(1)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("wrong", [None, 5, "name"])
def test_what_cannot_be_called_is_refused(module_grid: Grid, wrong: Any) -> None:
    with pytest.raises(gridrpc.ArgumentError, match="`told` has to be callable"):
        module_grid.function("tell")(1, wrong)
    with pytest.raises(gridrpc.ArgumentError, match="`told` is missing"):
        module_grid.function("tell")(1)


def test_a_callback_with_the_wrong_number_of_parameters_fails_the_call(module_grid: Grid) -> None:
    with pytest.raises(TypeError, match="positional argument"):
        module_grid.function("tell")(1, lambda x: None)  # noqa: ARG005


def test_callbacks_may_make_calls_of_their_own(each_module_grid: Grid) -> None:
    grid = each_module_grid
    ask, integral = grid.function("ask"), grid.function("integral")

    def deeper(x: float, y: Any) -> None:
        y[0] = x * ask(lambda a: a.fill(2))[0]

    assert integral(0.0, 1.0, 10, deeper)[0] == pytest.approx(1)


def test_slow_callbacks_keep_nobody_else_waiting(each_module_grid: Grid) -> None:
    release = threading.Event()
    entered = threading.Event()

    def slow() -> None:
        entered.set()
        assert release.wait(LONG)

    notify = each_module_grid.function("tell")
    waiting = notify.submit(1, slow)
    assert entered.wait(LONG)
    start = time.monotonic()
    for _ in range(20):
        notify(3, lambda: None)
    assert time.monotonic() - start < 30
    assert not waiting.done()
    release.set()
    waiting.result(LONG)


def test_callbacks_of_many_calls_at_once(module_grid: Grid) -> None:
    counts = [0] * 20

    def counting(index: int) -> Any:
        def count() -> None:
            counts[index] += 1

        return count

    calls = [module_grid.function("tell").submit(10, counting(index)) for index in range(20)]
    for call in calls:
        call.result(LONG)
    assert counts == [10] * 20


def test_a_call_may_be_cancelled_while_its_callback_runs(compile_idl: CompileIdl) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        release.wait(LONG)

    with opened(workers=1, worker="native", modules=[compile_idl(IDL)]) as grid:
        notify = grid.function("tell")
        call = notify.submit(1, slow)
        assert entered.wait(LONG)
        assert call.cancel()
        assert isinstance(call.exception(LONG), gridrpc.CallCancelled)
        notify.submit(1, lambda: None).result(LONG)
        release.set()


def test_closing_the_grid_does_not_wait_for_callbacks(own_module_grid: Grid) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        release.wait(LONG)

    call = own_module_grid.function("tell").submit(1, slow)
    assert entered.wait(LONG)
    own_module_grid.close()
    assert isinstance(call.exception(LONG), gridrpc.GridClosed)
    release.set()


def test_strings(each_module_grid: Grid) -> None:
    came: list[Any] = []
    each_module_grid.function("spell")(came.append, lambda n, texts: came.extend([n, texts]))
    assert came == ["word", None, 3, ["a", None, "ä"]]


def test_callbacks_with_map(module_grid: Grid) -> None:
    integral = module_grid.function("integral")

    def line(x: float, y: Any) -> None:
        y[0] = x

    ends = [1.0, 2.0, 3.0]
    results = module_grid.map(integral, [0.0] * 3, ends, [10] * 3, [line] * 3)
    assert [r[0] for r in results] == pytest.approx([0.5, 2, 4.5])
