"""Waiting for many calls."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import gridrpc
import remote
from gridrpc import Call, Grid
from processes import run_script


@pytest.fixture
def endless(own_grid: Grid) -> Iterator[Call[None]]:
    """A call that has not ended."""
    call: Call[None] = own_grid.submit(remote.nap, 600)
    yield call
    call.cancel()


def test_wait_for_all(grid: Grid) -> None:
    calls = [grid.submit(abs, -n) for n in range(20)]
    done, not_done = gridrpc.wait(calls)
    assert (done, not_done) == (set(calls), set())
    assert gridrpc.wait([]) == (set(), set())


def test_wait_for_the_first(own_grid: Grid, endless: Call[None]) -> None:
    quick = own_grid.submit(abs, -1)
    waited = gridrpc.wait([endless, quick], return_when="FIRST_COMPLETED")
    assert waited.done == {quick}
    assert waited.not_done == {endless}
    assert gridrpc.wait([quick, endless], return_when="FIRST_COMPLETED").done == {quick}


def test_wait_for_the_first_error(own_grid: Grid, endless: Call[None]) -> None:
    fine, wrong = own_grid.submit(abs, -1), own_grid.submit(remote.fail_at, 3, 3)
    done, not_done = gridrpc.wait([endless, fine, wrong], return_when="FIRST_EXCEPTION")
    assert wrong in done
    assert not_done == {endless}


def test_a_cancelled_call_is_no_error(own_grid: Grid, endless: Call[None]) -> None:
    other = own_grid.submit(remote.nap, 600)
    other.cancel()
    done, not_done = gridrpc.wait([endless, other], 0.5, "FIRST_EXCEPTION")
    assert (done, not_done) == ({other}, {endless})


def test_wait_no_longer_than_that(own_grid: Grid, endless: Call[None]) -> None:
    quick = own_grid.submit(abs, -1)
    quick.result(60)
    assert gridrpc.wait([endless, quick], timeout=0.05) == ({quick}, {endless})


def test_wait_for_something_else() -> None:
    with pytest.raises(ValueError, match="`return_when` is 'ANY'"):
        gridrpc.wait([], return_when="ANY")


def test_calls_are_added_while_others_end(grid: Grid) -> None:
    """A tree of tasks: each that ends leads to two more."""
    pending = gridrpc.as_completed([grid.submit(abs, -1)])
    results = []
    for call in pending:
        n = call.result()
        results.append(n)
        if n < 16:
            pending.update(grid.submit(abs, -k) for k in (2 * n, 2 * n + 1))
    assert sorted(results) == list(range(1, 32))
    assert len(pending) == 0


def test_waiting_again_and_again_does_not_pile_up(own_grid: Grid, endless: Call[None]) -> None:
    """Each wait watches all calls that are left, and none of it remains."""
    left = {own_grid.submit(remote.nap, 0.0005, n) for n in range(200)}
    results = []
    while left:
        done, rest = gridrpc.wait([*left, endless], return_when="FIRST_COMPLETED")
        results += [call.result() for call in done]
        left = rest - {endless}
    assert sorted(results) == list(range(200))


def test_futures_are_refused_with_the_name_of_what_takes_them() -> None:
    with gridrpc.Executor(1) as executor:
        future = executor.submit(abs, -1)
        for refused in (gridrpc.wait, gridrpc.as_completed):
            with pytest.raises(TypeError, match=r"not a call of a grid.*concurrent\.futures"):
                refused([future])
        assert future.result(60) == 1


#: Lets no thread of Python's start while `short` is set.
SHORTAGE = textwrap.dedent("""
    import asyncio, threading, time
    from concurrent.futures import wait
    import gridrpc

    short = False
    start = threading.Thread.start
    def start_or_fail(thread):
        if short:
            raise RuntimeError("can't start new thread")
        start(thread)
    threading.Thread.start = start_or_fail
""")


def test_callbacks_come_after_a_shortage_of_threads(tmp_path: Path) -> None:
    source = """
    with gridrpc.Grid(workers=2) as grid:
        short = True
        call = grid.submit(time.sleep, 600)
        for use in (lambda: call.add_done_callback(print), lambda: wait([call])):
            try:
                use()
            except RuntimeError as error:
                print(error)
        short = False
        done = threading.Event()
        grid.submit(abs, -1).add_done_callback(lambda call: (print(call.result()), done.set()))
        print(done.wait(60), wait([call], 0).done)
        call.cancel()
        print(len(wait([call]).done))
    """
    ended = run_script(tmp_path, SHORTAGE + textwrap.dedent(source))
    refused = (
        "no thread can be started to run callbacks of calls: see `ulimit -u`, and `pids.max` of "
        "the control group\n"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        0,
        2 * refused + "1\nTrue set()\n1\n",
        "",
    )


def test_a_grid_closes_in_a_shortage_of_threads(tmp_path: Path) -> None:
    source = """
    grid = gridrpc.Grid(workers=1)
    short = True
    try:
        grid.submit(time.sleep, 600).add_done_callback(print)
    except RuntimeError as error:
        print("refused")
    grid.close()
    print("closed")
    """
    ended = run_script(tmp_path, SHORTAGE + textwrap.dedent(source))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "refused\nclosed\n", "")


def test_event_loops_wait_for_a_shortage_of_threads_to_end(tmp_path: Path) -> None:
    source = """
    async def main(grid):
        global short
        short = True
        def ends():
            global short
            short = False
        asyncio.get_running_loop().call_later(0.2, ends)
        print(await grid.submit(abs, -1))
        short = True
        asyncio.get_running_loop().call_later(0.2, ends)
        async for call in gridrpc.as_completed([grid.submit(abs, -2)]):
            print(call.result())
    for _ in range(2):
        with gridrpc.Grid(workers=1) as grid:
            asyncio.run(main(grid))
    """
    ended = run_script(tmp_path, SHORTAGE + textwrap.dedent(source))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n2\n1\n2\n", "")


def test_executors_survive_a_shortage_of_threads(tmp_path: Path) -> None:
    source = """
    ran = gridrpc.Executor(1)
    short = True
    for use in (ran.submit, ran.map):
        try:
            use(abs, [-1] if use == ran.map else -1)
        except RuntimeError as error:
            print(type(error).__name__)
    ran.shutdown(wait=False)
    short = False
    with gridrpc.Executor(1) as ran:
        short = True
        try:
            ran.submit(abs, -1)
        except RuntimeError:
            short = False
        print(ran.submit(abs, -2).result(60), list(ran.map(abs, [-3])))
    """
    ended = run_script(tmp_path, SHORTAGE + textwrap.dedent(source))
    text = "RuntimeError\nRuntimeError\n2 [3]\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, text, "")
