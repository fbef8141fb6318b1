"""Calls of functions on a certain server, on the machine of the function, or on their own grid."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from gridrpc import Grid
from grids import opened
from processes import LONG, until


def local(name: str, workers: int = 1) -> str:
    return f"local://{name}?workers={workers}&environment.MACHINE={name}"


@pytest.fixture(scope="module")
def two() -> Iterator[Grid]:
    """Two servers with one worker each."""
    with opened(servers=[local("east"), local("west")]) as grid:
        yield grid


def machine(*_: object) -> str:
    return os.environ["MACHINE"]


def machine_by(server: str) -> tuple[str, str]:
    return machine(), gridrpc.current_grid().submit(machine, server=server).result()


def machines_by_map(server: str) -> set[str]:
    return set(gridrpc.current_grid().map(machine, range(5), server=server))


def back_and_forth(n: int) -> list[str]:
    """Each call waits for one that is bound to the other server."""
    if n == 0:
        return [machine()]
    other = {"east": "west", "west": "east"}[machine()]
    return [machine(), *gridrpc.current_grid().submit(back_and_forth, n - 1, server=other).result()]


def tree(n: int) -> int:
    if n == 0:
        return 1
    grid = gridrpc.current_grid()
    calls = [grid.submit(tree, n - 1, server=server) for server in ("east", "west", None)]
    return sum(call.result() for call in reversed(calls))


def refused(options: dict[str, Any]) -> tuple[str, str]:
    try:
        gridrpc.current_grid().submit(machine, **options).result()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


def filled(size: int) -> bytes:
    return bytes(size)


def samples(count: int, size: int) -> tuple[str, int]:
    """A part of a cascade: all samples run on the machine of this function."""
    results = gridrpc.current_grid().map(filled, [size] * count, server="localhost")
    return machine(), sum(len(result) for result in results)


def inner(server: str | None) -> Any:
    return gridrpc.current_grid().submit(machine, server=server).result()


def of_a_local_call(server: str | None) -> Any:
    """What a call gets that stays on this machine, when it makes a call itself."""
    return gridrpc.current_grid().submit(inner, server, server="localhost").result()


def tell_and_sleep(file: str) -> None:
    Path(file).write_text(str(os.getpid()))
    time.sleep(LONG)


def wait_for_local(file: str) -> None:
    grid = gridrpc.current_grid()
    calls = [grid.submit(tell_and_sleep, file, server="localhost") for _ in range(2)]
    calls[1].result()


def die() -> None:
    os._exit(3)


def lose_local() -> str:
    call = gridrpc.current_grid().submit(die, server="localhost")
    # Another worker has it: this one would end.
    while not call.done():
        time.sleep(0.005)
    return type(call.exception()).__name__


def in_own_grid(count: int) -> tuple[str, list[int], set[str]]:
    with gridrpc.Grid(servers=["local:?workers=2"]) as grid:
        return machine(), list(grid.map(abs, range(-count, 0))), set(grid.map(machine, range(4)))


class Head:
    def spread(self, server: str) -> tuple[str, str]:
        return machine_by(server)


@pytest.mark.parametrize("server", ["east", "west"])
def test_calls_of_functions_run_on_the_server_they_are_bound_to(two: Grid, server: str) -> None:
    assert two.submit(machine_by, server, server="east").result(LONG) == ("east", server)
    assert two.submit(machines_by_map, server, server="east").result(LONG) == {server}


def test_functions_that_wait_for_each_others_servers(two: Grid) -> None:
    """With one worker each, all wait at once: only further workers let them end."""
    calls = [(first, two.submit(back_and_forth, 5, server=first)) for first in ("east", "west") * 3]
    for first, call in calls:
        other = {"east": "west", "west": "east"}[first]
        assert call.result(LONG) == [first, other] * 3
    assert two.workers == 2


def test_trees_of_bound_calls(two: Grid) -> None:
    calls = [two.submit(tree, 3, server=server) for server in ("east", "west")]
    assert [call.result(LONG) for call in calls] == [27, 27]


def test_objects_make_bound_calls(two: Grid) -> None:
    with two.object(Head, server="east") as head:
        assert head.spread("west") == ("east", "west")
        assert head.spread("east") == ("east", "east")


def test_functions_of_this_machine_and_of_a_server() -> None:
    with opened(workers=1, servers=[local("east")]) as grid:
        place = grid.submit(inner, "east", server="localhost")
        assert place.result(LONG) == "east"
        # The machine of a function on a server is that of the server.
        assert grid.submit(inner, "localhost", server="east").result(LONG) == "east"


@pytest.mark.parametrize(
    ("options", "name", "text"),
    [
        ({"server": "north"}, "ServerNotFound", 'no server "north": .* "east" and "west"'),
        ({"cores": 2}, "TypeError", "have no `cores`.*Have the client make the call"),
    ],
)
def test_what_cannot_be(two: Grid, options: dict[str, Any], name: str, text: str) -> None:
    kind, message = two.submit(refused, options).result(LONG)
    assert kind == name
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(message)


def test_a_cascade_passes_the_client_once() -> None:
    count, size = 40, 100_000
    with opened(servers=[local("east", 2), local("west", 2)]) as grid:
        parts = {
            server: grid.submit(samples, count, size, server=server) for server in ("east", "west")
        }
        for server, part in parts.items():
            assert part.result(LONG) == (server, count * size)
        stats = grid.stats()
        assert stats.calls.submitted == 2
        assert stats.calls.result_bytes < size


@pytest.mark.parametrize("workers", [1, 2])
def test_calls_of_local_calls_stay_there(workers: int) -> None:
    """With a second worker, it may run the local call; else the function does so itself."""
    with opened(servers=[local("east", workers), local("west")]) as grid:
        for _ in range(3):
            assert grid.submit(of_a_local_call, None, server="east").result(LONG) == "east"
            with pytest.raises(gridrpc.ServerNotFound, match=r'no server "west".* "localhost"'):
                grid.submit(of_a_local_call, "west", server="east").result(LONG)
        assert grid.stats().calls.submitted == 6


def test_local_calls_end_with_the_call_that_made_them(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with opened(servers=[local("east", 2)]) as grid:
        call = grid.submit(wait_for_local, str(file))
        assert until(lambda: file.exists() and file.read_text() != "")
        pid = int(file.read_text())
        assert call.cancel()
        assert until(lambda: not Path(f"/proc/{pid}").exists())
        assert grid.submit(machine_by, "localhost").result(LONG) == ("east", "east")


def test_the_loss_of_the_worker_of_a_local_call() -> None:
    with opened(servers=[local("east", 2)]) as grid:
        assert grid.submit(lose_local).result(LONG) == "WorkerLost"


def test_a_function_opens_a_grid_of_its_own(two: Grid) -> None:
    place, results, machines = two.submit(in_own_grid, 6, server="west").result(LONG)
    assert (place, results, machines) == ("west", [6, 5, 4, 3, 2, 1], {"west"})
