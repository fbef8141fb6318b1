"""What the links of a network really do: round trips and rates, by plain sockets."""

from __future__ import annotations

import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from gridbench.errors import InputError
from gridbench.links.peer import REQUEST, What, limit_buffer, receive_all, send_for
from gridbench.process.launch import PYTHON
from gridbench_testbed.links import iproute
from gridbench_testbed.links.network import Network

_ROUND_TRIPS = 200
_PATIENCE = 30.0  # seconds for a peer to start, or for an answer
_BUFFER = 50e-3  # seconds of the rate that may wait in a socket
_SMALLEST_BUFFER, _LARGEST_BUFFER = 16 << 10, 4 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Rates:
    """Bits per second of what was sent, without headers, from the first byte to the last."""

    out: float
    """From the client."""
    back: float
    """To the client."""


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """What was measured with one node alone."""

    number: int
    """From 1."""
    round_trip: float
    """Seconds there and back, of one byte; median."""
    rates: Rates


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured on a network."""

    nodes: list[NodeFigures]
    together: Rates
    """All nodes at the same time; the sum."""


Place = tuple[str, int]


def measure(network: Network, seconds: float, tell: Callable[[str], None]) -> Figures:
    """Measure an active network, `seconds` for each rate; `tell` is told what comes next.

    InputError when a process in a node cannot be started or reached.
    """
    with _peers(network) as places:
        nodes = []
        for number, place in enumerate(places, 1):
            tell(f"node {number} of {network.nodes}")
            rates = Rates(*(_rate([place], network, seconds, what) for what in (_send, _receive)))
            nodes.append(NodeFigures(number, _round_trip(place), rates))
        tell("all nodes together")
        together = Rates(*(_rate(places, network, seconds, what) for what in (_send, _receive)))
    return Figures(nodes, together)


@contextmanager
def _peers(network: Network) -> Iterator[list[Place]]:
    """The address and port of a peer in each node."""
    with ExitStack() as ending:
        started = []
        for namespace in network.namespaces:
            command = ["ip", "netns", "exec", namespace.name]
            peer = subprocess.Popen(
                [*command, *PYTHON, "-m", "gridbench.links.peer"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=iproute.environment(),
                start_new_session=True,
            )
            # In reverse: it is told to end by the end of its input, then waited for.
            ending.callback(peer.wait)
            ending.enter_context(peer.stdout)  # type: ignore[arg-type] # it is a pipe
            ending.enter_context(peer.stdin)  # type: ignore[arg-type] # it is a pipe
            started.append(peer)
        places = []
        for peer, address in zip(started, network.node_addresses, strict=True):
            port = peer.stdout.readline().strip() if peer.stdout else ""
            if not port:
                raise InputError(
                    f"the process in a node ended at once (exit status {peer.wait()})",
                    remedy="see what it has written above",
                )
            places.append((address, int(port)))
        yield places


def _connect(place: Place, what: What, *, seconds: float = 0.0, size: int = 0) -> socket.socket:
    try:
        connection = socket.create_connection(place, timeout=_PATIENCE)
    except OSError as error:
        raise InputError(
            f"no connection to the node at {place[0]}: {error.strerror or error}",
            remedy="see whether a firewall on this machine keeps the client from it",
        ) from error
    connection.sendall(REQUEST.pack(what, seconds, size))
    return connection


def _round_trip(place: Place) -> float:
    taken = []
    with _connect(place, b"echo") as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(_ROUND_TRIPS):
            began = time.monotonic()
            connection.sendall(b"?")
            connection.recv(1)
            taken.append(time.monotonic() - began)
    return statistics.median(taken)


_Moved = tuple[int, float]  # bytes, and when the last had come


def _send(place: Place, seconds: float, size: int, ready: threading.Barrier) -> _Moved:
    with _connect(place, b"take") as connection:
        limit_buffer(connection, size)
        connection.settimeout(None)
        ready.wait(_PATIENCE)
        count = send_for(connection, seconds)
        connection.recv(1)  # says that all has come
        return count, time.monotonic()


def _receive(place: Place, seconds: float, size: int, ready: threading.Barrier) -> _Moved:
    ready.wait(_PATIENCE)
    with _connect(place, b"give", seconds=seconds, size=size) as connection:
        connection.settimeout(None)
        return receive_all(connection), time.monotonic()


def _rate(
    places: Sequence[Place],
    network: Network,
    seconds: float,
    move: Callable[[Place, float, int, threading.Barrier], _Moved],
) -> float:
    """Bits per second of all places at the same time."""
    size = round(network.rate / 8 * _BUFFER / len(places))
    size = min(max(size, _SMALLEST_BUFFER), _LARGEST_BUFFER)
    began: list[float] = []
    ready = threading.Barrier(len(places), action=lambda: began.append(time.monotonic()))
    with ThreadPoolExecutor(len(places)) as threads:
        moving = [threads.submit(move, place, seconds, size, ready) for place in places]
        moved = [one.result() for one in moving]
    took = max(end for _, end in moved) - began[0]
    return 8 * sum(count for count, _ in moved) / took
