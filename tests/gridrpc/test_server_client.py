"""Clients of a server: functions that it offers are called as those of a module of this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from grids import PROGRAM, CompileIdl, opened
from processes import until

IDL = """
Module linear;
Define scale(IN int n, IN double a, INOUT double x[n]) "Scale a vector."
{ for (int i = 0; i < n; i++) x[i] *= a; }
Define sum(IN int n, IN double x[n], OUT double s[1])
{ *s = 0; for (int i = 0; i < n; i++) *s += x[i]; }
DefClass counter {
    DefState { static long value; }
    DefMethod add(IN long n, OUT long r[1]) { *r = value += n; }
}
"""
#: The same functions for clients, with another text.
REWORDED = IDL.replace("Scale a vector.", "Multiply a vector.")
#: `scale` has another parameter.
OTHER = IDL.replace("IN double a, INOUT", "IN double a, IN double b, INOUT").replace(
    "*= a", "*= a + b"
)


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(autouse=True)
def _no_modules_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRIDRPC_CATALOGUE", str(tmp_path / "catalogue"))
    monkeypatch.delenv("GRIDRPC_MODULE_PATH", raising=False)


class Server:
    """A server with a watched folder."""

    def __init__(self, folder: Path, compile_idl: CompileIdl) -> None:
        self.watched = folder / "watched"
        self.watched.mkdir()
        self._compile = compile_idl
        self.socket = folder / "server.sock"
        self.url = f"gridrpc+unix://{self.socket}"
        file = folder / "server.toml"
        file.write_text(
            f'[server]\nstate = "{folder / "state"}"\nsocket = "{self.socket}"\n'
            f'[workers]\ncount = 2\n[modules]\nfolders = ["{self.watched}"]\n'
        )
        self._process = subprocess.Popen([PROGRAM, "server", "-c", file, "start"])
        assert until(self.socket.exists)

    def hash(self) -> str:
        shown = program("describe", "--server", self.url, "--idl", "linear")
        return shown.stdout if shown.returncode == 0 else ""

    def publish(self, idl: str) -> None:
        before = self.hash()
        new = self.watched / ".new"
        shutil.copy(self._compile(idl), new)
        new.rename(self.watched / "linear.so")
        assert until(lambda: self.hash() not in {before, ""})

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)


@pytest.fixture
def server(tmp_path: Path, compile_idl: CompileIdl) -> Iterator[Server]:
    made = Server(tmp_path, compile_idl)
    try:
        made.publish(IDL)
        yield made
    finally:
        made.stop()


def test_functions_are_called_as_those_of_a_module_here(server: Server) -> None:
    with opened(servers=[server.url]) as grid:
        x = np.arange(4.0)
        grid.function("linear/scale")(2.0, x)
        assert list(x) == [0, 2, 4, 6]
        assert grid.submit("linear/sum", x).result() == [12]
        # A bare name, and a function that is bound to its server.
        assert grid.function("sum")(x) == [12]
        assert grid.function("linear/sum", server=str(server.socket))(x) == [12]
        items = [np.full(3, i, float) for i in range(300)]
        assert [int(s[0]) for s in grid.map("linear/sum", items)] == [3 * i for i in range(300)]
        counted = {stats.name for stats in grid.stats().functions}
        assert counted == {"linear/scale", "linear/sum"}
        assert grid.function("linear/scale").path == ""
        assert "Scale a vector." in (grid.function("linear/scale").__doc__ or "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("linear/scal", "no function `linear/scal` at server `.*`; did you mean `linear/scale`?"),
        ("other/sum", "did you mean `linear/sum`"),
        ("smu", "did you mean `linear/sum`"),
        ("nothing/like_this", "no function `nothing/like_this` at server `[^;]*`$"),
    ],
)
def test_functions_that_nobody_offers(server: Server, name: str, text: str) -> None:
    with opened(servers=[server.url]) as grid, pytest.raises(gridrpc.FunctionNotFound, match=text):
        grid.function(name)


def test_a_grid_with_workers_of_its_own_runs_both(server: Server, compile_idl: CompileIdl) -> None:
    own = compile_idl("Module own; Define one(OUT int r[1]) { *r = 1; }")
    with opened(workers=1, servers=[server.url], modules=[own]) as grid:
        assert grid.function("own/one")()[0] == 1
        assert grid.function("linear/sum")(np.ones(5)) == [5]
        assert grid.submit(len, "four").result() == 4
        with pytest.raises(gridrpc.FunctionNotFound, match=r"in `.*`, and none at server `"):
            grid.function("own_/two")


def test_servers_of_others_receive_no_code(server: Server, compile_idl: CompileIdl) -> None:
    own = compile_idl("Module own; Define one(OUT int r[1]) { *r = 1; }")
    with opened(servers=[server.url], modules=[own]) as grid:
        with pytest.raises(gridrpc.NotTrusted, match="a Python function"):
            grid.submit(len, "four")
        with pytest.raises(gridrpc.NotTrusted, match="a function of a module of this client"):
            grid.submit("own/one")


def test_an_interface_that_is_reworded_is_requested_again(server: Server) -> None:
    with opened(servers=[server.url]) as grid:
        x = np.arange(4.0)
        scale = grid.function("linear/scale")
        scale(2.0, x)
        server.publish(REWORDED)
        scale(2.0, x)
        assert list(x) == [0, 4, 8, 12]
        server.publish(IDL)
        with pytest.raises(gridrpc.InterfaceChanged):
            scale.submit(2.0, x).result()
        scale.submit(2.0, x).result()
        assert list(x) == [0, 8, 16, 24]


def test_an_interface_with_other_parameters_is_an_error(server: Server) -> None:
    with opened(servers=[server.url]) as grid:
        x = np.arange(3.0)
        scale = grid.function("linear/scale")
        scale(2.0, x)
        server.publish(OTHER)
        text = r"was `scale\(IN int n, IN double a, INOUT.* and is `scale\(.*IN double b"
        for _ in range(2):
            with pytest.raises(gridrpc.InterfaceChanged, match=text):
                scale(2.0, x)
        grid.function("linear/scale")(1.0, 2.0, x)
        assert list(x) == [0, 6, 12]


def test_objects_live_at_the_server(server: Server) -> None:
    with (
        opened(servers=[server.url]) as grid,
        grid.object("linear/counter") as one,
        grid.object("counter") as other,
    ):
        assert [int(one.add(n)[0]) for n in (1, 2, 3)] == [1, 3, 6]
        assert other.add(5) == [5]
        with pytest.raises(gridrpc.FunctionNotFound, match="no class `sum`; it has counter"):
            grid.object("linear/sum")


def test_a_server_that_does_not_run(tmp_path: Path) -> None:
    url = f"gridrpc+unix://{tmp_path / 'socket'}"
    with opened(servers=[url]) as grid, pytest.raises(gridrpc.StartError, match="does not run"):
        grid.function("linear/sum")


def test_commands_show_what_a_server_offers(server: Server) -> None:
    listed = program("list", "--server", str(server.socket))
    assert (
        listed.stdout == f"{'linear/scale':18}  Scale a vector.\nlinear/sum\nlinear/counter.add\n"
    )
    as_json = json.loads(program("list", "--server", server.url, "--json").stdout)
    assert [one["name"] for one in as_json] == ["linear/scale", "linear/sum", "linear/counter.add"]
    assert as_json[0]["signature"] == "scale(IN int n, IN double a, INOUT double x[n])"
    described = program("describe", "--server", server.url, "linear/scale")
    assert described.stdout.startswith("linear/scale: scale(IN int n")
    missing = program("describe", "--server", server.url, "linear/scal")
    assert missing.returncode != 0
    assert "offers no `linear/scal`" in missing.stderr
    assert "is no server that offers functions" in program("list", "--server", "local:").stderr
