"""Answers of short calls, which workers hold back to send them together: none is lost with its
worker, and none waits for a call that takes long."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest

import gridrpc
from gridrpc import Grid, WorkerLost
from processes import LONG


def short_or(number: int, file: str = "") -> int:
    """Returns at once; with a file name, runs until there is such a file."""
    if file:
        while not Path(file).exists():
            pass
    return number


def short_or_die(number: int, dies: bool = False) -> int:
    if dies:
        os._exit(9)
    return number


def warm(grid: Grid, function: Any) -> None:
    """Has the grid know that calls of a function take microseconds."""
    for call in [grid.submit(function, n) for n in range(2_000)]:
        call.result(LONG)


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_call_that_kills_its_worker_takes_only_itself(workers: int, idempotent: bool) -> None:
    with Grid(workers=workers) as grid:
        warm(grid, short_or_die)
        calls = [
            grid.submit(short_or_die, n, n % 50 == 25, idempotent=idempotent) for n in range(2_000)
        ]
        errors = [call.exception(LONG) for call in calls]
        lost = [n for n, error in enumerate(errors) if error is not None]
        assert lost == list(range(25, 2_000, 50))
        assert all(isinstance(errors[n], WorkerLost) for n in lost)
        right = [call.result() == n for n, call in enumerate(calls) if errors[n] is None]
        assert all(right)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("end", ["deadline", "cancel"])
def test_an_endless_call_takes_only_itself(
    tmp_path: Path, workers: int, end: Literal["deadline", "cancel"]
) -> None:
    never = str(tmp_path / "never")
    with Grid(workers=workers) as grid:
        warm(grid, short_or)
        deadline = 0.3 if end == "deadline" else None
        before = [grid.submit(short_or, n) for n in range(300)]
        endless = grid.submit(short_or, -1, never, deadline=deadline)
        behind = [grid.submit(short_or, n) for n in range(300)]
        # What was ready before comes while the endless one runs.
        assert [call.result(LONG) for call in before] == list(range(300))
        if end == "cancel":
            assert endless.cancel()
        else:
            assert isinstance(endless.exception(LONG), gridrpc.DeadlineExceeded)
        assert [call.result(LONG) for call in behind] == list(range(300))


def test_answers_do_not_wait_for_a_call_that_never_ends(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with Grid(workers=1) as grid:
        warm(grid, short_or)
        calls = [grid.submit(short_or, n) for n in range(300)]
        endless = grid.submit(short_or, -1, str(go))
        assert [call.result(LONG) for call in calls] == list(range(300))
        assert not endless.done()
        go.touch()
        assert endless.result(LONG) == -1


def test_answers_of_an_object_do_not_wait_for_a_method_that_never_ends(tmp_path: Path) -> None:
    class Counting:
        def short_or(self, number: int, file: str = "") -> int:
            return short_or(number, file)

    go = tmp_path / "go"
    with Grid(workers=1) as grid, grid.object(Counting) as counting:
        for n in range(2_000):
            counting.short_or(n)
        calls = [counting.short_or.submit(n) for n in range(100)]
        endless = counting.short_or.submit(-1, str(go))
        assert [call.result(LONG) for call in calls] == list(range(100))
        go.touch()
        assert endless.result(LONG) == -1


def test_on_a_host_an_endless_call_ends_by_its_deadline_and_alone() -> None:
    with Grid(workers=1, transport="tcp") as grid:
        warm(grid, short_or)
        calls = [grid.submit(short_or, n) for n in range(300)]
        endless = grid.submit(short_or, -1, "/nonexistent/never", deadline=0.3)
        calls += [grid.submit(short_or, n) for n in range(300)]
        assert isinstance(endless.exception(LONG), gridrpc.DeadlineExceeded)
        assert [call.result(LONG) for call in calls] == [*range(300), *range(300)]
        assert grid.submit(short_or, 5).result(LONG) == 5
