"""Remote Linpack with real clients and a real server, and what can go wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil
import pytest
from rich.console import Console

import gridrpc
import linking
from gridbench.errors import InputError
from gridbench.experiment import Bench
from gridbench.linpack import experiment, servers
from gridbench.linpack.experiment import (
    ClientFailed,
    LinpackExperiment,
    SolveOrder,
    SpeedLimit,
    run_client,
)
from gridbench.linpack.options import LinpackParameters, ShapedLink
from gridbench.linpack.record import LOCAL, PlannedLinpackCase, Solve, wrong_solution
from gridbench.linpack.servers import (
    LinpackPrograms,
    LinpackServers,
    build_programs,
    memory_needed,
)
from gridbench.machine.processors import available_count
from gridbench.process.interrupt import Interrupt
from gridbench.schema import read_parameters
from gridbench_testbed.services.gridrpc_server import GridrpcServer
from running import PROGRAM, Run, until

ONCE = SolveOrder(calls=1, seconds=0.0, limit=100.0)
CLIENTS = ("C", "Python")


@pytest.fixture(scope="module")
def programs() -> LinpackPrograms:
    return build_programs()


@pytest.fixture(scope="module")
def running(programs: LinpackPrograms) -> Iterator[LinpackServers]:
    found = LinpackServers(programs, {}, workers=2, threads=1)
    yield found
    found.close()


def case_of(client: str, path: str, n: int = 60, speed: float = 1.0) -> PlannedLinpackCase:
    return PlannedLinpackCase(client=client, path=path, n=n, speed=speed, repeat=0)


def solves_of(
    place: LinpackServers, case: PlannedLinpackCase, wanted: SolveOrder = ONCE
) -> list[Solve]:
    return run_client(case, place, place.variables(case.path), wanted)[0]


# The clients.


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("path", [LOCAL, "socket", "tcp", "tls"])
def test_systems_are_solved(running: LinpackServers, client: str, path: str) -> None:
    found = solves_of(running, case_of(client, path), SolveOrder(calls=3, seconds=0, limit=100))
    assert len(found) == 3
    assert wrong_solution(found) == ""
    for one in found:
        assert 0 < one.calculation <= one.seconds


@pytest.mark.parametrize("path", ["socket+big-endian", "tcp+big-endian", "tls+big-endian"])
def test_servers_convert_the_byte_order(running: LinpackServers, path: str) -> None:
    # Small arrays are in the frame of the call, and large ones behind it.
    for n in (7, 400):
        assert wrong_solution(solves_of(running, case_of("Python", path, n=n))) == ""


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("path", [LOCAL, "socket"])
def test_a_singular_matrix_is_reported(running: LinpackServers, client: str, path: str) -> None:
    wanted = SolveOrder(calls=1, seconds=0, limit=100, matrix="singular")
    assert "a pivot of 0 in column 1" in wrong_solution(
        solves_of(running, case_of(client, path), wanted)
    )


def test_a_wrong_leading_dimension_is_refused(running: LinpackServers) -> None:
    n = 4
    matrix, right = np.eye(n), np.ones((1, n))
    with gridrpc.Grid(servers=[running.running("socket").server.socket]) as grid:
        dgesv = grid.function("linpack/dgesv")
        with pytest.raises(gridrpc.ArgumentError, match="a"):
            dgesv(n, 1, matrix, n - 1, right, n)
        # An array that has the dimension reaches LAPACK, which refuses its fourth argument.
        info = dgesv(n, 1, matrix[:, : n - 1].copy(), n - 1, right, n)[1][0]
    assert wrong_solution([Solve(seconds=1, calculation=1, info=int(info), residual=0)]) == (
        "dgesv refused argument 4"
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_a_system_above_the_limit_of_a_server_is_reported(
    programs: LinpackPrograms, client: str
) -> None:
    with GridrpcServer([programs.module], available_count()) as server:
        server.stop()
        config = server.folder / "server.toml"
        config.write_text(f"{config.read_text()}[everyone]\nbytes = '1 MiB'\n")
        server.start()
        place = LinpackServers(programs, {}, workers=1, threads=1)
        variables = {**place.variables(LOCAL), "GRIDRPC_SERVERS": server.socket}
        # 8 n^2 bytes are 0.9 MiB and 1.1 MiB.
        small, large = (case_of(client, "socket", n=n) for n in (344, 380))
        assert wrong_solution(run_client(small, place, variables, ONCE)[0]) == ""
        with pytest.raises(ClientFailed, match=r"limit `bytes` .* 1048576 may be held"):
            run_client(large, place, variables, ONCE)


def test_a_server_with_other_threads_is_refused(programs: LinpackPrograms) -> None:
    place = LinpackServers(programs, {}, workers=2, threads=1)
    try:
        variables = place.variables("socket")
        place.threads = 2
        with pytest.raises(ClientFailed, match="the solver has 1 thread, and 2 were requested"):
            run_client(case_of("C", "socket"), place, variables, ONCE)
    finally:
        place.close()


def busy(process: psutil.Process) -> bool:
    return process.cpu_times().user > 0.5


@pytest.mark.parametrize("client", CLIENTS)
def test_a_call_ends_with_its_server_and_the_next_has_a_new_one(
    programs: LinpackPrograms, client: str
) -> None:
    place = LinpackServers(programs, {}, workers=2, threads=1)
    try:
        first = place.running("tls").server.pid

        def kill_while_it_computes() -> None:
            server = psutil.Process(first)
            until(lambda: any(busy(one) for one in server.children(recursive=True)))
            server.kill()

        killer = threading.Thread(target=kill_while_it_computes)
        killer.start()
        with pytest.raises(ClientFailed, match="linpack/dgesv"):
            solves_of(place, case_of(client, "tls", n=500), SolveOrder(500, 60.0, 100.0))
        killer.join()
        assert wrong_solution(solves_of(place, case_of(client, "tls"))) == ""
        assert place.running("tls").server.pid != first
    finally:
        place.close()


def test_a_client_that_takes_too_long_is_ended(running: LinpackServers) -> None:
    with pytest.raises(ClientFailed, match=r"not done within 0\.5 s"):
        solves_of(running, case_of("C", LOCAL, n=400), SolveOrder(500, 60.0, 0.5))


def test_a_slowed_process_gets_its_share() -> None:
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    clock = (~busy.pid << 3) | 2
    try:
        with SpeedLimit(busy.pid, 0.2) as limit:
            began, used = time.monotonic(), time.clock_gettime(clock)
            time.sleep(1.0)
            share = (time.clock_gettime(clock) - used) / (time.monotonic() - began)
        assert limit.kind in {"control group", "stopping"}
        assert 0.01 < share < 0.3
    finally:
        busy.kill()
        busy.wait()


def test_a_control_group_has_the_quota_if_one_can_be_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(experiment, "_CONTROL_GROUPS", tmp_path)
    assert SpeedLimit(4711, 0.1).kind == "stopping"
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    assert SpeedLimit(4711, 0.1).kind == "control group"
    (group,) = tmp_path.glob("*/")
    assert (group / "cpu.max").read_text() == "2000 20000"
    assert (group / "cgroup.procs").read_text() == "4711"


@pytest.mark.skipif(bool(linking.why_not()), reason=linking.why_not())
def test_links_have_their_round_trip_time(programs: LinpackPrograms) -> None:
    links = {"100mbit+10ms": ShapedLink(100e6, 10e-3)}
    place = LinpackServers(programs, links, workers=2, threads=1)
    try:
        for client in CLIENTS:
            for one in solves_of(place, case_of(client, "100mbit+10ms", n=300)):
                # 720 KB take 58 ms there.
                assert one.seconds - one.calculation > 0.06
    finally:
        place.close()


# What is missing.


def test_a_missing_compiler_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-compiler")
    with pytest.raises(InputError, match="there is no C compiler `no-compiler`") as error:
        build_programs()
    assert "apt install gcc" in str(error.value)


def test_a_missing_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "LIBRARY", "libnone.so.0")
    with pytest.raises(InputError, match=r"libnone\.so\.0 cannot be loaded") as error:
        build_programs()
    assert "apt install libopenblas-dev" in str(error.value)


def test_a_system_without_room_is_skipped_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(experiment, "available_memory", lambda: 2**30)
    own = LinpackExperiment(read_parameters(LinpackParameters, {}))
    with ExitStack() as stack:
        bench = Bench(tmp_path, Interrupt(), Console(quiet=True), stack)
        found = own.run(case_of("C", "tls", n=10_000), bench)
    assert found.status == "skipped"
    assert found.why == (
        "client and server need 4.47 GB of memory together, and 1 GB are available"
    )
    assert memory_needed(10_000) == 6 * 800_000_000


# The command.

SMALL = (
    "linpack", "--sizes", "40,60,80,120", "--paths", "socket,tls", "--client-speed", "50%",
    "--rounds", "1", "--accept-load", "--out", "linpack",
)  # fmt: skip
CASES = 4 * 3 * 2 * 2


def test_results_have_a_page_rules_and_a_model(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench(*SMALL, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["cases"]) == CASES
    assert {one["status"] for one in found["cases"]} == {"done"}
    assert len(found["models"]) == 12
    assert "Linear systems" in (tmp_path / "linpack" / "report.html").read_text()
    checked = json.loads(gridbench("check", "linpack", "--json").stdout)
    rules = {one["rule"]: one["outcome"] for one in checked["solves"]["linpack"]}
    assert rules["complete"] == rules["correct"] == "kept"
    again = gridbench(*SMALL)
    assert f"{CASES} of {CASES} cases" in again.stderr + again.stdout


def test_the_cost_of_another_byte_order_is_shown(gridbench: Run, tmp_path: Path) -> None:
    words = ("linpack", "--sizes", "40,200", "--rounds", "1", "--client-speed", "50%")
    paths = ("--paths", "socket,socket+big-endian", "--accept-load", "--out", "orders")
    refused = gridbench(*words, *paths, "--languages", "C")
    assert refused.returncode == 2
    assert "only the client in Python sends numbers as socket+big-endian" in refused.stderr
    done = gridbench(*words, *paths, "--json")
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)["cases"]
    assert {one["status"] for one in found} == {"done"}
    foreign = {one["client"] for one in found if one["path"] == "socket+big-endian"}
    assert foreign == {"Python"}
    page = (tmp_path / "orders" / "report.html").read_text()
    assert "Conversion of the byte order" in page


def test_an_interrupted_benchmark_resumes(gridbench: Run, tmp_path: Path) -> None:
    file = tmp_path / "linpack" / "linpack.jsonl"
    words = [*PROGRAM, *SMALL, "--languages", "C"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: file.exists() and len(file.read_text().splitlines()) > 3)
        process.send_signal(signal.SIGINT)
        _, text = process.communicate(timeout=100)
    assert process.returncode == 128 + signal.SIGINT, text
    before = file.read_text().splitlines()
    assert len(before) - 1 < CASES // 2
    done = gridbench(*SMALL, "--languages", "C")
    assert done.returncode == 0, done.stderr
    after = file.read_text().splitlines()
    assert after[: len(before)] == before
    assert len(after) - 1 == CASES // 2
