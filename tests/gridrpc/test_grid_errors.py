"""The types of errors: chosen by what has failed, with the fields that tell where."""

from __future__ import annotations

import errno
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened
from processes import LONG, run_script, until, write_script

IDL = r"""
Module errors;
Define filled(IN int n, OUT double a[n]) { for (int i = 0; i < n; i++) a[i] = i; }
Define size_of(IN filename f, OUT int r[1]) { r[0] = f[0]; }
Define written(OUT filename f) { (void)f; }
"""

#: Larger than what a grid keeps free, and than what goes through the socket.
MANY = 1 << 23


class Object:
    """A remote object that can die."""

    def pid(self) -> int:
        return os.getpid()


@pytest.fixture(scope="module")
def functions(compile_idl: CompileIdl) -> Iterator[Grid]:
    with opened(workers=1, modules=[compile_idl(IDL)]) as grid:
        grid.function("written")  # the workers are there
        grid.wait_until_ready(LONG)
        yield grid


@contextmanager
def limited(kind: int, soft: int) -> Iterator[None]:
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def use_program(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Have native workers started by a shell script."""
    program = folder / "gridrpc"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(folder / "python"))


def address_space() -> int:
    """How much this process has mapped, bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def test_workers_that_cannot_start_are_reported_with_all_that_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_workers.py").write_text(
        "import os\nos.register_at_fork(after_in_child=lambda: os._exit(7))\n"
    )
    (tmp_path / "grid.toml").write_text("[grid]\npreload = ['broken_workers']\n")
    monkeypatch.syspath_prepend(tmp_path)
    with opened(workers=1, config=tmp_path / "grid.toml") as grid:
        with pytest.raises(gridrpc.StartError) as waited:
            grid.wait_until_ready(LONG)
        with pytest.raises(gridrpc.StartError) as submitted:
            grid.submit(os.getpid)
    for error in (waited.value, submitted.value):
        assert (error.status, error.signal) == (7, None)
        assert error.pid > 0
        assert error.host == socket.gethostname()
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.pid, again.status) == (type(error), error.pid, 7)


def test_an_object_whose_worker_died_tells_which(grid: Grid) -> None:
    remote = grid.object(Object)
    pid = remote.pid()
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: "lost" in repr(remote))
    with pytest.raises(gridrpc.ObjectLost, match="SIGKILL") as lost:
        remote.pid()
    assert (lost.value.pid, lost.value.signal) == (pid, signal.SIGKILL)
    assert lost.value.worker is not None
    remote.close()
    with pytest.raises(gridrpc.ObjectLost) as closed:
        remote.pid()
    assert closed.value.pid is None


def test_errors_of_signal_handlers_stay_what_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no worker could be started, says the handler")

    use_program(monkeypatch, tmp_path, "exec sleep 600")
    before = signal.signal(signal.SIGALRM, fail)
    try:
        with opened(workers=1, worker="native") as grid:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(RuntimeError, match="says the handler") as caught:
                grid.wait_until_ready(LONG)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert type(caught.value) is RuntimeError


def test_a_closed_grid_says_so(basics: Path) -> None:
    with opened(workers=1, worker="native", modules=[basics]) as grid:
        pass
    with pytest.raises(gridrpc.GridClosed):
        grid.submit("basics/null")
    with pytest.raises(gridrpc.GridClosed):
        grid.wait_until_ready(1)


def test_without_descriptors_for_results_their_calls_end_in_errors(functions: Grid) -> None:
    filled = functions.function("filled")
    with limited(resource.RLIMIT_NOFILE, 3), pytest.raises(MemoryError, match="Too many"):
        filled(MANY)
    assert filled(3).tolist() == [0, 1, 2], "the worker continues"
    with limited(resource.RLIMIT_NOFILE, 3), pytest.raises(OSError, match="Too many") as caught:
        gridrpc.empty(MANY)
    assert caught.value.errno == errno.EMFILE


def test_out_of_memory_is_a_memory_error(functions: Grid) -> None:
    room = address_space() + (1 << 20)
    with limited(resource.RLIMIT_AS, room), pytest.raises(MemoryError):
        functions.function("filled")(MANY)
    with limited(resource.RLIMIT_AS, room), pytest.raises(MemoryError):
        gridrpc.empty(MANY)
    assert functions.function("filled")(3).tolist() == [0, 1, 2]


def test_files_that_cannot_be_read_or_written_are_errors_of_the_system(
    functions: Grid, tmp_path: Path
) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError, match=f"`f` names `{missing}`") as unread:
        functions.function("size_of")(missing)
    with pytest.raises(FileNotFoundError, match=f"could not write `{missing}/out`") as unwritten:
        functions.function("written")(missing / "out")
    for error in (unread.value, unwritten.value):
        assert error.errno == errno.ENOENT
        assert not isinstance(error, ValueError)


def test_calls_of_the_system_that_are_forbidden_are_named(tmp_path: Path) -> None:
    (tmp_path / "forbid.c").write_text(
        "#include <errno.h>\n"
        "int memfd_create(const char *name, unsigned flags)\n"
        "{ (void)name; (void)flags; errno = ENOSYS; return -1; }\n"
    )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", "forbid.so", "forbid.c"], cwd=tmp_path, check=True
    )
    script = write_script(
        tmp_path,
        """
        import gridrpc

        try:
            gridrpc.Grid(workers=1)
        except OSError as error:
            print(error)
        """,
    )
    reported = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=LONG,
        env={**os.environ, "LD_PRELOAD": str(tmp_path / "forbid.so")}, check=False,
    )  # fmt: skip
    assert "forbids `memfd_create`" in reported.stdout, reported.stdout + reported.stderr


class Connection:
    """Cannot be pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class Job:
    """Has something that cannot be pickled."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {"a": 1, "other": [Connection()]}

    def method(self) -> None:
        """Needs the object."""


def locks(_: int) -> dict[str, Any]:
    return {"a": [1, threading.Lock()]}


def test_the_path_to_what_cannot_be_pickled(grid: Grid) -> None:
    job = Job()
    path = r"attribute 'parts' -> \['other'\] -> \[0\] -> attribute 'lock'; "
    with pytest.raises(TypeError, match=f"lock' object: argument 2 -> {path}"):
        grid.submit(max, 1, job)
    with pytest.raises(TypeError, match=f"lock' object: argument 'key' -> {path}"):
        grid.submit(max, 1, key=job)
    with pytest.raises(TypeError, match=f"-> variable 'job' -> {path}"):
        grid.submit(lambda: job.parts)
    with pytest.raises(TypeError, match=f"its object -> {path}"):
        grid.submit(job.method)
    with pytest.raises(TypeError, match=f"lock' object: {path}"):
        grid.share(job)
    with pytest.raises(TypeError, match=f"lock' object: argument 1 -> {path}") as caught:
        list(grid.map(type, [1, job]))
    assert caught.value.__notes__ == ["gridrpc: map, item 1 (the first one is 0)"]
    with pytest.raises(TypeError, match=r"result -> \['a'\] -> \[1\]; workers share no locks"):
        grid.submit(locks, 1).result(LONG)
    with pytest.raises(TypeError, match=r"result -> \['a'\] -> \[1\]; workers share no locks"):
        list(grid.map(locks, [1]))


def test_the_path_from_functions_of_the_main_program(tmp_path: Path) -> None:
    script = """
        import contextvars, gridrpc, threading
        class Job:
            connection = 1
        job, lock, level = Job(), threading.Lock(), contextvars.ContextVar("level")
        job.connection = (i for i in "")
        def go(i):
            return job.connection
        def calls_go(i):
            return go(i)
        def locked(i):
            with lock:
                return i
        def at_level(i):
            return level.get()
        async def wait(i):
            return i
        def forgot(i):
            return wait(i)
        def uses_grid(i):
            return grid.submit(go, i).result()
        if __name__ == "__main__":
            with gridrpc.Grid(1) as grid:
                for function in (calls_go, locked, at_level, forgot, uses_grid):
                    try:
                        print(grid.submit(function, 1).result())
                    except TypeError as error:
                        print(error)
    """
    ran = run_script(tmp_path, script)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "cannot pickle 'generator' object: calls_go -> global 'go' -> global 'job' -> "
        "attribute 'connection'; make a list of it",
        "cannot pickle '_thread.lock' object: locked -> global 'lock'; workers share no locks: "
        "use that of a `multiprocessing.Manager`",
        "cannot pickle '_contextvars.ContextVar' object: at_level -> global 'level'; pass its "
        "value as an argument",
        "cannot pickle 'coroutine' object: await it in the function",
        "cannot pickle 'gridrpc._native.Modules' object: uses_grid -> global 'grid' -> "
        "attribute '_modules'; in a function, `gridrpc.current_grid()` is the grid that runs it",
    ]


class WithKeywords(Exception):
    """Is made of keyword arguments only."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class OfSystem(OSError):
    """Takes more than it passes on."""

    def __init__(self, number: int, text: str, more: str) -> None:
        super().__init__(number, text)
        self.more = more


class Holding(ValueError):
    """Has an attribute that cannot be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(f"held: {text}")
        self.code = 1
        self.connection = Connection()


def fail(which: int) -> None:
    raise [WithKeywords(code=3), OfSystem(2, "absent", "more"), Holding("x")][which]


def test_errors_whose_constructor_takes_other_arguments(grid: Grid) -> None:
    with pytest.raises(WithKeywords, match=r"^code 3$") as first:
        grid.submit(fail, 0).result(LONG)
    assert (first.value.code, first.value.args) == (3, ("code 3",))
    with pytest.raises(OfSystem, match="absent") as second:
        list(grid.map(fail, [1]))
    assert (second.value.errno, second.value.more) == (2, "more")
    with pytest.raises(Holding, match=r"^held: x$") as third:
        grid.submit(fail, 2).result(LONG)
    assert third.value.code == 1
    assert isinstance(third.value.__cause__, gridrpc.errors.RemoteTraceback)
