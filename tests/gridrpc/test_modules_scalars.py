"""Functions of compiled modules: numbers as arguments."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid

INTEGERS = {
    "char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16",
    "int": "int32", "unsigned int": "uint32", "long": "int64", "unsigned long": "uint64",
    "longlong": "int64", "unsigned longlong": "uint64", "int8": "int8", "int16": "int16",
    "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32",
    "uint64": "uint64",
}  # fmt: skip
REALS = {"float": "float32", "double": "float64"}
COMPLEX = {"scomplex": "complex64", "dcomplex": "complex128"}


def name_of(kind: str) -> str:
    return "same_" + kind.replace(" ", "_")


IDL = "Module numbers;\n" + "\n".join(
    f"Define {name_of(kind)}(IN {kind} x, OUT {kind} r[1]) {{ *r = x; }}"
    for kind in (*INTEGERS, *REALS, *COMPLEX)
)
IDL += """
Define mixed(IN char a, IN double b, IN short c, IN float d, IN long e, IN unsigned char f,
             IN dcomplex g, IN unsigned long h, IN int i, OUT double r[8], OUT dcomplex z[1],
             OUT unsigned long big[1])
{
    double all[8] = {a, b, c, d, e, f, i, 0};
    for (int k = 0; k < 8; k++)
        r[k] = all[k];
    *z = g;
    *big = h;
}
Define named(IN int self, IN int out, IN int deadline, IN int args, OUT int r[4])
    { r[0] = self; r[1] = out; r[2] = deadline; r[3] = args; }
Define nothing() { }
Define no_result(IN int x) { (void)x; }
"""


def same(grid: Grid, kind: str, value: Any) -> Any:
    result = grid.function(f"numbers/{name_of(kind)}")(value)
    assert result.shape == (1,)
    return result


@pytest.mark.parametrize("kind", INTEGERS)
def test_the_limits_of_integers_arrive_and_what_is_beyond_is_refused(
    each_module_grid: Grid, kind: str
) -> None:
    limits = np.iinfo(INTEGERS[kind])
    for value in (int(limits.min), 0, 1, int(limits.max)):
        result = same(each_module_grid, kind, value)
        assert result.dtype == INTEGERS[kind]
        assert result[0] == value
    for value in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(gridrpc.ArgumentError, match=r"argument `x` is .*does not fit in"):
            same(each_module_grid, kind, value)


@pytest.mark.parametrize("kind", REALS)
def test_reals(each_module_grid: Grid, kind: str) -> None:
    limits = np.finfo(REALS[kind])
    values = [0.0, -1.5, float(limits.max), float(limits.tiny), math.inf, -math.inf]
    for value in values:
        result = same(each_module_grid, kind, value)
        assert result.dtype == REALS[kind]
        assert result[0] == value
    assert math.copysign(1, same(each_module_grid, kind, -0.0)[0]) == -1
    assert math.isnan(same(each_module_grid, kind, math.nan)[0])


@pytest.mark.parametrize("kind", COMPLEX)
def test_complex_numbers(each_module_grid: Grid, kind: str) -> None:
    for value in (0j, 1.5 - 2j, complex(math.inf, -1)):
        result = same(each_module_grid, kind, value)
        assert result.dtype == COMPLEX[kind]
        assert result[0] == value
    assert same(each_module_grid, kind, 3)[0] == 3
    assert same(each_module_grid, kind, -0.5)[0] == -0.5
    assert same(each_module_grid, kind, np.complex64(2j))[0] == 2j


def test_numbers_of_several_types_arrive_where_they_belong(each_module_grid: Grid) -> None:
    r, z, big = each_module_grid.function("mixed")(
        -3, 0.25, -300, 1.5, -(2**40), 200, 1 - 1j, 2**64 - 1, 2**31 - 1
    )
    assert r.tolist() == [-3, 0.25, -300, 1.5, -(2**40), 200, 2**31 - 1, 0]
    assert z[0] == 1 - 1j
    assert big[0] == 2**64 - 1


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", True, 1),
        ("int", np.int8(-3), -3),
        ("int", np.uint64(7), 7),
        ("int", np.array(5), 5),
        ("double", 3, 3.0),
        ("double", np.float32(0.5), 0.5),
        ("double", np.int32(-2), -2.0),
        ("double", Fraction(1, 4), 0.25),
        ("unsigned long", np.uint64(2**64 - 1), 2**64 - 1),
        ("char", "N", ord("N")),
        ("char", b"N", ord("N")),
        ("char", b"\xff", -1),
        ("unsigned char", b"\xff", 255),
    ],
)
def test_other_kinds_of_numbers(module_grid: Grid, kind: str, value: Any, expected: Any) -> None:
    assert same(module_grid, kind, value)[0] == expected


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("int", 1.0, r"has to be an integer \(int\), not float"),
        ("int", np.float64(1), r"has to be an integer \(int\), not float64"),
        ("int", "1", r"has to be an integer \(int\), not str"),
        ("int", None, r"has to be an integer \(int\), not NoneType"),
        ("int", 1j, r"has to be an integer \(int\), not complex"),
        ("long", 2**63, "does not fit in long"),
        ("long", -(10**30), "does not fit in long"),
        ("unsigned long", -1, "does not fit in unsigned long"),
        ("double", "1.5", r"has to be a number \(double\), not str"),
        ("double", None, r"has to be a number \(double\), not NoneType"),
        ("double", 1j, r"has to be a number \(double\), not complex"),
        ("double", [1.0], r"has to be a number \(double\), not list"),
        ("double", np.complex64(1), r"has to be a number \(double\), not complex64"),
        ("dcomplex", "1j", "has to be a number, not str"),
        ("dcomplex", [1], "has to be a number, not list"),
        ("char", "", "has to be one character"),
        ("char", "NO", "has to be one character"),
        ("char", "\N{SNOWMAN}", "has to be one character"),
        ("char", 128, "does not fit in char"),
    ],
)
def test_what_is_no_such_number_is_refused(
    module_grid: Grid, kind: str, value: Any, said: str
) -> None:
    with pytest.raises(gridrpc.ArgumentError, match="argument `x` .*" + said) as raised:
        same(module_grid, kind, value)
    assert raised.value.function == f"numbers/{name_of(kind)}"
    assert raised.value.parameter == "x"


def test_parameters_may_have_any_name(module_grid: Grid) -> None:
    named = module_grid.function("numbers/named")
    assert named(1, 2, 3, 4).tolist() == [1, 2, 3, 4]
    assert named(1, 2, 3, args=4).tolist() == [1, 2, 3, 4]
    with pytest.raises(gridrpc.ArgumentError, match="`out` is missing"):
        named(self=1, args=4)


def test_functions_without_arguments_or_results_return_none(each_module_grid: Grid) -> None:
    assert each_module_grid.function("numbers/nothing")() is None
    assert each_module_grid.function("numbers/no_result")(5) is None
    with pytest.raises(gridrpc.ArgumentError, match="takes 0 arguments, but 1 are given"):
        each_module_grid.function("numbers/nothing")(1)
