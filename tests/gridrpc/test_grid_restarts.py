"""When processes cannot be started for a while, and calls that no worker gets to begin."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

import gridrpc
from gridrpc import Grid
from processes import LONG, run_script, until


def test_a_grid_outlives_a_shortage_of_descriptors(tmp_path: Path) -> None:
    """Both workers die while the client can open nothing, for longer than three tries take."""
    done = run_script(
        tmp_path,
        """
        import os, resource, signal
        import gridrpc, psutil, remote

        with gridrpc.Grid(workers=2) as grid:
            grid.wait_until_ready(60)
            grid.submit(remote.pid).result(60)
            (spawner,) = psutil.Process().children()
            workers = [worker.pid for worker in spawner.children()]
            most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            call = grid.submit(remote.same, 5)
            try:
                call.result(1.5)
            except TimeoutError:
                print("waits")
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            print(call.result(60), grid.submit(remote.same, 6).result(60))
        """,
    )
    assert (done.stdout, done.returncode) == ("waits\n5 6\n", 0), done.stderr


def test_a_call_that_every_worker_dies_of_before_it_begins(tmp_path: Path) -> None:
    """Its arguments do not fit into what a worker may map."""
    (tmp_path / "limited.py").write_text(
        "import resource\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20),) * 2)\n"
    )
    done = run_script(
        tmp_path,
        """
        import numpy, gridrpc, remote

        with gridrpc.Grid(workers=1, preload=["limited"]) as grid:
            lost = grid.submit(remote.same, numpy.zeros(16 << 20)).exception(60)
            print(type(lost).__name__, "Cannot allocate memory" in str(lost))
            print(grid.submit(remote.same, 7).result(60))
        """,
    )
    assert (done.stdout, done.returncode) == ("WorkerLost True\n7\n", 0), done.stderr


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_a_function_whose_name_no_message_holds(transport: Any) -> None:
    def named() -> int:
        return 5

    long = "n" * 1_100_000
    named.__qualname__ = named.__name__ = long
    with Grid(workers=1, transport=transport) as grid:
        with pytest.raises(ValueError, match="at most 65536 bytes"):
            grid.submit(f"module/{long}")
        assert grid.submit(named).result(LONG) == 5, "this one's name is for people only"
        assert grid.submit(os.getpid).result(LONG) > 0


def test_a_lost_spawner_s_workers_are_reported_by_their_numbers(tmp_path: Path) -> None:
    import remote

    with Grid(workers=1) as grid:
        started = tmp_path / "started"
        call = grid.submit(remote.tell_and_wait, str(started), str(tmp_path / "never"))
        assert until(started.exists)
        spawner = psutil.Process(call.profile.pid).ppid()
        os.kill(spawner, signal.SIGKILL)
        lost = call.exception(LONG)
        assert isinstance(lost, gridrpc.WorkerLost)
        assert lost.pid == call.profile.pid != 0
