"""Calls as arguments of calls: results go from one to the next."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import opened
from processes import LONG, until
from remote import add, everything, nap, note, same, wait_for


def double(x: Any) -> Any:
    return 2 * x


def ones(size: int) -> Any:
    return np.ones(size)


def facts(array: Any) -> tuple[float, bool, int]:
    return float(array.sum()), bool(array.flags.writeable), os.getpid()


def total(arrays: dict[str, Any]) -> float:
    return float(sum(array.sum() for array in arrays["all"]))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(x: object) -> object:
    raise KeyError(f"no {x}")


def apply(function: Any, *args: Any) -> Any:
    return function(*args)


class Total:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def add(self, x: Any) -> list[Any]:
        self.seen.append(x)
        return self.seen


def test_a_result_continues(each_grid: Grid) -> None:
    a = each_grid.submit(add, 1, 2)
    b = each_grid.submit(add, a, b=each_grid.submit(double, a))
    assert b.result(LONG) == 9
    assert a.result(LONG) == 3


def test_submit_does_not_wait(own_grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    a = own_grid.submit(wait_for, str(gate), 5)
    calls = [own_grid.submit(add, a, n) for n in range(50)]
    chained = own_grid.submit(add, calls[0], calls[1])
    # What can be run is run meanwhile.
    assert own_grid.submit(abs, -1).result(LONG) == 1
    assert not any(call.done() for call in calls)
    assert calls[0].profile.worker is None
    gate.touch()
    assert [call.result(LONG) for call in calls] == [5 + n for n in range(50)]
    assert chained.result(LONG) == 11


def test_at_any_depth_of_the_arguments(grid: Grid) -> None:
    a, b = grid.submit(double, 1), grid.submit(double, "x")
    nested = grid.submit(everything, [a, {"b": (b, [a])}], key={"deep": [[b]]})
    assert nested.result(LONG) == ([2, {"b": ("xx", [2])}], {"key": {"deep": [["xx"]]}})
    partial = grid.submit(apply, functools.partial(add, a), 40)
    assert partial.result(LONG) == 42
    assert grid.submit(apply, functools.partial(lambda x, y: x - y, y=a), 5).result(LONG) == 3


def test_the_same_call_is_one_object(grid: Grid) -> None:
    a = grid.submit(same, [1])
    assert grid.submit(lambda x, y, z: x is y and y is z["a"], a, a, {"a": a}).result(LONG)


def test_thousands_of_results_are_one_argument(each_grid: Grid) -> None:
    calls = [each_grid.submit(double, n) for n in range(3000)]
    assert each_grid.submit(sum, calls).result(LONG) == 2999 * 3000


def test_results_of_all_sizes_continue(each_grid: Grid) -> None:
    sizes = [0, 1, 7, 1000, 50_000, 300_000]
    calls = [each_grid.submit(ones, size) for size in sizes]
    assert each_grid.submit(total, {"all": calls}).result(LONG) == sum(sizes)
    text = each_grid.submit(double, "x" * 400_000)
    assert each_grid.submit(len, text).result(LONG) == 800_000


def test_more_large_results_than_a_message_has_sections_for(grid: Grid) -> None:
    calls = [grid.submit(ones, 20_000) for _ in range(1100)]
    assert grid.submit(total, {"all": calls}).result(LONG) == 1100 * 20_000


def test_large_results_are_not_copied_through_the_client(grid: Grid) -> None:
    a = grid.submit(ones, 1_000_000)
    b = grid.submit(facts, a)
    assert b.result(LONG)[:2] == (1_000_000.0, False)
    assert b.profile.bytes_in < 10_000
    # Nor when the result has been taken.
    assert a.result(LONG).sum() == 1_000_000
    again = grid.submit(facts, [a][0])
    assert again.result(LONG)[0] == 1_000_000
    assert again.profile.bytes_in < 10_000


def test_a_result_that_was_taken_continues_as_well(each_grid: Grid) -> None:
    a = each_grid.submit(double, 21)
    assert a.result(LONG) == 42
    assert each_grid.submit(same, a).result(LONG) == 42
    # Taken between the submission and the end of the other.
    b = each_grid.submit(nap, 0.05, 1)
    c = each_grid.submit(add, b, 1)
    assert b.result(LONG) == 1
    assert c.result(LONG) == 2


def test_an_array_that_continues_outlives_its_worker(lone_grid: Grid) -> None:
    a = lone_grid.submit(ones, 500_000)
    a.wait(LONG)
    with pytest.raises(gridrpc.WorkerLost):
        lone_grid.submit(die).result(LONG)
    assert lone_grid.submit(facts, a).result(LONG)[0] == 500_000


def test_who_keeps_a_result_that_went_on_keeps_it(own_grid: Grid) -> None:
    counts = []
    for value in range(40):
        a = own_grid.submit(np.full, 100_000, float(value))
        b = own_grid.submit(same, a)
        array = b.result(LONG)
        assert array.min() == array.max() == value
        counts.append(array)
        del a, b
        gc.collect()
    assert [array[0] for array in counts] == list(range(40))


def test_long_chains(grid: Grid) -> None:
    call = grid.submit(abs, 0)
    for _ in range(2000):
        call = grid.submit(add, call, 1)
    assert call.result(LONG) == 2000


def test_a_failure_ends_what_needs_it_and_what_needs_that(each_grid: Grid) -> None:
    a = each_grid.submit(refuse, "bread")
    b = each_grid.submit(add, a, 1)
    c = each_grid.submit(add, [b], 1)
    error = c.exception(LONG)
    assert isinstance(error, gridrpc.DependencyFailed)
    assert "remote/add was not called" in str(error) or "add was not called" in str(error)
    assert error.call is b
    middle = error.__cause__
    assert isinstance(middle, gridrpc.DependencyFailed)
    assert middle.call is a
    assert isinstance(middle.__cause__, KeyError)
    assert "refuse, which ended in KeyError: 'no bread'" in str(middle)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    # One that had failed before, and was looked at.
    assert isinstance(each_grid.submit(same, a).exception(LONG), gridrpc.DependencyFailed)


def test_a_failure_is_reported_while_others_still_run(own_grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = own_grid.submit(wait_for, str(gate))
    b = own_grid.submit(everything, slow, own_grid.submit(refuse, 1))
    assert isinstance(b.exception(LONG), gridrpc.DependencyFailed)
    assert not slow.done()
    gate.touch()
    slow.result(LONG)


def test_a_lost_worker_is_a_failure(own_grid: Grid) -> None:
    b = own_grid.submit(same, own_grid.submit(die))
    error = b.exception(LONG)
    assert isinstance(error, gridrpc.DependencyFailed)
    assert isinstance(error.__cause__, gridrpc.WorkerLost)


def test_cancelling(own_grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    a = own_grid.submit(wait_for, str(gate), 1)
    b = own_grid.submit(add, a, 1)
    c = own_grid.submit(add, b, 1)
    d = own_grid.submit(add, a, 5)
    assert b.cancel()
    assert isinstance(b.exception(LONG), gridrpc.CallCancelled)
    error = c.exception(LONG)
    assert isinstance(error, gridrpc.DependencyFailed)
    assert isinstance(error.__cause__, gridrpc.CallCancelled)
    assert not a.done()
    gate.touch()
    assert d.result(LONG) == 6
    e = own_grid.submit(time.sleep, LONG)
    f = own_grid.submit(same, e)
    assert e.cancel()
    assert isinstance(f.exception(LONG), gridrpc.DependencyFailed)


def test_deadlines_count_from_the_submission(own_grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    a = own_grid.submit(wait_for, str(gate), 1)
    b = own_grid.submit(add, a, 1, deadline=0.1)
    assert isinstance(b.exception(LONG), gridrpc.DeadlineExceeded)
    gate.touch()
    assert a.result(LONG) == 1


def test_the_end_of_the_grid_ends_them_all(tmp_path: Path) -> None:
    with opened(workers=1) as grid:
        a = grid.submit(wait_for, str(tmp_path / "never"))
        b = grid.submit(same, a)
    assert isinstance(b.exception(LONG), gridrpc.GridClosed)


def test_calls_that_wait_for_others_count_as_waiting(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with opened(workers=1, max_queued=10) as grid:
        a = grid.submit(wait_for, str(gate), 1)
        assert until(lambda: grid._native.counts()[1] == 0)
        waiting = [grid.submit(add, a, n) for n in range(10)]
        assert grid._native.counts()[1] == 10
        gate.touch()
        assert [call.result(LONG) for call in waiting] == list(range(1, 11))


def test_they_take_the_place_that_they_had(tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", str(tmp_path / "log")
    with opened(workers=1) as grid:
        first = grid.submit(wait_for, str(gate), "after first")
        after = grid.submit(note, log, first)
        later = [grid.submit(note, log, f"later {n}") for n in range(3)]
        gate.touch()
        for call in (after, *later):
            call.result(LONG)
    # The worker may have been given the first of the later ones before the argument was there.
    assert Path(log).read_text().splitlines().index("after first") <= 1


def test_methods_of_objects_keep_their_order(grid: Grid, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = grid.submit(wait_for, str(gate), "slow")
    with grid.object(Total) as total:
        calls = [total.add.submit(x) for x in ("first", slow, "last")]
        assert calls[0].result(LONG) == ["first"]
        gate.touch()
        assert calls[2].result(LONG) == ["first", "slow", "last"]
        failing = total.add.submit(grid.submit(refuse, 1))
        assert total.add("next")[-1] == "next"
        assert isinstance(failing.exception(LONG), gridrpc.DependencyFailed)


def test_calls_of_another_grid_are_refused(grid: Grid) -> None:
    with opened(workers=1) as other:
        a = other.submit(abs, -1)
        with pytest.raises(ValueError, match="call of builtins/abs belongs to another grid"):
            grid.submit(same, a)
        with pytest.raises(ValueError, match="belongs to another grid"):
            grid.submit(same, [a, grid.submit(abs, -1)])


def test_calls_are_pickled_as_arguments_only(grid: Grid, native_grid: Grid) -> None:
    a = grid.submit(abs, -1)
    with pytest.raises(ValueError, match="only as an argument"):
        pickle.dumps(a)
    with pytest.raises(ValueError, match="only as an argument"):
        grid.share([a])
    with pytest.raises(TypeError):
        native_grid.submit("basics/number", native_grid.submit("basics/number", 1))
    assert grid.submit(same, a).result(LONG) == 1


def test_many_at_once_from_many_threads(each_grid: Grid) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def tree(seed: int) -> int:
        level = [each_grid.submit(add, seed, n) for n in range(16)]
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [each_grid.submit(add, x, y) for x, y in pairs]
        return int(level[0].result(LONG))

    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(tree, range(60)))
    assert sums == [16 * seed + 120 for seed in range(60)]
