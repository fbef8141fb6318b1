"""Workers that die: what their calls say, what happens, and what is run again."""

from __future__ import annotations

import os
import pickle
import signal
import socket
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gridrpc
import remote
from gridrpc import Grid, WorkerLost
from processes import LONG, alive, descendants, until

WAYS: list[tuple[str, int | None, int | None, str]] = [
    ("exit", 7, None, "exited with status 7"),
    ("sys.exit", 9, None, "exited with status 9"),
    ("kill", None, signal.SIGKILL, "SIGKILL"),
    ("segfault", None, signal.SIGSEGV, "SIGSEGV"),
]


@pytest.mark.parametrize(("how", "status", "number", "said"), WAYS)
def test_the_error_tells_what_happened(
    each_grid: Grid, how: str, status: int | None, number: int | None, said: str
) -> None:
    call = each_grid.submit(remote.die, how)
    with pytest.raises(WorkerLost, match=said) as caught:
        call.result(LONG)
    lost = caught.value
    assert (lost.status, lost.signal, lost.out_of_memory) == (status, number, False)
    assert lost.pid == call.profile.pid
    assert lost.worker in {0, 1}
    assert lost.host == socket.gethostname()
    assert f"about to die by {how}" in lost.stderr
    assert f"about to die by {how}" in str(lost)
    assert "idempotent=True" in str(lost)
    if how == "segfault":
        assert "in die" in lost.stderr, "the Python line that led to it"
    again = pickle.loads(pickle.dumps(lost))
    assert (str(again), vars(again)) == (str(lost), vars(lost))
    assert each_grid.submit(remote.add, 1, 1).result(LONG) == 2


def test_only_the_end_of_stderr_is_kept(lone_grid: Grid) -> None:
    def shout() -> None:
        import sys

        for n in range(20_000):
            print(f"line {n}", file=sys.stderr)
        os._exit(1)

    lost = lone_grid.submit(shout).exception(LONG)
    assert isinstance(lost, WorkerLost)
    assert lost.stderr.endswith("line 19999")
    assert len(lost.stderr) <= 4096
    assert str(lost).count("\n") < 30


def test_a_memory_error_is_an_error_like_others(lone_grid: Grid) -> None:
    pid = lone_grid.submit(remote.pid).result(LONG)
    with pytest.raises(MemoryError):
        lone_grid.submit(np.ones, 1 << 55).result(LONG)
    assert lone_grid.submit(remote.pid).result(LONG) == pid


def test_the_worker_is_replaced() -> None:
    with Grid(workers=2) as grid:
        grid.wait_until_ready(LONG)
        for _ in range(5):
            assert isinstance(grid.submit(remote.die, "exit").exception(LONG), WorkerLost)
        grid.wait_until_ready(LONG)
        pids = {call.result(LONG) for call in [grid.submit(remote.pid) for _ in range(20)]}
        assert pids <= descendants()


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_idempotent_calls_are_run_again(tmp_path: Path, transport: Any) -> None:
    file = tmp_path / "notes"
    with Grid(workers=2, transport=transport) as grid:
        call = grid.submit(remote.count_and, str(file), "crash twice", idempotent=True)
        assert call.result(LONG) == 3


def test_others_are_not(lone_grid: Grid, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    call = lone_grid.submit(remote.count_and, str(file), "crash twice")
    error = call.exception(LONG)
    assert isinstance(error, WorkerLost)
    assert "pass idempotent=True to submit or map" in str(error)
    lone_grid.submit(remote.pid).result(LONG)
    assert file.stat().st_size == 1


@pytest.mark.parametrize("retries", [0, 2])
def test_they_are_run_again_so_often(tmp_path: Path, retries: int) -> None:
    file = tmp_path / "notes"
    with Grid(workers=2, retries=retries) as grid:
        call = grid.submit(remote.count_and, str(file), "crash", idempotent=True)
        error = call.exception(LONG)
        assert isinstance(error, WorkerLost)
        assert "has lost as many workers as the grid's `retries` allows" in str(error)
        assert "idempotent=True" not in str(error)
        assert file.stat().st_size == 1 + retries


class EndsOnce:
    """Ends the first process that unpickles it."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return remote.end_once, (self.file,)


def test_a_call_has_not_begun_before_its_arguments_are_read(
    lone_grid: Grid, tmp_path: Path
) -> None:
    """A worker that is lost before its function is entered costs no call."""
    argument = [EndsOnce(str(tmp_path / "ended"))]
    call = lone_grid.submit(remote.length, argument)
    assert call.result(LONG) == 1
    assert (tmp_path / "ended").exists()


def test_calls_behind_a_lost_one_survive(lone_grid: Grid) -> None:
    for call in [lone_grid.submit(remote.fail_at, -1, n) for n in range(200)]:
        call.result(LONG)
    # Microsecond calls are sent ahead: some of these are with the worker that dies.
    lost = lone_grid.submit(remote.die, "kill")
    calls = [lone_grid.submit(remote.fail_at, -1, n) for n in range(200)]
    assert isinstance(lost.exception(LONG), WorkerLost)
    assert [call.result(LONG) for call in calls] == list(range(200))


def running(grid: Grid, folder: Path) -> gridrpc.Call[Any]:
    """A call that a worker has begun, and continues with until it is lost."""
    started = folder / "started"
    call = grid.submit(remote.tell_and_wait, str(started), str(folder / "never"))
    assert until(started.exists)
    return call


def test_a_killed_worker_from_outside(own_grid: Grid, tmp_path: Path) -> None:
    call = running(own_grid, tmp_path)
    os.kill(call.profile.pid, signal.SIGTERM)
    lost = call.exception(LONG)
    assert isinstance(lost, WorkerLost)
    assert lost.signal == signal.SIGTERM
    # An idle one is replaced as well.
    pid = own_grid.submit(remote.pid).result(LONG)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: pid not in alive({pid}))
    own_grid.wait_until_ready(LONG)
    assert [own_grid.submit(remote.same, n).result(LONG) for n in range(9)] == list(range(9))


def test_a_worker_that_closes_its_connection(lone_grid: Grid) -> None:
    def close_all() -> None:
        os.closerange(3, 1_000)

    assert isinstance(lone_grid.submit(close_all).exception(LONG), WorkerLost)
    assert lone_grid.submit(remote.add, 1, 1).result(LONG) == 2


def test_a_worker_that_closes_its_stderr(lone_grid: Grid) -> None:
    def close() -> None:
        os.close(2)

    assert lone_grid.submit(close).result(LONG) is None
    assert lone_grid.submit(remote.add, 1, 1).result(LONG) == 2


def test_a_worker_with_children_of_its_own(lone_grid: Grid) -> None:
    def leave_child() -> None:
        if os.fork() == 0:
            import time

            time.sleep(1)
            os._exit(0)
        os._exit(5)

    lost = lone_grid.submit(leave_child).exception(LONG)
    assert isinstance(lost, WorkerLost)
    assert lost.status == 5


def test_functions_may_start_processes(lone_grid: Grid) -> None:
    def use_pool() -> list[int]:
        import multiprocessing

        with multiprocessing.get_context("fork").Pool(2) as pool:
            return pool.map(abs, [-1, -2, -3])

    def run_program() -> str:
        import subprocess

        return subprocess.run(["echo", "hello"], capture_output=True, text=True, check=True).stdout

    assert lone_grid.submit(use_pool).result(LONG) == [1, 2, 3]
    assert lone_grid.submit(run_program).result(LONG) == "hello\n"


def test_the_spawner_is_killed(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    with Grid(workers=2) as grid:
        grid.wait_until_ready(LONG)
        call = running(grid, tmp_path)
        (spawner,) = {child.pid for child in psutil.Process().children()} - before
        workers = descendants(spawner)
        os.kill(spawner, signal.SIGKILL)
        lost = call.exception(LONG)
        assert isinstance(lost, WorkerLost)
        assert until(lambda: not alive(workers))
        assert [grid.submit(remote.same, n).result(LONG) for n in range(9)] == list(range(9))
        grid.wait_until_ready(LONG)
    assert {child.pid for child in psutil.Process().children()} == before


def test_workers_that_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text("[grid]\npreload = ['broken_module']\n")
    (tmp_path / "broken_module.py").write_text("import os\nos._exit(4)\n")
    import sys

    sys.path.insert(0, str(tmp_path))
    try:
        with Grid(workers=2, config=tmp_path / "grid.toml", start_method="spawn") as grid:
            call: gridrpc.Call[int] = grid.submit(remote.pid)
            with pytest.raises(gridrpc.StartError, match="no worker could be started") as caught:
                call.result(LONG)
            assert "(exit status: 4) before it had started a worker" in str(caught.value)
            assert "the modules in `preload` must not end it" in str(caught.value)
            with pytest.raises(gridrpc.StartError):
                grid.wait_until_ready(LONG)
            with pytest.raises(gridrpc.StartError):
                grid.submit(remote.pid)
    finally:
        sys.path.remove(str(tmp_path))
