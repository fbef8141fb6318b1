"""Programs in C and Fortran that name no server: a directory chooses it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_fortran import COMPILER, Fortran

sys.path.insert(0, str(Path(__file__).parents[1] / "gridrpc"))

from directories import IDL, Site
from processes import LONG, until
from servers import Server, began

OTHER = "Module where;\nDefine parent(IN long n, OUT int r[1]) { *r = 0; }\n"


class Program:
    """The program directory.c, which runs."""

    def __init__(self, file: Path, folder: Path, *words: str, **environment: str) -> None:
        usual = {"PATH": os.environ["PATH"], "HOME": str(folder), "GRIDRPC_WORKERS": "1"}
        self._process = subprocess.Popen(
            [file, *words], env={**usual, **environment}, cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.first = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __call__(self, step: str) -> str:
        """The line that the program prints for a step."""
        assert self._process.stdin is not None
        self._process.stdin.write(step + "\n")
        self._process.stdin.flush()
        return self._line()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(timeout=LONG) == 0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with made.stack:
        yield made


def compiled_module(prefix: Path, folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "where.idl").write_text(text)
    command = [prefix / "bin/gridrpc", "compile", "where.idl"]
    ran = subprocess.run(command, cwd=folder, check=True, timeout=LONG, capture_output=True)
    return folder / ran.stdout.decode().strip()


@pytest.fixture
def where(prefix: Path, tmp_path: Path) -> Path:
    return compiled_module(prefix, tmp_path / "module", IDL)


@pytest.fixture
def start(site: Site, compiled, tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Starts the program, without a name of a server, or with that of the directory."""
    started: list[Program] = []

    def run(function: str = "where/parent", server: str = "", **environment: str) -> Program:
        if not server:
            environment = {"GRIDRPC_DIRECTORY": url(site), **environment}
        program = Program(compiled("directory.c"), tmp_path, server, function, **environment)
        started.append(program)
        return program

    yield run
    for program in started:
        program.close()


def url(site: Site, scheme: str = "https") -> str:
    return f"{scheme}://localhost:{site.directory.port}?credentials={site.user}"


def kill(server: Server) -> None:
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait(timeout=LONG)


@pytest.mark.parametrize("is_named", [False, True])
def test_calls_go_to_some_server(site: Site, where: Path, start, is_named: bool) -> None:
    site.serve("one", where)
    site.serve("two", where)
    program = start(server=url(site, "directory") if is_named else "")
    assert program.first == "ready"
    assert int(program("call")) > 0
    assert program("scale") == "done"
    assert program("async") == "done"
    if not is_named:
        assert int(program("ninf")) > 0
    assert "stays at its server" in program("detach")


def test_servers_take_turns(site: Site, where: Path, start) -> None:
    site.serve("one", where)
    site.serve("two", where)
    program = start(server=f"{url(site, 'directory')}&policy=round-robin")
    assert len({program("call") for _ in range(4)}) == 2


def test_a_full_server_is_skipped(site: Site, where: Path, start, tmp_path: Path) -> None:
    first = site.serve("one", where, more="[modules.where]\nmost_queued = 0\n")
    second = site.serve("two", where)
    with first.client(site.user) as direct, second.client(site.user) as other:
        log, gate = str(tmp_path / "log"), tmp_path / "gate"
        held = direct.submit("where/hold", log, str(gate), 7)
        assert until(lambda: began(tmp_path / "log") == [7])
        free = int(other.function("where/parent")(4)[0])
        program = start(server=f"{url(site, 'directory')}&policy=round-robin")
        assert {int(program("call")) for _ in range(5)} == {free}
        gate.touch()
        held.result()


def test_a_server_that_dies_is_left_out(site: Site, where: Path, start) -> None:
    first = site.serve("one", where)
    second = site.serve("two", where)
    program = start(server=f"{url(site, 'directory')}&policy=round-robin")
    assert len({program("call") for _ in range(4)}) == 2
    with second.client(site.user) as direct:
        alive = int(direct.function("where/parent")(4)[0])
    kill(first)
    # Calls that the server had begun are lost; no others are.
    answers = [program("call") for _ in range(6)]
    assert sum(answer.startswith("error") for answer in answers) <= 1, answers
    assert set(answers[1:]) == {str(alive)}
    # It comes back, on its port.
    config = first.file.read_text()
    first.file.write_text(config.replace("port = 0\n", f"port = {first.port}\n"))
    first.start()
    assert until(lambda: len({program("call") for _ in range(4)}) == 2)
    kill(first)
    kill(second)
    assert until(lambda: "no server takes a call" in program("call"))


def test_calls_go_on_without_the_directory(site: Site, where: Path, start) -> None:
    site.serve("one", where)
    program = start()
    assert int(program("call")) > 0
    site.directory.stop(signal.SIGKILL)
    assert len({program("call") for _ in range(20)}) == 1
    alone = start()
    assert alone.first.startswith("error 5: directory https://localhost:"), alone.first
    assert "start one with `gridrpc directory start`" in alone.first


def test_a_function_that_no_server_offers(site: Site, where: Path, start) -> None:
    site.serve("one", where)
    missing = start("where/parents")
    assert missing.first == (
        "error 6: no server offers `where/parents`; similar names: `where/parent`"
    )
    # A module on this machine is the last resort.
    local = start("where/parent", GRIDRPC_DIRECTORY="http://localhost:1",
                  GRIDRPC_MODULE_PATH=str(where.parent))  # fmt: skip
    assert local.first == "ready"
    assert int(local("call")) > 0
    for server in ("directory://", "directory://localhost:1?policy=best", "https://a b"):
        assert start(server=server).first.startswith("error 5: "), server


def test_another_interface_with_the_same_name(
    site: Site, prefix: Path, where: Path, start, tmp_path: Path
) -> None:
    site.serve("one", where)
    program = start(server=f"{url(site, 'directory')}&policy=round-robin")
    assert int(program("call")) > 0
    other = compiled_module(prefix, tmp_path / "other", OTHER)
    site.serve("two", other, is_listed=False)
    assert until(lambda: "different interfaces" in site.command("search", "where/parent"))
    assert len({program("call") for _ in range(6)}) == 1


@pytest.mark.skipif(not shutil.which(COMPILER), reason=f"there is no {COMPILER}")
def test_programs_in_fortran(site: Site, where: Path, prefix: Path, tmp_path: Path) -> None:
    site.serve("one", where)
    fortran = Fortran(prefix)
    program = fortran.compiled("directory", tmp_path)
    environment = {**os.environ, "HOME": str(tmp_path), "GRIDRPC_DIRECTORY": url(site)}
    done = subprocess.run(
        [program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LONG,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
