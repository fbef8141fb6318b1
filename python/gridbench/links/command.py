"""`gridbench links`: makes a network, and shows what its links do beside what they are to do."""

from __future__ import annotations

import math
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field

import click
from rich.console import Console

from gridbench.errors import InputError
from gridbench.formats import as_given, bit_rate, duration, percent
from gridbench.links.options import parse_rate
from gridbench.links.peer import REQUEST, What, limit_buffer, receive_all, send_for
from gridbench.printing import Printing
from gridbench.process.children import PYTHON
from gridbench.terminal import new_table
from gridbench_testbed.links.network import (
    MTU,
    Network,
    ip_environment,
    remove_leftovers,
    require_links,
)

_ROUND_TRIPS = 200
_PATIENCE = 30.0  # seconds for a peer to start, or for an answer
_BUFFER = 50e-3  # seconds of the rate that may wait in a socket
_SMALLEST_BUFFER, _LARGEST_BUFFER = 16 << 10, 4 << 20  # bytes


@dataclass(frozen=True, slots=True)
class LinkRates:
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
    rates: LinkRates


@dataclass(frozen=True, slots=True)
class LinkFigures:
    """What was measured on a network."""

    nodes: list[NodeFigures]
    together: LinkRates
    """All nodes at the same time; the sum."""


PeerAddress = tuple[str, int]


def measure(network: Network, seconds: float, notify: Callable[[str], None]) -> LinkFigures:
    """Measure an active network, `seconds` for each rate; `tell` receives what comes next.

    InputError when a process in a node cannot be started or reached.
    """
    with _peers(network) as places:
        nodes = []
        for number, place in enumerate(places, 1):
            notify(f"node {number} of {network.nodes}")
            rates = LinkRates(
                *(_rate([place], network, seconds, what) for what in (_send, _receive))
            )
            nodes.append(NodeFigures(number, _round_trip(place), rates))
        notify("all nodes together")
        together = LinkRates(*(_rate(places, network, seconds, what) for what in (_send, _receive)))
    return LinkFigures(nodes, together)


@contextmanager
def _peers(network: Network) -> Iterator[list[PeerAddress]]:
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
                env=ip_environment(),
                start_new_session=True,
            )
            # In reverse: the end of its input ends it, and then this waits for it.
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


def _connect(
    place: PeerAddress, what: What, *, seconds: float = 0.0, size: int = 0
) -> socket.socket:
    try:
        connection = socket.create_connection(place, timeout=_PATIENCE)
    except OSError as error:
        raise InputError(
            f"no connection to the node at {place[0]}: {error.strerror or error}",
            remedy="see whether a firewall on this machine keeps the client from it",
        ) from error
    connection.sendall(REQUEST.pack(what, seconds, size))
    return connection


def _round_trip(place: PeerAddress) -> float:
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


def _send(place: PeerAddress, seconds: float, size: int, ready: threading.Barrier) -> _Moved:
    with _connect(place, b"take") as connection:
        limit_buffer(connection, size)
        connection.settimeout(None)
        ready.wait(_PATIENCE)
        count = send_for(connection, seconds)
        connection.recv(1)  # says that all has come
        return count, time.monotonic()


def _receive(place: PeerAddress, seconds: float, size: int, ready: threading.Barrier) -> _Moved:
    ready.wait(_PATIENCE)
    with _connect(place, b"give", seconds=seconds, size=size) as connection:
        connection.settimeout(None)
        return receive_all(connection), time.monotonic()


def _rate(
    places: Sequence[PeerAddress],
    network: Network,
    seconds: float,
    move: Callable[[PeerAddress, float, int, threading.Barrier], _Moved],
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


_ETHERNET, _HEADERS = 14, 52  # bytes: what the rate counts beside a packet; IP and TCP within it
_SHORT = 0.85  # of the nominal rate: with less, the machine and not the link is the limit


@dataclass(frozen=True, kw_only=True, slots=True)
class LinksRequest:
    """What the user asked for."""

    nodes: int = 1
    link: str = "1gbit"
    seconds: float = 1.0
    """For each rate."""
    only_clean: bool = False
    """Only remove what killed runs have left."""
    printing: Printing = field(default_factory=Printing)


def show_links(request: LinksRequest) -> int:
    """Measure and print. Returns the exit status."""
    if request.only_clean:
        require_links()
        left = remove_leftovers()
        for tag in left:
            click.echo(f"removed the network {tag}, whose process is gone")
        if not left:
            click.echo("nothing has been left")
        return 0
    if not math.isfinite(request.seconds) or not 0.01 <= request.seconds <= 3600:
        raise InputError(
            f"--seconds: {as_given(request.seconds, '')} is not from 0.01 to 3,600",
            remedy="leave it out",
        )
    rate = parse_rate("--link", request.link)
    waiting = request.printing.progress()
    with Network(request.nodes, rate) as network, waiting.status("") as status:
        figures = measure(network, request.seconds, status.update)
    _print(request.printing.tables(), network, figures)
    request.printing.document(lambda: _record(network, figures))
    return 0


def payload_rate(rate: float) -> float:
    """What of a link's rate is left for data in full packets: headers take the rest."""
    return rate * (MTU - _HEADERS) / (MTU + _ETHERNET)


def _record(network: Network, figures: LinkFigures) -> dict[str, object]:
    return {
        "nodes": network.nodes,
        "rate": network.rate,
        "payload_rate": payload_rate(network.rate),
        "burst_bytes": network.burst,
        "queue_bytes": network.queue,
        "mtu": MTU,
        "measured": asdict(figures),
    }


def _print(console: Console, network: Network, figures: LinkFigures) -> None:
    nominal = bit_rate(network.rate)
    nodes = "1 node" if network.nodes == 1 else f"{network.nodes} nodes"
    table = new_table(
        f"{nodes} behind links of {nominal}",
        words=("with",),
        numbers=("round trip", "to node", "of nominal", "from node", "of nominal"),
    )
    for node in figures.nodes:
        trip = duration(node.round_trip)
        table.add_row(f"node {node.number}", trip, *_cells(node.rates, network.rate))
    if network.nodes > 1:
        table.add_row("all at once", "", *_cells(figures.together, network.rate))
    console.print(table)
    console.print(
        f"Of {nominal}, {bit_rate(payload_rate(network.rate))} can carry data: Ethernet, IP and"
        " TCP headers take the rest. All nodes share the client's link."
    )
    least = min(min(rates.out, rates.back) for rates in _all(figures))
    if least < _SHORT * network.rate:
        console.print(
            f"The least of these rates is {percent(least / network.rate, 0)} of the nominal one:"
            " this machine does not keep up with such links, or is busy with something else."
        )


def _all(figures: LinkFigures) -> list[LinkRates]:
    return [*(node.rates for node in figures.nodes), figures.together]


def _cells(rates: LinkRates, nominal: float) -> list[str]:
    cells = []
    for rate in (rates.out, rates.back):
        cells += [bit_rate(rate), percent(rate / nominal)]
    return cells
