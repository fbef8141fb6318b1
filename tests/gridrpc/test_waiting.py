"""Waiting for many calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gridrpc
import remote
from gridrpc import Call, Grid


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
