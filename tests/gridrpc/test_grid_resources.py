"""Calls that ask for memory and other resources of a host, or say how long they take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from gridrpc import Grid, TooFewResources
from grids import opened, queued
from processes import LONG, until
from remote import add, end_once, fail_at, tell_and_wait, wait_for

#: Three workers of this process, and three that an agent has, with as much each.
HAS = {"gpu": 2, "licence:matlab": 1}
URL = "local:?workers=3&memory=8GB&resources.gpu=2&resources.licence%3Amatlab=1"
PLACES: list[dict[str, Any]] = [
    {"workers": 3, "memory": "8 GB", "resources": HAS},
    {"servers": [URL]},
    {"workers": 3, "memory": "8 GB", "resources": HAS, "transport": "tcp"},
]


@pytest.fixture(params=PLACES, ids=["here", "agent", "tcp"])
def three(request: pytest.FixtureRequest) -> Iterator[Grid]:
    with opened(**request.param) as grid:
        grid.wait_until_ready(LONG)
        yield grid


def test_a_call_that_waits_for_a_resource_holds_up_nobody(three: Grid, tmp_path: Path) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    asks: dict[str, Any] = {"resources": {"gpu": 2}, "memory": "4 GB"}
    first = three.submit(tell_and_wait, str(started), str(gate), "first", **asks)
    assert until(started.exists)
    second = three.submit(abs, -2, **asks)
    assert [three.submit(abs, -n).result(LONG) for n in range(9)] == list(range(9))
    assert three.submit(abs, -3, resources={"licence:matlab": 1}).result(LONG) == 3
    assert queued(three) == 1
    gate.touch()
    assert (first.result(LONG), second.result(LONG)) == ("first", 2)


def test_memory_is_counted(three: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    calls = [three.submit(wait_for, str(gate), n, memory=3_000_000_000) for n in range(3)]
    assert queued(three) == 1, "8 GB are enough for two"
    gate.touch()
    assert [call.result(LONG) for call in calls] == [0, 1, 2]


def test_what_a_call_has_is_free_again_however_it_ends(three: Grid, tmp_path: Path) -> None:
    asks: dict[str, Any] = {"resources": {"gpu": 2}}
    with pytest.raises(ValueError, match="item 1"):
        three.submit(fail_at, 1, 1, **asks).result(LONG)
    with pytest.raises(gridrpc.WorkerLost):
        three.submit(end_once, str(tmp_path / "once"), **asks).result(LONG)
    started = tmp_path / "started"
    never = three.submit(tell_and_wait, str(started), str(tmp_path / "never"), **asks)
    assert until(started.exists)
    assert never.cancel()
    with pytest.raises(gridrpc.DeadlineExceeded):
        three.submit(wait_for, str(tmp_path / "never"), deadline=0.05, **asks).result(LONG)
    waiting = three.submit(abs, -1, **asks)
    assert three.submit(abs, waiting, **asks).result(LONG) == 1


def test_what_no_host_has_is_refused(three: Grid) -> None:
    has = r'has 2 of "gpu", 1 of "licence:matlab" and 8 GB of memory'
    with pytest.raises(TooFewResources, match=r'asks for 3 of "gpu", which no host has: ".*has'):
        three.submit(abs, -1, resources={"gpu": 3})
    with pytest.raises(TooFewResources, match=has):
        three.submit(abs, -1, memory="9 GB", resources={"gpu": 1})
    with pytest.raises(TooFewResources, match='1 of "tpu"'):
        list(three.map(abs, [1], resources={"tpu": 1}))
    assert issubclass(TooFewResources, ValueError)
    assert three.submit(abs, -1, memory="8 GB", resources=HAS, cores=3).result(LONG) == 1


def test_maps_and_functions_ask_for_resources(three: Grid, native_grid: Grid) -> None:
    asks: dict[str, Any] = {"memory": "1 GB", "resources": {"gpu": 1}, "expected": 10}
    assert list(three.map(add, range(5), range(5), **asks)) == [0, 2, 4, 6, 8]
    assert list(three.starmap(add, [(1, 2), (3, 4)], **asks)) == [3, 7]
    with pytest.raises(ValueError, match="take one item"):
        three.map(abs, [1], chunk=2, **asks)
    function = native_grid.function("basics/number", memory="1 MB", expected=1)
    assert function(5)[0] == 5
    with pytest.raises(TooFewResources):
        native_grid.function("basics/number", resources={"gpu": 1})(7)
    with pytest.raises(TooFewResources):
        native_grid.submit(function, 7, resources={"gpu": 1})


def test_a_host_that_turns_out_to_have_less_memory_ends_the_call() -> None:
    with opened(servers=["local://small?workers=1"]) as grid:
        call = grid.submit(abs, -1, memory="1000 TB")
        with pytest.raises(TooFewResources, match=r'"small" has .* of memory'):
            call.result(LONG)
        assert grid.submit(abs, -1, memory="1 MB").result(LONG) == 1


@pytest.mark.parametrize(
    ("asks", "text"),
    [
        ({"memory": "4 XB"}, "`memory` is '4 XB': give a size such as \"4 GB\""),
        ({"memory": "4"}, "give a size"),
        ({"memory": -1}, "give a size"),
        ({"memory": 1 << 63}, "give a size"),
        ({"memory": "99999999999 TB"}, "give a size"),
        ({"memory": 1.5}, "give a size"),
        ({"memory": True}, "give a size"),
        ({"resources": ["gpu"]}, "give a dict"),
        ({"resources": {"gpu": -1}}, "has -1 of 'gpu': give a number from 0 on"),
        ({"resources": {"gpu": 1 << 63}}, "give a number from 0 on"),
        ({"resources": {"gpu": 0.5}}, "give a number from 0 on"),
        ({"resources": {"gpu": True}}, "give a number from 0 on"),
        ({"resources": {"": 1}}, "has the name ''"),
        ({"resources": {1: 1}}, "has the name 1"),
        ({"resources": {"x" * 256: 1}}, "has the name"),
        ({"resources": {"memory": 1}}, 'give `memory`, such as memory="4 GB"'),
    ],
)
def test_what_makes_no_sense_is_reported(grid: Grid, asks: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        grid.submit(abs, -1, **asks)
    with pytest.raises(gridrpc.ConfigError, match=text):
        Grid(workers=1, **asks)


@pytest.mark.parametrize("expected", [-1, float("nan"), float("inf"), "1 s", True])
def test_times_that_make_no_sense_are_reported(grid: Grid, expected: Any) -> None:
    with pytest.raises(ValueError, match=r"`expected` is .*: give seconds"):
        grid.submit(abs, -1, expected=expected)


def test_a_call_that_says_how_long_it_takes_runs_where_no_host_ends(grid: Grid) -> None:
    assert grid.submit(abs, -1, expected=1e9).result(LONG) == 1
    # Nothing is nothing.
    assert grid.submit(abs, -2, resources={"gpu": 0}, memory=0, expected=0).result(LONG) == 2


def test_a_file_says_what_machines_have(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        '[grid]\nworkers = 1\nmemory = "1 GB"\nresources = { gpu = 1 }\n'
        '[server.other]\nlauncher = "local"\nworkers = 1\nresources = { fpga = 2 }\n'
    )
    with opened(config=file) as grid:
        assert grid.submit(abs, -1, resources={"fpga": 2}).result(LONG) == 1
        assert grid.submit(abs, -1, resources={"gpu": 1}, memory="1 GB").result(LONG) == 1
        with pytest.raises(TooFewResources, match=r'"localhost" has 1 of "gpu".*"other" has 2'):
            grid.submit(abs, -1, resources={"gpu": 1, "fpga": 1})
