"""Calls where the standard library expects futures."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
from pathlib import Path
from typing import Any

import pytest

import remote
from gridrpc import Call, Grid
from processes import LONG


def test_wait_of_concurrent_futures(grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow: Any = grid.submit(remote.wait_for, str(gate), "slow")
    fast: Any = grid.submit(remote.same, "fast")
    assert cf.wait([slow, fast], LONG, cf.FIRST_COMPLETED) == ({fast}, {slow})
    assert cf.wait([slow], 0.01).not_done == {slow}
    order = cf.as_completed([slow, fast], LONG)
    assert next(order) is fast
    gate.touch()
    assert next(order) is slow
    assert cf.wait([slow, fast], LONG) == ({slow, fast}, set())
    failed: Any = grid.submit(remote.fail, "detailed")
    assert failed in cf.wait([failed, fast], LONG, cf.FIRST_EXCEPTION).done


def test_cancelled_calls_have_ended_too(grid: Grid, tmp_path: Path) -> None:
    call: Any = grid.submit(remote.wait_for, str(tmp_path / "gate"))
    future: cf.Future[Any] = cf.Future()
    assert call.cancel()
    assert cf.wait([call, future], LONG, cf.FIRST_COMPLETED).done == {call}


def test_many_at_once(grid: Grid) -> None:
    calls: list[Any] = [grid.submit(abs, -n) for n in range(2000)]
    assert sum(call.result() for call in cf.as_completed(calls, LONG)) == sum(range(2000))


def test_in_asyncio(grid: Grid) -> None:
    async def awaited(call: Call[int]) -> int:
        return await call

    async def work() -> None:
        call: Any = grid.submit(remote.add, 1, 2)
        assert await asyncio.wrap_future(call) == 3
        assert await asyncio.create_task(awaited(grid.submit(remote.add, 2, 2))) == 4
        failed: Any = grid.submit(remote.fail, "detailed")
        with pytest.raises(remote.Detailed):
            await asyncio.wrap_future(failed)
        assert await asyncio.gather(*(grid.submit(abs, -n) for n in range(5))) == [*range(5)]

    asyncio.run(work())


def test_it_is_still_a_call(grid: Grid) -> None:
    call = grid.submit(abs, -1)
    assert isinstance(call, Call)
    assert type(call) is Call
    assert isinstance(call, cf.Future)


def test_async_with() -> None:
    async def work() -> int:
        async with Grid(1) as grid:
            return await grid.submit(remote.add, 1, 2)

    assert asyncio.run(work()) == 3
