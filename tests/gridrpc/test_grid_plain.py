"""Plain arguments and results, which are pickled without the pickle module, among others."""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

import pytest

from gridrpc import Grid


class Colour(enum.IntEnum):
    RED = 1


class Pair(NamedTuple):
    one: int
    other: str


class Text(str):
    __slots__ = ()


def _deep(levels: int) -> tuple[Any, ...]:
    return (_deep(levels - 1),) if levels else ()


VALUES = [
    None,
    True,
    False,
    0,
    255,
    256,
    65_535,
    65_536,
    -1,
    2**31 - 1,
    -(2**31),
    2**31,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**200),
    0.1,
    -0.0,
    math.inf,
    5e-324,
    "",
    "x" * 255,
    "x" * 256,
    "ä€𝄞\0",
    "\ud800",
    "__main__",
    "x" * 5000,
    b"",
    b"x" * 255,
    b"x" * 256,
    b"x" * 5000,
    (),
    (1,),
    (1, "2"),
    (1, 2.0, b"3"),
    (1, (2, (3, (4, None)))),
    tuple(range(300)),
    _deep(7),
    _deep(30),
    [],
    [1, (2,)],
    {},
    {"a": (1,)},
    {1: [2]},
    {3},
    1j,
    range(3),
    Colour.RED,
    Pair(1, "2"),
    Text("x"),
]


def give(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def give_one(value: Any) -> Any:
    return value


def _kinds(value: Any) -> Any:
    """The types in a value, as deep as it goes."""
    if isinstance(value, (tuple, list)):
        return type(value), [_kinds(item) for item in value]
    if isinstance(value, dict):
        return type(value), [_kinds(item) for item in value.items()]
    return type(value)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_values_come_and_go_as_they_are(grid: Grid, value: Any) -> None:
    back = grid.submit(give_one, value).result()
    assert repr(back) == repr(value)
    assert _kinds(back) == _kinds(value)
    args, kwargs = grid.submit(give, value, 1, name=value, other="x").result()
    assert repr((args, kwargs)) == repr(((value, 1), {"name": value, "other": "x"}))
    assert _kinds(args[0]) == _kinds(value)


def test_what_is_the_same_object_stays_so(grid: Grid) -> None:
    shared = [1]
    one, other = grid.submit(give_one, (shared, shared)).result()
    assert one is other


def test_arguments_may_be_many_and_without_any(grid: Grid) -> None:
    assert grid.submit(give).result() == ((), {})
    assert grid.submit(give, *range(1000)).result() == (tuple(range(1000)), {})
    names = {f"name{i}": i for i in range(200)}
    assert grid.submit(give, **names).result() == ((), names)
