"""Hosts that are not trusted: what they are given, and what lying agents can do to the client."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing.process import current_process
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import gridrpc
import remote
from gridrpc import Grid, NotTrusted, WorkerLost
from grids import CompileIdl, opened
from processes import LONG, until

IDL = """
Module typed;
Define add(IN int a, IN int b, OUT int r[1]) { *r = a + b; }
Define ask(OUT int r[1], answer(OUT int a[1])) { answer(r); }
DefClass counter {
    DefState { static long value; }
    DefMethod add(IN long n, OUT long r[1]) { *r = value += n; }
}
"""
UNTRUSTED = "local:?trusted=false&workers=1"


@pytest.fixture(scope="module")
def typed(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


def liar(lie: str, folder: Path, *, trusted: bool = False) -> str:
    """A server whose agent answers every call with this lie."""
    program = Path(__file__).parent / "hostile.py"
    command = f"{sys.executable} {program} '{lie}' {folder}"
    trust = "true" if trusted else "false"
    return f"local:?workers=1&encryption=none&trusted={trust}&prefix={quote(command)}"


@pytest.mark.parametrize(
    ("lie", "text"),
    [
        ("error", "a pickled error, from a host that is not trusted"),
        ("kept", "a result that it has kept, from a host that is not trusted"),
        ("submit", "a call that its function makes, from a host that is not trusted"),
        ("other call", "a call that its function makes, from a host that is not trusted"),
    ],
)
def test_a_lying_agent_is_given_up_and_nothing_is_unpickled(
    typed: Path, tmp_path: Path, lie: str, text: str
) -> None:
    with opened(workers=1, servers=liar(lie, tmp_path), modules=[typed]) as grid:
        call = grid.submit(grid.function("typed/add", server="local"), 1, 2)
        with pytest.raises(WorkerLost, match=text):
            call.result(LONG)
        # This machine's worker is not concerned, and has been given nothing.
        assert grid.submit(remote.add, 1, 2).result(LONG) == 3
    assert not (tmp_path / "unpickled").exists()


def test_a_pickle_in_the_place_of_a_typed_result_is_no_result(typed: Path, tmp_path: Path) -> None:
    with (
        opened(servers=liar("result", tmp_path), modules=[typed]) as grid,
        pytest.raises(gridrpc.ProtocolError, match="broken results"),
    ):
        grid.function("typed/add")(1, 2)
    assert not (tmp_path / "unpickled").exists()


def test_a_host_that_is_not_trusted_is_sent_nothing_of_python(typed: Path, tmp_path: Path) -> None:
    with opened(workers=1, servers=liar("error", tmp_path), modules=[typed]) as grid:
        grid.wait_until_ready(LONG)
        assert grid.submit(remote.same, current_process().name).result(LONG)
        with pytest.raises(WorkerLost):
            grid.function("typed/add", server="local")(1, 2)
    sent = (tmp_path / "sent").read_bytes()
    assert b"typed" in sent
    for secret in (current_process().authkey, b"gridrpc._worker", os.getcwd().encode(), b"remote"):
        assert bytes(secret) not in sent
    assert sys.executable.encode() not in sent


def test_an_agent_cannot_have_the_client_hold_any_number_of_calls(tmp_path: Path) -> None:
    """Also one that is trusted."""
    with opened(servers=liar("many", tmp_path, trusted=True)) as grid:
        with pytest.raises(gridrpc.RemoteError, match="1000 taken"):
            grid.submit(remote.pid).result(LONG)
        # Those that were taken continue.
        assert until(lambda: grid._native.counts()[2] == 0)


def test_callbacks_are_taken_only_for_calls_that_the_host_runs(tmp_path: Path) -> None:
    with (
        opened(servers=liar("other call", tmp_path, trusted=True)) as grid,
        pytest.raises(gridrpc.RemoteError, match="0 taken; the call has ended"),
    ):
        grid.submit(remote.pid).result(LONG)
    assert not (tmp_path / "unpickled").exists()


def test_typed_calls_run_on_hosts_that_are_not_trusted(typed: Path) -> None:
    with opened(servers=UNTRUSTED, modules=[typed]) as grid:
        assert grid.function("typed/add")(1, 2) == [3]
        assert list(grid.map(grid.function("typed/add"), range(50), range(50))) == [
            [2 * n] for n in range(50)
        ]
        counter = grid.object("typed/counter")
        assert [counter.add(2), counter.add(3)] == [[2], [5]]

        def answer(a: Any) -> None:
            a[:] = 7

        assert grid.function("typed/ask")(answer) == [7]


def test_what_needs_a_trusted_host_is_refused_where_there_is_none(typed: Path) -> None:
    with opened(servers=UNTRUSTED, modules=[typed]) as grid:
        shared = grid.share([1])
        refused: list[Callable[[], object]] = [
            lambda: grid.submit(remote.pid),
            lambda: grid.submit(lambda: 1),
            lambda: grid.submit("remote/pid"),
            lambda: grid.submit(remote.pid, server="local"),
            lambda: grid.submit(remote.same, shared),
            lambda: list(grid.map(remote.same, [1])),
            lambda: grid.object(dict),
        ]
        for attempt in refused:
            with pytest.raises(NotTrusted, match="needs a trusted host"):
                attempt()
        text = (
            r"`remote/pid`, a Python function, needs a trusted host, and server \"local\" has none"
        )
        with pytest.raises(NotTrusted, match=text):
            grid.submit(remote.pid, server="local")


def test_of_mixed_hosts_those_that_are_trusted_run_python(typed: Path, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    tables = ["mine", "yours"]
    table = "[server.{}]\nlauncher = 'local'\nworkers = 1\ntrusted = {}\n"
    file.write_text(table.format("mine", "true") + table.format("yours", "false"))
    with opened(config=file, modules=[typed]) as grid:
        grid.wait_until_ready(LONG)
        (mine,) = {call.profile.pid for call in _ended(grid, 40)}
        add = grid.function("typed/add", server=tables[1])
        there = grid.submit(add, 1, 2)
        assert there.result(LONG) == [3]
        assert there.profile.pid != mine
        assert grid.submit(remote.pid, server=tables[0]).result(LONG) > 0
        with pytest.raises(NotTrusted):
            grid.submit(remote.pid, server=tables[1])
        with grid.object(dict, {"a": 1}) as made:
            assert made.get("a") == 1


def _ended(grid: Grid, count: int) -> list[gridrpc.Call[object]]:
    calls = [grid.submit(remote.nap, 0.001) for _ in range(count)]
    for call in calls:
        call.result(LONG)
    return calls
