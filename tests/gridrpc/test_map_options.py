"""`map` and `starmap` with what people give them beside items."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gridrpc
import remote
from gridrpc import Grid

CHUNKS = pytest.mark.parametrize("chunk", ["auto", 1, 7])


def describe(*args: Any, **kwargs: Any) -> str:
    return f"{args} {sorted(kwargs.items())}"


@CHUNKS
def test_items_of_starmap_are_arguments(grid: Grid, chunk: Any) -> None:
    items = [(2, 5), [3, 2], (10, 3, 7)] * 20
    assert list(grid.starmap(pow, items, chunk=chunk)) == list(itertools.starmap(pow, items))


@CHUNKS
def test_mappings_are_keyword_arguments(grid: Grid, chunk: Any) -> None:
    items: list[Any] = [{"a": 1, "b": n} for n in range(30)]
    assert list(grid.starmap(remote.add, items, chunk=chunk)) == [n + 1 for n in range(30)]
    mixed: list[Any] = [(), {}, (1,), {"x": 2}]
    expected = ["() []", "() []", "(1,) []", "() [('x', 2)]"]
    assert list(grid.starmap(describe, mixed, chunk=chunk)) == expected


def test_starmap_takes_items_as_they_are_needed(grid: Grid) -> None:
    results = grid.starmap(remote.add, ((n, 1) for n in itertools.count()))
    assert list(itertools.islice(results, 50)) == list(range(1, 51))


@pytest.mark.parametrize("item", [3, "ab", {1, 2}, None])
def test_items_that_hold_no_arguments(grid: Grid, item: Any) -> None:
    with pytest.raises(TypeError, match=r"item 2 of starmap\(\) is of type .*: give a tuple"):
        list(grid.starmap(remote.add, [(1, 2), (3, 4), item]))


def test_starmap_of_a_function_by_name(grid: Grid) -> None:
    assert list(grid.starmap("operator/mul", [(2, 3), (4, 5)])) == [6, 20]


def test_starmap_on_native_workers(native_grid: Grid) -> None:
    items = [(1,), {"item": 2}]
    assert [result[0] for result in native_grid.starmap("basics/number", items)] == [1, 2]
    with pytest.raises(gridrpc.ArgumentError, match="`a` is not one of its arguments"):
        list(native_grid.starmap("basics/number", [{"a": 1}]))


@CHUNKS
@pytest.mark.parametrize("ordered", [True, False])
def test_errors_in_the_place_of_results(grid: Grid, chunk: Any, ordered: bool) -> None:
    results = list(
        grid.map(odd_only, range(40), chunk=chunk, ordered=ordered, return_exceptions=True)
    )
    errors = [result for result in results if isinstance(result, ValueError)]
    assert sorted(str(error) for error in errors) == sorted(f"{n} is even" for n in range(0, 40, 2))
    assert sorted(n for n in results if isinstance(n, int)) == list(range(1, 40, 2))
    if ordered:
        assert [isinstance(result, int) for result in results] == [False, True] * 20
        assert "item 4 (the first one is 0)" in "".join(results[4].__notes__)


def odd_only(n: int) -> int:
    if n % 2 == 0:
        raise ValueError(f"{n} is even")
    return n


def test_each_item_runs_once_when_a_result_cannot_be_unpickled(grid: Grid, tmp_path: Path) -> None:
    log = tmp_path / "log"
    results = list(
        grid.starmap(logged, [(log, n) for n in range(9)], chunk=9, return_exceptions=True)
    )
    assert sorted(log.read_text().split()) == [str(n) for n in range(9)]
    assert [type(result).__name__ for result in results] == [
        *("Fine", "Fine", "Fine", "RuntimeError", "Fine", "Fine", "Fine", "Fine", "Fine")
    ]


class Fine:
    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return make, (self.number,)


def make(number: int) -> Fine:
    if number == 3:
        raise RuntimeError("not here")
    return Fine(number)


def logged(log: Path, number: int) -> Fine:
    with log.open("a") as opened:
        opened.write(f"{number}\n")
    return Fine(number)


def test_a_lost_worker_is_the_result_of_its_item(own_grid: Grid) -> None:
    results = list(own_grid.map(dies_at_two, range(4), chunk=1, return_exceptions=True))
    assert [type(result) for result in results] == [int, int, gridrpc.WorkerLost, int]


def dies_at_two(n: int) -> int:
    if n == 2:
        remote.die("exit")
    return remote.nap(0.01, n)  # type: ignore[no-any-return]


@CHUNKS
def test_a_call_that_fails_now_and_then_is_tried_again(
    grid: Grid, tmp_path: Path, chunk: Any
) -> None:
    items = [(tmp_path / f"{chunk}-{n}", n % 3) for n in range(12)]
    options: dict[str, Any] = {"chunk": chunk, "retries": 2, "retry_on": ConnectionError}
    assert list(grid.starmap(fails_first, items, **options)) == [n % 3 for n in range(12)]


def fails_first(log: Path, times: int) -> int:
    """Fails so many times, and then tells how often it has been called before."""
    had = log.stat().st_size if log.exists() else 0
    with log.open("a") as opened:
        opened.write(".")
    if had < times:
        raise ConnectionResetError(f"attempt {had + 1}")
    return had


def test_the_last_error_says_how_many_attempts_there_were(grid: Grid, tmp_path: Path) -> None:
    call = grid.submit(gridrpc.retrying(fails_first, 2, backoff=0.01), tmp_path / "log", 9)
    with pytest.raises(ConnectionResetError, match="attempt 3") as caught:
        call.result(60)
    assert "the last of 3 attempts" in "".join(caught.value.__notes__)
    assert call.function_name == "fails_first"


def test_other_errors_are_not_tried_again(grid: Grid, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(ConnectionResetError, match="attempt 1"):
        list(grid.starmap(fails_first, [(log, 2)], retries=5, retry_on=(ValueError, KeyError)))
    assert log.read_text() == "."


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"retries": -1}, ValueError),
        ({"retries": 1.5}, ValueError),
        ({"retries": 1, "retry_on": "OSError"}, TypeError),
        ({"retries": 1, "backoff": -1}, ValueError),
        ({"retries": 1, "backoff": float("nan")}, ValueError),
    ],
)
def test_retries_that_make_no_sense(
    grid: Grid, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        grid.map(abs, [1], **options)
    with pytest.raises(error):
        gridrpc.retrying(abs, **options)


def test_native_functions_are_not_tried_again(native_grid: Grid) -> None:
    with pytest.raises(TypeError, match="cannot have `retries`"):
        native_grid.map("basics/number", [1], retries=1)


@pytest.mark.parametrize("ordered", [True, False])
def test_results_that_come_too_late(own_grid: Grid, ordered: bool) -> None:
    # Else the first may come too late as well.
    own_grid.wait_until_ready()
    results = own_grid.map(remote.nap, [0.0, 60.0], [1, 2], timeout=2, chunk=1, ordered=ordered)
    assert next(results) == 1
    with pytest.raises(TimeoutError, match="not there 2 s after the start"):
        next(results)
    assert own_grid.submit(abs, -1).result(60) == 1


def test_a_bar(grid: Grid, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(grid.map(abs, range(-50, 0), progress="squares")) == list(range(50, 0, -1))
    assert re.search(r"squares: 100%.* 50/50 ", capsys.readouterr().err)


def test_a_bar_of_items_whose_number_is_not_known(
    grid: Grid, capsys: pytest.CaptureFixture[str]
) -> None:
    def items() -> Iterator[int]:
        yield from range(20)

    assert len(list(grid.map(abs, items(), progress=True))) == 20
    assert "20it" in capsys.readouterr().err


def test_a_bar_without_its_package(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    with pytest.raises(ModuleNotFoundError, match=r"gridrpc\[progress\]"):
        grid.map(abs, [1], progress=True)
