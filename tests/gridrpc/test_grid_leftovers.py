"""Processes that functions start, and processes that somebody stops: all have an end."""

from __future__ import annotations

import os
import signal
import textwrap
from pathlib import Path

import psutil
import pytest

import gridrpc
from grids import opened
from processes import LONG, descendants, run_script, running, start_script, until

#: What is left behind has to be gone so soon, seconds.
SOON = 5.0

#: Ways of starting a process that outlives the function, or that the function waits for.
LEAVING = """
    import os, signal, subprocess, sys, time

    def describe(pid, file):
        with open(file, "a") as notes:
            notes.write(f"{pid}\\n")

    def leave(how, file, wait):
        command = ["sleep", "1000"]
        if how == "child":
            describe(subprocess.Popen(command).pid, file)
        elif how == "session":
            describe(subprocess.Popen(command, start_new_session=True).pid, file)
        elif how == "stubborn":
            code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True);"
            code += "time.sleep(1000)"
            process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            process.stdout.readline()
            describe(process.pid, file)
        elif how == "fork":
            if (pid := os.fork()) == 0:
                time.sleep(1000)
                os._exit(0)
            describe(pid, file)
        elif how == "daemon":
            shell = "setsid sleep 1000 >&2 & echo $!"
            describe(int(subprocess.check_output(["sh", "-c", shell])), file)
        time.sleep(wait)
"""
WAYS = ["child", "session", "stubborn", "fork", "daemon"]


@pytest.fixture
def leaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import textwrap

    (tmp_path / "leaving.py").write_text(textwrap.dedent(LEAVING))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "pids"


def left(file: Path, count: int) -> set[int]:
    """The processes that functions have noted in the file."""
    assert until(lambda: file.exists() and file.read_text().count("\n") >= count)
    return {int(pid) for pid in file.read_text().split()}


def end_now(pids: set[int]) -> None:
    for pid in pids:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", WAYS)
def test_what_a_function_started_ends_after_its_deadline(leaving: Path, how: str) -> None:
    with opened(workers=1) as grid:
        grid.submit("leaving/leave", "", "", 0).result(LONG)
        call = grid.submit("leaving/leave", how, str(leaving), 1000, deadline=1.0)
        started = left(leaving, 1)
        assert isinstance(call.exception(LONG), gridrpc.DeadlineExceeded)
        assert until(lambda: not running(started), SOON)
        # The grid continues.
        assert grid.submit(abs, -1).result(LONG) == 1


@pytest.mark.parametrize("how", WAYS)
def test_what_functions_started_ends_with_the_grid(leaving: Path, how: str) -> None:
    with opened(workers=2) as grid:
        calls = [grid.submit("leaving/leave", how, str(leaving), 0) for _ in range(2)]
        for call in calls:
            call.result(LONG)
        started = left(leaving, 2)
        # Ended functions, live worker: nothing is ended yet.
        assert len(running(started)) == 2
    assert until(lambda: not running(started), SOON)


@pytest.mark.parametrize("end", ["cancel", "crash"])
def test_what_a_function_started_ends_with_its_worker(leaving: Path, end: str) -> None:
    with opened(workers=1) as grid:
        call = grid.submit("leaving/leave", "child", str(leaving), 1000)
        started = left(leaving, 1)
        if end == "cancel":
            call.cancel()
        else:
            os.kill(call.profile.pid, signal.SIGKILL)
        assert until(lambda: not running(started), SOON)


CLIENT = """
    import sys, gridrpc
    sys.path.insert(0, {folder!r})
    grid = gridrpc.Grid(workers=2)
    for how in ("child", "session"):
        grid.submit("leaving/leave", how, {file!r}, 1000)
    import time
    time.sleep(1000)
"""


@pytest.mark.parametrize("victim", ["client", "spawner"])
def test_what_functions_started_ends_with(leaving: Path, tmp_path: Path, victim: str) -> None:
    source = CLIENT.format(folder=str(tmp_path), file=str(leaving))
    client = start_script(tmp_path, source)
    try:
        started = left(leaving, 2)
        spawner = psutil.Process(client.pid).children()[0]
        others = descendants(client.pid) - started
        if victim == "client":
            client.kill()
            assert until(lambda: not running(others | started), SOON)
        else:
            spawner.kill()
            # Without the spawner, what has left the group of its worker cannot be found.
            mine = {pid for pid in started if os.getsid(pid) != pid}
            assert len(mine) == 1
            assert until(lambda: not running(mine), SOON)
    finally:
        client.kill()
        end_now(started)
        client.communicate(timeout=LONG)


def test_what_functions_started_is_kept_if_wanted(leaving: Path) -> None:
    with opened(workers=1, leftovers="keep") as grid:
        grid.submit("leaving/leave", "child", str(leaving), 0).result(LONG)
        started = left(leaving, 1)
    assert running(started) == started
    end_now(started)


def test_pools_and_grids_inside_functions_work(tmp_path: Path) -> None:
    source = """
        import multiprocessing as mp, os, subprocess
        from multiprocessing import shared_memory
        import gridrpc, remote

        def pool(kind):
            with mp.get_context(kind).Pool(2) as pool:
                return pool.map(remote.same, range(4))

        def shared():
            # Its tracker is to clean up, also if the worker is killed.
            block = shared_memory.SharedMemory(create=True, size=100)
            return block.name

        def nested():
            with gridrpc.Grid(workers=2) as inner:
                return list(inner.map(remote.same, range(4)))

        def loky():
            import joblib
            return joblib.Parallel(2)(joblib.delayed(abs)(-n) for n in range(4))

        if __name__ == "__main__":
            with gridrpc.Grid(workers=1) as grid:
                for kind in ("fork", "spawn", "forkserver"):
                    print(grid.submit(pool, kind).result(60))
                print(grid.submit(nested).result(60), grid.submit(loky).result(60))
                name = grid.submit(shared).result(60)
                print(os.path.exists(f"/dev/shm/{name}"))
                grid.submit(os.kill, 0, 0).result(60)
                grid.submit(os._exit, 3).exception(60)
                print(grid.submit(subprocess.check_output, ["echo", "out"]).result(60))
            print(os.path.exists(f"/dev/shm/{name}"))
    """
    ended = run_script(tmp_path, source)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        *["[0, 1, 2, 3]"] * 3, "[0, 1, 2, 3] [0, 1, 2, 3]", "True", "b'out\\n'", "False"
    ]  # fmt: skip


def begun(grid: gridrpc.Grid, folder: Path) -> gridrpc.Call[None]:
    """A call that its worker is at, for as long as it lives."""
    started = folder / "started"
    call: gridrpc.Call[None]
    call = grid.submit("remote/tell_and_wait", str(started), str(folder / "never"))
    assert until(started.exists)
    return call


def test_a_stopped_worker_is_ended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with opened(workers=1, stall=0.2) as grid:
        call = begun(grid, tmp_path)
        os.kill(call.profile.pid, signal.SIGSTOP)
        error = call.exception(LONG)
        assert isinstance(error, gridrpc.WorkerLost)
        assert error.signal == signal.SIGKILL
        assert grid.submit(abs, -1).result(LONG) == 1
    assert "was stopped and did not continue" in capfd.readouterr().err


@pytest.mark.parametrize("worker", ["python", "native"])
def test_a_stopped_idle_worker_swallows_no_call(worker: str, basics: Path) -> None:
    name = "os/getpid" if worker == "python" else "basics/null"
    with opened(workers=1, worker=worker, stall=0.2, modules=[basics]) as grid:
        first = grid.submit(name)
        first.result(LONG)
        os.kill(first.profile.pid, signal.SIGSTOP)
        second = grid.submit(name)
        second.result(LONG)
        assert first.profile.pid != second.profile.pid


def test_a_worker_that_is_continued_continues(own_grid: gridrpc.Grid) -> None:
    own_grid.wait_until_ready(LONG)
    call = own_grid.submit("time/sleep", 0.3)
    assert until(lambda: call.profile.pid != 0)
    os.kill(call.profile.pid, signal.SIGSTOP)
    assert until(lambda: psutil.Process(call.profile.pid).status() == psutil.STATUS_STOPPED)
    os.kill(call.profile.pid, signal.SIGCONT)
    assert call.exception(LONG) is None


def spawner_of(pid: int) -> int:
    parent: int = psutil.Process(pid).ppid()
    return parent


@pytest.mark.parametrize("way", ["deadline", "cancel", "death", "close"])
def test_a_stopped_spawner_holds_nothing_up(tmp_path: Path, way: str) -> None:
    with opened(workers=1) as grid:
        call = begun(grid, tmp_path)
        worker = call.profile.pid
        spawner = spawner_of(worker)
        os.kill(spawner, signal.SIGSTOP)
        if way == "deadline":
            late = grid.submit(abs, -1, deadline=0.1)
            assert isinstance(late.exception(LONG), gridrpc.DeadlineExceeded)
        elif way == "cancel":
            assert call.cancel()
            assert until(lambda: not running({worker}))
            assert grid.submit(abs, -1).result(LONG) == 1
        elif way == "death":
            os.kill(worker, signal.SIGKILL)
            assert isinstance(call.exception(LONG), gridrpc.WorkerLost)
            assert grid.submit(abs, -1).result(LONG) == 1
    assert until(lambda: not running({worker, spawner}), SOON)


@pytest.mark.parametrize("how", WAYS)
def test_they_end_with_a_client_whose_spawner_is_in_an_import(tmp_path: Path, how: str) -> None:
    # Functions of the main program may need it, so that the spawner imports it when it has time.
    (tmp_path / "cloudpickle.py").write_text(
        "open('importing', 'w').close()\nwhile True:\n    pass\n"
    )
    (tmp_path / "leaving.py").write_text(textwrap.dedent(LEAVING))
    source = f"""
        import sys, gridrpc, leaving

        def function():
            pass

        grid = gridrpc.Grid(workers=1)
        grid.submit(leaving.leave, "{how}", "pids", 0).result()
        print("left", flush=True)
        sys.stdin.read()
    """
    process = start_script(tmp_path, source)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "left\n"
        assert until((tmp_path / "importing").exists)
        left = {*map(int, (tmp_path / "pids").read_text().split()), *descendants(process.pid)}
        assert len(running(left)) >= 3
    finally:
        process.kill()
    process.communicate(timeout=LONG)
    assert until(lambda: not running(left), SOON)


@pytest.mark.parametrize("how", WAYS)
def test_they_end_with_a_client_that_has_not_heard_all(tmp_path: Path, how: str) -> None:
    """What a process has not read when it is killed makes its connections end in another way."""
    (tmp_path / "leaving.py").write_text(textwrap.dedent(LEAVING))
    source = f"""
        import os, sys, gridrpc, leaving
        grid = gridrpc.Grid(workers=2)
        call = grid.submit(leaving.leave, "{how}", "pids", 1000)
        print(grid.submit(os.getpid).result(), flush=True)
        sys.stdin.read()
    """
    process = start_script(tmp_path, source)
    assert process.stdout is not None
    pids = tmp_path / "pids"
    try:
        other = int(process.stdout.readline())
        assert until(lambda: pids.exists() and pids.read_text().endswith("\n"))
        left = {int(pids.read_text()), *descendants(process.pid)}
        process.send_signal(signal.SIGSTOP)
        assert until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        os.kill(other, signal.SIGKILL)
        # The spawner has told its end when it has reaped it.
        assert until(lambda: not psutil.pid_exists(other))
    finally:
        process.kill()
    process.communicate(timeout=LONG)
    assert until(lambda: not running(left), SOON)
