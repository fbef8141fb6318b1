"""`gridrpc server cancel`: calls are cancelled by their ids, users and functions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import gridrpc
from grids import PROGRAM, CompileIdl
from processes import LONG, until
from servers import Authority, Server, offering, serving

pytestmark = pytest.mark.usefixtures("no_modules_here")

IDL = """
Module held;
Globals { #include <unistd.h> }
Define one(IN string gate, OUT int y[1]) { while (access(gate, 0)) usleep(1000); *y = 1; }
Define other(IN string gate, OUT int y[1]) { while (access(gate, 0)) usleep(1000); *y = 2; }
"""


def cancelled(call: gridrpc.Call[object]) -> bool:
    return isinstance(call.exception(LONG), gridrpc.CallCancelled)


def number_of(detached: str) -> str:
    return detached.rpartition("/")[2]


def test_calls_are_cancelled(tmp_path: Path, compile_idl: CompileIdl) -> None:
    gate = str(tmp_path / "gate")
    authority = Authority(tmp_path)
    users = {name: authority.user(name) for name in ("anna", "ben")}
    with (
        serving(tmp_path, offering(compile_idl(IDL), workers=4), authority) as server,
        server.client(users["anna"]) as anna,
        server.client(users["ben"]) as ben,
    ):
        first: list[gridrpc.Call[object]] = [anna.submit("held/one", gate) for _ in range(2)]
        second: list[gridrpc.Call[object]] = [
            anna.submit("held/other", gate),
            ben.submit("held/other", gate),
        ]
        assert until(lambda: server.module("held")["alive"] == 4)
        detached = [anna.detach("held/one", gate), ben.detach("held/one", gate)]
        assert server.command("cancel", detached[0]) == "1 call cancelled\n"
        assert cancelled(anna.attach(detached[0]))
        number = number_of(detached[0])
        failed = server.command("cancel", number, "f" * 32, status=1)
        assert (
            f"0 calls cancelled; no detached call that waits or runs has the id {number}" in failed
        )
        assert server.command("cancel", "--function", "held/one", "--user", "anna") == (
            "2 calls cancelled\n"
        )
        assert all(map(cancelled, first))
        assert server.command("cancel", "--user", "anna") == "1 call cancelled\n"
        assert cancelled(second[0])
        assert not second[1].done()
        assert server.command("cancel", "--all") == "2 calls cancelled\n"
        assert cancelled(second[1])
        assert cancelled(ben.attach(detached[1]))
        assert server.command("cancel", "--all") == "0 calls cancelled\n"
        # The workers are free again.
        Path(gate).touch()
        assert ben.submit("held/other", gate).result(LONG) == [2]


def test_a_line_for_all_users(tmp_path: Path, compile_idl: CompileIdl) -> None:
    gate = str(tmp_path / "gate")
    authority = Authority(tmp_path)
    config = offering(compile_idl(IDL)) + "[modules.held]\npolicy = 'fifo'\n"
    with (
        serving(tmp_path, config, authority) as server,
        server.client(authority.user("anna")) as anna,
    ):
        call: gridrpc.Call[object] = anna.submit("held/one", gate)
        assert until(lambda: server.module("held")["alive"] == 1)
        assert server.command("cancel", "--user", "anna").startswith("0 calls cancelled; 1 call ")
        assert not call.done()
        assert server.command("cancel", "--function", "held/one") == "1 call cancelled\n"
        assert cancelled(call)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_users_cancel_their_own_calls(open_folder: Path, compile_idl: CompileIdl) -> None:
    gate = str(open_folder / "gate")
    authority = Authority(open_folder)
    users = {name: authority.user(name) for name in ("anna", "nobody")}
    config = f"socket = '{open_folder / 'public'}'\n" + offering(compile_idl(IDL), workers=2)
    with (
        serving(open_folder, config, authority, socket=open_folder / "public") as server,
        server.client(users["anna"]) as anna,
        server.client(users["nobody"]) as nobody,
    ):
        others: gridrpc.Call[object] = anna.submit("held/one", gate)
        own: gridrpc.Call[object] = nobody.submit("held/one", gate)
        assert until(lambda: server.module("held")["alive"] == 2)
        detached = [anna.detach("held/one", gate), nobody.detach("held/one", gate)]
        others_id = number_of(detached[0])
        refused = as_nobody(server, "--user", "anna", status=1)
        assert "may cancel calls of anna here, not nobody" in refused
        refused = as_nobody(server, *detached, status=1)
        said = f"1 call cancelled; no detached call that waits or runs has the id {others_id}"
        assert said in refused
        assert cancelled(nobody.attach(detached[1]))
        assert as_nobody(server, "--all") == "1 call cancelled\n"
        assert cancelled(own)
        assert not others.done()
        assert server.command("cancel", "--all") == "2 calls cancelled\n"
        assert cancelled(others)
        # The log is written soon afterwards.
        assert until(
            lambda: sum("cancel-calls" in one["outcome"] for one in server.audit("admin")) == 4
        )


def as_nobody(server: Server, *words: str, status: int = 0) -> str:
    """What `gridrpc server cancel` of the user `nobody` prints."""
    ran = subprocess.run(
        [server.folder / "gridrpc", "server", "-c", server.file, "cancel", *words],
        user=65534, group=65534, extra_groups=[], cwd="/",
        capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("words", [[], ["--all", "--user", "anna"], ["f" * 32, "--all"]])
def test_it_is_said_which(tmp_path: Path, words: list[str]) -> None:
    ran = subprocess.run(
        [PROGRAM, "server", "-c", tmp_path / "none.toml", "cancel", *words],
        capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "--all" in ran.stderr
