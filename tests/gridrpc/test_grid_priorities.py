"""Calls with a higher priority go first."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import gridrpc
from gridrpc import Grid
from grids import opened, queued
from processes import LONG, until
from remote import note, tell_and_wait


def blocked(grid: Grid, gate: Path) -> gridrpc.Call[None]:
    """A call that keeps the only worker until the gate opens."""
    started = gate.with_name("started")
    call = grid.submit(tell_and_wait, str(started), str(gate))
    assert until(started.exists)
    return call


def open_once_queued(grid: Grid, calls: int, gate: Path) -> None:
    """Opens the gate once that many calls wait."""
    until(lambda: queued(grid) == calls)
    gate.touch()


def test_higher_priorities_go_first_and_each_in_order(tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    with opened(workers=1) as grid:
        first = blocked(grid, gate)
        calls = [
            grid.submit(note, str(log), f"{priority}:{turn}", priority=priority)
            for turn, priority in enumerate([0, 3, -2, 0, 3, 7, -2])
        ]
        gate.touch()
        for call in [first, *calls]:
            call.result(LONG)
    assert log.read_text().split() == ["7:5", "3:1", "3:4", "0:0", "0:3", "-2:2", "-2:6"]


@pytest.mark.parametrize("spread", [False, True], ids=["map", "starmap"])
def test_items_of_maps_have_priorities(tmp_path: Path, spread: bool) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    with opened(workers=1) as grid:
        first = blocked(grid, gate)
        low = grid.submit(note, str(log), "low", priority=1)
        # As many as a map submits at a time to one worker.
        names = ["0", "1"]
        if spread:
            items = [(str(log), name) for name in names]
            results = grid.starmap(note, items, priority=2, chunk=1, ordered=False)
        else:
            results = grid.map(note, [str(log)] * 2, names, priority=2, chunk=1, ordered=False)
        # The map sends its calls once its results are read.
        opener = threading.Thread(target=open_once_queued, args=(grid, 1 + len(names), gate))
        opener.start()
        assert list(results) == [None] * 2
        opener.join()
        first.result(LONG)
        low.result(LONG)
    assert log.read_text().split() == ["0", "1", "low"]


def test_priorities_of_native_functions(native_grid: Grid) -> None:
    calls = [native_grid.submit("basics/number", n, priority=n % 3 - 1) for n in range(30)]
    assert [call.result(LONG)[0] for call in calls] == list(range(30))


def test_a_call_that_comes_back_keeps_its_place(tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    with opened(workers=1) as grid:
        first = blocked(grid, gate)
        low = grid.submit(note, str(log), "low", priority=-1)
        cancelled = grid.submit(note, str(log), "cancelled", priority=5)
        high = grid.submit(note, str(log), "high", priority=5)
        assert cancelled.cancel()
        gate.touch()
        for call in (first, low, high):
            call.result(LONG)
    assert log.read_text().split() == ["high", "low"]


@pytest.mark.parametrize("wrong", [1 << 40, "high", 0.5])
def test_what_is_no_priority_is_refused(grid: Grid, wrong: object) -> None:
    with pytest.raises((TypeError, OverflowError)):
        grid.submit(abs, -1, priority=wrong)  # type: ignore[arg-type]
    assert isinstance(grid.submit(abs, -1, priority=3), gridrpc.Call)
