"""Calls that running functions make, on the grid that runs them."""

from __future__ import annotations

import os
import pickle
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import opened
from processes import LONG, until
from remote import wait_for


def fib(n: int) -> int:
    if n < 2:
        return n
    grid = gridrpc.current_grid()
    one, other = grid.submit(fib, n - 1), grid.submit(fib, n - 2)
    return one.result() + other.result()


def depth(n: int) -> int:
    return 0 if n == 0 else 1 + gridrpc.current_grid().submit(depth, n - 1).result()


def square(x: int) -> int:
    return x * x


def squares(n: int) -> list[int]:
    return list(gridrpc.current_grid().map(square, range(n)))


def refuse(x: object) -> object:
    raise KeyError(f"no {x}")


def caught(kind: str) -> tuple[str, str]:
    grid = gridrpc.current_grid()
    call: Any = {
        "raised": lambda: grid.submit(refuse, 1),
        "cancelled": lambda: grid.submit(time.sleep, LONG),
        "deadline": lambda: grid.submit(time.sleep, LONG, deadline=0.1),
        "lost": lambda: grid.submit("remote/die", "kill"),
        "missing": lambda: grid.submit("remote/missing"),
    }[kind]()
    if kind == "cancelled":
        assert call.cancel()
    if kind in {"deadline", "lost"}:
        # Let another worker have it: this one would be ended.
        while not call.done():
            time.sleep(0.005)
    error = call.exception()
    return type(error).__name__, str(error)


def scaled(array: Any, factor: float) -> Any:
    return array * factor


def arrays(size: int) -> tuple[float, float]:
    grid = gridrpc.current_grid()
    mine = np.ones(size)
    calls = [grid.submit(scaled, mine, float(n)) for n in range(4)]
    mine[:] = 0  # what was submitted stays as it was
    return float(sum(call.result().sum() for call in calls)), float(mine.sum())


def busy_meanwhile(started: str, gate: str) -> Any:
    grid = gridrpc.current_grid()
    call = grid.submit(wait_for, gate, "done")
    while not Path(started).exists():
        time.sleep(0.005)
    try:
        call.result(timeout=0.05)
    except TimeoutError as error:
        late = str(error)
    Path(gate).touch()
    return late, call.result(LONG)


def start_and_leave(file: str) -> None:
    gridrpc.current_grid().submit(Path(file).touch)


def start_and_sleep(pids: str) -> None:
    grid = gridrpc.current_grid()
    Path(pids).write_text(str(os.getpid()))
    grid.submit(time.sleep, LONG).result()


def keep_call() -> Any:
    return gridrpc.current_grid().submit(square, 2)


stored: list[Any] = []


def make_and_keep() -> int:
    stored.append(gridrpc.current_grid().submit(square, 2))
    return os.getpid()


def use_kept() -> str:
    try:
        return str(stored[0].result())
    except RuntimeError as error:
        return str(error)


def in_thread() -> str:
    import threading

    reported = []

    def ask() -> None:
        try:
            gridrpc.current_grid()
        except RuntimeError as error:
            reported.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return reported[0]


class Tree:
    def __init__(self) -> None:
        self.made = 0

    def grow(self, n: int) -> int:
        self.made += fib(n)
        return self.made


def test_a_tree_of_calls_on_two_workers(grid: Grid) -> None:
    assert grid.submit(fib, 15).result(LONG) == 610


def test_a_tree_of_calls_on_one_worker(lone_grid: Grid) -> None:
    assert lone_grid.submit(fib, 10).result(LONG) == 55


def test_many_trees_at_once(grid: Grid) -> None:
    calls = [grid.submit(fib, 7) for _ in range(20)]
    assert [call.result(LONG) for call in calls] == [13] * 20


def test_deep_ones(grid: Grid) -> None:
    assert grid.submit(depth, 60).result(LONG) == 60


def test_functions_of_the_main_program(grid: Grid) -> None:
    def fact(n: int) -> int:
        if n < 2:
            return 1
        return n * gridrpc.current_grid().submit(fact, n - 1).result()

    assert grid.submit(fact, 8).result(LONG) == 40320


def test_map(grid: Grid) -> None:
    assert grid.submit(squares, 500).result(LONG) == [n * n for n in range(500)]


def test_more_calls_than_may_wait() -> None:
    with opened(workers=2, max_queued=5) as grid:
        calls = [grid.submit(squares, 200) for _ in range(4)]
        for call in calls:
            assert len(call.result(LONG)) == 200


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("raised", "KeyError", "no 1"),
        ("cancelled", "CallCancelled", "sleep was cancelled"),
        ("deadline", "DeadlineExceeded", "sleep missed its deadline"),
        ("lost", "WorkerLost", "a worker was lost that ran remote/die"),
        ("missing", "FunctionNotFound", "missing"),
    ],
)
def test_errors(own_grid: Grid, kind: str, name: str, said: str) -> None:
    reported = own_grid.submit(caught, kind).result(LONG)
    assert reported[0] == name
    assert said in reported[1]
    assert own_grid.submit(square, 3).result(LONG) == 9


@pytest.mark.parametrize("size", [10, 200_000])
def test_arrays(grid: Grid, size: int) -> None:
    assert grid.submit(arrays, size).result(LONG) == (6.0 * size, 0.0)


def test_time_outs(own_grid: Grid, tmp_path: Path) -> None:
    started, gate = tmp_path / "started", tmp_path / "gate"
    started.touch()
    call = own_grid.submit(busy_meanwhile, str(started), str(gate))
    late, done = call.result(LONG)
    assert "wait_for takes longer than 0.05 s" in late
    assert done == "done"


def test_calls_go_on_when_their_function_has_returned(grid: Grid, tmp_path: Path) -> None:
    file = tmp_path / "made"
    grid.submit(start_and_leave, str(file)).result(LONG)
    assert until(file.exists)


def test_what_a_cancelled_function_has_made_is_cancelled(own_grid: Grid, tmp_path: Path) -> None:
    pids = tmp_path / "pid"
    call = own_grid.submit(start_and_sleep, str(pids))
    assert until(lambda: pids.exists() and pids.read_text() != "")
    assert call.cancel()
    assert until(lambda: own_grid._native.counts()[2] == 0)
    assert own_grid.submit(fib, 5).result(LONG) == 5


def test_the_death_of_a_worker_that_waits(own_grid: Grid, tmp_path: Path) -> None:
    pids = tmp_path / "pid"
    call = own_grid.submit(start_and_sleep, str(pids))
    assert until(lambda: pids.exists() and pids.read_text() != "")
    os.kill(int(pids.read_text()), signal.SIGKILL)
    assert isinstance(call.exception(LONG), gridrpc.WorkerLost)
    assert until(lambda: own_grid._native.counts()[2] == 0)
    assert own_grid.submit(fib, 5).result(LONG) == 5


def test_closing_while_functions_wait(tmp_path: Path) -> None:
    pids = tmp_path / "pid"
    grid = gridrpc.Grid(workers=2)
    call = grid.submit(start_and_sleep, str(pids))
    assert until(lambda: pids.exists() and pids.read_text() != "")
    grid.close()
    assert isinstance(call.exception(LONG), gridrpc.GridClosed)
    assert until(lambda: not Path(f"/proc/{pids.read_text()}").exists())


def test_objects_make_calls(grid: Grid) -> None:
    with grid.object(Tree) as tree:
        assert tree.grow(8) == 21
        assert tree.grow(8) == 42


def bound(options: dict[str, Any]) -> Any:
    return gridrpc.current_grid().submit(square, 3, **options).result()


@pytest.mark.parametrize(
    "options",
    [{"cores": 2}, {"memory": "1 GB"}, {"resources": {}}, {"ranks": 2}],
)
def test_what_they_need_cannot_be_said(grid: Grid, options: dict[str, Any]) -> None:
    (option,) = options
    with pytest.raises(TypeError, match=f"have no `{option}`.*Have the client make the call"):
        grid.submit(bound, options).result(LONG)


def test_where_there_is_no_current_grid(grid: Grid) -> None:
    with pytest.raises(RuntimeError, match="for functions that a grid runs"):
        gridrpc.current_grid()
    assert "only the thread that runs the function" in grid.submit(in_thread).result(LONG)


def test_calls_stay_with_their_function(lone_grid: Grid) -> None:
    error = lone_grid.submit(keep_call).exception(LONG)
    assert "cannot be pickled" in str(error)
    lone_grid.submit(make_and_keep).result(LONG)
    assert "has returned" in lone_grid.submit(use_kept).result(LONG)
    pickle.dumps(str(error))


@pytest.mark.parametrize("workers", [1, 3])
def test_calls_of_functions_on_a_host_may_run_anywhere(workers: int) -> None:
    with opened(workers=workers, transport="tcp") as grid:
        assert grid.submit(fib, 10).result(LONG) == 55
