"""Native workers: they run functions of compiled modules, by name, and no Python."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Grid
from grids import opened
from processes import LONG


def test_functions_of_modules_are_called_by_name(native_grid: Grid) -> None:
    assert native_grid.submit("basics/null").result(LONG) is None
    assert native_grid.submit("basics/number", 5).result(LONG)[0] == 5
    assert native_grid.submit("number", item=6).result(LONG)[0] == 6
    partly = functools.partial("basics/number".format, 1)
    with pytest.raises(TypeError, match="worker='python'"):
        native_grid.submit(partly)
    number = native_grid.function("basics/number")
    assert native_grid.submit(functools.partial(number, 7)).result(LONG)[0] == 7


@pytest.mark.parametrize("size", [0, 1, 32767, 32768, 1 << 20, 20_000_000])
def test_data_of_any_size_comes_back(native_grid: Grid, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    for value in (data, memoryview(data), np.frombuffer(data, np.uint8)):
        assert bytes(native_grid.submit("basics/echo", value).result(LONG)) == data


@pytest.mark.parametrize("name", ["basics/no_such", "other/null", "basics/null/null"])
def test_unknown_functions(native_grid: Grid, name: str) -> None:
    with pytest.raises(gridrpc.FunctionNotFound, match=r"no module|no function"):
        native_grid.submit(name)
    with pytest.raises(gridrpc.FunctionNotFound, match=r"no module|no function"):
        native_grid.map(name, [1])


def test_what_is_no_name(native_grid: Grid) -> None:
    with pytest.raises(ValueError, match="not a function's name"):
        native_grid.submit("no_such")


def test_python_functions_are_refused(native_grid: Grid) -> None:
    said = "native workers run functions of compiled modules.*worker='python'"
    for function in (remote.pid, len, lambda: 1):
        with pytest.raises(TypeError, match=said):
            native_grid.submit(function)
        with pytest.raises(TypeError, match=said):
            native_grid.map(function, [1], chunk=2)
    with pytest.raises(TypeError, match="an object of type int cannot be called"):
        native_grid.submit(5)  # type: ignore[arg-type]


def test_options_that_module_functions_do_not_have(native_grid: Grid) -> None:
    for call in (native_grid.submit, native_grid.map):
        with pytest.raises(TypeError, match="Idempotent"):
            call("basics/number", [1], idempotent=True)  # type: ignore[operator]
    with pytest.raises(TypeError, match="cannot have `retries`"):
        native_grid.map("basics/number", [1], retries=1)


def test_how_long_a_call_takes(native_grid: Grid) -> None:
    call = native_grid.submit("basics/nap", 0.02)
    assert call.result(LONG)[0] >= 0.02
    profile = call.profile
    assert profile.calc_out - profile.calc_in >= 0.02
    assert profile.submit <= profile.sent <= profile.calc_in <= profile.calc_out <= profile.retrieve


@pytest.mark.parametrize("chunk", [1, 7, 100_000, "auto"])
def test_map(native_grid: Grid, chunk: Any) -> None:
    def mapped(count: int, ordered: bool) -> list[int]:
        items = iter(range(count))
        results = native_grid.map("basics/number", items, chunk=chunk, ordered=ordered)
        return [int(result[0]) for result in results]

    assert mapped(20_000, True) == list(range(20_000))
    assert sorted(mapped(3_000, False)) == list(range(3_000))


def test_items_of_map_that_take_longer_do_not_pile_up(native_grid: Grid) -> None:
    times = [0.0] * 5_000 + [0.01] * 50
    slept = list(native_grid.map("basics/nap", iter(times)))
    assert len(slept) == len(times)
    assert all(got[0] >= wanted for got, wanted in zip(slept, times, strict=True))


def test_cancel_ends_the_worker(native_grid: Grid) -> None:
    call = native_grid.submit("basics/nap", 1_000)
    assert call.cancel()
    assert isinstance(call.exception(LONG), gridrpc.CallCancelled)
    results = [native_grid.submit("basics/number", n).result(LONG)[0] for n in range(9)]
    assert results == list(range(9))


def test_shared_data_in_either_byte_order(native_grid: Grid) -> None:
    array = np.arange(60_000.0)
    for given in (array, array.astype(">f8"), np.repeat(array, 2)[::2]):
        result = native_grid.submit("basics/doubled", native_grid.share(given)).result(LONG)
        np.testing.assert_array_equal(result, 2 * array)


def test_an_output_beyond_memory(native_grid: Grid) -> None:
    with pytest.raises((MemoryError, OSError)):
        native_grid.submit("basics/filled", 0, 1 << 60).result(LONG)
    assert native_grid.submit("basics/null").result(LONG) is None


def test_names_are_those_of_python_where_workers_run_it(basics: Path) -> None:
    with opened(workers=1, modules=[basics]) as grid:
        assert grid.submit("math/sqrt", 4).result(LONG) == 2
        with pytest.raises(gridrpc.FunctionNotFound):
            grid.submit("basics/null").result(LONG)
        assert grid.function("basics/null")() is None
