"""Directories: servers announce themselves, and clients choose among them."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

import gridrpc
from directories import IDL, Site
from gridrpc import _native
from gridrpc._directory import POLICIES, VALID
from grids import CompileIdl
from processes import LONG, until
from servers import Authority, Server, began, program, serving, tls

#: A function of data that can be shared.
DATA = r"""
Module data;
Globals {
    #include <unistd.h>
}
Define total(IN int n, IN double x[n], OUT double sum[1], OUT long parent[1]) CalcOrder n
    { *sum = 0; for (int i = 0; i < n; i++) *sum += x[i]; *parent = getppid(); }
"""
#: The same function with another interface.
OTHER = r"""
Module where;
Define scale(IN long n, IN float a, INOUT float x[n]) { for (long i = 0; i < n; i++) x[i] *= a; }
"""


pytestmark = pytest.mark.usefixtures("no_modules_here")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with made.stack:
        yield made


@pytest.fixture
def where(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


def states(function: Any, *arguments: Any) -> dict[int, str]:
    """The states of servers as a client sees them, by port."""
    return {
        int(one.address.rpartition(":")[2]): one.state for one in function.predictions(*arguments)
    }


def test_functions_are_listed_found_and_explained(site: Site, where: Path) -> None:
    first = site.serve("one", where)
    second = site.serve("two", where, workers=2)
    assert {one["cores"] for one in site.servers()} == {1, 2}
    assert site.command("list").count("where/") == 3
    found = site.command("search", "BLAS dscal")
    assert "where/scale" in found
    assert "where/hold" not in found
    assert "no server offers" in site.command("search", "fourier")
    why = site.command("why", "where/scale", "n=1000000")
    assert why.count("chosen") == 1
    assert f":{first.port}" in why
    assert f":{second.port}" in why
    assert "8.000e6 bytes out" in why
    assert "1.000e6 operations" in why
    assert "`where/scale`" in site.command("why", "where/scael", status=1)


def test_a_call_goes_to_some_server_without_its_name(site: Site, where: Path) -> None:
    site.serve("one", where)
    site.serve("two", where)
    grid = site.grid()
    x = np.arange(4.0)
    grid.function("where/scale")(10.0, x)
    assert x.tolist() == [0, 10, 20, 30]
    y = np.ones(2)
    grid.submit("where/scale", 3.0, y).result()
    assert y.tolist() == [3, 3]
    rows = [(2.0, np.ones(3)) for _ in range(20)]
    list(grid.starmap("where/scale", rows))
    assert all(row.tolist() == [2, 2, 2] for _, row in rows)
    assert {host.state for host in grid.hosts()} == {"ready"}
    with pytest.raises(gridrpc.FunctionNotFound, match="similar names: `where/scale`"):
        grid.function("where/scales")
    with pytest.raises(TypeError, match="calls functions that servers offer"):
        grid.submit(len, "abc")


def test_policies(site: Site, where: Path) -> None:
    site.serve("one", where)
    site.serve("two", where)
    turns = site.grid(policy="round-robin").function("where/parent")
    assert len({int(turns(4)[0]) for _ in range(4)}) == 2

    def last(predictions: list[gridrpc.Prediction]) -> gridrpc.Prediction:
        return max(predictions, key=lambda one: one.address)

    own = site.grid(policy=last).function("where/parent")
    assert len({int(own(4)[0]) for _ in range(4)}) == 1
    known = [(1.0, 0.0, 1, False, 0.0, 0.0, _native.Measurements())]
    idle = _native.server_candidates(known, "where/parent", True, 0.0)
    assert {_native.choose_server(name, (1, 1, 1), idle, 0) for name in POLICIES} == {0}
    with pytest.raises(gridrpc.ConfigError, match="least-time"):
        site.grid(policy="fastest")
    with pytest.raises(gridrpc.ConfigError, match="no `workers`"):
        site.grid(workers=2)


def test_speeds_and_bandwidths_are_learned(site: Site, where: Path) -> None:
    site.serve("one", where)
    scale = site.grid().function("where/scale")
    x = np.ones(8_000_000)
    (before,) = scale.predictions(1.0, x)
    for _ in range(3):
        scale(1.0, x)
    assert until(lambda: scale.predictions(1.0, x)[0].speed != before.speed)
    (after,) = scale.predictions(1.0, x)
    assert after.send != before.send
    assert after.receive != before.receive
    assert after.total == pytest.approx(after.send + after.run + after.receive)


def server_names(server: Server, site: Site) -> list[gridrpc.SharedName]:
    """Data that a server keeps under names."""
    with server.client(site.user) as grid:
        return grid.shared_names()


def test_calls_go_where_shared_data_is(site: Site, compile_idl: CompileIdl) -> None:
    module = compile_idl(DATA)
    first = site.serve("one", module, is_listed=False)
    second = site.serve("two", module, is_listed=False)
    assert until(lambda: "total" in site.command("list"))
    assert until(lambda: len(site.servers()) == 2)
    grid = site.grid(policy="data-locality")
    total = grid.function("data/total")
    x = np.ones(1_000_000)
    shared = grid.share(x)
    x[:] = 0
    (sum_,), parent = total(shared)
    assert sum_ == 1_000_000
    assert {int(total(shared)[1][0]) for _ in range(6)} == {int(parent[0])}
    sends = sorted(one.send for one in total.predictions(shared))
    assert sends[0] < sends[1] / 100
    # Arguments that are not shared are sent, and other calls can go elsewhere.
    assert all(one.send > 0 for one in total.predictions(x))
    assert total(x)[0] == 0
    assert [sums[0] for sums, _ in grid.map(total, [shared] * 5)] == [1_000_000] * 5
    assert grid.submit("data/total", shared).result()[0] == 1_000_000
    assert "at 1 servers" in repr(shared)
    with pytest.raises(TypeError, match="shares arrays and bytes"):
        grid.share({"a": 1})
    named = grid.share(x, name="x")
    assert total(named)[0] == 0
    found = grid.shared("x")
    assert total(found)[0] == 0
    assert [sums[0] for sums, _ in grid.map(total, [found] * 5)] == [0] * 5
    with pytest.raises(TypeError, match="open a grid with one server"):
        grid.unshare("x")
    with gridrpc.Grid(workers=1) as here, pytest.raises(TypeError, match="an argument by itself"):
        here.submit(len, shared).result()
    # What has no name ends with the grid.
    grid.close()
    left = [one.name for server in (first, second) for one in server_names(server, site)]
    assert left == ["ann/x"]


def test_shared_data_follows_calls_to_another_server(site: Site, compile_idl: CompileIdl) -> None:
    module = compile_idl(DATA)
    first = site.serve("one", module, is_listed=False)
    grid = site.grid(policy="data-locality")
    assert until(lambda: "total" in site.command("list"))
    total = grid.function("data/total")
    shared = grid.share(np.ones(1000))
    assert total(shared)[0] == 1000
    site.serve("two", module, is_listed=False)
    assert until(lambda: len(total.predictions(shared)) == 2)
    first.stop()
    assert until(lambda: [one.state for one in total.predictions(shared)].count("ready") == 1)
    assert total(shared)[0] == 1000


def loads(function: Any, *arguments: Any) -> list[float]:
    """The loads of servers as a client sees them."""
    return [one.load for one in function.predictions(*arguments)]


def test_own_calls_of_all_functions_count_once(site: Site, where: Path, tmp_path: Path) -> None:
    site.serve("one", where)
    grid = site.grid()
    hold, scale = grid.function("where/hold"), grid.function("where/scale")
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    held = [hold.submit(log, str(gate), 1), hold.submit(log, str(gate), 2)]
    held.append(grid.submit("where/scale", 1.0, np.ones(1)))
    with pytest.raises(gridrpc.ArgumentError):
        scale.submit(1.0, "no array")
    assert until(lambda: site.servers()[0]["load"] >= 1)
    # Neither when the server announces them, nor when the client has that answer.
    until_later = time.monotonic() + VALID + 1
    while time.monotonic() < until_later:
        (seen,) = scale.predictions(1.0, np.ones(1))
        assert seen.load == 3
        assert seen.total == pytest.approx(seen.wait + seen.send + seen.run + seen.receive)
        time.sleep(0.1)
    gate.touch()
    for call in held:
        call.result()
    assert until(lambda: loads(scale, 1.0, np.ones(1)) == [0])


def test_a_call_that_has_returned_counts_no_longer(site: Site, where: Path) -> None:
    site.serve("one", where)
    scale = site.grid().function("where/scale")
    x = np.ones(500_000)
    before = scale.predictions(1.0, x)[0].send
    for _ in range(20):
        scale(1.0, x)
        (seen,) = scale.predictions(1.0, x)
        assert (seen.load, seen.wait) == (0, 0)
        assert seen.send != before


def test_calls_that_begin_together_go_to_different_servers(
    site: Site, where: Path, tmp_path: Path
) -> None:
    for name in ("one", "two", "three", "four"):
        site.serve(name, where)
    hold = site.grid().function("where/hold")
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    barrier = Barrier(4)

    def call(number: int) -> None:
        barrier.wait()
        hold(log, str(gate), number)

    threads = [Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    assert until(lambda: loads(hold, log, str(gate), 0) == [1, 1, 1, 1])
    gate.touch()
    for thread in threads:
        thread.join()


def test_short_calls_avoid_the_server_of_a_long_one(
    site: Site, where: Path, tmp_path: Path
) -> None:
    site.serve("one", where)
    site.serve("two", where)
    grid = site.grid()
    parent = grid.function("where/parent")
    for _ in range(4):
        parent(1)
    # It is expected to take a second, and then ever longer.
    gate = tmp_path / "gate"
    long = grid.submit("where/hold", str(tmp_path / "log"), str(gate), 7)
    assert until(lambda: began(tmp_path / "log") == [7])
    assert len({int(parent(1)[0]) for _ in range(10)}) == 1
    assert not long.done()
    gate.touch()
    assert long.result()[0] == 7


def test_a_busy_server_is_avoided_and_a_full_one_is_skipped(
    site: Site, where: Path, tmp_path: Path
) -> None:
    first = site.serve("one", where, more="[modules.where]\nmost_queued = 0\n")
    second = site.serve("two", where)
    with first.client(site.user) as direct:
        log, gate = str(tmp_path / "log"), tmp_path / "gate"
        held = direct.submit("where/hold", log, str(gate), 7)
        assert until(lambda: began(tmp_path / "log") == [7])
        grid = site.grid()
        scale = grid.function("where/scale")
        assert until(
            lambda: states(scale, 1.0, np.ones(1)) == {first.port: "full", second.port: "ready"}
        )
        for _ in range(5):
            scale(1.0, np.ones(1))
        gate.touch()
        held.result()
    assert until(lambda: states(scale, 1.0, np.ones(1))[first.port] == "ready")


def test_a_server_that_dies_is_left_out(site: Site, where: Path) -> None:
    first = site.serve("one", where)
    second = site.serve("two", where)
    grid = site.grid(policy="round-robin")
    parent = grid.function("where/parent")
    for _ in range(4):
        parent(4)
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait(timeout=LONG)
    # Calls that the server had begun are lost; no others are.
    lost = 0
    for _ in range(6):
        try:
            parent(4)
        except gridrpc.WorkerLost:
            lost += 1
    assert lost <= 1
    assert until(lambda: states(parent, 4) != {first.port: "ready", second.port: "ready"})
    assert until(lambda: {one["is_silent"] for one in site.servers()} == {True, False})
    assert "silent" in site.command("status")
    # It comes back, on its port.
    config = first.file.read_text()
    first.file.write_text(config.replace("port = 0\n", f"port = {first.port}\n"))
    first.start()
    assert until(lambda: states(parent, 4) == {first.port: "ready", second.port: "ready"})
    assert until(lambda: len({int(parent(4)[0]) for _ in range(4)}) == 2)
    # One that stops says so.
    first.stop()
    second.stop()
    assert until(lambda: not site.servers())
    with pytest.raises(gridrpc.FunctionNotFound, match="no server offers"):
        site.grid().function("where/parent")


def test_calls_go_on_without_the_directory(site: Site, where: Path) -> None:
    site.serve("one", where)
    grid = site.grid()
    parent = grid.function("where/parent")
    parent(4)
    site.directory.stop(signal.SIGKILL)
    until_later = time.monotonic() + 3
    while time.monotonic() < until_later:
        parent(4)
        time.sleep(0.2)
    with pytest.raises(ConnectionError, match="no directory answers"):
        site.grid().function("where/parent")
    # It knows functions from its file before the servers have announced themselves again.
    site.directory.start()
    assert "where/parent" in site.command("list")
    assert until(lambda: [one["is_silent"] for one in site.servers()] == [False])
    parent(4)
    assert until(lambda: int(site.grid().function("where/parent")(4)[0]) == int(parent(4)[0]))


def test_two_directories_with_different_answers(site: Site, where: Path) -> None:
    other = site.run_directory("second")
    site.serve("one", where, site.directory)
    site.serve("two", where, other)
    parent = site.grid(site.directory, other, policy="round-robin").function("where/parent")
    assert len({int(parent(4)[0]) for _ in range(4)}) == 2
    site.directory.stop()
    parent(4)
    alone = site.grid(site.directory, other).function("where/parent")
    alone(4)


def test_another_interface_with_the_same_name(
    site: Site, where: Path, compile_idl: CompileIdl
) -> None:
    first = site.serve("one", where)
    second = site.serve("two", compile_idl(OTHER))
    assert "different interfaces" in site.command("search", "where/scale")
    assert "another interface" in site.command("why", "where/scale", "n=4")
    with pytest.warns(RuntimeWarning, match="another interface at"):
        scale = site.grid(policy="round-robin").function("where/scale")
    for _ in range(4):
        kinds = {"float": np.float32, "double": np.float64}
        x = np.ones(2, kinds[scale.description["parameters"][2]["type"]])
        scale(2.0, x)
        assert x.tolist() == [2, 2]
    assert sorted(states(scale, 2.0, x).values()) == ["another interface", "ready"]
    assert set(states(scale, 2.0, x)) == {first.port, second.port}


@pytest.fixture
def lying_directory() -> Iterator[Callable[[dict[str, Any]], str]]:
    """Starts a directory that answers each lookup with this offer. Gives its URL."""
    stack = ExitStack()

    def start(offer: dict[str, Any]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"offers": [offer], "interface": None}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    with stack:
        yield start


def test_a_lying_directory_wins_no_trust(
    tmp_path: Path, where: Path, lying_directory: Callable[[dict[str, Any]], str]
) -> None:
    (tmp_path / "a").mkdir()
    impostor = Authority(tmp_path, "impostor")
    user = Authority(tmp_path, "true").user("ann")
    config = f"[workers]\ncount = 1\n[modules]\nfiles = ['{where}']\n"
    offer = {
        "name": "lab", "signature": "parent(IN int n, OUT long r[1])", "cores": 9, "load": 0,
        "speed": 1e15, "is_full": False, "is_silent": False, "age": 0,
    }  # fmt: skip
    with serving(tmp_path / "a", config, impostor) as server:
        for address in (f"127.0.0.1:{server.port}", f"localhost:{server.port}"):
            url = lying_directory({**offer, "address": address})
            with (
                gridrpc.Grid(directory=f"{url}?credentials={user}") as grid,
                pytest.raises((gridrpc.StartError, OSError)),
            ):
                grid.function("where/parent")
        # No address adds options to the connection, or leads to a socket without certificates.
        for address in (f"127.0.0.1:{server.port}?trusted=true", str(server.socket), "a@b:1"):
            url = lying_directory({**offer, "address": address})
            with (
                gridrpc.Grid(directory=f"{url}?credentials={user}") as grid,
                pytest.raises((gridrpc.StartError, OSError, LookupError)),
            ):
                grid.function("where/parent")


def test_figures_that_make_no_sense_win_no_calls(
    site: Site, where: Path, lying_directory: Callable[[dict[str, Any]], str]
) -> None:
    server = site.serve("one", where)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        signature = "parent(IN int n, OUT long r[1])"
        url = lying_directory(
            {
                "address": address, "name": "ghost", "signature": signature, "cores": 1,
                "load": -1e9, "speed": 1e300, "is_full": False, "is_silent": False, "age": 0,
            }
        )  # fmt: skip
        urls = [f"{one}?credentials={site.user}" for one in (url, site.directory.url)]
        with gridrpc.Grid(directory=urls) as grid:
            parent = grid.function("where/parent")
            parent(4)
            assert states(parent, 4)[server.port] == "ready"


def test_pages_show_interfaces_and_examples(site: Site, where: Path) -> None:
    site.serve("one", where, more="[http]\nport = 0\n")
    page = fetched(site, "/function/where/scale")
    assert "grpc_call(&amp;function, n, a, x)" in page
    assert "error = grpc_call(function, n, a, x)" in page
    assert "grid.function(&quot;where/scale&quot;)(n=n, a=a, x=x)" in page
    assert "/v2/models/where/scale/infer" in page
    assert "CalcOrder n" in page
    index = fetched(site, "/?search=vector")
    assert "where/scale" in index
    assert "where/hold" not in index


def fetched(site: Site, path: str) -> str:
    with urllib.request.urlopen(
        f"{site.directory.url}{path}", context=tls(site.user), timeout=LONG
    ) as answer:
        text: str = answer.read().decode()
    return text


def test_who_may_read_and_announce(site: Site) -> None:
    directory = site.run_directory("guarded", "--announcers", "servers")
    context = ssl.create_default_context(cafile=site.user / "authority.pem")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{directory.url}/status", context=context, timeout=LONG)
    announcement = json.dumps(
        {
            "name": "x", "address": "127.0.0.1:1", "version": "1", "interval": 1, "cores": 1,
            "load": 0, "queued": 0, "speed": 1, "accepts": True, "modules": [],
        }
    ).encode()  # fmt: skip

    def announce(credentials: Path) -> int:
        request = urllib.request.Request(f"{directory.url}/announce", announcement)
        try:
            with urllib.request.urlopen(request, context=tls(credentials), timeout=LONG) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    assert announce(site.user) == 403
    assert announce(site.authority.user("lab", "servers")) == 200
    # Nobody else takes over the address of a server that is heard.
    assert announce(site.authority.user("mallory", "servers")) == 403


def test_modules_of_some_users_are_not_announced(site: Site, where: Path) -> None:
    server = site.serve("one", where, more="[modules.where]\nusers = ['ann']\n", is_listed=False)
    assert "no server offers a function" in site.command("list")
    with server.client(site.user) as grid:
        grid.function("where/parent")(4)


def test_a_directory_of_other_machines_needs_a_certificate(tmp_path: Path) -> None:
    text = program(
        "directory", "start", "--state", tmp_path / "state", "--address", "0.0.0.0", status=1
    )
    assert "the directory has no certificate" in text
