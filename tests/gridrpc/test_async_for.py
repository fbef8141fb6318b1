"""`async for` over results and over calls."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

import gridrpc
import remote
from gridrpc import Grid


async def ticks(stop: asyncio.Event) -> int:
    """How often the loop has had a turn."""
    count = 0
    while not stop.is_set():
        await asyncio.sleep(0.001)
        count += 1
    return count


@pytest.mark.parametrize("options", [{}, {"chunk": 1}, {"ordered": False}])
def test_results_of_map(grid: Grid, options: dict[str, Any]) -> None:
    async def work() -> list[int]:
        return [n async for n in grid.map(abs, range(-500, 0), **options)]

    assert sorted(asyncio.run(work())) == list(range(1, 501))


@pytest.mark.parametrize("ordered", [True, False])
def test_the_loop_continues_meanwhile(grid: Grid, ordered: bool) -> None:
    async def work() -> int:
        stop = asyncio.Event()
        others = asyncio.create_task(ticks(stop))
        results = grid.map(remote.nap, [0.3, 0.3], chunk=1, ordered=ordered)
        assert [result async for result in results] == [None, None]
        async for call in gridrpc.as_completed([grid.submit(remote.nap, 0.3)]):
            call.result()
        stop.set()
        return await others

    assert asyncio.run(work()) > 20


def test_errors_and_time_limits(own_grid: Grid) -> None:
    async def first_error() -> list[Any]:
        came: list[Any] = []
        try:
            async for result in own_grid.map(remote.fail_at, [3] * 6, range(6)):
                came.append(result)
        except ValueError as error:
            came.append(str(error))
        return came

    async def late() -> None:
        async for _ in own_grid.map(remote.nap, [60.0], timeout=0.1):
            pass

    async def late_call() -> None:
        async for _ in gridrpc.as_completed([own_grid.submit(remote.nap, 60)], timeout=0.1):
            pass

    came = asyncio.run(first_error())
    assert len(came) == 4
    assert "item 3" in came[-1]
    for limited in (late, late_call):
        with pytest.raises(TimeoutError):
            asyncio.run(limited())


def test_what_is_under_way_ends_with_the_task(own_grid: Grid) -> None:
    async def work() -> int:
        async def endless() -> None:
            async for _ in own_grid.map(remote.nap, itertools.repeat(60.0), chunk=1):
                pass

        task = asyncio.create_task(endless())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await asyncio.wait_for(own_grid.submit(abs, -1), 30)

    assert asyncio.run(work()) == 1


def test_calls_that_end_and_calls_that_are_added(grid: Grid) -> None:
    async def work() -> list[int]:
        pending = gridrpc.as_completed([grid.submit(abs, -1)])
        results = []
        async for call in pending:
            results.append(call.result())
            if results[-1] < 16:
                pending.update(grid.submit(abs, -k) for k in (2 * results[-1], 2 * results[-1] + 1))
        return sorted(results)

    assert asyncio.run(work()) == list(range(1, 32))


def test_a_call_that_is_added_by_another_task_is_not_kept_waiting(own_grid: Grid) -> None:
    async def work() -> list[int]:
        slow = own_grid.submit(remote.nap, 60, 1)
        pending = gridrpc.as_completed([slow])
        came: list[int] = []

        async def take() -> None:
            async for call in pending:
                came.append(call.result())
                return

        task = asyncio.create_task(take())
        await asyncio.sleep(0.1)
        pending.add(own_grid.submit(abs, -7))
        await asyncio.wait_for(task, 30)
        slow.cancel()
        return came

    assert asyncio.run(work()) == [7]
