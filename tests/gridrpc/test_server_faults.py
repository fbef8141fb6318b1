"""What goes wrong with a server: at its start, at its end, and to its clients."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from grids import PROGRAM, CompileIdl, opened
from processes import LONG, descendants, running, small_disk, until
from servers import (
    WORK,
    Authority,
    began,
    hold,
    offering,
    program,
    serving,
    write_config,
)

pytestmark = pytest.mark.usefixtures("no_modules_here")

ONE = "[workers]\ncount = 1\n"


@pytest.fixture
def work(compile_idl: CompileIdl) -> Path:
    return compile_idl(WORK)


def does_not_start(file: Path) -> str:
    """What a server says that cannot start."""
    said = program("server", "-c", file, "start", status=1)
    assert said.startswith("gridrpc: ")
    return said


# ---- At its start


def test_the_port_is_in_use(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        file = write_config(tmp_path, ONE, Authority(tmp_path))
        file.write_text(file.read_text().replace("port = 0", f"port = {port}"))
        said = does_not_start(file)
    assert f"cannot listen at port {port} of 127.0.0.1" in said
    assert "name another `port`" in said


@pytest.mark.parametrize("name", ["certificate", "key", "authority", "revoked"])
def test_a_file_of_certificates_is_missing_or_none(tmp_path: Path, name: str) -> None:
    authority = Authority(tmp_path)
    file = write_config(tmp_path, ONE, authority)
    line = next(line for line in file.read_text().splitlines() if line.startswith(f"{name} = "))
    path = Path(json.loads(line.split(" = ")[1]))
    path.write_text("nothing")
    said = does_not_start(file)
    assert str(path) in said
    assert str(path) in program("server", "-c", file, "check", status=1)
    path.unlink()
    assert str(path) in does_not_start(file)


def test_a_key_that_others_can_read(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    file = write_config(tmp_path, ONE, authority)
    (key,) = tmp_path.glob("users-*/server-*/key.pem")
    key.chmod(0o644)
    assert str(key) in does_not_start(file)
    key.chmod(0o600)
    with serving(tmp_path, ONE) as server:
        assert server.state_of("name") == "lab"


def test_the_state_folder_of_another_server(tmp_path: Path, work: Path) -> None:
    with serving(tmp_path, offering(work)) as server:
        said = does_not_start(server.file)
        assert (
            f"another server (process {server.pid}) uses the state folder `{server.state}`" in said
        )
        assert "gridrpc server stop" in said
        # It has taken nothing from the first one.
        with server.client() as grid:
            assert grid.function("work/add")(1, 2) == [3]


def test_five_errors_are_reported_at_once(tmp_path: Path) -> None:
    file = write_config(
        tmp_path,
        "most_conections = 5\n[workers]\ncount = -1\n[modules.work]\nisolation = 'users'\n"
        "[users.ann]\nrate = 0\n[audits]\nkeep = 1\n",
        None,
    )
    said = does_not_start(file)
    assert said.count(f"{file}:") == 5
    for words in ("`most_connections`", "`count` is -1", '"user"', "`rate` is 0", "[audit]"):
        assert words in said
    assert (
        said.splitlines()[-5:] == program("server", "-c", file, "check", status=1).splitlines()[-5:]
    )


def test_a_configuration_that_others_can_change(tmp_path: Path) -> None:
    file = write_config(tmp_path, ONE, None)
    file.chmod(0o666)
    assert "others can write" in does_not_start(file)


def test_python_functions_that_cannot_be_imported(tmp_path: Path) -> None:
    config = (
        f"[workers]\npython = '{sys.executable}'\n"
        "[python.site]\nfunctions = ['math:hypotenuse', 'math:hypot', 'no_such_package:f']\n"
    )
    file = write_config(tmp_path, config, None)
    said = program("server", "-c", file, "check", status=1)
    assert "[python.site]: cannot import `math:hypotenuse`: AttributeError" in said
    assert "cannot import `no_such_package:f`: ModuleNotFoundError" in said
    assert "`math:hypot`" not in said


def test_a_server_without_workers(tmp_path: Path) -> None:
    file = write_config(tmp_path, "[workers]\ncount = 0\n", None)
    for command in ("check", "start"):
        said = program("server", "-c", file, command, status=1)
        assert "`count` is 0, and there are no host groups" in said


def test_two_servers_at_one_socket(tmp_path: Path) -> None:
    with serving(tmp_path, ONE) as server:
        other = tmp_path / "other"
        other.mkdir()
        file = write_config(other, f"socket = '{server.socket}'\n" + ONE, None)
        assert f"another server listens at `{server.socket}`" in does_not_start(file)
        assert server.state_of("name") == "lab"


def test_modules_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("nothing")
    file = write_config(tmp_path, offering(tmp_path / "text.so", tmp_path / "missing.so"), None)
    assert "text.so" in does_not_start(file)
    said = program("server", "-c", file, "check", status=1)
    assert "text.so" in said
    assert "missing.so" in said


def test_commands_without_a_server(tmp_path: Path) -> None:
    file = write_config(tmp_path, ONE, None)
    said = program("server", "-c", file, "status", status=1)
    assert "no server listens at" in said
    assert "gridrpc server start" in said
    assert "no such file" in program("server", "-c", tmp_path / "none", "check", status=1).lower()


# ---- At its end


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "stop"])
def test_the_end_of_a_server_ends_its_calls(tmp_path: Path, work: Path, how: str) -> None:
    with serving(tmp_path, offering(work)) as server, server.client() as grid:
        call = hold(grid, tmp_path, "work")
        queued = [grid.submit("work/add", 1, item) for item in range(20)]
        started = descendants(server.pid)
        assert started
        if how == "stop":
            assert "has stopped" in server.command("stop")
        else:
            server.process.send_signal(getattr(signal, how))
        assert server.process.wait(timeout=LONG) == 0
        assert isinstance(call.exception(LONG), gridrpc.WorkerLost)
        grid.close()
        for one in queued:
            assert isinstance(one.exception(LONG), gridrpc.GridError)
        assert until(lambda: not running(started))
        assert not server.socket.exists()
    assert (tmp_path / "state/audit.jsonl").exists()


def test_a_server_that_stops_gives_back_what_has_not_begun(tmp_path: Path, work: Path) -> None:
    with serving(tmp_path, offering(work)) as server, server.client() as grid:
        # From now on the client sends these ahead.
        assert [sum for [sum] in grid.starmap("work/add", [(1, item) for item in range(200)])] == [
            *range(1, 201)
        ]
        call = hold(grid, tmp_path, "work")
        queued = [grid.submit("work/add", 1, item) for item in range(20)]
        assert until(lambda: any(pool["queued"] > 1 for pool in server.state_of("pools")))
        assert server.stop() == 0
        assert isinstance(call.exception(LONG), gridrpc.WorkerLost)
        server.start()
        assert [one.result(LONG)[0] for one in queued] == [*range(1, 21)]


def test_a_server_that_stays_away(tmp_path: Path, work: Path) -> None:
    with serving(tmp_path, offering(work)) as server:
        with opened(servers=[server.url() + "?reconnect_timeout=1.5"]) as grid:
            assert grid.function("work/add")(1, 2) == [3]
            held = hold(grid, tmp_path, "work")
            # The first ones are at the server, and may have begun.
            queued = [grid.submit("work/add", 1, 2) for _ in range(5000)][-1]
            server.process.kill()
            with pytest.raises(gridrpc.WorkerLost):
                held.result(LONG)
            with pytest.raises(gridrpc.StartError, match="does not run"):
                queued.result(LONG)
            with pytest.raises(gridrpc.StartError, match="does not run"):
                grid.submit("work/add", 1, 2)
        server.process.wait(LONG)


def test_drain_lets_calls_finish(tmp_path: Path, work: Path) -> None:
    config = offering(work, workers=2)
    with serving(tmp_path, config) as server, server.client() as grid:
        call = hold(grid, tmp_path, "work", 7)
        assert "1 have begun" in server.command("drain")
        with pytest.raises(gridrpc.LimitReached, match="takes no new calls"):
            grid.submit("work/add", 1, 2).result(LONG)
        waiting = subprocess.Popen(
            [PROGRAM, "server", "-c", server.file, "drain", "--wait"],
            stdout=subprocess.PIPE,
            text=True,
        )
        (tmp_path / "gate").touch()
        assert call.result(LONG) == [7]
        assert "0 have begun" in waiting.communicate(timeout=LONG)[0]
        assert waiting.returncode == 0


def test_a_server_that_is_killed_during_a_thousand_calls(tmp_path: Path, work: Path) -> None:
    clients, each = 20, 50
    config = offering(work, workers=2)
    shared_before = {path.name for path in Path("/dev/shm").iterdir()}
    with serving(tmp_path, config) as server:
        started = threading.Semaphore(0)
        outcomes: list[Counter[str]] = []

        def calls(number: int) -> None:
            counted: Counter[str] = Counter()
            with server.client() as grid:
                begun = [
                    grid.submit("work/add", number, item) if item % 5 else
                    grid.submit("work/gated", str(tmp_path / "log"), str(tmp_path / "gate"), item)
                    for item in range(1, each + 1)
                ]  # fmt: skip
                started.release()
                for item, call in enumerate(begun, 1):
                    error = call.exception(LONG)
                    if error is None:
                        assert call.result()[0] == (number + item if item % 5 else item)
                    counted[type(error).__name__] += 1
            outcomes.append(counted)

        threads = [threading.Thread(target=calls, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for _ in range(clients):
            assert started.acquire(timeout=LONG)
        assert until(lambda: len(began(tmp_path / "log")) >= 2)
        left = descendants(server.pid)
        server.process.kill()
        server.process.wait()
        assert until(lambda: not running(left))
        # Clients connect again, and what had not begun runs now.
        (tmp_path / "gate").touch()
        server.start()
        for thread in threads:
            thread.join(timeout=LONG)
            assert not thread.is_alive()
        counted = sum(outcomes, Counter())
        assert counted.total() == clients * each
        assert set(counted) <= {"NoneType", "WorkerLost"}
        assert counted["NoneType"] > 0
        assert counted["WorkerLost"] > 0
        pids = descendants(server.pid) | {server.pid}
        server.stop()
        assert not running(pids)
    assert {path.name for path in Path("/dev/shm").iterdir()} <= shared_before
    left = {path.name for path in server.state.iterdir()}
    assert left <= {"audit.jsonl", "calls", "copies", "modules", "server.lock", "shared"}


def test_a_server_starts_after_it_was_killed(tmp_path: Path, work: Path) -> None:
    with serving(tmp_path, offering(work)) as server:
        server.process.kill()
        server.process.wait()
        assert server.socket.exists()
        server.start()
        with server.client() as grid:
            assert grid.function("work/add")(1, 2) == [3]


# ---- Clients


#: A client with a call that runs, queued calls and an object.
GREEDY = """
import sys, gridrpc

if __name__ == "__main__":
    url, folder = sys.argv[1:]
    grid = gridrpc.Grid(servers=[url])
    counter = grid.object("work/counter")
    counter.add(1)
    files = f"{folder}/log", f"{folder}/gate"
    calls = [grid.submit("work/gated", *files, item) for item in range(100)]
    print("begun", flush=True)
    calls[0].result()
"""


def test_a_client_that_is_killed_leaves_nothing(tmp_path: Path, work: Path) -> None:
    authority = Authority(tmp_path)
    ann, bob = authority.user("ann"), authority.user("bob")
    with serving(tmp_path, offering(work), authority) as server, server.client(bob) as grid:
        add = grid.function("work/add")
        assert add(1, 2) == [3]
        greedy = subprocess.Popen(
            start_command(tmp_path, GREEDY, server.url(ann)), stdout=subprocess.PIPE, text=True
        )
        assert greedy.stdout is not None
        assert greedy.stdout.readline() == "begun\n"
        assert until(lambda: began(tmp_path / "log") == [0])
        waiting = grid.submit("work/add", 3, 4)
        greedy.kill()
        greedy.communicate()
        # Its running call ends with its worker, its queued ones never run.
        assert waiting.result(LONG) == [7]
        assert until(lambda: server.module("work")["alive"] == 0)
        assert until(lambda: list(server.state_of("clients")) == ["bob"])
        assert began(tmp_path / "log") == [0]
        assert until(
            lambda: any(
                (record["user"], record["outcome"]) == ("ann", "Cancelled")
                for record in server.audit("end")
            )
        )


def start_command(folder: Path, source: str, *words: str) -> list[str]:
    import sys

    script = folder / "client.py"
    script.write_text(source)
    return [sys.executable, str(script), *words, str(folder)]


# ---- The disk


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_the_disk_of_the_audit_log_is_full(tmp_path: Path, work: Path) -> None:
    small = tmp_path / "small"
    small.mkdir(mode=0o700)
    with small_disk(small, "64k"):
        config = offering(work) + f"[audit]\nfile = '{small}/audit.jsonl'\nkeep = 0\n"
        with serving(tmp_path, config) as server, server.client() as grid:
            add = grid.function("work/add")
            assert add(1, 2) == [3]
            (small / "filler").write_bytes(
                bytes(os.statvfs(small).f_bavail * os.statvfs(small).f_frsize)
            )
            for item in range(300):
                assert add(item, 1) == [item + 1]
            assert server.says("cannot be written")
            (small / "filler").unlink()

            def lines() -> list[dict[str, Any]]:
                text = (small / "audit.jsonl").read_text().splitlines(keepends=True)
                return [json.loads(line) for line in text if line.endswith("\n")]

            # The log says itself how many records are missing.
            assert until(lambda: any(line["event"] == "dropped" for line in lines()))
            assert server.says("is written again")
            before = len(lines())
            assert add(5, 5) == [10]
            assert until(lambda: len(lines()) > before)
            # Each is a line of its own.
            assert all("event" in line for line in lines())
