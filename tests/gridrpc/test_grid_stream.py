"""Generators in workers: their parts arrive while they run."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import opened
from processes import LONG, descendants, running, until


def count_to(n: int, *, step: int = 1) -> Iterator[int]:
    for number in range(n):
        yield number * step


def note_each(file: str, n: int) -> Iterator[int]:
    """Writes down each part before it is yielded, and the end."""
    with open(file, "a") as noted:
        try:
            for number in range(n):
                print(number, file=noted, flush=True)
                yield number
        finally:
            print("ended", file=noted, flush=True)


def fail_after(n: int) -> Iterator[int]:
    yield from range(n)
    raise KeyError("no more")


def die_after(n: int) -> Iterator[int]:
    yield from range(n)
    os.kill(os.getpid(), signal.SIGKILL)


def wait_after(n: int, file: str) -> Iterator[int]:
    """Waits within its computation, not at a `yield`."""
    yield from range(n)
    while not Path(file).exists():
        signal.sigtimedwait([signal.SIGUSR1], 0.01)
    yield n


def fail_at_the_end() -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        raise LookupError("at the end")


def arrays(n: int) -> Iterator[Any]:
    for number in range(n):
        yield np.full(100_000, float(number))


def plain_list(n: int) -> list[int]:
    return [*range(n)]


def no_iterable() -> int:
    return 3


def squares_of_calls(n: int) -> Iterator[int]:
    for number in range(n):
        yield gridrpc.current_grid().submit(pow, number, 2).result()


async def ticks(n: int) -> AsyncIterator[int]:
    for number in range(n):
        await asyncio.sleep(0)
        yield number


async def note_ticks(file: str) -> AsyncIterator[int]:
    try:
        for number in itertools.count():
            await asyncio.sleep(0)
            yield number
    finally:
        await asyncio.sleep(0)
        Path(file).touch()


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("buffer", [0, 1, 8])
def test_parts_in_their_order(each_grid: Grid, buffer: int) -> None:
    assert list(each_grid.stream(count_to, 40, step=3, buffer=buffer)) == [*range(0, 120, 3)]


@pytest.mark.parametrize("function", [ticks, plain_list, lambda n: (i for i in range(n))])
def test_what_gives_parts(grid: Grid, function: Any) -> None:
    assert list(grid.stream(function, 5)) == [0, 1, 2, 3, 4]
    assert list(grid.stream(function, 0)) == []


def test_a_function_by_its_name(grid: Grid) -> None:
    assert list(grid.stream("itertools/repeat", 7, 3)) == [7, 7, 7]
    with pytest.raises(gridrpc.FunctionNotFound, match="no_such"):
        next(grid.stream("itertools/no_such"))


def test_arrays(grid: Grid) -> None:
    parts = grid.stream(arrays, 20)
    assert [float(part[-1]) for part in parts] == [float(n) for n in range(20)]


def test_parts_come_while_the_generator_runs(grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with grid.stream(wait_after, 2, str(gate)) as parts:
        assert [next(parts), next(parts)] == [0, 1]
        gate.touch()
        assert list(parts) == [2]


def test_the_generator_waits_for_the_loop(grid: Grid, tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    with grid.stream(note_each, str(noted), 1000, buffer=3) as parts:
        assert until(lambda: len(lines(noted)) == 3)
        assert next(parts) == 0
        assert until(lambda: len(lines(noted)) == 4)
        # What is not there by the time of a call of another worker does not come.
        grid.submit(abs, 1).result()
        assert lines(noted) == ["0", "1", "2", "3"]
    assert lines(noted)[-1] == "ended"


def test_leaving_the_loop_ends_the_generator(own_grid: Grid, tmp_path: Path) -> None:
    own_grid.wait_until_ready(LONG)
    before = running(descendants())
    noted = tmp_path / "noted"
    for part in own_grid.stream(note_each, str(noted), 10**9):
        if part == 5:
            break
    assert until(lambda: lines(noted)[-1] == "ended")
    assert until(lambda: running(descendants()) <= before)


def test_a_dropped_stream_of_a_grid_that_is_closed_at_once(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    with Grid(workers=1) as grid:
        assert next(iter(grid.stream(note_each, str(noted), 10**9))) == 0
    assert lines(noted)[-1] == "ended"


def test_closing_one_that_computes(own_grid: Grid, tmp_path: Path) -> None:
    own_grid.wait_until_ready(LONG)
    before = running(descendants())
    parts = own_grid.stream(wait_after, 1, str(tmp_path / "never"))
    assert next(parts) == 0
    parts.close()
    assert until(lambda: running(descendants()) <= before)
    assert list(parts) == []
    parts.close()


def test_an_exhausted_one_gives_its_worker_back(own_grid: Grid) -> None:
    own_grid.wait_until_ready(LONG)
    before = running(descendants())
    parts = own_grid.stream(count_to, 3)
    assert list(parts) == [0, 1, 2]
    assert until(lambda: running(descendants()) <= before)
    with pytest.raises(StopIteration):
        next(parts)
    assert "ended" in repr(parts)


def test_an_exception_comes_behind_the_parts_before_it(each_grid: Grid) -> None:
    parts = each_grid.stream(fail_after, 3)
    assert [next(parts) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="no more") as raised:
        next(parts)
    assert "fail_after" in str(raised.value.__cause__)
    assert list(parts) == []


@pytest.mark.parametrize("waits", [False, True])
def test_a_lost_worker(own_grid: Grid, waits: bool) -> None:
    parts = own_grid.stream(die_after, 2)
    # Parts from before the loss come first, also if it is known by then.
    assert not waits or until(lambda: own_grid.stats().losses == 1)
    assert [next(parts), next(parts)] == [0, 1]
    with pytest.raises(gridrpc.WorkerLost) as lost:
        next(parts)
    assert lost.value.signal == signal.SIGKILL
    assert own_grid.submit(abs, -1).result(LONG) == 1


def test_what_the_generator_raises_at_its_end(grid: Grid) -> None:
    parts = grid.stream(fail_at_the_end, buffer=1)
    assert next(parts) == 1
    with pytest.raises(LookupError, match="at the end"):
        parts.close()


def test_calls_from_inside(grid: Grid) -> None:
    assert list(grid.stream(squares_of_calls, 4)) == [0, 1, 4, 9]


def test_shared_data_and_calls_as_arguments(own_grid: Grid) -> None:
    shared = own_grid.share(np.arange(5))
    assert [int(part) for part in own_grid.stream(iter, shared)] == [0, 1, 2, 3, 4]
    assert list(own_grid.stream(count_to, own_grid.submit(abs, -2))) == [0, 1]


def test_a_time_limit(grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with grid.stream(wait_after, 1, str(gate), timeout=0.1) as parts:
        # A part that is there is given in any case.
        assert until(parts._calls[0].done)
        assert next(parts) == 0
        with pytest.raises(TimeoutError, match=r"wait_after is not there 0\.1 s after the start"):
            next(parts)
        gate.touch()
        assert until(parts._calls[0].done)
        assert next(parts) == 1


def test_async_for(grid: Grid, tmp_path: Path) -> None:
    async def work() -> list[int]:
        both = [grid.stream(count_to, 20), grid.stream(ticks, 20)]
        return [part for parts in both async for part in parts]

    async def left_early() -> None:
        async with contextlib.aclosing(grid.stream(note_ticks, str(tmp_path / "end"))) as parts:
            async for part in parts:
                if part == 3:
                    break

    async def late() -> None:
        async for _ in grid.stream(wait_after, 0, str(tmp_path / "never"), timeout=0.2):
            pass

    assert asyncio.run(work()) == [*range(20), *range(20)]
    asyncio.run(left_early())
    assert (tmp_path / "end").exists()
    with pytest.raises(TimeoutError):
        asyncio.run(late())


def test_what_is_no_generator(grid: Grid) -> None:
    with pytest.raises(TypeError, match="returned an object of type int: `stream` is for"):
        next(grid.stream(no_iterable))
    with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
        next(grid.stream(no_iterable, 5))
    with pytest.raises(TypeError, match="an object of type int cannot be called"):
        grid.stream(3)  # type: ignore[arg-type]
    for buffer in (-1, 1.5, True):
        with pytest.raises(ValueError, match="give a number of parts from 0 on"):
            grid.stream(count_to, 3, buffer=buffer)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot pickle"):
        grid.stream(count_to, iter(count_to(3)))
    with pytest.raises(gridrpc.ServerNotFound):
        grid.stream(count_to, 3, server="nowhere")


def test_grids_that_cannot(native_grid: Grid) -> None:
    with pytest.raises(TypeError, match="native workers run functions of compiled modules"):
        native_grid.stream(count_to, 3)
    with opened(workers=1) as grid:
        parts = grid.stream(count_to, 100, buffer=1)
    with pytest.raises(gridrpc.GridClosed):
        list(parts)
    with pytest.raises(gridrpc.GridClosed):
        grid.stream(count_to, 3)
