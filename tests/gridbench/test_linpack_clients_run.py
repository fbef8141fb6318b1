"""`gridbench linpack clients` from the command line, with a real server and real clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from gridbench.engines.environments import environment
from gridbench.errors import InputError
from gridbench.linpack import servers
from gridbench.linpack.client import CallFailed, PeerConnection, connected, residual, system
from gridbench.linpack.record import CLIENTS_FORM, ClientsCase
from gridbench.linpack.servers import PeerName, PeerServer
from judging import judged
from running import DEADLINE, PROGRAM, Run, cmdline, until

QUICK = (
    "linpack", "clients", "-n", "100", "--step", "0.1", "--duration", "1.5", "--accept-load",
    "--out", "out",
)  # fmt: skip
OF_LOAD = ("nothing else was at work", "repeated")
"""Rules that tests beside each other break."""


def cases(folder: Path) -> list[ClientsCase]:
    return CLIENTS_FORM.read(folder / "out")[1]


def well(done: subprocess.CompletedProcess[str]) -> None:
    # 3: other tests disturbed all cases.
    assert done.returncode in (0, 3), done.stdout + done.stderr


def is_installed(engine: str) -> bool:
    known = environment(engine)
    return known is not None and known.state().kind == "installed"


@contextmanager
def started(folder: Path, environment: dict[str, str], *words: str) -> Iterator[psutil.Popen]:
    """The program, with all that it prints in one stream."""
    command = [*PROGRAM, *QUICK, *words]
    with psutil.Popen(
        command, cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        yield process


def below(process: psutil.Popen, word: str) -> list[psutil.Process]:
    """Its processes that were started with this word."""
    return [one for one in process.children(recursive=True) if word in cmdline(one)]


def began(folder: Path) -> bool:
    """Whether a case has been saved."""
    file = folder / "out" / "clients.jsonl"
    return file.exists() and file.read_text().count("\n") > 1


def test_clients_of_both_policies_are_measured(gridbench: Run, tmp_path: Path) -> None:
    well(gridbench(*QUICK, "--clients", "1,3", "--rounds", "1"))
    found = cases(tmp_path)
    keys = [(one.policy, one.clients, one.status) for one in found]
    assert keys == [
        ("all", 1, "done"), ("all", 3, "done"), ("one", 1, "done"), ("one", 3, "done"),
    ]  # fmt: skip
    for one in found:
        assert {call.client for call in one.calls} == set(range(one.clients))
        # 15 steps of 0.1 s with a call at every second; fewer if a call takes longer.
        assert 1 <= len(one.calls) <= 15 * one.clients
        for call in one.calls:
            assert call.ending == "ok"
            assert None not in (call.enqueue, call.dequeue, call.returned, call.complete)
        assert one.samples
        assert all(0 <= sample.busy <= 1 and sample.memory > 1 << 20 for sample in one.samples)
    rules = judged(tmp_path / "out")
    assert {name for name, rule in rules.items() if rule.outcome == "broken"} <= set(OF_LOAD)
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_both_policies_see_the_same_steps(gridbench: Run, tmp_path: Path) -> None:
    # A step that no call exceeds; one that begins late leaves none out.
    options = ("--step", "0.5", "--duration", "3", "--clients", "2", "--rounds", "1", "--json")
    done = gridbench(*QUICK, *options)
    well(done)
    first, second = cases(tmp_path)
    steps = [[(c.client, round(c.submit / 0.5)) for c in one.calls] for one in (first, second)]
    assert len(steps[0]) == len(steps[1]) > 0
    document = json.loads(done.stdout)
    assert [len(one["calls"]) for one in document["cases"]] == [len(own) for own in steps]


def test_a_step_is_scaled_to_the_time_of_a_call(gridbench: Run, tmp_path: Path) -> None:
    options = ("-n", "600", "--clients", "2", "--rounds", "1")
    well(gridbench(*QUICK, *options, "--steps", "scaled", "--step", "3"))
    first, second = cases(tmp_path)
    # The paper's call took 2.03 s: a step is as many of our calls.
    assert 0.001 < first.step < 3
    assert (first.policy, second.policy) == ("all", "one")
    assert second.step == first.step
    assert first.steps == "scaled"


def test_an_interrupted_table_resumes(
    gridbench: Run, tmp_path: Path, environment: dict[str, str]
) -> None:
    options = ("--clients", "1,2", "--policies", "one", "--rounds", "1")
    with started(tmp_path, environment, *options) as process:
        until(lambda: began(tmp_path))
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=DEADLINE)
        assert process.returncode == 128 + signal.SIGINT, printed
    (before,) = cases(tmp_path)
    well(gridbench(*QUICK, *options))
    after = cases(tmp_path)
    assert after[0] == before
    assert [one.clients for one in after] == [1, 2]


def test_a_server_that_is_killed_is_replaced(tmp_path: Path, environment: dict[str, str]) -> None:
    options = ("--clients", "1,2", "--policies", "one", "--rounds", "1", "--duration", "4")
    with started(tmp_path, environment, *options) as process:
        until(lambda: began(tmp_path))
        # The process that is copied, and the clients.
        until(lambda: len(below(process, "gridbench.process.copying")) >= 1 + 2)
        (server,) = below(process, "start")
        os.kill(server.pid, signal.SIGKILL)
        printed, _ = process.communicate(timeout=DEADLINE)
        assert process.returncode in (0, 3), printed
    assert "the server ended; measuring it again with a new server" in printed
    assert "The server ended 1 time, and its case was measured again." in " ".join(printed.split())
    assert [(one.clients, one.status, one.restarts) for one in cases(tmp_path)] == [
        (1, "done", 0), (2, "done", 1),
    ]  # fmt: skip


# ---- Other servers


def test_grpc_stands_beside_gridrpc_on_the_same_calls(gridbench: Run, tmp_path: Path) -> None:
    options = ("--servers", "gridrpc,grpc", "--clients", "2", "--rounds", "1")
    well(gridbench(*QUICK, *options, "--step", "0.3", "--duration", "3"))
    found = cases(tmp_path)
    keys = [(one.server, one.policy, one.status) for one in found]
    assert keys == [
        ("gridrpc", "all", "done"), ("gridrpc", "one", "done"),
        ("grpc", "all", "done"), ("grpc", "one", "done"),
    ]  # fmt: skip
    for one in found:
        assert {call.client for call in one.calls} == {0, 1}
        for call in one.calls:
            assert call.ending == "ok"
            assert call.dequeue is not None
            assert call.returned is not None
            assert call.submit <= call.dequeue <= call.returned <= (call.complete or 0)
            # Only gridrpc's server says when it accepted a call.
            assert (call.enqueue is None) == (one.server == "grpc")
    assert "gRPC (Python)" in (tmp_path / "out" / "report.html").read_text()
    rules = judged(tmp_path / "out")
    assert {name for name, rule in rules.items() if rule.outcome == "broken"} <= set(OF_LOAD)


@contextmanager
def peer(name: PeerName, n: int = 30) -> Iterator[tuple[PeerServer, PeerConnection]]:
    a, b = system(n)
    with PeerServer(name, 1, 1) as server, connected(name, server.address, a, b) as remote:
        assert isinstance(remote, PeerConnection)
        yield server, remote


@pytest.mark.parametrize(
    "name",
    [
        "grpc",
        pytest.param(
            "ray-serve",
            marks=pytest.mark.skipif(
                not is_installed("ray-serve"),
                reason="install it: gridbench engines install ray-serve",
            ),
        ),
    ],
)
def test_other_servers_solve_and_say_what_is_wrong(name: PeerName) -> None:
    with peer(name) as (server, remote):
        before = time.monotonic()
        times = remote.call(60.0)
        assert before <= times.dequeue <= times.returned <= time.monotonic()
        assert residual(remote.a, remote.b, remote.x) < 16
        singular = np.zeros_like(remote.a)
        remote.body = singular.tobytes() + remote.b.tobytes()
        remote.call(60.0)
        assert remote.info == 1
        for body in (b"", b"x" * 15, remote.body[:-1], remote.body[:-8]):
            remote.body = body
            with pytest.raises(CallFailed, match=f"{len(body)} bytes are no square matrix"):
                remote.call(60.0)
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(CallFailed):
            until(lambda: remote.call(60.0) and False)


def test_a_call_of_grpc_that_takes_too_long_is_lost() -> None:
    with peer("grpc", n=600) as (_, remote):
        remote.call(60.0)
        with pytest.raises(TimeoutError):
            remote.call(1e-4)


def test_a_server_with_other_threads_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    # OpenBLAS has at most as many threads as it was built for.
    with pytest.raises(RuntimeError, match=r"the solver has \d+ threads, not 100000"):
        PeerServer("grpc", 1, 100_000)
    monkeypatch.setattr(servers, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="gRPC for Python is not installed") as error:
        PeerServer("grpc", 1, 1)
    assert "pip install grpcio" in str(error.value)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--steps", "scaled"), "the paper has no time for n = 100, so its step cannot be scaled"),
        (("--servers", "corba"), "--servers: must be one of gridrpc, grpc, ray-serve, not `corba`"),
        (("--policies", "two"), "--policies: must be one of all, one, not `two`"),
        (("--probability", "0"), "--probability: must be above 0 and up to 1, not `0`"),
        (("--clients", "0"), "--clients"),
        (("--duration", "0"), "--duration: must be from 0.1 s to 86,400 s, not `0`"),
    ],
)
def test_wrong_options_are_refused(refused: Run, words: tuple[str, ...], text: str) -> None:
    done = refused(*QUICK, *words)
    assert done.returncode == 2
    assert text in done.stderr
