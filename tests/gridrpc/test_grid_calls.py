"""Waiting for calls, cancelling them, deadlines, callbacks, as_completed and asyncio."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from pathlib import Path
from typing import Any

import pytest

import gridrpc
import remote
from gridrpc import CallCancelled, DeadlineExceeded, Grid, GridClosed, as_completed
from processes import LONG, running, until


def occupied(grid: Grid, folder: Path, name: str = "gate") -> tuple[gridrpc.Call[Any], Path]:
    """A call that runs on one worker until a file is made."""
    gate, started = folder / name, folder / f"{name} reached"
    call = grid.submit(remote.tell_and_wait, str(started), str(gate), name)
    assert until(started.exists)
    return call, gate


def test_the_life_of_a_call(lone_grid: Grid, tmp_path: Path) -> None:
    call, gate = occupied(lone_grid, tmp_path)
    behind = lone_grid.submit(remote.nap, 0)
    assert repr(call) == "<gridrpc.Call of remote/tell_and_wait: running>"
    assert repr(behind) == "<gridrpc.Call of remote/nap: queued>"
    assert "1 of 1 python workers ready, 2 calls alive, 1 of them queued" in repr(lone_grid)
    assert not call.done()
    for wait in (call.result, call.exception):
        with pytest.raises(TimeoutError, match=r"tell_and_wait takes longer than 0\.01 s"):
            wait(0.01)
        with pytest.raises(TimeoutError):
            wait(0)
    assert math.isnan(call.profile.retrieve)
    assert math.isnan(behind.profile.sent)
    assert (behind.profile.worker, behind.profile.pid, behind.profile.host) == (None, 0, "")
    gate.touch()
    assert call.result(LONG) == "gate"
    assert call.done()
    assert call.exception() is None
    assert not call.cancel()
    assert not call.cancelled()
    assert repr(call) == "<gridrpc.Call of remote/tell_and_wait: done>"
    failed = lone_grid.submit(remote.fail, "detailed")
    assert failed.exception(LONG) is failed.exception()
    assert repr(failed) == "<gridrpc.Call of remote/fail: failed: Detailed>"


def test_profile(each_grid: Grid) -> None:
    call = each_grid.submit(remote.pid)
    pid = call.result(LONG)
    times = call.profile
    assert times.pid == pid
    assert times.worker in {0, 1}
    assert times.host
    assert times.submit <= times.sent <= times.calc_in <= times.calc_out <= times.retrieve
    call = each_grid.submit(remote.make_array, 1_000_000, 1)
    assert call.result(LONG).nbytes <= call.profile.bytes_out < 1_001_000
    assert 0 < call.profile.bytes_in < 1_000


def test_many_threads_wait_for_one_call(lone_grid: Grid, tmp_path: Path) -> None:
    call, gate = occupied(lone_grid, tmp_path)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(call.result())) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.touch()
    for thread in threads:
        thread.join(LONG)
    assert results == ["gate"] * 8


def test_cancel_while_queued(lone_grid: Grid, tmp_path: Path) -> None:
    first, gate = occupied(lone_grid, tmp_path)
    notes = tmp_path / "notes"
    second = lone_grid.submit(remote.count_and, str(notes), "")
    assert second.cancel()
    assert not second.cancel()
    assert second.done()
    assert second.cancelled()
    with pytest.raises(CallCancelled, match="count_and was cancelled"):
        second.result()
    gate.touch()
    assert first.result(LONG) == "gate"
    lone_grid.submit(remote.pid).result(LONG)
    assert not notes.exists()


def test_cancel_while_running_replaces_the_worker(own_grid: Grid, tmp_path: Path) -> None:
    call, _ = occupied(own_grid, tmp_path)
    other, gate = occupied(own_grid, tmp_path, "other")
    behind = [own_grid.submit(remote.pid) for _ in range(5)]
    pid = call.profile.pid
    assert call.cancel()
    with pytest.raises(CallCancelled):
        call.result(LONG)
    assert until(lambda: not running({pid}))
    pids = {later.result(LONG) for later in behind}
    assert pid not in pids
    gate.touch()
    assert other.result(LONG) == "other"
    own_grid.wait_until_ready(LONG)


def test_a_cancelled_call_may_end_within_the_grace_time(tmp_path: Path) -> None:
    with Grid(workers=1, grace=LONG) as grid:
        call, gate = occupied(grid, tmp_path)
        pid = call.profile.pid
        call.cancel()
        gate.touch()
        assert grid.submit(remote.pid).result(LONG) == pid
        assert call.cancelled()


def test_a_deadline_while_queued(lone_grid: Grid, tmp_path: Path) -> None:
    first, gate = occupied(lone_grid, tmp_path)
    notes = tmp_path / "notes"
    second = lone_grid.submit(remote.count_and, str(notes), "", deadline=0.05)
    with pytest.raises(DeadlineExceeded, match="no worker had taken it") as caught:
        second.result(LONG)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.worker is None
    gate.touch()
    assert first.result(LONG) == "gate"
    lone_grid.submit(remote.pid).result(LONG)
    assert not notes.exists()


def test_a_deadline_while_running(own_grid: Grid) -> None:
    own_grid.wait_until_ready(LONG)
    call = own_grid.submit(remote.nap, 1_000, deadline=0.1)
    with pytest.raises(DeadlineExceeded, match=r"worker \d ran it") as caught:
        call.result(LONG)
    assert caught.value.worker == call.profile.worker
    assert until(lambda: not running({call.profile.pid}))
    assert [own_grid.submit(remote.same, n).result(LONG) for n in range(5)] == list(range(5))


def test_a_deadline_that_is_kept(grid: Grid) -> None:
    assert grid.submit(remote.same, 1, deadline=LONG).result() == 1
    assert list(grid.map(remote.same, range(9), deadline=LONG)) == list(range(9))


def test_a_deadline_of_nothing(grid: Grid) -> None:
    assert isinstance(grid.submit(remote.nap, 0.5, deadline=0).exception(LONG), DeadlineExceeded)


@pytest.mark.parametrize("deadline", [-1, math.nan, -math.inf, math.inf, 1e300])
def test_deadlines_that_make_no_sense(grid: Grid, deadline: float) -> None:
    with pytest.raises(ValueError, match="deadline"):
        grid.submit(remote.pid, deadline=deadline)
    with pytest.raises(TypeError):
        grid.submit(remote.pid, deadline="soon")  # type: ignore[arg-type]


def test_callbacks_run_when_the_call_ends(lone_grid: Grid, tmp_path: Path) -> None:
    call, gate = occupied(lone_grid, tmp_path)
    seen: list[Any] = []
    ended = threading.Event()
    call.add_done_callback(lambda call: seen.append((call.result(), threading.current_thread())))
    call.add_done_callback(lambda _: ended.set())
    assert not ended.wait(0.01)
    gate.touch()
    assert ended.wait(LONG)
    ((result, thread),) = seen
    assert result == "gate"
    assert thread is not threading.current_thread()


@pytest.mark.parametrize("error", [ValueError("oh"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_callbacks_that_raise_do_not_stop_the_others(
    grid: Grid, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def fail(_: object) -> None:
        raise error

    ended = threading.Event()
    call = grid.submit(remote.pid)
    with caplog.at_level(logging.ERROR, "gridrpc"):
        call.add_done_callback(fail)
        call.add_done_callback(lambda _: ended.set())
        assert ended.wait(LONG)
    assert "a callback of a call raised an error" in caplog.text


def test_callbacks_of_a_closed_grid() -> None:
    seen: list[str] = []
    with Grid(workers=1) as grid:
        call = grid.submit(remote.pid)
        call.add_done_callback(lambda _: seen.append("open"))
    assert seen == ["open"]
    call.add_done_callback(lambda _: seen.append("closed"))
    assert until(lambda: seen == ["open", "closed"])


def test_a_callback_may_close_the_grid() -> None:
    grid = Grid(workers=1)
    closed = threading.Event()

    def close(_: object) -> None:
        grid.close()
        closed.set()

    grid.submit(remote.pid).add_done_callback(close)
    assert closed.wait(LONG)
    with pytest.raises(GridClosed):
        grid.submit(remote.pid)


def test_as_completed_gives_them_as_they_end(own_grid: Grid, tmp_path: Path) -> None:
    first, gate_one = occupied(own_grid, tmp_path, "one")
    second, gate_two = occupied(own_grid, tmp_path, "two")
    third = own_grid.submit(remote.same, "three")
    calls = as_completed([first, second, first, third, second], LONG)
    gate_two.touch()
    assert next(calls) is second
    assert next(calls) is third
    gate_one.touch()
    assert next(calls) is first
    assert list(calls) == []
    assert {call.result() for call in as_completed([first, second, third])} == {
        "one", "two", "three"
    }  # fmt: skip


def test_as_completed_of_nothing_and_of_much(grid: Grid) -> None:
    assert list(as_completed([])) == []
    calls = [grid.submit(remote.same, n) for n in range(2_000)]
    assert sorted(call.result() for call in as_completed(iter(calls), LONG)) == list(range(2_000))


def test_as_completed_with_errors(own_grid: Grid) -> None:
    calls = [own_grid.submit(remote.fail, "detailed"), own_grid.submit(remote.die, "exit")]
    kinds = {type(call.exception()) for call in as_completed(calls, LONG)}
    assert kinds == {remote.Detailed, gridrpc.WorkerLost}


def test_as_completed_in_time(lone_grid: Grid, tmp_path: Path) -> None:
    call, gate = occupied(lone_grid, tmp_path)
    with pytest.raises(TimeoutError, match=r"1 calls take longer than 0\.02 s"):
        list(as_completed([call], 0.02))
    gate.touch()
    assert list(as_completed([call], LONG)) == [call]


def test_await_and_gather(grid: Grid) -> None:
    async def work() -> list[Any]:
        assert await grid.submit(remote.add, 1, 2) == 3
        with pytest.raises(remote.Detailed):
            await grid.submit(remote.fail, "detailed")
        done = grid.submit(remote.same, "done")
        assert done.result(LONG) == await done == await done
        return await asyncio.gather(*(grid.submit(remote.same, n) for n in range(200)))

    for _ in range(2):
        assert asyncio.run(work()) == list(range(200))


def test_the_loop_continues_while_a_call_is_awaited(lone_grid: Grid, tmp_path: Path) -> None:
    async def work() -> Any:
        call, gate = occupied(lone_grid, tmp_path)

        async def open_gate() -> None:
            await asyncio.sleep(0)
            gate.touch()

        return await asyncio.gather(call, open_gate())

    assert asyncio.run(work()) == ["gate", None]


def test_giving_up_awaiting_cancels(lone_grid: Grid) -> None:
    async def work() -> None:
        call = lone_grid.submit(remote.nap, 1_000)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call, 0.05)
        assert call.cancelled()
        task = asyncio.ensure_future(lone_grid.submit(remote.nap, 1_000))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await lone_grid.submit(remote.same, 5) == 5

    asyncio.run(work())


def test_a_loop_that_ends_first(lone_grid: Grid, tmp_path: Path) -> None:
    call, gate = occupied(lone_grid, tmp_path)

    async def look() -> None:
        waiting = asyncio.ensure_future(asyncio.wait([asyncio.ensure_future(call)], timeout=0.01))
        await waiting

    asyncio.run(look())
    gate.touch()
    assert lone_grid.submit(remote.same, 5).result(LONG) == 5


def test_closing_ends_calls(tmp_path: Path) -> None:
    grid = Grid(workers=1)
    running_call, _ = occupied(grid, tmp_path)
    queued = grid.submit(remote.pid)
    grid.close()
    grid.close()
    for call in (running_call, queued):
        with pytest.raises(GridClosed, match="closed before"):
            call.result(LONG)
    with pytest.raises(GridClosed):
        grid.submit(remote.pid)
    with pytest.raises(GridClosed):
        grid.wait_until_ready(LONG)
    assert not queued.cancel()
    assert "closed" in repr(grid)
