"""What workers run before their first call, and how many calls they serve."""

from __future__ import annotations

import collections
import multiprocessing
import os
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Executor, Grid
from processes import LONG, run_script


def test_every_worker_runs_it_first_also_in_the_place_of_one_that_is_lost() -> None:
    data = np.arange(100_000.0)
    with Grid(2, initializer=remote.keep, initargs=("data", data)) as grid:
        for _ in range(3):
            assert grid.submit(remote.give, "data").result(LONG).sum() == data.sum()
            with pytest.raises(gridrpc.WorkerLost):
                grid.submit(remote.die, "kill").result(LONG)


def test_arguments_are_the_workers_own() -> None:
    with Grid(2, initializer=remote.keep, initargs=("data", np.zeros(50_000))) as grid:
        for call in [grid.submit(remote.add_to_kept, "data", n) for n in range(20)]:
            call.result(LONG)
        for total, own in grid.map(remote.sum_and_own, ["data"] * 4, chunk=1):
            assert total == own


def test_globals_that_it_assigns_in_the_main_program(tmp_path: Path) -> None:
    script = """
        import gridrpc, sys
        model, other = None, 1
        def init(name):
            global model
            model = name
        def use(x):
            return model, x + other
        def use_as_well(x):
            return model
        if __name__ == "__main__":
            with gridrpc.Grid(2, initializer=init, initargs=("loaded",)) as grid:
                print(grid.submit(use, 1).result(), *grid.map(use_as_well, range(3)))
                other = 5
                print(grid.submit(use, 1).result())
            with gridrpc.Executor(2, initializer=init, initargs=("again",)) as executor:
                print(executor.submit(use, 1).result())
    """
    ran = run_script(tmp_path, script)
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[0] == "('loaded', 2) loaded loaded loaded"
    assert ran.stdout.splitlines()[2] == "('again', 6)"


def test_one_that_fails_breaks_the_grid_and_says_why() -> None:
    with Grid(2, initializer=remote.fail, initargs=("detailed",)) as grid:
        with pytest.raises(gridrpc.StartError, match=r"(?s)initializer.*Detailed"):
            grid.submit(remote.pid).result(LONG)
        with pytest.raises(gridrpc.StartError):
            grid.wait_until_ready(LONG)
    with Executor(1, initializer=remote.fail, initargs=("detailed",)) as executor:
        with pytest.raises(BrokenProcessPool, match=r"(?s)Exception in initializer.*Detailed"):
            executor.submit(remote.pid).result(LONG)
        assert executor._broken
        with pytest.raises(BrokenProcessPool):
            executor.submit(remote.pid)


def test_what_it_cannot_be() -> None:
    with pytest.raises(TypeError, match="give a callable"):
        Grid(1, initializer="remote/pid")  # type: ignore[arg-type]
    with pytest.raises(gridrpc.ConfigError, match="`initializer` is for Python workers"):
        Grid(1, worker="native", initializer=remote.pid)
    with pytest.raises(TypeError, match="stays where it is"):
        Grid(1, initializer=remote.keep, initargs=("lock", remote.Lock()))
    lock = multiprocessing.get_context("fork").Lock()
    with pytest.raises(RuntimeError, match="created in a fork context"):
        Grid(1, initializer=remote.keep, initargs=("lock", lock))


def test_it_can_be_given_queues_and_locks() -> None:
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    lock = context.Lock()
    with lock, Grid(2, initializer=remote.put_pid, initargs=(queue, lock)) as grid:
        grid.wait_until_ready(LONG)
        # What a worker has put last is sent although it ends at once.
    said = [queue.get(timeout=LONG) for _ in range(4)]
    started = {item for item in said if isinstance(item, int)}
    assert len(started) == 2
    assert {("ended", pid) for pid in started} == set(said) - started


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_workers_serve_so_many_calls(transport: Any) -> None:
    with Grid(2, transport=transport, max_tasks_per_child=3) as grid:
        calls = [grid.submit(os.getpid) for _ in range(60)]
        counts = collections.Counter(call.result(LONG) for call in calls)
        assert len(counts) >= 20
        assert max(counts.values()) == 3
        assert list(grid.map(abs, range(5000))) == list(range(5000))
    with Grid(2, max_tasks_per_child=1) as grid:
        assert len(set(grid.map(remote.pid_of, range(30), chunk=1))) == 30


def test_objects_outlive_the_bound_on_calls() -> None:
    with Grid(1, max_tasks_per_child=2) as grid, grid.object(collections.Counter) as counter:
        for _ in range(9):
            counter.update("a")
        assert counter.total() == 9
