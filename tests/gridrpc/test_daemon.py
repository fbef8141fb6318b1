"""Several clients of one daemon, that of a session: each has its own calls, data and objects."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

import gridrpc
from gridrpc._native import Daemon, DaemonConnection
from processes import LONG, start_script, until
from sessions import session

#: Of the session.
WORKERS = 2


@pytest.fixture(scope="module", autouse=True)
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A session `shared`."""
    with session("shared", tmp_path_factory.mktemp("shared")):
        yield


def client() -> gridrpc.Grid:
    return gridrpc.Grid(servers=["session:shared"])


class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    def add(self, more: int) -> int:
        self.count += more
        return self.count


def test_clients_get_their_own_results() -> None:
    def of(number: int) -> list[int]:
        # The functions of both have the same name and the same number in their grids.
        def result(item: int) -> int:
            return 1_000_000 * number + item

        with client() as grid:
            calls = [grid.submit(result, item) for item in range(500)]
            mapped = list(grid.map(result, range(500, 3000)))
            return [call.result(timeout=LONG) for call in calls] + mapped

    with ThreadPoolExecutor(3) as pool:
        for number, results in enumerate(pool.map(of, range(3))):
            assert results == [1_000_000 * number + item for item in range(3000)]


def test_clients_have_their_own_shared_data() -> None:
    def head(data: np.ndarray) -> float:
        return float(data[0] + data[-1])

    with client() as one, client() as two:
        ones, twos = one.share(np.full(200_000, 1.5)), two.share(np.full(300_000, 2.5))
        calls = [(one.submit(head, ones), two.submit(head, twos)) for _ in range(20)]
        for of_one, of_two in calls:
            assert (of_one.result(timeout=LONG), of_two.result(timeout=LONG)) == (3.0, 5.0)
        one.close()
        assert two.submit(head, twos).result(timeout=LONG) == 5.0


def test_clients_have_their_own_objects() -> None:
    with client() as one, client() as two:
        of_one, of_two = one.object(Counter, 100), two.object(Counter, 200)
        assert [of_one.add(1), of_two.add(5)] == [101, 205]
        one.close()
        assert of_two.add(1) == 206


def test_functions_call_back_to_their_own_client() -> None:
    def outer(item: int) -> int:
        def inner(value: int) -> int:
            return value + 1

        return int(gridrpc.current_grid().submit(inner, item).result()) * 10

    with client() as one, client() as two:
        calls = [one.submit(outer, 1), two.submit(outer, 2)]
        assert [call.result(timeout=LONG) for call in calls] == [20, 30]


#: A client with all workers busy, many calls queued, an object and shared data; then it waits.
GREEDY = """
import time, numpy, gridrpc

class Counter:
    def add(self):
        return 1

def busy(data, folder, item):
    with open(f"{folder}/ran", "a") as file:
        print(item, file=file, flush=True)
    time.sleep(0.5)

if __name__ == "__main__":
    grid = gridrpc.Grid(servers=["session:shared"])
    counter = grid.object(Counter)
    assert counter.add() == 1
    data = grid.share(numpy.ones(100_000))
    calls = [grid.submit(busy, data, FOLDER, item) for item in range(1000)]
    calls[0].result()
    print("busy", flush=True)
    time.sleep(1000)
"""


def test_the_death_of_a_client_leaves_others_unharmed(tmp_path: Path) -> None:
    daemon = psutil.Process(session_pid())
    with client() as grid:
        data, counter = grid.share(np.arange(100_000.0)), grid.object(Counter, 10)
        assert counter.add(1) == 11
        greedy = start_script(tmp_path, GREEDY.replace("FOLDER", repr(str(tmp_path))))
        assert greedy.stdout is not None
        assert greedy.stdout.readline() == "busy\n"
        # Its thousand calls would take 250 s. Those of others queue beside them, not behind them.
        assert grid.submit(float, 1).result(timeout=LONG) == 1.0
        greedy.send_signal(signal.SIGKILL)
        greedy.wait()
        assert grid.submit(np.sum, data).result(timeout=LONG) == np.arange(100_000.0).sum()
        assert counter.add(1) == 12
        # What the client had is gone with it: its queued calls, and the worker of its object.
        assert until(lambda: workers_of(daemon) == WORKERS + 1)
        results = [grid.submit(str, item).result(timeout=LONG) for item in range(20)]
        assert results == [str(item) for item in range(20)]
    begun = (tmp_path / "ran").read_text().split()
    assert len(begun) < 100
    assert until(lambda: workers_of(daemon) == WORKERS)


def session_pid() -> int:
    from gridrpc._session import registry

    return registry.record_of("shared").pid


def workers_of(daemon: psutil.Process) -> int:
    """How many processes of workers there are; the spawner is their parent."""
    return sum(len(spawner.children()) for spawner in daemon.children())


# ---- Requests


def answer(name: str, sections: list[bytes]) -> list[bytes]:
    match name:
        case "echo":
            return sections
        case "fail":
            raise gridrpc.JournalError("it has other items", "/folder")
        case "wait":
            released.wait(LONG)
            return []
    raise LookupError(name)


released = threading.Event()


@pytest.fixture
def socket_of_daemon(tmp_path: Path) -> Iterator[str]:
    """The socket of a daemon in this process that takes three connections."""
    socket = str(tmp_path / ("deep" * 30) / "socket")
    Path(socket).parent.mkdir()
    released.clear()
    with gridrpc.Grid(workers=1) as grid:
        daemon = Daemon(grid._native, socket, answer, 3)
        yield socket
        released.set()
        daemon.close()


def test_requests_are_answered_by_the_daemon_itself(socket_of_daemon: str) -> None:
    connection = DaemonConnection(socket_of_daemon, LONG)
    large = np.random.default_rng(1).bytes(3_000_000)
    assert connection.request("echo", [b"", b"small", large], LONG) == [b"", b"small", large]
    assert connection.request("echo", [b"again"], None) == [b"again"]


def test_what_a_request_raises_is_raised_in_the_program(socket_of_daemon: str) -> None:
    connection = DaemonConnection(socket_of_daemon, LONG)
    with pytest.raises(gridrpc.JournalError, match="it has other items") as raised:
        connection.request("fail", [], LONG)
    assert raised.value.path == "/folder"
    with pytest.raises(LookupError, match="unknown"):
        connection.request("unknown", [], LONG)
    # The connection is still of use.
    assert connection.request("echo", [b"x"], LONG) == [b"x"]


def test_a_request_that_takes_long_delays_no_other_connection(socket_of_daemon: str) -> None:
    slow, quick = (DaemonConnection(socket_of_daemon, LONG) for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(slow.request, "wait", [], LONG)
        assert quick.request("echo", [b"x"], LONG) == [b"x"]
        assert not waiting.done()
        released.set()
        assert waiting.result(LONG) == []


def test_an_answer_that_does_not_come_in_time(socket_of_daemon: str) -> None:
    connection = DaemonConnection(socket_of_daemon, LONG)
    with pytest.raises(TimeoutError):
        connection.request("wait", [], 0.1)
    with pytest.raises(ConnectionResetError):
        connection.request("echo", [], LONG)


def test_a_daemon_refuses_more_connections_than_it_takes(socket_of_daemon: str) -> None:
    connections = [DaemonConnection(socket_of_daemon, LONG) for _ in range(3)]
    with pytest.raises(ConnectionAbortedError, match="there are 3 connections already"):
        DaemonConnection(socket_of_daemon, LONG)
    connections.pop().close()

    def connects() -> bool:
        try:
            return DaemonConnection(socket_of_daemon, LONG).request("echo", [], LONG) == []
        except ConnectionAbortedError:
            return False

    assert until(connects)


def test_what_does_not_speak_the_protocol_is_sent_away(socket_of_daemon: str) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        folder = os.open(Path(socket_of_daemon).parent, os.O_PATH)
        stranger.connect(f"/proc/self/fd/{folder}/socket")
        os.close(folder)
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
        stranger.settimeout(LONG)
        with suppress(ConnectionResetError):
            while stranger.recv(4096):
                pass
    assert DaemonConnection(socket_of_daemon, LONG).request("echo", [b"x"], LONG) == [b"x"]


def test_a_daemon_that_closes_ends_its_connections(tmp_path: Path) -> None:
    with gridrpc.Grid(workers=1) as grid:
        daemon = Daemon(grid._native, str(tmp_path / "socket"), answer, 3)
        connection = DaemonConnection(str(tmp_path / "socket"), LONG)
        assert daemon.attached == 1
        daemon.close()
        with pytest.raises(ConnectionResetError):
            connection.request("echo", [], LONG)
        with pytest.raises(ConnectionRefusedError):
            DaemonConnection(str(tmp_path / "socket"), LONG)
        assert grid.submit(abs, -1).result(timeout=LONG) == 1
