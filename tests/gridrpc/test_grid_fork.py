"""Workers that are forked from the client: what they inherit, what not, and when it is not done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from processes import LONG, environment, run_script, write_script

#: A module whose state tells whether a worker has it from the client.
BESIDE = """
import os
state = "fresh"
def tell():
    return state
def tasks_after_product(n):
    import numpy
    a = numpy.ones((n, n))
    assert (a @ a)[0, 0] == n
    return len(os.listdir("/proc/self/task"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text(BESIDE)
    return tmp_path


def describe(folder: Path, source: str) -> str:
    ended = run_script(folder, source)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


#: What a client does before, and how its workers are started then.
CLIENTS = {
    "nothing": ("pass", "changed"),
    "NumPy": ("import numpy; numpy.ones((300, 300)) @ numpy.ones((300, 300))", "changed"),
    "a file to read": ("file = open('beside.py')", "changed"),
    "a thread that has ended": (
        "import threading; t = threading.Thread(target=int); t.start(); t.join()",
        "changed",
    ),
    "a thread": (
        "import threading, time; threading.Thread(target=time.sleep, args=(1,)).start()",
        "fresh",
    ),
    "a grid that was closed": ("with gridrpc.Grid(workers=1) as closed: pass", "changed"),
    "another grid": ("other = gridrpc.Grid(workers=1)", "fresh"),
    "a socket": ("import socket; open_socket = socket.socket()", "fresh"),
    "a file to write": ("file = open('written', 'w')", "fresh"),
    "a trace": ("sys.settrace(lambda *_: None)", "fresh"),
    "much memory": ("much = bytearray(300 << 20)", "fresh"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_workers_are_forked_from_clients_where_that_is_safe(folder: Path, client: str) -> None:
    before, expected = CLIENTS[client]
    source = f"""
        import sys, beside, gridrpc
        beside.state = "changed"
        {before}
        with gridrpc.Grid(workers=2) as grid:
            print(grid.submit(beside.tell).result(60))
        sys.settrace(None)
    """
    assert describe(folder, source) == f"{expected}\n"


def test_no_fork_within_an_error_or_an_import(folder: Path) -> None:
    (folder / "opens.py").write_text(
        "import gridrpc, beside\ngrid = gridrpc.Grid(workers=1)\n"
        "print(grid.submit(beside.tell).result(60))\ngrid.close()\n"
    )
    source = """
        import beside, gridrpc
        beside.state = "changed"
        try:
            1 / 0
        except ZeroDivisionError:
            with gridrpc.Grid(workers=1) as grid:
                print(grid.submit(beside.tell).result(60))
        import opens
    """
    assert describe(folder, source) == "fresh\nfresh\n"


def test_the_start_method_can_be_chosen(folder: Path) -> None:
    source = """
        import threading, beside, gridrpc
        beside.state = "changed"
        file = open("written", "w")
        for method in ("spawn", "fork"):
            with gridrpc.Grid(workers=1, start_method=method) as grid:
                print(grid.submit(beside.tell).result(60))
        gate = threading.Event()
        threading.Thread(target=gate.wait).start()
        for method in ("spwan", "fork"):
            try:
                gridrpc.Grid(workers=1, start_method=method)
            except gridrpc.ConfigError as error:
                print(error)
        gate.set()
    """
    assert describe(folder, source) == (
        "fresh\nchanged\n"
        "`start_method` is 'spwan': give 'auto' or 'fork' or 'spawn'\n"
        '`start_method` is "fork", but this process has threads: leave it out, or give "spawn"\n'
    )


def test_what_workers_do_not_inherit(folder: Path) -> None:
    source = """
        import atexit, contextlib, io, os, random, signal, sys
        import beside, gridrpc

        beside.state = "changed"
        atexit.register(print, "client ends")
        signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        print("held back")
        mine = "of the main program"

        def look():
            import __main__
            print("seen", flush=True)
            return (
                beside.state, hasattr(__main__, "mine"), sys.stdin.read(),
                signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
                signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN,
                signal.getsignal(signal.SIGINT) == signal.default_int_handler,
            )

        def leave():
            atexit.register(print, "worker ends", flush=True)
            sys.exit(9)

        with contextlib.redirect_stdout(io.StringIO()) as held:
            with gridrpc.Grid(workers=1) as grid:
                looked = grid.submit(look).result(60)
                error = grid.submit(leave).exception(60)
                drawn = grid.submit(lambda: random.random()).result(60)
        print(repr(held.getvalue()), looked, error.status, drawn != random.random())
    """
    ended = subprocess.run(
        [sys.executable, str(write_script(folder, source))],
        input="for the client", capture_output=True, text=True, timeout=LONG, cwd=folder,
        env=environment(), check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "held back",
        "seen",
        "worker ends",
        "'' ('changed', False, '', True, True, True) 9 True",
        "client ends",
    ]


def test_another_spawner_takes_the_place_of_a_forked_one(folder: Path) -> None:
    source = """
        import os, signal, beside, gridrpc
        beside.state = "changed"
        with gridrpc.Grid(workers=2) as grid:
            print(grid.submit(beside.tell).result(60))
            os.kill(grid.submit(os.getppid).result(60), signal.SIGKILL)
            # Workers of the first one may be sent calls until their ends are known.
            while grid.submit(beside.tell, idempotent=True).result(60) != "fresh":
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            print("no child left")
    """
    assert describe(folder, source) == "changed\nno child left\n"


def test_a_refused_grid_leaves_no_process(folder: Path) -> None:
    source = """
        import os, resource, gridrpc
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        try:
            gridrpc.Grid(workers=1000)
        except gridrpc.ConfigError:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                print("no child left")
    """
    assert describe(folder, source) == "no child left\n"


@pytest.mark.parametrize("threads", [1, 2])
def test_numerical_libraries_have_their_threads(folder: Path, threads: int) -> None:
    source = f"""
        import os
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.pop(name, None)
        import numpy, beside, gridrpc
        beside.state = "changed"
        before = len(os.listdir("/proc/self/task"))
        with gridrpc.Grid(workers=1, threads={threads}) as grid:
            print(grid.submit(beside.tell).result(60))
            print(grid.submit(beside.tasks_after_product, 500).result(60))
        print(beside.tasks_after_product(500) == before)
    """
    assert describe(folder, source) == f"changed\n{threads}\nTrue\n"


def test_a_script_that_ignores_its_children(folder: Path) -> None:
    source = """
        import signal, beside, gridrpc
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        beside.state = "changed"
        with gridrpc.Grid(workers=2) as grid:
            print(grid.submit(beside.tell).result(60))
    """
    assert describe(folder, source) == "changed\n"
