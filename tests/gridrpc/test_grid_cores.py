"""Calls that ask for several cores: they take the places of as many workers of one host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from gridrpc import Grid
from grids import opened, queued
from processes import LONG, until
from remote import add, end_once, note, same, tell_and_wait, threads, wait_for

#: Three workers of this process, and three that an agent has.
PLACES: list[dict[str, Any]] = [{"workers": 3}, {"servers": ["local:?workers=3"]}]


@pytest.fixture(params=PLACES, ids=["here", "agent"])
def three(request: pytest.FixtureRequest) -> Iterator[Grid]:
    with opened(**request.param) as grid:
        grid.wait_until_ready(LONG)
        yield grid


def test_a_wide_call_keeps_places_free(three: Grid, tmp_path: Path) -> None:
    started, gate = tmp_path / "started", tmp_path / "gate"
    wide = three.submit(tell_and_wait, str(started), str(gate), "wide", cores=2)
    until(started.exists)
    # One place is left: of an unknown function no second call is sent there.
    small = [three.submit(wait_for, str(gate), turn) for turn in range(3)]
    assert queued(three) == 2
    gate.touch()
    assert wide.result(LONG) == "wide"
    assert [call.result(LONG) for call in small] == [0, 1, 2]


def test_small_calls_do_not_keep_a_wide_one_waiting(three: Grid, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    first = three.submit(wait_for, str(gate))
    wide = three.submit(note, str(log), "wide", cores=3)
    small = [three.submit(note, str(log), "small") for _ in range(20)]
    # Two workers have nothing to do, and wait for the third.
    assert queued(three) == 21
    gate.touch()
    for call in [first, wide, *small]:
        call.result(LONG)
    assert log.read_text().split() == ["wide", *["small"] * 20]


def test_what_no_host_has_is_refused(three: Grid) -> None:
    text = "asks for 4 cores of one host, and the largest host has workers for 3"
    with pytest.raises(gridrpc.TooFewCores, match=text):
        three.submit(abs, -1, cores=4)
    assert three.submit(abs, -1, cores=3).result(LONG) == 1


def test_a_host_that_turns_out_to_be_too_small_ends_the_call() -> None:
    with opened(servers=["local://small?workers=2"]) as grid:
        call = grid.submit(abs, -1, cores=3, server="small")
        with pytest.raises(gridrpc.TooFewCores, match='of server "small" has workers for 2'):
            call.result(LONG)
        assert grid.submit(abs, -1, cores=2).result(LONG) == 1


@pytest.mark.parametrize("place", PLACES, ids=["here", "agent"])
def test_numerical_libraries_use_as_many_threads(place: dict[str, Any]) -> None:
    with opened(**place, threads=1) as grid:
        grid.wait_until_ready(LONG)
        usual = {tuple(grid.submit(threads).result(LONG).values()) for _ in range(9)}
        assert usual == {(1, 1)}
        # The first loads the libraries, in some workers; others have them already.
        for _ in range(4):
            assert grid.submit(threads, cores=3).result(LONG) == {"omp": 3, "blas": 3}
        assert grid.submit(threads, cores=2).result(LONG) == {"omp": 2, "blas": 2}
        again = {tuple(grid.submit(threads).result(LONG).values()) for _ in range(9)}
        assert again == {(1, 1)}


def test_a_wide_call_whose_worker_is_lost_gives_its_places_back(
    three: Grid, tmp_path: Path
) -> None:
    with pytest.raises(gridrpc.WorkerLost):
        three.submit(end_once, str(tmp_path / "once"), cores=3).result(LONG)
    again = three.submit(end_once, str(tmp_path / "twice"), cores=3, idempotent=True)
    assert again.result(LONG) > 0
    assert list(three.map(abs, range(-9, 0))) == list(range(9, 0, -1))


def test_a_wide_call_that_is_cancelled_holds_up_nobody(three: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = three.submit(wait_for, str(gate))
    wide = three.submit(abs, -1, cores=3)
    small = three.submit(abs, -2)
    assert wide.cancel()
    assert small.result(LONG) == 2
    gate.touch()
    first.result(LONG)


def test_maps_and_dataflow_take_wide_calls(three: Grid) -> None:
    assert list(three.map(add, range(5), range(5), cores=2)) == [0, 2, 4, 6, 8]
    assert list(three.starmap(add, [(1, 2), (3, 4)], cores=3)) == [3, 7]
    first = three.submit(same, list(range(1000)), cores=2)
    assert three.submit(len, first, cores=3).result(LONG) == 1000


def test_functions_of_modules_can_be_wide(native_grid: Grid) -> None:
    wide = native_grid.function("basics/number", cores=native_grid.workers)
    assert wide(5)[0] == 5
    assert native_grid.submit("basics/number", 6, cores=2).result(LONG)[0] == 6
    with pytest.raises(gridrpc.TooFewCores):
        native_grid.submit("basics/number", 7, cores=native_grid.workers + 1)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", True])
def test_what_is_no_number_of_cores_is_refused(three: Grid, wrong: Any) -> None:
    for call in (three.submit, three.map):
        with pytest.raises(ValueError, match="`cores` is"):
            call(abs, [-1], cores=wrong)
