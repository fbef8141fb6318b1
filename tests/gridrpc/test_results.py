"""What functions return, raise and are given."""

from __future__ import annotations

import functools
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

import gridrpc
import remote
from gridrpc import Grid, RemoteError


@pytest.mark.parametrize(
    "value",
    [None, True, -3, 1 << 200, 2.5, math.inf, "text", "\N{SNOWMAN}\udcff", b"", b"bytes",
     [1, [2]], {"a": (1, 2)}, {1, 2}, frozenset(), range(5), slice(1, 2), Ellipsis, int, len],
    ids=repr,
)  # fmt: skip
def test_values_come_back_as_they_went(each_grid: Grid, value: Any) -> None:
    assert each_grid.submit(remote.same, value).result(60) == value


def test_arguments_by_position_and_name(each_grid: Grid) -> None:
    call = each_grid.submit(remote.everything, 1, "two", three=3, fn=4, self=5)
    assert call.result(60) == (1, "two", {"three": 3, "fn": 4, "self": 5})


@pytest.mark.parametrize("make", [bytes, bytearray])
def test_50_mb_of_bytes(each_grid: Grid, make: Callable[[bytes], Any]) -> None:
    value = make(bytes(range(256)) * (50 * 4096))
    result = each_grid.submit(remote.same, value).result(60)
    assert type(result) is make
    assert result == value


def local(x: int) -> int:
    return x + 1


FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "name": ("operator/add", (2, 3), 5),
    "nested name": ("remote/Box.twice", (4,), 8),
    "importable": (remote.add, (2, 3), 5),
    "of this module": (local, (1,), 2),
    "builtin": (len, ([1, 2],), 2),
    "class": (dict, ([("a", 1)],), {"a": 1}),
    "lambda": (lambda x: x * 3, (2,), 6),
    "partial": (functools.partial(remote.add, 10), (5,), 15),
    "partial of lambda": (functools.partial(lambda x, y: x - y, 10), (4,), 6),
    "callable object": (remote.Box(10), (5,), 15),
    "unhashable callable": (operator.itemgetter(1), ([7, 8],), 8),
    "method": (remote.Box(9).get, (), 9),
    "builtin method": ([1, 2, 3].index, (3,), 2),
    "class method": (remote.Box.name, (), "Box"),
    "static method": (remote.Box.twice, (6,), 12),
    "cached": (remote.cached, (6,), 7),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_all_kinds_of_functions(grid: Grid, kind: str) -> None:
    function, args, expected = FUNCTIONS[kind]
    assert grid.submit(function, *args).result(60) == expected
    assert grid.submit(function, *args).result(60) == expected


def test_a_closure_takes_what_it_closes_over(grid: Grid) -> None:
    def make(n: int) -> Callable[[int], int]:
        return lambda x: x + n

    assert [grid.submit(make(n), 1).result(60) for n in range(5)] == [1, 2, 3, 4, 5]


def test_an_object_that_changed_between_calls_is_sent_again(grid: Grid) -> None:
    box = remote.Box(1)
    get = box.get
    partial = functools.partial(remote.add, [1])
    assert grid.submit(box, 0).result(60) == 1
    assert grid.submit(get).result(60) == 1
    assert grid.submit(partial, []).result(60) == [1]
    box.value = 2
    partial.args[0].append(2)
    assert grid.submit(box, 0).result(60) == 2
    assert grid.submit(get).result(60) == 2
    assert grid.submit(partial, []).result(60) == [1, 2]


def test_a_closure_that_changed_between_calls_is_sent_again(grid: Grid) -> None:
    number = 0
    numbers: list[int] = []

    def closing() -> tuple[int, list[int]]:
        return number, numbers

    results = []
    for step in range(3):
        number = step
        numbers.append(step)
        results.append(grid.submit(closing).result(60))
    assert results == [(0, [0]), (1, [0, 1]), (2, [0, 1, 2])]


class Equal:
    """Callables that are equal but not the same."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __call__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(self) -> int:
        return 1


def test_equal_callables_are_told_apart(grid: Grid) -> None:
    equals = [Equal(1), Equal(2)]
    assert [grid.submit(equal).result(60) for equal in equals] == [1, 2]


def test_more_functions_than_a_worker_keeps(lone_grid: Grid) -> None:
    functions = [(lambda x, n=n: x + n) for n in range(600)]
    calls = [lone_grid.submit(function, 1000) for function in functions]
    assert [call.result(60) for call in calls] == list(range(1000, 1600))
    again = [lone_grid.submit(function, 2000) for function in functions[::100]]
    assert [call.result(60) for call in again] == list(range(2000, 2600, 100))


@pytest.mark.parametrize("name", ["no_such_module/f", "remote/no_such", "remote/kept"])
def test_unknown_functions(grid: Grid, name: str) -> None:
    with pytest.raises(gridrpc.FunctionNotFound, match=name):
        grid.submit(name).result(60)


@pytest.mark.parametrize("name", ["", "len", "/", "a/", "/b"])
def test_names_that_are_none(grid: Grid, name: str) -> None:
    with pytest.raises(ValueError, match="module/function"):
        grid.submit(name)


@pytest.mark.parametrize("thing", [3, None, [1]], ids=repr)
def test_things_that_cannot_be_called(grid: Grid, thing: Any) -> None:
    with pytest.raises(TypeError, match="cannot be called"):
        grid.submit(thing)
    with pytest.raises(TypeError, match="cannot be called"):
        list(grid.map(thing, [1], chunk=2))


def test_an_error_keeps_type_attributes_and_trace(each_grid: Grid) -> None:
    call = each_grid.submit(remote.fail, "detailed")
    with pytest.raises(remote.Detailed, match="failed") as caught:
        call.result(60)
    assert caught.value.code == 42
    trace = str(caught.value.__cause__)
    assert "remote.py" in trace
    assert "in fail" in trace
    assert "_worker.py" not in trace
    assert call.exception() is caught.value


def test_the_cause_of_an_error_is_in_its_trace(grid: Grid) -> None:
    with pytest.raises(ValueError, match="outer") as caught:
        grid.submit(remote.fail_because).result(60)
    trace = str(caught.value.__cause__)
    assert "KeyError: 'missing'" in trace
    assert "direct cause" in trace


def test_an_error_that_does_not_travel(grid: Grid) -> None:
    with pytest.raises(RemoteError, match="secret") as caught:
        grid.submit(remote.fail, "unpicklable").result(60)
    assert caught.value.type_name == "remote.Unpicklable"
    assert "in fail" in caught.value.traceback
    assert pickle.loads(pickle.dumps(caught.value)).type_name == "remote.Unpicklable"


def test_an_error_whose_class_cannot_make_it_again(grid: Grid) -> None:
    with pytest.raises(remote.Refusing, match="1 and 2") as caught:
        grid.submit(remote.fail, "refusing").result(60)
    assert caught.value.args == ("1 and 2",)
    assert "in fail" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("kind", "error"),
    [("mute", remote.Mute), ("surrogate", ValueError), ("huge", ValueError),
     ("keyboard", KeyboardInterrupt), ("stop", StopIteration), ("memory", MemoryError)],
)  # fmt: skip
def test_odd_errors_leave_the_worker_alive(
    lone_grid: Grid, kind: str, error: type[BaseException]
) -> None:
    before = lone_grid.submit(remote.pid).result(60)
    assert type(lone_grid.submit(remote.fail, kind).exception(60)) is error
    assert lone_grid.submit(remote.pid).result(60) == before


def test_an_error_that_cannot_be_changed(lone_grid: Grid) -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Frozen(Exception):
        number: int

        def __reduce__(self) -> tuple[Any, ...]:
            return Frozen, (self.number,)

    def fail() -> NoReturn:
        raise Frozen(3)

    error = lone_grid.submit(fail).exception(60)
    assert isinstance(error, Frozen)
    assert error.number == 3
    assert "in fail" in str(error.__cause__)


def test_an_error_group(grid: Grid) -> None:
    def fail() -> NoReturn:
        raise ExceptionGroup("several", [ValueError(1), remote.Detailed("x", 7)])

    error = grid.submit(fail).exception(60)
    assert isinstance(error, ExceptionGroup)
    assert [type(part) for part in error.exceptions] == [ValueError, remote.Detailed]


def deep(levels: int = 100_000) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def test_arguments_that_do_not_pickle(grid: Grid) -> None:
    with pytest.raises(TypeError, match="a Lock stays where it is"):
        grid.submit(remote.same, remote.Lock())
    with pytest.raises(RecursionError):
        grid.submit(remote.same, deep())
    with pytest.raises(RuntimeError, match="not now") as caught:
        grid.submit(remote.same, remote.result_that_breaks("now"))
    assert not isinstance(caught.value, gridrpc.GridError)
    with pytest.raises(TypeError, match="a Lock stays where it is"):
        grid.submit(functools.partial(lambda lock: lock, remote.Lock()))
    assert grid.submit(remote.add, 1, 1).result(60) == 2


def test_arguments_that_do_not_unpickle(lone_grid: Grid) -> None:
    before = lone_grid.submit(remote.pid).result(60)
    with pytest.raises(ValueError, match="it does not load"):
        lone_grid.submit(remote.same, remote.Unloadable()).result(60)
    assert lone_grid.submit(remote.pid).result(60) == before


def test_results_that_do_not_pickle(lone_grid: Grid) -> None:
    before = lone_grid.submit(remote.pid).result(60)
    with pytest.raises(TypeError, match="a Lock stays where it is"):
        lone_grid.submit(remote.make_lock).result(60)
    with pytest.raises(RecursionError):
        lone_grid.submit(remote.result_that_breaks, "recursion").result(60)
    with pytest.raises(RuntimeError, match="not now"):
        lone_grid.submit(remote.result_that_breaks, "now").result(60)
    with pytest.raises(RecursionError):
        lone_grid.submit(deep).result(60)
    assert lone_grid.submit(remote.pid).result(60) == before


def test_results_that_do_not_unpickle(grid: Grid) -> None:
    call = grid.submit(remote.Unloadable)
    for _ in range(2):
        with pytest.raises(ValueError, match="it does not load"):
            call.result(60)
    assert call.done()


def test_workers_find_modules_and_files_as_the_client_does(grid: Grid) -> None:
    assert remote.cwd_and_path() == grid.submit(remote.cwd_and_path).result(60)
