"""Native workers: built-in functions with typed values."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Grid
from processes import LONG


def test_null(native_grid: Grid) -> None:
    assert native_grid.submit("builtin/null").result(LONG) is None


VALUES = [None, 0, -5, 2**63 - 1, -(2**63), 0.0, -1.5, math.inf, "", "text \N{SNOWMAN}"]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_echo_of_values(native_grid: Grid, value: Any) -> None:
    result = native_grid.submit("builtin/echo", value).result(LONG)
    assert result == value
    assert type(result) is type(value)


def test_echo_of_several(native_grid: Grid) -> None:
    one, two, three = native_grid.submit("builtin/echo", 1, "two", b"three").result(LONG)
    assert (one, two, bytes(three)) == (1, "two", b"three")
    assert math.isnan(native_grid.submit("builtin/echo", math.nan).result(LONG))
    assert native_grid.submit("builtin/echo", True, np.int16(-4), np.float32(0.5)).result(LONG) == (
        1,
        -4,
        0.5,
    )


@pytest.mark.parametrize("size", [0, 1, 32767, 32768, 1 << 20, 20_000_000])
def test_echo_of_bytes(native_grid: Grid, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    for value in (data, bytearray(data), memoryview(data)):
        assert native_grid.submit("builtin/echo", value).result(LONG) == data


TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "float32", "float64", "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_echo_of_arrays(native_grid: Grid, dtype: str) -> None:
    block = (np.arange(60_000) % 120).reshape(200, 300).astype(dtype)
    arrays = [block[:5, :4].copy(), block, np.asfortranarray(block), block[::2, 5:], block.T,
              np.array(block[1, 1]), block[:0],
              block.astype(block.dtype.newbyteorder())]  # fmt: skip
    for array in arrays:
        result = native_grid.submit("builtin/echo", array).result(LONG)
        np.testing.assert_array_equal(result, array)
        assert result.dtype == np.dtype(dtype)
        assert result.shape == array.shape
    assert native_grid.submit("builtin/echo", arrays[2]).result(LONG).flags.f_contiguous


@pytest.mark.parametrize(
    "array",
    [np.zeros(3, "M8[s]"), np.zeros(3, "U5"), np.zeros(3, object), np.zeros(3, "i4,f8")],
    ids=lambda array: array.dtype.name,
)
def test_arrays_that_native_functions_do_not_know(native_grid: Grid, array: Any) -> None:
    with pytest.raises(TypeError, match="cannot go to native functions"):
        native_grid.submit("builtin/echo", array)


@pytest.mark.parametrize(
    "value", [[1], (1, 2), {}, object(), 1j, len], ids=lambda value: type(value).__name__
)
def test_values_that_native_functions_do_not_know(native_grid: Grid, value: Any) -> None:
    with pytest.raises(TypeError, match="native functions take"):
        native_grid.submit("builtin/echo", value)


def test_arguments_that_make_no_sense(native_grid: Grid) -> None:
    with pytest.raises(OverflowError, match="64 bits"):
        native_grid.submit("builtin/echo", 1 << 63)
    with pytest.raises(TypeError, match="by position"):
        native_grid.submit("builtin/sleep", seconds=1)
    with pytest.raises(UnicodeEncodeError):
        native_grid.submit("builtin/echo", "\udcff")
    with pytest.raises(ValueError, match="1,023"):
        native_grid.submit("builtin/echo", *[b"x"] * 2_000)
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        native_grid.submit("builtin/echo", memoryview(bytes(10))[::2])
    assert len(native_grid.submit("builtin/echo", *[b"x"] * 1_000).result(LONG)) == 1_000


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("sleep", (), "1 arguments"),
        ("sleep", (1, 2), "1 arguments"),
        ("sleep", (-1,), "seconds"),
        ("sleep", (math.nan,), "seconds"),
        ("sleep", (1e300,), "seconds"),
        ("sleep", ("long",), "seconds"),
        ("sleep", (None,), "seconds"),
        ("task", (0, b"", b""), "4 arguments"),
        ("task", (0, 3, b"", 0), "data"),
        ("task", (0, b"", b"", -1), "output_bytes"),
        ("task", (0, b"", b"", 1.5), "output_bytes"),
        ("check", (b"", b""), "3 arguments"),
    ],
)
def test_wrong_arguments(native_grid: Grid, name: str, arguments: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        native_grid.submit(f"builtin/{name}", *arguments).result(LONG)


def test_an_output_beyond_memory(native_grid: Grid) -> None:
    with pytest.raises((MemoryError, TypeError)):
        native_grid.submit("builtin/task", 0, b"", b"", 1 << 60).result(LONG)
    assert native_grid.submit("builtin/null").result(LONG) is None


@pytest.mark.parametrize("name", ["builtin/no_such", "other/null", "builtin/null/null"])
def test_unknown_functions(native_grid: Grid, name: str) -> None:
    with pytest.raises(gridrpc.FunctionNotFound, match=name):
        native_grid.submit(name).result(LONG)


def test_python_functions_are_refused(native_grid: Grid) -> None:
    for function in (remote.pid, len, lambda: 1):
        with pytest.raises(TypeError, match="worker='python'"):
            native_grid.submit(function)
        with pytest.raises(TypeError, match="worker='python'"):
            list(native_grid.map(function, [1], chunk=2))


def test_sleep_tells_how_long_it_took(native_grid: Grid) -> None:
    call = native_grid.submit("builtin/sleep", 0.02)
    assert call.result(LONG) >= 0.02
    assert call.profile.calc_out - call.profile.calc_in >= 0.02


def test_task(native_grid: Grid) -> None:
    data, shared = np.ones(100_000), native_grid.share(np.ones(300_000))
    call = native_grid.submit("builtin/task", 0.01, data, shared, 50_000)
    output, calc_in, calc_out, slept, pid = call.result(LONG)
    assert len(output) == 50_000
    assert slept >= 0.01
    assert calc_out - calc_in >= slept
    profile = call.profile
    assert profile.pid == pid
    assert profile.submit <= profile.sent <= profile.calc_in <= calc_in
    assert calc_out <= profile.calc_out <= profile.retrieve
    assert profile.bytes_in < 1_000_000, "shared data is not moved"


def test_check(native_grid: Grid) -> None:
    data, other = np.arange(70_000, dtype=np.int32), np.random.default_rng(3).bytes(200_000)
    for shared in (other, native_grid.share(other)):
        first, second, output = native_grid.submit("builtin/check", data, shared, 1_000).result(
            LONG
        )
        assert first == zlib.crc32(data)
        assert second == zlib.crc32(other)
        assert bytes(output) == bytes(n % 251 for n in range(1_000))


@pytest.mark.parametrize("order", ["C", "F"])
def test_shared_arrays(native_grid: Grid, order: Any) -> None:
    array = np.asarray(np.arange(60_000.0).reshape(200, 300), order=order)
    shared = native_grid.share(array)
    np.testing.assert_array_equal(native_grid.submit("builtin/echo", shared).result(LONG), array)
    swapped = native_grid.share(array.astype(">f8"))
    np.testing.assert_array_equal(native_grid.submit("builtin/echo", swapped).result(LONG), array)
    gaps = native_grid.share(array[::2])
    np.testing.assert_array_equal(native_grid.submit("builtin/echo", gaps).result(LONG), array[::2])


def test_shared_objects_are_refused(native_grid: Grid) -> None:
    with pytest.raises(TypeError, match="shared arrays and bytes"):
        native_grid.submit("builtin/echo", native_grid.share({"a": 1}))


def test_shared_data_of_another_grid(native_grid: Grid, lone_grid: Grid) -> None:
    with pytest.raises(ValueError, match="another grid"):
        native_grid.submit("builtin/echo", lone_grid.share(b"abc"))


@pytest.mark.parametrize("chunk", [1, 7, 100_000, "auto"])
def test_map(native_grid: Grid, chunk: Any) -> None:
    def mapped(*iterables: Any, ordered: bool = True) -> list[Any]:
        return list(native_grid.map("builtin/echo", *iterables, chunk=chunk, ordered=ordered))

    assert mapped(range(70_000)) == list(range(70_000))
    assert sorted(mapped(iter(range(3_000)), ordered=False)) == list(range(3_000))
    assert mapped(range(2_000), "ab" * 1_000, [None] * 2_000) == [
        (n, "ab"[n % 2], None) for n in range(2_000)
    ]
    assert list(native_grid.map("builtin/null", range(3_000), chunk=chunk)) == [None] * 3_000


@pytest.mark.parametrize("chunk", [1, 7, "auto"])
def test_map_over_all_kinds_of_values(native_grid: Grid, chunk: Any) -> None:
    kinds = [1, True, 2.5, None, "text", b"bytes", np.arange(3), np.float32(1.5), np.int64(7), ""]
    items = kinds * 100
    for got, item in zip(native_grid.map("builtin/echo", items, chunk=chunk), items, strict=True):
        if isinstance(item, np.ndarray):
            np.testing.assert_array_equal(got, item)
        else:
            assert got == item


@pytest.mark.parametrize("chunk", [1, 7, "auto"])
def test_an_error_in_the_middle_of_map(native_grid: Grid, chunk: Any) -> None:
    seen: list[Any] = []
    items: list[Any] = [0.0] * 1_000 + ["long"] + [0.0] * 1_000
    with pytest.raises(TypeError, match="seconds") as raised:
        seen.extend(native_grid.map("builtin/sleep", items, chunk=chunk))
    assert len(seen) == 1_000
    assert raised.value.__notes__ == ["gridrpc: map, item 1000 (the first one is 0)"]
    seen = []
    with pytest.raises(OverflowError, match="64 bits") as refused:
        seen.extend(native_grid.map("builtin/echo", [*range(1_000), 1 << 64], chunk=chunk))
    assert seen == list(range(1_000))
    assert refused.value.__notes__ == ["gridrpc: map, item 1000 (the first one is 0)"]
    with pytest.raises(gridrpc.FunctionNotFound, match="no_such"):
        list(native_grid.map("builtin/no_such", range(10), chunk=chunk))


def test_items_of_map_that_take_longer_do_not_pile_up(native_grid: Grid) -> None:
    times = [0.0] * 5_000 + [0.01] * 50
    slept = list(native_grid.map("builtin/sleep", iter(times)))
    assert len(slept) == len(times)
    assert all(got >= wanted for got, wanted in zip(slept, times, strict=True))


def test_cancel_ends_the_worker(native_grid: Grid) -> None:
    call = native_grid.submit("builtin/sleep", 1_000)
    assert call.cancel()
    assert isinstance(call.exception(LONG), gridrpc.CallCancelled)
    assert [native_grid.submit("builtin/echo", n).result(LONG) for n in range(9)] == [*range(9)]
