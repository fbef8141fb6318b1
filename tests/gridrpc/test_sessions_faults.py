"""Sessions under shortages, beside stopped programs, and in places that are not safe."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

import gridrpc
from gridrpc import OutcomeUnknown, SessionError, SessionRefused, SessionSilent
from gridrpc._paths import distrust
from gridrpc._session import attached, client, registry
from gridrpc._session import command as commands
from gridrpc._session.outcomes import Outcomes
from grids import PROGRAM
from noting import noted, waits
from processes import LONG, environment, run_script, running, small_disk, start_script, until
from sessions import at, command, ran


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of all sessions of a test, which are ended behind it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "state/gridrpc/sessions"
    yield folder
    for record in folder.glob("*/session.json"):
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(json.loads(record.read_text())["pid"])
            if "gridrpc._session" in " ".join(process.cmdline()):
                process.kill()


@contextmanager
def started(folder: Path, *words: str) -> Iterator[psutil.Process]:
    """The process of a session `night` with two workers."""
    command("start", "night", "--workers", "2", *words, cwd=folder)
    yield psutil.Process(registry.record_of("night").pid)
    command("stop", "night", "--forget", cwd=folder)


def test_a_shortage_of_descriptors_passes(tmp_path: Path, state: Path) -> None:
    with started(tmp_path) as process, ThreadPoolExecutor(1) as pool:
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, hard))
        attaching = pool.submit(gridrpc.attach, "night")
        log = state / "night/session.log"
        assert until(lambda: "no connection can be accepted: Too many open" in log.read_text())
        assert not attaching.done()
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (soft, hard))
        attaching.result(LONG).close()
        with gridrpc.attach("night") as grid:
            assert list(grid.map("work", abs, range(5))) == list(range(5))
        # It is said once, and not ten times per second.
        assert log.read_text().count("no connection can be accepted") == 1


#: For the process of the session: no thread starts while there is a file $FULL.
WITHOUT_THREADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with)
{
    if (access(getenv("FULL"), F_OK) == 0)
        return EAGAIN;
    return ((create *)dlsym(RTLD_NEXT, "pthread_create"))(thread, how, run, with);
}
"""


def test_a_shortage_of_threads_passes(tmp_path: Path) -> None:
    (tmp_path / "threads.c").write_text(WITHOUT_THREADS)
    command_line = ["cc", "-shared", "-fPIC", "-o", "threads.so", "threads.c"]
    subprocess.run(command_line, cwd=tmp_path, check=True)
    full = tmp_path / "full"
    preloaded = {"FULL": f"{full}", "LD_PRELOAD": f"{tmp_path}/threads.so"}
    subprocess.run(
        [PROGRAM, "session", "start", "night", "--workers", "2"],
        env=environment() | preloaded, cwd=tmp_path, check=True, timeout=LONG,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    with gridrpc.attach("night") as grid:
        assert list(grid.map("first", abs, range(5))) == list(range(5))
        full.touch()
        with pytest.raises(SessionRefused, match="no other program now: no thread can") as refused:
            gridrpc.attach("night")
        assert refused.value.reason == "busy"
        # A program that is attached needs no new thread, but a new map does.
        assert list(grid.results("first")) == list(range(5))
        with pytest.raises(SessionError, match="map `second` cannot run now"):
            grid.submit("second", abs, range(5))
        assert grid.maps["second"]["items"] == 5
        full.unlink()
        assert until(lambda: grid.maps["second"]["results"] == 5)
        gridrpc.attach("night").close()
        assert list(grid.map("second", abs, range(5))) == list(range(5))
    command("stop", "night", "--forget", cwd=tmp_path)


def test_connections_are_bounded(tmp_path: Path, state: Path) -> None:
    subprocess.run(
        ["sh", "-c", f"ulimit -n 200 && {PROGRAM} session start -q night --workers 2"],
        env=environment(), cwd=tmp_path, check=True, timeout=LONG,
    )  # fmt: skip
    silent = []
    for _ in range(60):
        silent.append(socket.socket(socket.AF_UNIX))
        with connections_path(state / "night") as path:
            silent[-1].connect(path)
    with pytest.raises(SessionRefused, match="there are 50 connections already") as refused:
        gridrpc.attach("night")
    assert refused.value.reason == "busy"
    for one in silent:
        one.close()

    def attaches() -> bool:
        try:
            gridrpc.attach("night").close()
        except SessionRefused:  # it has not noticed yet that they are closed
            return False
        return True

    assert until(attaches)
    with gridrpc.attach("night") as grid:
        assert list(grid.map("work", abs, range(5))) == list(range(5))
    command("stop", "night", "--forget", cwd=tmp_path)


@contextmanager
def connections_path(folder: Path) -> Iterator[str]:
    """A path of the socket that is short enough for one."""
    descriptor = os.open(folder, os.O_PATH)
    yield f"/proc/self/fd/{descriptor}/socket"
    os.close(descriptor)


def test_a_session_that_is_stopped_is_reported_and_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (client, attached):
        monkeypatch.setattr(module, "ANSWER", 1.0)
    monkeypatch.setattr(commands, "END", 1.0)
    command("start", "night", "--workers", "1", cwd=tmp_path)
    pid = registry.record_of("night").pid
    with gridrpc.attach("night") as grid:
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(SessionSilent, match=f"its process {pid} is stopped, or"):
            gridrpc.attach("night")
        with pytest.raises(SessionSilent, match="`gridrpc session stop night` ends it"):
            grid.workers  # noqa: B018 - asks the session
    assert commands.main(["show", "night"]) == 1
    assert "`night` does not answer" in capsys.readouterr().err
    assert commands.main(["stop", "night"]) == 0
    assert not running({pid})


def test_a_results_timeout_holds_for_a_session_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "GRACE", 0.5)
    with started(tmp_path) as process, gridrpc.attach("night") as grid:
        grid.submit("work", abs, range(5))
        process.suspend()
        with pytest.raises(TimeoutError, match="does not answer"):
            list(grid.results("work", timeout=0.1))
        with pytest.raises(TimeoutError, match="does not answer"):
            grid.map("work", abs, range(5), timeout=0.1)
        process.resume()


def briefly(item: int) -> int:
    time.sleep(0.002)
    return item


def test_a_kill_leaves_few_items_in_doubt(tmp_path: Path) -> None:
    command("start", "night", "--workers", "2", cwd=tmp_path)
    pid = registry.record_of("night").pid
    with gridrpc.attach("night") as grid:
        grid.submit("work", briefly, range(4000))
        assert until(lambda: grid.maps["work"]["results"] > 500)
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: not running({pid}))
    command("start", "night", cwd=tmp_path)
    with gridrpc.attach("night") as grid:
        results = list(grid.results("work", return_exceptions=True))
    unknown = [one for one in results if isinstance(one, OutcomeUnknown)]
    # Two calls for each worker, of items for some 10 ms each.
    assert 0 < len(unknown) < 100
    assert len(results) == 4000
    command("stop", "night", "--forget", cwd=tmp_path)


#: A program that stops itself while it sends items.
STOPS = """
import gridrpc, noting, os, signal

def items():
    for n in range(40):
        if n == 20:
            os.kill(os.getpid(), signal.SIGSTOP)
        yield n if n < 30 else {last} + n

with gridrpc.attach("night") as grid:
    try:
        print(sum(grid.map("work", noting.noted, [os.getcwd()] * 40, items())))
    except gridrpc.GridError as error:
        print(type(error).__name__, error)
"""


def is_stopped(program: subprocess.Popen[str]) -> bool:
    return psutil.Process(program.pid).status() == psutil.STATUS_STOPPED


def test_a_stopped_program_holds_up_nobody(tmp_path: Path) -> None:
    with started(tmp_path), gridrpc.attach("night") as grid:
        program = start_script(tmp_path, STOPS.format(last=0))
        assert until(lambda: is_stopped(program))
        results = list(grid.map("work", noted, *at(tmp_path, range(40)), timeout=LONG))
        assert results == [10 * n for n in range(40)]
        os.kill(program.pid, signal.SIGCONT)
        assert program.communicate(timeout=LONG)[0] == f"{sum(results)}\n"
        assert sorted(ran(tmp_path)) == list(range(40))


def test_items_that_differ_from_those_of_another_program_are_noticed(tmp_path: Path) -> None:
    with started(tmp_path), gridrpc.attach("night") as grid:
        program = start_script(tmp_path, STOPS.format(last=100))
        assert until(lambda: is_stopped(program))
        grid.submit("work", noted, *at(tmp_path, range(40)))
        os.kill(program.pid, signal.SIGCONT)
        said, _ = program.communicate(timeout=LONG)
        assert said.startswith("JournalError map `work` of the session has another item 30 ")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_map_that_is_removed_while_a_program_sends_it(tmp_path: Path, restarted: bool) -> None:
    with started(tmp_path), gridrpc.attach("night") as grid:
        program = start_script(tmp_path, STOPS.format(last=0))
        assert until(lambda: is_stopped(program))
        if restarted:
            grid.submit("work", noted, *at(tmp_path, range(5)), if_changed="restart")
        else:
            grid.forget("work")
        os.kill(program.pid, signal.SIGCONT)
        said, _ = program.communicate(timeout=LONG)
        assert said == (
            "SessionError map `work` was removed, or started over, by another program in the "
            "meantime\n"
        )


FULL = """
[grid]
workers = 1
max_queued = 1
"""


def test_a_map_that_waits_for_room_holds_up_nobody(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(FULL)
    command("start", "night", "--config", "grid.toml", cwd=tmp_path)
    with gridrpc.attach("night") as grid, ThreadPoolExecutor(2) as pool:
        # One call runs and the next one waits: the thread of the other map waits for room.
        grid.submit("first", waits, *at(tmp_path, range(10, 20)), chunk=1)
        assert until(lambda: grid.maps["first"]["under_way"] == 2)
        grid.submit("second", waits, *at(tmp_path, range(10, 20)), chunk=1)
        removed = pool.submit(gridrpc.attach("night").forget, "second")
        assert until(lambda: "second" not in grid.maps)
        assert pool.submit(grid.submit, "third", abs, range(3)).result(LONG) == 3
        with suppress(SessionError):
            grid.submit("second", abs, range(3))
        (tmp_path / "gate").touch()
        removed.result(LONG)
        assert list(grid.map("second", abs, range(3), if_changed="restart")) == [0, 1, 2]
    command("stop", "night", "--forget", cwd=tmp_path)


def test_errors_are_kept_also_on_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, "16k"):
        outcomes = Outcomes(folder)
        outcomes.extend(3)
        errors = [bytes([n]) * 9000 for n in range(3)]
        for number, error in enumerate(errors):
            outcomes.add_error(number, error)
        assert [outcomes.error(n) for n in range(3)] == errors
        outcomes.close()


def prints(item: int) -> int:
    print("x" * (1 << 20))
    return item


def test_the_log_is_bounded(tmp_path: Path, state: Path) -> None:
    log, old = state / "night/session.log", state / "night/session.log.old"
    with started(tmp_path), gridrpc.attach("night") as grid:
        assert list(grid.map("work", prints, range(40))) == list(range(40))
        assert until(lambda: old.exists() and "the last of them are in" in log.read_text())
        assert until(lambda: log.stat().st_size < 16 << 20)
        assert old.stat().st_size <= 32 << 20


#: A session in this process, whose wall clock jumps when it has begun.
JUMPS = """
import os, signal, time
from gridrpc._session.daemon import SessionDaemon

daemon = SessionDaemon("night", 3600.0, {"workers": 1})
real, wait, looks = time.time, daemon._ends.wait, []
time.time = lambda: real() + 86400

def looked(seconds):
    looks.append(seconds)
    if len(looks) == 5:
        os.kill(os.getpid(), signal.SIGTERM)
    return wait(0)

daemon._ends.wait = looked
daemon.serve()
"""


def test_a_limit_does_not_follow_the_wall_clock(tmp_path: Path) -> None:
    ended = run_script(tmp_path, JUMPS)
    assert ended.returncode == 0, ended.stderr
    assert registry.record_of("night").ended.startswith("it was ended by SIGTERM")


def test_a_user_without_a_home_is_reported_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME")
    # The user has no passwd entry either.
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    for words in (["list"], ["start", "night"], ["show", "night"], ["stop", "night"]):
        assert commands.main(words) == 1
        assert "Set XDG_STATE_HOME to a folder" in capsys.readouterr().err
    with pytest.raises(SessionError, match="there is no place for sessions"):
        gridrpc.attach("night")


def test_folders_that_others_can_change_are_refused(tmp_path: Path, state: Path) -> None:
    with started(tmp_path):
        for folder in (tmp_path / "state", state / "night"):
            mode = folder.stat().st_mode
            folder.chmod(0o777)
            with pytest.raises(SessionRefused, match=f"{folder} can be changed by other users"):
                gridrpc.attach("night")
            assert "can be changed" in command("show", "night", cwd=tmp_path, status=1)
            folder.chmod(mode)
    (tmp_path / "state").chmod(0o777)
    said = command("start", "night", cwd=tmp_path, status=1)
    assert f"{tmp_path}/state can be changed by other users (mode 777)" in said
    # As in /tmp, nobody can replace what is another's.
    (tmp_path / "state").chmod(0o1777)
    with started(tmp_path):
        gridrpc.attach("night").close()


def test_the_folders_of_a_session_are_private_whatever_the_umask(
    tmp_path: Path, state: Path
) -> None:
    before = os.umask(0)
    try:
        with started(tmp_path):
            for folder in (tmp_path / "state", state.parent, state, state / "night"):
                assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_what_others_own_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "folder/file"
    file.parent.mkdir(mode=0o755)
    file.touch(0o644)
    assert distrust(file) is None
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    file.parent.chmod(0o775)
    if os.geteuid() == 0:
        os.chown(file.parent, -1, 65534)
        assert distrust(file) == f"{file.parent} can be changed by other users (mode 775)"
        assert distrust(link / "file") == f"{file.parent} can be changed by other users (mode 775)"
        file.parent.chmod(0o755)
        assert distrust(link / "file") is None
        os.chown(link, 65534, 65534, follow_symlinks=False)
        assert distrust(link / "file") == f"{link} belongs to nobody"
        os.chown(file.parent, 65534, 65534)
        assert distrust(file) == f"{file.parent} belongs to nobody"


def test_top_shows_a_session_by_its_name(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        shown = subprocess.run(
            [PROGRAM, "top", "--once", "--json", str(process.pid)],
            capture_output=True, text=True, check=True, timeout=LONG,
        )  # fmt: skip
        assert json.loads(shown.stdout)["program"] == "gridrpc session night"
