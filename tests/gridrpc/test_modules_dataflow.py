"""Results of module functions as arguments of calls of module functions."""

from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened
from processes import LONG
from servers import offering, serving

IDL = r"""
Module flow;
Globals {
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
}
Define ramp(IN long n, IN double first, OUT double x[n])
    { for (long i = 0; i < n; i++) x[i] = first + i; }
Define again(IN long n, IN double first, OUT double x[n]) Idempotent
    { for (long i = 0; i < n; i++) x[i] = first + i; }
Define add(IN long n, IN double a[n], IN double b[n], OUT double x[n])
    { for (long i = 0; i < n; i++) x[i] = a[i] + b[i]; }
Define total(IN long n, IN double a[n], OUT double s[1])
    { *s = 0; for (long i = 0; i < n; i++) *s += a[i]; }
Define split(IN long n, IN double a[n], OUT double low[n], OUT double high[n], OUT string name)
    {
        for (long i = 0; i < n; i++) { low[i] = a[i] - 1; high[i] = a[i] + 1; }
        *name = strdup("split");
    }
Define grid(IN long n, IN long m, OUT double a[n][m])
    { for (long i = 0; i < n * m; i++) a[i] = i; }
Define times(IN long n, IN long m, IN double a[n][m], IN double x[m], OUT double y[n])
    {
        for (long i = 0; i < n; i++) {
            y[i] = 0;
            for (long j = 0; j < m; j++) y[i] += a[i * m + j] * x[j];
        }
    }
Define columns(IN long n, IN long m, OUT double a[n][m]) Language "FORTRAN"
    { for (long i = 0; i < n * m; i++) a[i] = i; }
Define half(IN long n, OUT double x[n : 0, 2]) { for (long i = 0; i < n; i++) x[i] = i; }
Define scale(IN long n, IN double by, INOUT double x[n])
    { for (long i = 0; i < n; i++) x[i] *= by; }
Define lengths(IN long n, IN long of[n], OUT double x[of[0]])
    { for (long i = 0; i < of[0]; i++) x[i] = i; }
Define counts(OUT long of[1]) { *of = 3; }
Define singles(IN long n, OUT float x[n]) { for (long i = 0; i < n; i++) x[i] = i; }
Define nap(IN long n, IN double seconds, OUT double x[n])
    { usleep(seconds * 1e6); for (long i = 0; i < n; i++) x[i] = seconds; }
Define nothing() { }
Define dies(IN long n, OUT double x[n]) { abort(); }
"""
#: Small: results come with the message. Large: they stay in shared memory.
SIZES = [0, 1, 1000, 300_000]


def submit(grid: Grid, name: str, *arguments: Any, **named: Any) -> gridrpc.Call[Any]:
    return grid.function(name).submit(*arguments, **named)


@pytest.mark.parametrize("n", SIZES)
def test_a_result_becomes_an_argument(each_module_grid: Grid, n: int) -> None:
    grid = each_module_grid
    made = submit(grid, "flow/ramp", n, 1.0)
    # The length follows from the result's.
    both = submit(grid, "flow/add", made, np.ones(n))
    twice = submit(grid, "flow/add", both, both)
    assert submit(grid, "flow/total", twice).result(LONG) == n * (n + 1) + 2 * n
    np.testing.assert_array_equal(made.result(LONG), 1.0 + np.arange(n))


def test_large_results_are_not_copied_through_the_client(module_grid: Grid) -> None:
    made = submit(module_grid, "flow/nap", 1_000_000, 0.05)
    used = submit(module_grid, "flow/total", made)
    assert used.result(LONG)[0] == pytest.approx(50_000.0)
    assert used.profile.bytes_in < 1000


def test_one_of_several_results(module_grid: Grid) -> None:
    n = 200_000
    parts = submit(module_grid, "flow/split", submit(module_grid, "flow/ramp", n, 0.0))
    difference = submit(module_grid, "flow/add", parts.output("high"), parts.output("low"))
    np.testing.assert_array_equal(difference.result(LONG), 2.0 * np.arange(n))
    # Also of results that the program has taken.
    assert parts.result(LONG).name == "split"
    high = submit(module_grid, "flow/total", parts.output("high"))
    assert high.result(LONG)[0] == n * (n - 1) / 2 + n
    assert "`high`" in repr(parts.output("high"))


def test_dimensions_are_checked_and_followed(module_grid: Grid) -> None:
    a = submit(module_grid, "flow/grid", 3, 2)
    y = submit(module_grid, "flow/times", a, np.array([1.0, 2.0]))
    assert list(y.result(LONG)) == [2.0, 8.0, 14.0]
    # In its order, as the elements of a vector.
    assert submit(module_grid, "flow/total", a, n=6).result(LONG)[0] == 15.0
    wrong = "argument `a` is the result of another call, of shape \\[3, 2\\]"
    for shape in ((2, 3), (3, 3)):
        with pytest.raises(gridrpc.ArgumentError, match=wrong):
            submit(module_grid, "flow/times", *shape, a, np.ones(shape[1]))
    with pytest.raises(gridrpc.ArgumentError, match="argument `b`"):
        submit(module_grid, "flow/add", submit(module_grid, "flow/ramp", 4, 0.0), np.ones(5))
    with pytest.raises(gridrpc.ArgumentError, match=r"type float32, but has to have .* of float64"):
        submit(module_grid, "flow/total", submit(module_grid, "flow/singles", 3))


def test_what_cannot_be_passed_is_refused_when_it_is_submitted(
    module_grid: Grid, basics: Path
) -> None:
    flow = functools.partial(submit, module_grid)
    made = flow("flow/ramp", 4, 0.0)
    with pytest.raises(gridrpc.ArgumentError, match="`x` is the result of another call, which"):
        flow("flow/scale", 2.0, made)
    with pytest.raises(TypeError, match=r"several results .`low`, `high`, `name`.*output"):
        flow("flow/total", flow("flow/split", np.ones(2)))
    with pytest.raises(ValueError, match="no result `middle`: it returns `low`, `high`, `name`"):
        flow("flow/split", np.ones(2)).output("middle")
    with pytest.raises(TypeError, match="`name` is no array of numbers"):
        flow("flow/split", np.ones(2)).output("name")
    with pytest.raises(TypeError, match="returns no result"):
        flow("flow/total", flow("flow/nothing"))
    slow = flow("flow/nap", 4, 0.2, out=np.empty(4))
    with pytest.raises(TypeError, match="is put together in this program"):
        flow("flow/total", slow)
    assert slow.result(LONG)[0] == 0.2
    assert flow("flow/total", slow).result(LONG)[0] == pytest.approx(0.8)
    columns = flow("flow/columns", 3, 2)
    with pytest.raises(gridrpc.ArgumentError, match="an array in Fortran order"):
        flow("flow/times", columns, np.ones(2))
    taken = np.ascontiguousarray(columns.result(LONG))
    assert list(flow("flow/times", taken, np.ones(2)).result(LONG)) == [3.0, 5.0, 7.0]
    with opened(workers=1, worker="native", modules=[basics]) as other:
        stranger = other.submit("basics/number", 1)
        with pytest.raises(ValueError, match="belongs to another grid"):
            flow("flow/total", stranger)
    with pytest.raises(TypeError, match="`high` of a call of flow/split"):
        pickle.dumps(flow("flow/split", np.ones(2)).output("high"))


def test_a_failure_ends_what_needs_it(own_module_grid: Grid) -> None:
    grid = own_module_grid
    broken = submit(grid, "flow/dies", 4)
    used = submit(grid, "flow/total", broken)
    last = submit(grid, "flow/add", submit(grid, "flow/ramp", 1, 0.0), used)
    error = last.exception(LONG)
    assert isinstance(error, gridrpc.DependencyFailed)
    assert error.call is used
    assert isinstance(error.__cause__, gridrpc.DependencyFailed)
    assert isinstance(error.__cause__.__cause__, gridrpc.WorkerLost)
    # One whose failure the program has seen.
    assert isinstance(broken.exception(LONG), gridrpc.WorkerLost)
    late = submit(grid, "flow/total", broken).exception(LONG)
    assert isinstance(late, gridrpc.DependencyFailed)
    assert late.call is broken


def test_cancelling(own_module_grid: Grid) -> None:
    grid = own_module_grid
    slow = submit(grid, "flow/nap", 4, LONG)
    used = submit(grid, "flow/total", slow)
    stored = submit(grid, "flow/total", submit(grid, "flow/nap", 2, 0.05))
    assert slow.cancel()
    error = used.exception(LONG)
    assert isinstance(error, gridrpc.DependencyFailed)
    assert isinstance(error.__cause__, gridrpc.CallCancelled)
    assert stored.result(LONG)[0] == pytest.approx(0.1)
    waits = submit(grid, "flow/total", submit(grid, "flow/nap", 2, 0.2))
    assert waits.cancel()
    assert isinstance(waits.exception(LONG), gridrpc.CallCancelled)


def test_maps_and_chains_take_results(module_grid: Grid) -> None:
    made = [submit(module_grid, "flow/ramp", 3, float(n)) for n in range(20)]
    sums = module_grid.map(module_grid.function("flow/total"), made)
    assert [float(one[0]) for one in sums] == [3.0 * n + 3 for n in range(20)]
    chain = made[0]
    for one in made[1:]:
        chain = submit(module_grid, "flow/add", chain, one)
    np.testing.assert_array_equal(chain.result(LONG), 190 + 20 * np.arange(3.0))


@pytest.mark.parametrize("trusted", [True, False])
def test_on_a_server(tmp_path: Path, compile_idl: CompileIdl, *, trusted: bool) -> None:
    module = compile_idl(IDL)
    with (
        serving(tmp_path, offering(module, workers=2)) as server,
        server.client(trusted=trusted) as grid,
    ):
        made = submit(grid, "flow/ramp", 300_000, 0.0)
        both = submit(grid, "flow/add", made, made)
        assert submit(grid, "flow/total", both).result(LONG)[0] == 300_000 * 299_999.0


def test_python_functions_and_module_functions_do_not_mix(compile_idl: CompileIdl) -> None:
    with opened(workers=1, modules=[compile_idl(IDL)]) as grid:
        ones = grid.submit(np.ones, 3)
        with pytest.raises(TypeError, match="is a Python function, whose results have no declared"):
            submit(grid, "flow/total", ones)
        made = submit(grid, "flow/nap", 3, 0.2)
        with pytest.raises(TypeError, match="is a function of a compiled module"):
            grid.submit(np.sum, made)
        assert made.result(LONG)[0] == 0.2
        assert grid.submit(np.sum, made).result(LONG) == pytest.approx(0.6)
