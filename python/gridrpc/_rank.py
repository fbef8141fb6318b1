"""A rank: a process of MPI that runs functions for the worker that has had it started."""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from pickle import loads
from socket import AF_UNIX, IPPROTO_TCP, TCP_NODELAY, create_connection, socket
from typing import Any

from gridrpc._wrapped import Wrapped

#: Start of the place of a worker with ranks on several nodes: its port, a colon, and hosts with
#: commas follow. Otherwise the place is the path of a socket.
TCP = "tcp:"
#: The environment variable with the secret that ranks send to such a worker first.
SECRET = "GRIDRPC_RANKS_SECRET"
#: Seconds within which a host has to answer, and a rank to send the secret.
PATIENCE = 5


def main() -> None:
    """Serve the worker that listens at the place in the command line until it is gone."""
    from mpi4py import MPI

    connection = _connected(sys.argv[-1])
    connection.send(MPI.COMM_WORLD.Get_rank())
    sys.path[:], folder = connection.recv()
    os.chdir(folder)
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, calls), daemon=True).start()
    while True:
        kind, value = _run(calls.get())
        connection.send_bytes(_pickled(kind, value))


def _connected(place: str) -> Connection:
    if place.startswith(TCP):
        return _connected_from_node(place.removeprefix(TCP))
    with socket(AF_UNIX) as opened:
        opened.connect(place)
        return Connection(opened.detach())


def _connected_from_node(place: str) -> Connection:
    port, _, hosts = place.partition(":")
    why: OSError | None = None
    for host in hosts.split(","):
        try:
            opened = create_connection((host, int(port)), timeout=PATIENCE)
        except OSError as error:
            why = error
            continue
        with opened:
            opened.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            opened.sendall(os.environ[SECRET].encode())
            opened.settimeout(None)
            return Connection(opened.detach())
    raise ConnectionError(f"the worker at {hosts}, port {port}, cannot be reached: {why}")


def _receive(connection: Connection, calls: queue.SimpleQueue[bytes]) -> None:
    """Take calls; end with the worker, whatever a function does at that time."""
    while True:
        try:
            calls.put(connection.recv_bytes())
        except (EOFError, OSError):
            # Not by MPI_Finalize, which would wait for ranks that do something else.
            os._exit(0)


def _run(call: bytes) -> tuple[str, Any]:
    try:
        function, args, kwargs = loads(call)
        result = Wrapped(function).resolved()(*args, **kwargs)
    except BaseException as error:
        return "raised", _portable(error)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    from mpi4py import MPI

    return "returned", result if MPI.COMM_WORLD.Get_rank() == 0 else None


def _portable(error: BaseException) -> BaseException:
    """The error, with where it was raised; as text, if it is none that a worker may pass on."""
    trace = "".join(traceback.format_exception(error))
    if not isinstance(error, Exception):
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(trace)
    return error


def _pickled(kind: str, value: Any) -> bytes:
    from gridrpc._by_value import dumps

    try:
        return dumps((kind, value))
    except Exception as error:
        return dumps(
            ("raised", TypeError(f"what rank 0 returned or raised cannot be sent: {error}"))
        )
