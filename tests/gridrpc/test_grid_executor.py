"""Code written for `concurrent.futures`, on a grid."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import multiprocessing
import signal
import threading
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

import gridrpc
import remote
from gridrpc import Executor, Grid
from processes import LONG, descendants, run_script, running, start_script, until


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with Executor(2) as executor:
        yield executor


def test_submit_and_result(executor: Executor) -> None:
    assert isinstance(executor, cf.Executor)
    future = executor.submit(remote.everything, 1, deadline=5, idempotent=6)
    assert isinstance(future, cf.Future)
    assert future.result(LONG) == (1, {"deadline": 5, "idempotent": 6})
    assert future.done()
    assert not future.running()
    assert not future.cancel()


def test_map_in_order(executor: Executor) -> None:
    assert list(executor.map(pow, range(50), [2] * 50)) == [n * n for n in range(50)]
    assert list(executor.map(remote.add, range(9), range(9), chunksize=3)) == [*range(0, 18, 2)]


def test_map_with_an_error(executor: Executor) -> None:
    results = executor.map(remote.fail_at, [3] * 6, range(6))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="item 3"):
        next(results)


def test_wait_and_as_completed(executor: Executor, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = executor.submit(remote.wait_for, str(gate), "slow")
    fast = executor.submit(remote.same, "fast")
    done, waiting = cf.wait([slow, fast], LONG, cf.FIRST_COMPLETED)
    assert (done, waiting) == ({fast}, {slow})
    assert cf.wait([slow], 0.01).not_done == {slow}
    with pytest.raises(TimeoutError):
        slow.result(0.01)
    order = cf.as_completed([slow, fast], LONG)
    assert next(order) is fast
    gate.touch()
    assert next(order).result() == "slow"


def test_errors(executor: Executor) -> None:
    future = executor.submit(remote.fail, "detailed")
    done, _ = cf.wait([future], LONG, cf.FIRST_EXCEPTION)
    error = future.exception()
    assert done == {future}
    assert isinstance(error, remote.Detailed)
    assert error.code == 42
    with pytest.raises(TypeError, match="stays where it is"):
        executor.submit(remote.make_lock).result(LONG)


def test_callbacks(executor: Executor) -> None:
    ended = threading.Event()
    seen: list[cf.Future[Any]] = []

    def callback(future: cf.Future[Any]) -> None:
        seen.append(future)
        ended.set()

    future = executor.submit(remote.nap, 0.01)
    future.add_done_callback(callback)
    assert ended.wait(LONG)
    assert seen == [future]


def test_cancel_takes_what_waits_only(tmp_path: Path) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    with Executor(1) as executor:
        first = executor.submit(remote.tell_and_wait, str(started), str(gate), 1)
        assert until(started.exists)
        second = executor.submit(remote.wait_for, str(gate), 2)
        assert first.running()
        assert not first.cancel()
        assert not second.running()
        assert second.cancel()
        assert second.cancelled()
        assert cf.wait([second], LONG).done == {second}
        with pytest.raises(cf.CancelledError):
            second.result(LONG)
        gate.touch()
        assert first.result(LONG) == 1


@pytest.mark.parametrize("wait", [True, False])
def test_shutdown_lets_calls_end(wait: bool) -> None:
    executor = Executor(1)
    futures = [executor.submit(remote.nap, 0.02, n) for n in range(5)]
    executor.shutdown(wait=wait)
    assert not wait or all(future.done() for future in futures)
    assert [future.result(LONG) for future in futures] == list(range(5))
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(remote.pid)
    executor.shutdown()


@pytest.mark.parametrize("lent", [True, False])
def test_shutdown_cancels_what_has_not_started(tmp_path: Path, lent: bool) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    with Grid(workers=1) as grid:
        executor = Executor(grid=grid) if lent else Executor(1)
        running = executor.submit(remote.tell_and_wait, str(started), str(gate), 1)
        assert until(started.exists)
        waiting = [executor.submit(remote.wait_for, str(gate), n) for n in range(5)]
        executor.shutdown(wait=False, cancel_futures=True)
        assert all(future.cancelled() for future in waiting)
        gate.touch()
        assert running.result(LONG) == 1


def test_a_grid_of_others_stays_open(own_grid: Grid) -> None:
    with Executor(grid=own_grid) as executor:
        future = executor.submit(remote.nap, 0.05, 3)
    assert future.done()
    assert future.result() == 3
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(remote.pid)
    assert own_grid.submit(remote.add, 1, 2).result(LONG) == 3


def test_its_own_grid_is_gone_after_shutdown() -> None:
    before = descendants()
    with Executor(2) as executor:
        executor.submit(remote.pid).result(LONG)
        assert descendants() > before
    assert descendants() == before


@pytest.mark.parametrize("end", ["terminate_workers", "kill_workers"])
def test_workers_can_be_ended_with_their_calls(end: str) -> None:
    executor = Executor(1)
    runs, waits = executor.submit(remote.nap, 600), executor.submit(remote.nap, 600)
    mapped = executor.map(remote.nap, [600])
    assert until(runs.running)
    getattr(executor, end)()
    for future in (runs, waits):
        assert isinstance(future.exception(LONG), gridrpc.GridClosed)
    with pytest.raises(gridrpc.GridClosed):
        list(mapped)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, -1)


def test_workers_of_a_grid_that_was_passed_in_stay(own_grid: Grid) -> None:
    executor = Executor(grid=own_grid)
    future = executor.submit(remote.nap, 600)
    executor.terminate_workers()
    assert future.cancelled()
    assert own_grid.submit(abs, -1).result(LONG) == 1


def test_in_asyncio(executor: Executor) -> None:
    async def work() -> list[Any]:
        loop = asyncio.get_running_loop()
        tasks = [loop.run_in_executor(executor, remote.add, n, 1) for n in range(10)]
        return await asyncio.gather(*tasks)

    assert asyncio.run(work()) == list(range(1, 11))


def test_a_lost_worker_fails_its_future_only() -> None:
    with Executor(2) as executor:
        lost = executor.submit(remote.die, "exit")
        assert isinstance(lost.exception(LONG), gridrpc.WorkerLost)
        assert executor.submit(remote.add, 1, 2).result(LONG) == 3


def test_no_workers_make_no_sense() -> None:
    with pytest.raises(ValueError, match="workers"):
        Executor(0)


def test_what_cannot_be_pickled_is_reported_by_the_future(executor: Executor) -> None:
    with pytest.raises(TypeError, match="stays where it is"):
        executor.submit(remote.same, remote.Lock()).result(LONG)
    with pytest.raises(TypeError, match="stays where it is"):
        list(executor.map(remote.same, [remote.Lock()]))
    assert executor.submit(remote.same, 1).result(LONG) == 1


def test_a_lost_worker_is_a_broken_pool_to_code_that_looks_for_one() -> None:
    with Executor(1) as executor:
        with pytest.raises(BrokenProcessPool) as caught:
            executor.submit(remote.die, "exit").result(LONG)
        assert isinstance(caught.value, gridrpc.WorkerLost)
        assert caught.value.status == 7
        with pytest.raises(BrokenProcessPool):
            list(executor.map(remote.die, ["exit"]))
        assert executor.submit(remote.add, 1, 2).result(LONG) == 3
        assert not executor._broken


def test_map_runs_all_items_whoever_waits(executor: Executor, tmp_path: Path) -> None:
    executor.map(remote.touch, [str(tmp_path / str(n)) for n in range(3000)])
    assert until(lambda: len(list(tmp_path.iterdir())) == 3000)
    results = executor.map(remote.fail_at, [3] * 300, range(300))
    assert [next(results) for _ in range(3)] == [0, 1, 2]


def test_map_checks_its_chunks(executor: Executor) -> None:
    for size in (1, 7, 100):
        assert list(executor.map(remote.add, range(50), range(50), chunksize=size)) == [
            2 * n for n in range(50)
        ]
    pids = list(executor.map(remote.same, [None] * 6, chunksize=6))
    assert pids == [None] * 6
    with pytest.raises(ValueError, match="chunksize must be >= 1"):
        executor.map(abs, [1], chunksize=-1)


def test_map_in_time(executor: Executor, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    results = executor.map(remote.wait_for, [str(gate)] * 2, [1, 2], timeout=0.05)
    with pytest.raises(TimeoutError):
        next(results)
    gate.touch()


def test_a_map_that_is_cancelled_says_so(tmp_path: Path) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    executor = Executor(1)
    results = executor.map(
        remote.tell_and_wait, [str(started)] * 9, [str(gate)] * 9, range(9), chunksize=1
    )
    assert until(started.exists)
    executor.shutdown(wait=False, cancel_futures=True)
    gate.touch()
    assert next(results) == 0
    with pytest.raises(cf.CancelledError):
        list(results)


def test_a_dropped_executor_runs_what_it_has_and_goes() -> None:
    before = descendants()
    executor = Executor(2)
    future = executor.submit(remote.nap, 0.1, 5)
    results = executor.map(remote.nap, [0.01] * 9, range(9))
    del executor
    assert future.result(LONG) == 5
    assert list(results) == list(range(9))
    assert until(lambda: descendants() <= before)
    assert until(lambda: not [t for t in threading.enumerate() if t.name == "gridrpc-shutdown"])


@pytest.mark.parametrize("grid", ["", "grid=gridrpc.Grid(2)"])
def test_a_program_that_ends_runs_what_it_has_submitted(tmp_path: Path, grid: str) -> None:
    script = f"""
        import gridrpc, remote, sys
        executor = gridrpc.Executor({grid or 2})
        for n in range(4):
            executor.submit(remote.nap_and_touch, 0.1, f"{{sys.argv[1]}}/{{n}}")
        executor.map(remote.touch, [f"{{sys.argv[1]}}/{{n}}" for n in range(4, 400)])
    """
    made = tmp_path / "made"
    made.mkdir()
    ran = run_script(tmp_path, script, str(made))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(list(made.iterdir())) == 400


def test_ctrl_c_ends_a_program_that_has_submitted_much(tmp_path: Path) -> None:
    script = start_script(
        tmp_path,
        """
        import gridrpc, remote
        executor = gridrpc.Executor(1)
        futures = [executor.submit(remote.nap, 1000) for _ in range(9)]
        print("waiting", flush=True)
        futures[0].result()
        """,
    )
    assert script.stdout is not None
    assert script.stdout.readline() == "waiting\n"
    own = descendants(script.pid)
    script.send_signal(signal.SIGINT)
    _, errors = script.communicate(timeout=LONG)
    assert "KeyboardInterrupt" in errors
    assert until(lambda: not running(own))


def test_arguments_beside_an_open_grid(own_grid: Grid) -> None:
    for arguments in ({"max_workers": 3}, {"preload": ("json",)}, {"initializer": print}):
        with pytest.raises(TypeError, match=f"'{next(iter(arguments))}' has no effect"):
            Executor(grid=own_grid, **arguments)


def test_what_libraries_look_at(executor: Executor) -> None:
    assert executor._max_workers == 2
    with Executor(1, multiprocessing.get_context("spawn")) as other:
        assert other.submit(remote.add, 1, 2).result(LONG) == 3
    with pytest.raises(ValueError, match="max_workers must be greater than 0"):
        Executor(-1)


def test_a_shortage_of_threads_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The map for which there is no thread fails, and nobody waits for it."""

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("gridrpc-"):
            raise RuntimeError("can't start new thread")
        start(thread)

    start = threading.Thread.start
    executor = Executor(1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            executor.map(abs, range(5))
        executor.shutdown(wait=False)
    assert not executor._work.maps
    executor.shutdown()
    assert executor._work.grid._closed
