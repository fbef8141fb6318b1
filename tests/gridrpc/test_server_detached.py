"""Detached calls of a server, and its restarts."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import PROGRAM, CompileIdl, opened
from processes import LONG, fill, run_script, small_disk, until

#: `gated` appends a line to a file, and then waits for another file; `again` may run twice.
IDL = r"""
Module work;
Globals {
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    static void gate(const char *log, const char *name, long n) {
        char line[32];
        int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int length = snprintf(line, sizeof line, "%ld\n", n);
        if (write(file, line, length) != length) abort();
        close(file);
        while (access(name, F_OK)) usleep(1000);
    }
}
Define add(IN long a, IN long b, OUT long r[1]) { *r = a + b; }
Define twice(IN long n, IN double x[n], OUT double y[n])
    Idempotent
    { for (long i = 0; i < n; i++) y[i] = 2 * x[i]; }
Define gated(IN string log, IN string name, IN long n, OUT long r[1])
    { gate(log, name, n); *r = n; }
Define again(IN string log, IN string name, IN long n, OUT long r[1])
    Idempotent
    { gate(log, name, n); *r = n; }
Define changed(IN string log, IN string name, IN long n, INOUT double x[n])
    { gate(log, name, 0); for (long i = 0; i < n; i++) x[i] += 1; }
Define mixed(IN int n, IN int m, INOUT double x[n][m], IN string who, OUT string greeting)
    {
        for (int i = 0; i < n * m; i++) x[i] += 1;
        char *text = malloc(strlen(who) + 7);
        sprintf(text, "hello %s", who);
        *greeting = text;
    }
Define crash(IN long n) { (void)n; abort(); }
Define zeros(IN long n, OUT uint8 x[n]) { memset(x, 0, n); }
Define ask(IN int n, OUT int r[n], answer(IN int i, OUT int a[1]))
    { for (int i = 0; i < n; i++) answer(i, r + i); }
DefClass counter {
    DefState { static long value; }
    DefMethod add(IN long n, OUT long r[1]) { *r = value += n; }
}
"""


@pytest.fixture(autouse=True)
def _no_modules_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRIDRPC_CATALOGUE", str(tmp_path / "catalogue"))
    monkeypatch.delenv("GRIDRPC_MODULE_PATH", raising=False)


def program(*arguments: object) -> str:
    command = [PROGRAM, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


class Credentials:
    """An authority, a server's certificate, and those of users."""

    def __init__(self, folder: Path) -> None:
        self._users = folder / "users"
        self._authority = folder / "authority"
        self._users.mkdir()
        program("ca", "init", "--folder", self._authority, "--name", "test")
        self.server = self._users / "server"
        hosts = ("--host", "localhost", "--host", "127.0.0.1")
        program("ca", "server", "lab", *hosts, "--out", self.server, "--folder", self._authority)

    def user(self, name: str) -> Path:
        folder, signed = self._users / name, self._users / f"{name}.pem"
        program("ca", "request", name, "--out", folder)
        program("ca", "sign", folder / "request.pem", "--out", signed, "--folder", self._authority)
        program("ca", "install", signed, "--out", folder)
        return folder


class Lab:
    """A server that is ended and started again."""

    def __init__(
        self,
        folder: Path,
        module: Path,
        more: str = "",
        workers: int = 2,
        credentials: Credentials | None = None,
    ) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.calls = self.state / "calls"
        self._printed = folder / "printed"
        self.file = folder / "server.toml"
        port = "" if credentials is None else "port = 0\n"
        text = (
            f'[server]\nname = "lab"\nstate = "{self.state}"\n{port}[workers]\ncount = {workers}\n'
        )
        text += f'[modules]\nfiles = ["{module}"]\n{more}'
        if credentials is not None:
            files = {
                "certificate": credentials.server / "certificate.pem",
                "key": credentials.server / "key.pem",
                "authority": credentials.server / "authority.pem",
            }
            text += "[tls]\n" + "".join(f'{key} = "{file}"\n' for key, file in files.items())
        self.file.write_text(text)
        self.start()

    def start(self) -> None:
        with self._printed.open("ab") as output:
            begin = output.tell()
            self.process = subprocess.Popen(
                [PROGRAM, "server", "-c", self.file, "start"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

        def line() -> str:
            lines = self._printed.read_bytes()[begin:].decode().splitlines()
            return next((line for line in lines if " listens at " in line), "")

        assert until(lambda: bool(line()) or self.process.poll() is not None)
        assert line(), self._printed.read_text()
        _, _, port = line().rpartition(":")
        self.port = int(port) if " and " in line() else 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=LONG)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=LONG)

    def restart(self) -> None:
        self.kill()
        self.start()

    @property
    def url(self) -> str:
        return f"gridrpc+unix://{self.state / 'socket'}"

    @contextmanager
    def client(self) -> Iterator[Grid]:
        with opened(servers=[self.url]) as grid:
            yield grid

    def stages(self) -> dict[str, int]:
        """Number of files of each state."""
        endings = [name.rpartition(".")[2] for name in os.listdir(self.calls)]
        return {ending: endings.count(ending) for ending in endings}


@contextmanager
def lab(folder: Path, module: Path, more: str = "", workers: int = 2) -> Iterator[Lab]:
    served = Lab(folder, module, more, workers)
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture
def module(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def test_another_program_takes_all_results(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served:
        detached = run_script(
            tmp_path,
            f"""
            import gridrpc, numpy as np
            with gridrpc.Grid(servers="{served.url}") as grid:
                print(grid.detach("work/mixed", 2, 3, np.zeros((2, 3)), "Ada"))
                print(grid.function("work/add").detach(2, 3))
            """,
        )
        assert detached.returncode == 0, detached.stderr
        mixed, added = detached.stdout.split()
        assert mixed.startswith(f"{served.url}/d/")
        call = gridrpc.attach(mixed, credentials=None)
        result = call.result(timeout=LONG)
        np.testing.assert_array_equal(result.x, np.ones((2, 3)))
        assert result.greeting == "hello Ada"
        assert call.done()
        assert call.detach() == mixed
        assert not call.cancel()
        # Any number of times, and in any grid of the server.
        with served.client() as grid:
            assert [grid.attach(added).result(timeout=LONG) for _ in range(3)] == [5, 5, 5]
            known = {call.id: (call.function, call.state) for call in grid.detached_calls()}
            assert known == {mixed: ("work/mixed", "done"), added: ("work/add", "done")}


def test_large_arguments_and_results(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.client() as grid:
        array = np.arange(1e6)
        call = grid.attach(grid.detach("work/twice", array))
        np.testing.assert_array_equal(call.result(timeout=LONG), 2 * array)
        changed = grid.attach(grid.detach("work/mixed", 1000, 500, np.zeros((1000, 500)), "x"))
        np.testing.assert_array_equal(changed.result(timeout=LONG).x, np.ones((1000, 500)))
        shared = grid.share(array)
        call = grid.attach(grid.detach("work/twice", shared))
        np.testing.assert_array_equal(call.result(timeout=LONG), 2 * array)


def test_files_of_calls_are_for_the_server_alone(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.client() as grid:
        gate = tmp_path / "gate"
        ids = [grid.detach("work/gated", str(tmp_path / "log"), str(gate), n) for n in range(6)]
        assert until(lambda: served.stages() == {"running": 4, "queued": 2})
        status = json.loads(program("server", "-c", served.file, "status", "--json"))
        assert status["detached"] == {"queued": 2, "running": 4, "ended": 0}
        for file in (served.calls, *served.calls.iterdir()):
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
        gate.touch()
        assert [grid.attach(one).result(timeout=LONG) for one in ids] == list(range(6))
        assert served.stages() == {"ended": 6}
        assert all(
            stat.S_IMODE(file.stat().st_mode) & 0o077 == 0 for file in served.calls.iterdir()
        )


def test_errors_of_functions_reach_whoever_attaches(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.client() as grid:
        crashed = grid.attach(grid.detach("work/crash", 1))
        with pytest.raises(gridrpc.WorkerLost, match="work/crash was lost with its worker"):
            crashed.result(timeout=LONG)
        with pytest.raises(gridrpc.ArgumentError):
            grid.detach("work/add", "one", 2)


def test_calls_that_need_their_client_cannot_be_detached(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.client() as grid:
        with pytest.raises(gridrpc.ArgumentError, match="called back"):
            grid.detach("work/ask", 2, lambda i: i)
        with pytest.raises(gridrpc.FunctionNotFound):
            grid.detach("work/nothing")
        with grid.object("work/counter") as counter:
            with pytest.raises(TypeError, match="object"):
                counter.add.detach(1)
            with pytest.raises((TypeError, ValueError)):
                counter.add.submit(1).detach()
    with (
        opened(workers=1, worker="native", modules=[module]) as grid,
        pytest.raises(TypeError, match="workers of this grid"),
    ):
        grid.detach("work/add", 1, 2)


def test_ids_that_are_wrong(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.client() as grid:
        grid.detach("work/add", 1, 2)
        for number in ("0" * 32, "..", "0" * 31 + "g", "F" * 32, "%2e%2e"):
            with pytest.raises(LookupError, match="there is no such call"):
                grid.attach(f"{served.url}/d/{number}")
        for wrong in ("", "work", f"{served.url}/d/", f"{served.url}/d/../../secret"):
            with pytest.raises(ValueError, match="is not the id of a detached call"):
                grid.attach(wrong)
        with pytest.raises(gridrpc.ServerNotFound):
            grid.attach("gridrpc://elsewhere:1/d/" + "0" * 32)


def test_a_call_of_another_user_is_not_there(tmp_path: Path, module: Path) -> None:
    credentials = Credentials(tmp_path)
    served = Lab(tmp_path, module, credentials=credentials)
    try:
        url = f"gridrpc://127.0.0.1:{served.port}"
        alice, bob = credentials.user("alice"), credentials.user("bob")
        with opened(servers=[f"{url}?credentials={alice}"]) as grid:
            mine = grid.detach("work/add", 1, 2)
            gate = tmp_path / "gate"
            gated = grid.detach("work/gated", str(tmp_path / "log"), str(gate), 7)
            with opened(servers=[f"{url}?credentials={bob}"]) as other:
                for one in (mine, gated):
                    with pytest.raises(LookupError, match=r"there is no such call.*user `bob`"):
                        other.attach(one)
                assert other.detached_calls() == []
            assert gridrpc.attach(mine, credentials=alice).result(timeout=LONG) == 3
            with pytest.raises(LookupError, match="user `bob`"):
                gridrpc.attach(mine, credentials=bob)
            gate.touch()
            assert grid.attach(gated).result(timeout=LONG) == 7
    finally:
        served.stop()


def test_cancelled_calls_end_whether_they_wait_or_run(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module, workers=1) as served, served.client() as grid:
        log, gate = tmp_path / "log", tmp_path / "gate"
        ids = [grid.detach("work/gated", str(log), str(gate), n) for n in range(5)]
        calls = [grid.attach(one) for one in ids]
        assert until(lambda: lines(log) == ["0"])
        assert calls[4].cancel()
        assert calls[0].cancel()
        for call in (calls[0], calls[4]):
            with pytest.raises(gridrpc.CallCancelled):
                call.result(timeout=LONG)
            assert call.cancelled()
        gate.touch()
        assert [call.result(timeout=LONG) for call in calls[1:4]] == [1, 2, 3]
        assert "4" not in lines(log)


def test_calls_that_wait_are_detached(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module, workers=1) as served:
        log, gate = tmp_path / "log", tmp_path / "gate"
        with served.client() as grid:
            x = np.full(3, 4.0)
            first = grid.submit("work/gated", str(log), str(gate), 0)
            assert until(lambda: lines(log) == ["0"])
            calls = [grid.submit("work/gated", str(log), str(gate), n) for n in range(1, 20)]
            last, here, gone = grid.submit("work/twice", x), calls[-1], calls[-2]
            one = last.detach()
            assert (last.detach(), here.detach()) == (one, here.detach())
            stay = gone.detach()
            assert gone.cancel()
            with pytest.raises(gridrpc.CallCancelled):
                gone.result(timeout=LONG)
            with pytest.raises(gridrpc.CallCancelled):
                grid.attach(stay).result(timeout=LONG)
            gate.touch()
            assert list(last.result(timeout=LONG)) == [8, 8, 8]
            assert here.result(timeout=LONG) == 19
            assert first.result(timeout=LONG) == 0
            with pytest.raises(ValueError, match="has ended"):
                first.detach()
            assert [call.result(timeout=LONG) for call in calls[:-2]] == [*range(1, 18)]
            gate.unlink()
            grid.submit("work/gated", str(log), str(gate), 50)
            assert until(lambda: "50" in lines(log))
            waiting = [grid.submit("work/gated", str(log), str(gate), n) for n in range(60, 100)]
            # The worker may have got the first ones ahead of time.
            left = [call.detach() for call in waiting[:-21:-1]][-1]
            served.restart()
        gate.touch()
        with served.client() as grid:
            assert list(grid.attach(one).result(timeout=LONG)) == [8, 8, 8]
            assert grid.attach(left).result(timeout=LONG) == 80
        # Each has run once, except for the one that was cancelled.
        ran = lines(log)
        assert len(ran) == len(set(ran))
        assert "18" not in ran


@pytest.mark.parametrize("function", ["work/gated", "work/again"])
def test_a_call_that_runs_is_detached_and_runs_once(
    function: str, tmp_path: Path, module: Path
) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    with lab(tmp_path, module, workers=1) as served:
        left = run_script(
            tmp_path,
            f"""
            import os, time, gridrpc
            grid = gridrpc.Grid(servers="{served.url}")
            call = grid.submit("{function}", "{log}", "{gate}", 7)
            while not os.path.exists("{log}"):
                time.sleep(0.01)
            print(call.detach(), call.detach(), call.done(), flush=True)
            os._exit(0)
            """,
        )
        assert left.returncode == 0, left.stderr
        one, again, done = left.stdout.split()
        assert (one, done) == (again, "False")
        with served.client() as grid:
            assert {call.id: call.state for call in grid.detached_calls()} == {one: "running"}
            taken = grid.attach(one)
            gate.touch()
            assert taken.result(timeout=LONG) == 7
            # The worker is free again.
            assert grid.submit("work/add", 1, 2).result(timeout=LONG) == 3
        assert lines(log) == ["7"]

        def outcomes() -> list[str]:
            """What the audit log, which comes a moment later, says of it."""
            audit = map(json.loads, (served.state / "audit.jsonl").read_text().splitlines())
            return [one["outcome"] for one in audit if one.get("function") == function]

        assert until(lambda: outcomes() == ["ok"])


def test_a_detached_call_continues_in_its_program(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module, workers=1) as served, served.client() as grid:
        log, gate = tmp_path / "log", tmp_path / "gate"
        runs, sent, *_ = [grid.submit("work/gated", str(log), str(gate), n) for n in range(8)]
        assert until(lambda: lines(log) == ["0"])
        # One that the server has got and not begun, too.
        assert runs.detach() != sent.detach()
        stopped = grid.submit("work/gated", str(log), str(gate), 9)
        gate.touch()
        assert [runs.result(timeout=LONG), sent.result(timeout=LONG)] == [0, 1]
        assert stopped.result(timeout=LONG) == 9
        gate.unlink()
        stopped = grid.submit("work/gated", str(log), str(gate), 10)
        assert until(lambda: "10" in lines(log))
        stopped.detach()
        assert stopped.cancel()
        with pytest.raises(gridrpc.CallCancelled):
            stopped.result(timeout=LONG)
        ran = lines(log)
        assert len(ran) == len(set(ran))


def test_arrays_of_a_call_that_runs_are_detached(tmp_path: Path, module: Path) -> None:
    more = '[modules.work]\nisolation = "user"\n'
    with lab(tmp_path, module, more, workers=1) as served:
        log, gate = tmp_path / "log", tmp_path / "gate"
        with served.client() as grid:
            # In memory that the workers share with this program.
            x = np.arange(1e6)
            call = grid.submit("work/changed", str(log), str(gate), x)
            assert until(lambda: lines(log) == ["0"])
            one = call.detach()
            del call
        with served.client() as grid:
            others = [grid.submit("work/twice", np.ones(1_000_000)) for _ in range(3)]
            gate.touch()
            changed = grid.attach(one).result(timeout=LONG)
            np.testing.assert_array_equal(changed, np.arange(1e6) + 1)
            assert all((other.result(timeout=LONG) == 2).all() for other in others)


def test_a_restart_ends_a_running_call_that_was_detached(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module, workers=2) as served:
        log, gate = tmp_path / "log", tmp_path / "gate"
        with served.client() as grid:
            calls = [
                grid.submit(f"work/{name}", str(log), str(gate), n)
                for n, name in enumerate(("gated", "again"))
            ]
            assert until(lambda: sorted(lines(log)) == ["0", "1"])
            once, again = [call.detach() for call in calls]
            assert served.stages() == {"running": 1, "queued": 1}
            served.restart()
        gate.touch()
        with served.client() as grid:
            with pytest.raises(gridrpc.WorkerLost, match="is not idempotent: it may have run"):
                grid.attach(once).result(timeout=LONG)
            assert grid.attach(again).result(timeout=LONG) == 1
        assert sorted(lines(log)) == ["0", "1", "1"]


def test_a_call_that_waits_for_a_limit_is_detached(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module, "[everyone]\ncalls = 1\n") as served:
        log, gate = tmp_path / "log", tmp_path / "gate"
        with served.client() as grid:
            calls = [grid.submit("work/gated", str(log), str(gate), n) for n in range(2)]
            assert until(lambda: lines(log) == ["0"])
            # The server has both, as it has two workers.
            waits, runs = calls[1].detach(), calls[0].detach()
            assert served.stages() == {"queued": 1, "running": 1}
        gate.touch()
        with served.client() as grid:
            taken = [grid.attach(one).result(timeout=LONG) for one in (waits, runs)]
        assert taken == [1, 0]
        assert lines(log) == ["0", "1"]


def test_running_calls_that_cannot_be_detached_continue(tmp_path: Path, module: Path) -> None:
    more = '[results]\nbytes = "10 B"\n'
    with lab(tmp_path, module, more, workers=1) as served, served.client() as grid:
        log, gate = tmp_path / "log", tmp_path / "gate"
        call = grid.submit("work/gated", str(log), str(gate), 0)
        assert until(lambda: lines(log) == ["0"])
        with pytest.raises(gridrpc.LimitReached, match=r"`bytes = 10` in \[results\]"):
            call.detach()
        gate.touch()
        assert call.result(timeout=LONG) == 0
        with pytest.raises(ValueError, match="has ended"):
            call.detach()
        assert grid.detached_calls() == []


def test_a_call_that_the_server_refuses_to_detach_has_failed(tmp_path: Path, module: Path) -> None:
    more = '[results]\nbytes = "1 KiB"\n'
    with lab(tmp_path, module, more, workers=1) as served, served.client() as grid:
        log, gate = tmp_path / "log", tmp_path / "gate"
        first = grid.submit("work/gated", str(log), str(gate), 0)
        assert until(lambda: lines(log) == ["0"])
        calls = [grid.submit("work/twice", np.zeros(1000)) for _ in range(20)]
        with pytest.raises(gridrpc.LimitReached, match=r"`bytes = 1024` in \[results\]"):
            calls[-1].detach()
        with pytest.raises(gridrpc.WorkerLost, match=r"`bytes = 1024` in \[results\]"):
            calls[-1].result(timeout=LONG)
        gate.touch()
        assert first.result(timeout=LONG) == 0
        assert all(len(call.result(timeout=LONG)) == 1000 for call in calls[:-1])


def test_closing_a_grid_cancels_no_detached_call(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served:
        log, gate = tmp_path / "log", tmp_path / "gate"
        with served.client() as grid:
            gated = grid.detach("work/gated", str(log), str(gate), 1)
            call = grid.attach(gated)
        with pytest.raises(gridrpc.GridClosed):
            call.result(timeout=LONG)
        with served.client() as grid:
            gate.touch()
            assert grid.attach(gated).result(timeout=LONG) == 1
            assert grid.submit("work/add", 1, 2).result(timeout=LONG) == 3


def test_calls_survive_the_server(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module, workers=1) as served:
        log, gate = tmp_path / "log", tmp_path / "gate"
        with served.client() as grid:
            begun = grid.detach("work/gated", str(log), str(gate), 0)
            assert until(lambda: lines(log) == ["0"])
            # More than the server has ahead.
            waiting = [grid.detach("work/gated", str(log), str(gate), n) for n in range(1, 8)]
            ended = grid.attach(begun)
            served.restart()
            with pytest.raises(
                gridrpc.WorkerLost, match="running when server `lab` stopped, and is not idempotent"
            ):
                ended.result(timeout=LONG)
            gate.touch()
            outcomes = []
            for number, one in enumerate(waiting, 1):
                try:
                    assert grid.attach(one).result(timeout=LONG) == number
                    outcomes.append(True)
                except gridrpc.WorkerLost:
                    outcomes.append(False)
            # The core may have had the next one ahead, which then counts as begun.
            assert outcomes.count(False) <= 1
            assert len(lines(log)) == len(set(lines(log)))


def test_idempotent_calls_run_again_after_the_server_was_killed(
    tmp_path: Path, module: Path
) -> None:
    with lab(tmp_path, module, workers=1) as served, served.client() as grid:
        log, gate = tmp_path / "log", tmp_path / "gate"
        ids = [grid.detach("work/again", str(log), str(gate), n) for n in range(3)]
        waiting = [grid.attach(one) for one in ids]
        assert until(lambda: lines(log) == ["0"])
        served.restart()
        assert until(lambda: lines(log) == ["0", "0"])
        gate.touch()
        assert [call.result(timeout=LONG) for call in waiting] == [0, 1, 2]
        # A restart in order keeps results, too.
        served.stop()
        served.start()
        assert [grid.attach(one).result(timeout=LONG) for one in ids] == [0, 1, 2]


@pytest.mark.parametrize("seed", range(4))
def test_no_promise_is_broken_by_kills_at_random_moments(
    tmp_path: Path, module: Path, seed: int
) -> None:
    drawn = random.Random(seed)
    with lab(tmp_path, module) as served, served.client() as grid:
        promised: dict[str, float] = {}
        for _ in range(3):
            end = time.monotonic() + drawn.uniform(0.02, 0.4)
            killed = False
            while not killed:
                value = drawn.random()
                if time.monotonic() > end:
                    served.kill()
                    killed = True
                try:
                    promised[
                        grid.detach("work/twice", np.full(drawn.randrange(1, 2000), value))
                    ] = value
                except (ConnectionError, gridrpc.StartError):
                    assert killed
            served.start()
        assert promised
        for one, value in promised.items():
            assert set(grid.attach(one).result(timeout=LONG)) == {2 * value}
        assert "queued" not in served.stages()


def test_many_calls_and_a_quick_restart(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.client() as grid:
        function = grid.function("work/add")
        ids = [function.detach(n, 1) for n in range(1000)]
        calls = [grid.attach(one) for one in ids]
        assert [call.result(timeout=LONG) for call in calls] == list(range(1, 1001))
        served.stop()
        # Thousands more that have ended.
        one = next(served.calls.glob("*.ended"))
        for number in range(5000):
            shutil.copy(one, served.calls / f"{number:032x}.ended")
        begin = time.monotonic()
        served.start()
        assert time.monotonic() - begin < 5
        assert len(grid.detached_calls()) == 6000
        assert grid.attach(ids[500]).result(timeout=LONG) == 501


def test_a_full_disk_refuses_what_is_detached_and_nothing_else(
    tmp_path: Path, module: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with small_disk(state, "16m"):
        state.chmod(0o700)
        with lab(tmp_path, module) as served, served.client() as grid:
            gate = tmp_path / "gate"
            early = grid.detach("work/gated", str(tmp_path / "log"), str(gate), 1)
            filler = served.state / "filler"
            fill(filler)
            with pytest.raises(gridrpc.RemoteError, match=r"cannot be detached: .*No space left"):
                grid.detach("work/twice", np.zeros(100_000))
            assert grid.submit("work/add", 1, 2).result(timeout=LONG) == 3
            # The result has no place on disk, and is not lost.
            gate.touch()
            assert grid.attach(early).result(timeout=LONG) == 1
            filler.unlink()
            late = grid.detach("work/twice", np.ones(1000))
            assert grid.attach(late).result(timeout=LONG)[0] == 2
            assert until(lambda: served.stages() == {"ended": 2})
            served.restart()
            assert grid.attach(early).result(timeout=LONG) == 1


def test_results_are_removed_when_they_are_old_or_many(tmp_path: Path, module: Path) -> None:
    more = '[results]\nkeep_days = 2\nbytes = "1 MiB"\n'
    with lab(tmp_path, module, more) as served, served.client() as grid:
        old = grid.detach("work/add", 1, 2)
        assert grid.attach(old).result(timeout=LONG) == 3
        served.stop()
        (file,) = served.calls.glob("*.ended")
        past = time.time() - 3 * 24 * 3600
        os.utime(file, (past, past))
        served.start()
        assert until(lambda: "removed" in served.stages())
        with pytest.raises(LookupError, match=r"removed after 2 days \(`keep_days`"):
            grid.attach(old).result(timeout=LONG)
        many = []
        for _ in range(4):
            many.append(grid.detach("work/zeros", 400_000))
            grid.attach(many[-1]).result(timeout=LONG)
        with pytest.raises(
            LookupError, match=r"make room for later ones \(`bytes = 1048576` in \[results\]"
        ):
            grid.attach(many[0]).result(timeout=LONG)
        assert len(grid.attach(many[3]).result(timeout=LONG)) == 400_000
        with pytest.raises(gridrpc.LimitReached, match=r"`bytes = 1048576` in \[results\]"):
            grid.detach("work/twice", np.zeros(200_000))
        with pytest.raises(gridrpc.LimitReached, match="more than `bytes = 1048576`"):
            grid.attach(grid.detach("work/zeros", 2_000_000)).result(timeout=LONG)


def test_limits_of_users_hold_for_detached_calls(tmp_path: Path, module: Path) -> None:
    more = "[everyone]\ncalls = 1\nqueued = 2\n"
    with lab(tmp_path, module, more) as served, served.client() as grid:
        log, gate = tmp_path / "log", tmp_path / "gate"
        ids = [grid.detach("work/gated", str(log), str(gate), n) for n in range(3)]
        assert until(lambda: lines(log) == ["0"])
        with pytest.raises(gridrpc.LimitReached, match="queued"):
            grid.detach("work/gated", str(log), str(gate), 9)
        assert lines(log) == ["0"]
        gate.touch()
        assert [grid.attach(one).result(timeout=LONG) for one in ids] == [0, 1, 2]
        assert grid.attach(grid.detach("work/add", 1, 2)).result(timeout=LONG) == 3


def test_attached_calls_wait_for_a_server_that_is_away(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.client() as grid:
        gate = tmp_path / "gate"
        one = grid.detach("work/again", str(tmp_path / "log"), str(gate), 5)
        call = grid.attach(one)
        served.kill()
        with pytest.raises(ConnectionError, match="does not run"):
            grid.attach(one)
        with pytest.raises(ConnectionError, match="does not run"):
            grid.detach("work/add", 1, 2)
        assert not call.wait(timeout=1)
        served.start()
        gate.touch()
        assert call.result(timeout=LONG) == 5


def test_calls_of_a_client_when_its_server_restarts(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.client() as grid:
        log, gate = tmp_path / "log", tmp_path / "gate"
        again = [grid.submit("work/again", str(log), str(gate), n) for n in range(2)]
        assert until(lambda: len(lines(log)) == 2)
        served.restart()
        assert until(lambda: len(lines(log)) == 4)
        gate.touch()
        assert [call.result(timeout=LONG) for call in again] == [0, 1]
        gate.unlink()
        log.unlink()
        once = grid.submit("work/gated", str(log), str(gate), 3)
        assert until(lambda: lines(log) == ["3"])
        served.kill()
        with pytest.raises(gridrpc.WorkerLost, match="socket"):
            once.result(timeout=LONG)
        served.start()
        gate.touch()
        assert grid.submit("work/add", 1, 2).result(timeout=LONG) == 3
        assert lines(log) == ["3"]
