"""Functions of compiled modules: arrays, their types, orders and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from processes import LONG

TYPES = {
    "char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16",
    "int": "int32", "unsigned int": "uint32", "long": "int64", "unsigned long": "uint64",
    "longlong": "int64", "unsigned longlong": "uint64", "int8": "int8", "int16": "int16",
    "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32",
    "uint64": "uint64", "float": "float32", "double": "float64", "scomplex": "complex64",
    "dcomplex": "complex128",
}  # fmt: skip

#: Elements of an array that goes in the message, and of one that does not.
SMALL, LARGE = 5, 60_000


def name_of(kind: str) -> str:
    return "reversed_" + kind.replace(" ", "_")


IDL = "Module arrays;\n" + "\n".join(
    f"Define {name_of(kind)}(IN int n, IN {kind} a[n], OUT {kind} r[n])"
    " { for (int i = 0; i < n; i++) r[i] = a[n - 1 - i]; }"
    for kind in TYPES
)
IDL += """
Define table(IN int rows, IN int columns, OUT double r[rows][columns])
    { for (int i = 0; i < rows * columns; i++) r[i] = i; }
Define transposed(IN int rows, IN int columns, IN double a[rows][columns],
                  OUT double r[columns][rows])
    {
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                r[j * rows + i] = a[i * columns + j];
    }
Define column_sums(IN int rows, IN int columns, IN double a[rows][columns], OUT double r[columns])
    Language "FORTRAN"
    {
        for (int j = 0; j < columns; j++) {
            r[j] = 0;
            for (int i = 0; i < rows; i++)
                r[j] += a[i + j * rows];
        }
    }
Define fortran_table(IN int rows, IN int columns, OUT double r[rows][columns])
    Language "FORTRAN"
    { for (int i = 0; i < rows * columns; i++) r[i] = i; }
Define cube(IN int n, INOUT float a[n][n + 1][n + 2])
    { for (int i = 0; i < n * (n + 1) * (n + 2); i++) a[i] *= 2; }
Define parts(IN int n, IN int sizes[n], IN int values[sizes[0] + sizes[1]], OUT long sum[1])
    { *sum = 0; for (int i = 0; i < sizes[0] + sizes[1]; i++) *sum += values[i]; }
Define sized_late(IN int n, IN int sizes[n], IN int values[sizes[99]], OUT long sum[1])
    { *sum = 0; for (int i = 0; i < sizes[99]; i++) *sum += values[i]; }
Define sizes(IN int n, IN double a[2 * n], IN double b[n ^ 2], IN double c[n > 3 ? n - 3 : 1],
             WORK double work[n * 1000], OUT int seen[4])
    {
        work[n * 1000 - 1] = a[2 * n - 1] + b[n * n - 1];
        seen[0] = n;
        seen[1] = a[2 * n - 1];
        seen[2] = b[n * n - 1];
        seen[3] = c[n > 3 ? n - 4 : 0];
    }
Define nulls(IN int n, IN double a[n], INOUT int b[n][2], IN string s[n], WORK char w[n],
             OUT double out[n], OUT int r[5])
    { r[0] = !a; r[1] = !b; r[2] = !s; r[3] = !w; r[4] = !out; }
Define beyond(IN long n, OUT double r[n]) { r[0] = 1; }
Define fill_work(IN int n, IN int value, WORK double work[n], OUT int before[1])
    { *before = work[n - 1]; for (int i = 0; i < n; i++) work[i] = value; }
Define unwritten(IN int n, OUT double r[n]) { }
"""


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_arrays_of_every_type(each_module_grid: Grid, kind: str, size: int) -> None:
    a = (np.arange(size) % 120).astype(TYPES[kind])
    if TYPES[kind].startswith("complex"):
        a *= 1 + 1j
    result = each_module_grid.function(f"arrays/{name_of(kind)}")(a)
    assert result.dtype == TYPES[kind]
    np.testing.assert_array_equal(result, a[::-1])


@pytest.mark.parametrize("kind", ["double", "char", "unsigned char", "dcomplex"])
def test_arrays_without_elements(each_module_grid: Grid, kind: str) -> None:
    result = each_module_grid.function(name_of(kind))(np.empty(0, TYPES[kind]))
    assert (result.shape, result.dtype) == ((0,), TYPES[kind])
    assert each_module_grid.function("table")(0, 5).shape == (0, 5)
    assert each_module_grid.function("table")(5, 0).shape == (5, 0)
    assert each_module_grid.function("transposed")(np.empty((0, 3))).shape == (3, 0)
    assert each_module_grid.function("column_sums")(np.empty((0, 2), order="F")).tolist() == [0, 0]


def test_of_arrays_without_elements_functions_get_null(each_module_grid: Grid) -> None:
    nulls = each_module_grid.function("nulls")
    none = np.empty(0), np.empty((0, 2), np.int32), []
    assert nulls(*none, n=0)[1].tolist() == [1] * 5
    one = np.empty(1), np.empty((1, 2), np.int32), ["text"]
    assert nulls(*one, n=1)[1].tolist() == [0] * 5


@pytest.mark.parametrize("rows", [3, 300])
def test_tables_by_rows(each_module_grid: Grid, rows: int) -> None:
    table = each_module_grid.function("arrays/table")(rows, 4)
    np.testing.assert_array_equal(table, np.arange(rows * 4.0).reshape(rows, 4))
    assert table.flags.c_contiguous
    result = each_module_grid.function("arrays/transposed")(table)
    np.testing.assert_array_equal(result, table.T)


@pytest.mark.parametrize("rows", [3, 3000])
def test_tables_by_columns(each_module_grid: Grid, rows: int) -> None:
    table = each_module_grid.function("arrays/fortran_table")(rows, 4)
    np.testing.assert_array_equal(table, np.arange(rows * 4.0).reshape(rows, 4, order="F"))
    assert table.flags.f_contiguous
    sums = each_module_grid.function("arrays/column_sums")(table)
    np.testing.assert_array_equal(sums, table.sum(axis=0))


@pytest.mark.parametrize("n", [2, 40])
def test_three_dimensions(each_module_grid: Grid, n: int) -> None:
    a = np.random.default_rng(n).random((n, n + 1, n + 2), dtype=np.float32)
    twice = 2 * a
    assert each_module_grid.function("arrays/cube")(a) is None
    np.testing.assert_array_equal(a, twice)


def test_sizes_that_are_computed(each_module_grid: Grid) -> None:
    for n in (1, 2, 5, 70):
        a, b = np.arange(2.0 * n), np.arange(n**2) + 0.0
        c = np.arange(n - 3.0 if n > 3 else 1.0)
        seen = each_module_grid.function("arrays/sizes")(n, a, b, c)
        assert seen.tolist() == [n, 2 * n - 1, n**2 - 1, max(n - 4, 0)]


def test_sizes_that_stand_in_another_array(each_module_grid: Grid) -> None:
    parts = each_module_grid.function("arrays/parts")
    sizes = np.array([2, 3], np.int32)
    assert parts(sizes, np.arange(5, dtype=np.int32))[0] == 10
    with pytest.raises(gridrpc.ArgumentError, match="`values` has 4 elements, but has to have 5"):
        parts(sizes, np.arange(4, dtype=np.int32))
    sizes = np.full(100, 7, np.int32)
    assert each_module_grid.function("sized_late")(sizes, np.arange(7, dtype=np.int32))[0] == 21


def test_a_length_may_be_given_or_left_out(module_grid: Grid) -> None:
    reverse = module_grid.function("arrays/reversed_double")
    a = np.arange(3.0)
    for result in (
        reverse(a),
        reverse(3, a),
        reverse(n=3, a=a),
        reverse(a, n=3),
        reverse(a, n=None),
    ):
        assert result.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda f, a: f(4, a), "argument `a` has 3 elements, but has to have 4"),
        (lambda f, a: f(2, a), "argument `a` has 3 elements, but has to have 2"),
        (lambda f, a: f(-3, a), r"argument `a` cannot be sent: .* is -3, below 0"),
        (lambda f, a: f(a, n=4), "argument `a` has 3 elements, but has to have 4"),
        (lambda f, a: f(3.0, a), r"argument `n` has to be an integer \(int\), not float"),
        (lambda f, a: f(3, a, a), "takes 2 arguments, but 3 are given"),
        (lambda f, a: f(3, a, n=3), "argument `n` is given twice"),
        (lambda f, a: f(a, m=3), "argument `m` is not one of its arguments"),
        (lambda f, a: f(n=len(a)), "argument `a` is missing"),
        (lambda f, a: f(), "argument `a` is missing"),  # noqa: ARG005
        (lambda f, a: f(len(a)), "argument `n` is missing, and is not a dimension of an array"),
        (lambda f, a: f(None), "argument `a` has to be an array of float64, not NoneType"),  # noqa: ARG005
    ],
)
def test_lengths_that_contradict_the_arrays(module_grid: Grid, call: Any, said: str) -> None:
    with pytest.raises(gridrpc.ArgumentError, match=said):
        call(module_grid.function("arrays/reversed_double"), np.arange(3.0))


def test_a_length_that_cannot_follow_from_an_array_of_other_dimensions(module_grid: Grid) -> None:
    with pytest.raises(gridrpc.ArgumentError, match="`a`, which has to have 2 dimensions, not 1"):
        module_grid.function("arrays/column_sums")(np.zeros(6))


def test_lists_numbers_and_views_may_stand_for_arrays_that_only_go_in(module_grid: Grid) -> None:
    sums = module_grid.function("arrays/column_sums")
    assert sums([[1, 2], [3, 4]]).tolist() == [4, 6]
    assert sums(((1, 2, 3),)).tolist() == [1, 2, 3]
    whole = np.arange(24.0).reshape(4, 6)
    assert module_grid.function("transposed")(whole[1:3]).shape == (6, 2)
    assert module_grid.function("reversed_char")(b"abc").tobytes() == b"cba"
    assert module_grid.function("reversed_unsigned_char")(memoryview(b"abc")).tobytes() == b"cba"
    assert module_grid.function("reversed_unsigned_char")(bytearray(b"ab")).tobytes() == b"ba"


def test_dimensions_of_length_one_have_every_order(module_grid: Grid) -> None:
    row, column = np.arange(5.0).reshape(1, 5), np.arange(5.0).reshape(5, 1)
    assert module_grid.function("column_sums")(row).tolist() == [0, 1, 2, 3, 4]
    assert module_grid.function("column_sums")(column).tolist() == [10]
    assert module_grid.function("transposed")(np.asfortranarray(row)).shape == (5, 1)


def test_results_beyond_memory_are_errors_and_the_worker_lives(each_module_grid: Grid) -> None:
    beyond = each_module_grid.function("arrays/beyond")
    for n in (1 << 45, 1 << 58):
        with pytest.raises((MemoryError, gridrpc.ArgumentError)):
            beyond(n)
    with pytest.raises(gridrpc.ArgumentError, match="more than 9223372036854775807 bytes"):
        beyond(1 << 62)
    assert beyond(3)[0] == 1


def test_work_arrays_are_reused_but_for_no_result(module_grid: Grid) -> None:
    fill, unwritten = (
        module_grid.function(f"arrays/{name}") for name in ("fill_work", "unwritten")
    )
    seen = []
    for _ in range(4):
        seen.append(int(fill(LARGE, 7)[0]))
        assert 7 not in unwritten(LARGE)
    # Two workers have new memory once each.
    assert seen[-1] == 7
    assert seen.count(7) >= 2


def test_lists_of_calls_with_arrays(each_module_grid: Grid) -> None:
    reverse = each_module_grid.function("arrays/reversed_int")
    arrays = [np.arange(n, dtype=np.int32) for n in (1, 10, 100_000) * 10]
    for array, result in zip(arrays, each_module_grid.map(reverse, arrays), strict=True):
        np.testing.assert_array_equal(result, array[::-1])
    calls = {reverse.submit(array): array for array in arrays}
    for call in gridrpc.as_completed(calls, LONG):
        np.testing.assert_array_equal(call.result(), calls[call][::-1])
