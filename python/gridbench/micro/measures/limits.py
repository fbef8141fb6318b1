"""What the machine allows: the simplest program that does the same, without any engine."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gridbench.bench.client import EngineClient, MeasuredValues, timed_until
from gridbench.bench.programs import numbers
from gridbench.workload.calls import null

_MESSAGE = b"x" * 64


def of_program(
    client: EngineClient, folder: str, mode: str, numbers_of: list[int], unit: str
) -> MeasuredValues:
    """What the C program `limits` prints for a mode, named after its unit."""
    del client
    return MeasuredValues({unit: numbers(folder, "limits", mode, *numbers_of)[0]})


def copying(client: EngineClient, size: int) -> MeasuredValues:
    """`ms` for a copy of `size` bytes into warm memory; `new_ms` into memory never touched."""
    del client
    source = np.full(size, 7, np.uint8)
    new, warm = [], []
    for _ in range(max(1, min(50, 20_000_000 // size))):
        target = np.empty(size, np.uint8)
        first, *later = (_copied(target, source) for _ in range(6))
        new.append(first)
        warm += later
    return MeasuredValues(
        {"ms": 1e3 * statistics.median(warm), "new_ms": 1e3 * statistics.median(new)}
    )


def _copied(target: npt.NDArray[np.uint8], source: npt.NDArray[np.uint8]) -> float:
    begin = time.perf_counter()
    np.copyto(target, source)
    return time.perf_counter() - begin


def forking(client: EngineClient, processes: int) -> MeasuredValues:
    """`seconds` to fork so many processes, until each has written one byte."""
    del client
    ready, notify = os.pipe()
    children = []
    begin = time.perf_counter()
    for _ in range(processes):
        pid = os.fork()
        if pid == 0:
            os.write(notify, b"x")
            signal.pause()
        children.append(pid)
    heard = 0
    while heard < processes:
        heard += len(os.read(ready, processes))
    passed = time.perf_counter() - begin
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for end in (ready, notify):
        os.close(end)
    return MeasuredValues({"seconds": passed})


def ping_pong(client: EngineClient, tcp: bool) -> MeasuredValues:
    """`us`: median round trip of 64 bytes between two Python processes over a socket."""

    def answer(there: socket.socket) -> None:
        while message := there.recv(len(_MESSAGE)):
            there.sendall(message)

    def ask(here: socket.socket) -> None:
        here.sendall(_MESSAGE)
        here.recv(len(_MESSAGE))

    return _round_trips(client, _pair(tcp), ask, answer)


def pickled_call(client: EngineClient, spin: bool) -> MeasuredValues:
    """`us`: median of the least a call of a Python function takes between two processes.

    Function and arguments are pickled, sent over a Unix socket with their length before them,
    called there, and the result comes back likewise. With `spin` both look until something comes,
    instead of sleeping.
    """
    pair = _pair(tcp=False)
    for side in pair:
        side.setblocking(not spin)

    def answer(there: socket.socket) -> None:
        while (request := _receive(there)) is not None:
            function, arguments = pickle.loads(request)
            _send(there, pickle.dumps(function(*arguments), -1))

    def ask(here: socket.socket) -> None:
        _send(here, pickle.dumps((null, ()), -1))
        reply = _receive(here)
        assert reply is not None
        pickle.loads(reply)

    return _round_trips(client, pair, ask, answer)


Side = Callable[[socket.socket], None]


def _round_trips(
    client: EngineClient, pair: tuple[socket.socket, socket.socket], ask: Side, answer: Side
) -> MeasuredValues:
    here, there = pair
    pid = os.fork()
    if pid == 0:
        here.close()
        answer(there)
        os._exit(0)
    there.close()
    timed_until(lambda: ask(here), client.budget / 10, least=10, most=10_000)
    times = timed_until(lambda: ask(here), client.budget, least=10, most=100_000)
    here.close()
    os.waitpid(pid, 0)
    return MeasuredValues({"us": 1e6 * statistics.median(times), "count": len(times)})


def _pair(tcp: bool) -> tuple[socket.socket, socket.socket]:
    if not tcp:
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    for side in (here, there):
        side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return here, there


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(len(data).to_bytes(4, "little") + data)


def _receive(connection: socket.socket) -> bytes | None:
    """A message with its length, small enough for one packet; None at the end."""
    data = _looked_for(connection)
    if not data:
        return None
    while len(data) < 4 + int.from_bytes(data[:4], "little"):
        data += _looked_for(connection)
    return data[4:]


def _looked_for(connection: socket.socket) -> bytes:
    """Receive; polls a socket that does not block."""
    while True:
        try:
            return connection.recv(4096)
        except BlockingIOError:
            pass
