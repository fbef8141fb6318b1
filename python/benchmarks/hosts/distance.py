"""What a call moves, against bare TCP, over the size of its argument, on three links.

The first link is fast and near, the others slower and farther: their delay is that of a relay
(gridbench_testbed/links/relay.py) at the far end of a link of known rate, which both go through.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.curves import Line, curves
from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Values, noise_row
from benchmarks.hosts.places import (
    LOOPBACK,
    Kind,
    Wire,
    behind,
    lacks_links,
    places,
    programs,
    shuffled,
)
from gridbench.bench.programs import numbers
from gridbench.bench.series import Points
from gridbench.formats import bit_rate, round_amount
from gridbench.process.launch import PYTHON
from gridbench_testbed.links import iproute
from gridbench_testbed.links.network import Network

_KINDS: tuple[Kind, ...] = ("tcp", "tls")
_LONGEST = {Extent.TRIAL: 0.1, Extent.USUAL: 2.0, Extent.FULL: 10.0}
"""Seconds that the largest size of a link takes at its rate."""
_TIME = {Extent.TRIAL: 0.2, Extent.USUAL: 2.0, Extent.FULL: 5.0}
"""Seconds for the calls of one size, about."""


@dataclass(frozen=True, slots=True)
class _Link:
    rate: float
    """Bits per second."""
    delay: float
    """Seconds, each way."""

    @property
    def name(self) -> str:
        delay = f", {round_amount(self.delay, 's')} each way" if self.delay else ""
        return f"{bit_rate(self.rate)}{delay}"

    def seconds(self, size: int) -> float:
        """For a call with so many bytes, about."""
        return 2 * self.delay + 8 * size / self.rate


_LINKS = (_Link(1e9, 0.0), _Link(100e6, 10e-3), _Link(1e6, 80e-3))
_ALL = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
_SIZES = {Extent.TRIAL: (1_000, 100_000), Extent.USUAL: _ALL, Extent.FULL: _ALL}


def moved(folder: str, rate: float, delay: float, sizes: list[int], budget: float) -> Values:
    """Median s for an argument of each size, over TCP and TLS; and bare, twice; in random order."""
    link = _Link(rate, delay)
    with ExitStack() as stack:
        network = stack.enter_context(Network(1, rate))
        (node,), (namespace,) = network.node_addresses, network.namespaces
        wire = stack.enter_context(Wire(folder, LOOPBACK if delay else node, namespace.name))
        port = wire.port("tcp")
        keys: dict[str, object] = {"start_timeout": 120, "heartbeat": 60}
        if delay:
            # The agent and the bare sender each reach the other end by way of the relay.
            door = _free_port()
            far = (network.client_address, door)
            stack.enter_context(_relay(namespace.name, delay, (node, door), far))
            near = (LOOPBACK, port)
            port = stack.enter_context(_relay(namespace.name, delay, (node, 0), near))
            keys |= {"addresses": node, "ports": door}
        values: Values = {}
        for size in sizes:
            count = max(1, min(500, round(budget / link.seconds(size))))

            def ours(kind: Kind, size: int = size, count: int = count) -> float:
                servers = places(behind(network, 1, kind, **keys))
                return numbers(folder, "far", "arrive", size, count, places=servers)[0]

            def bare(size: int = size, count: int = count) -> float:
                return wire.send("tcp", size, count, at=(node, port))

            found = shuffled(
                {
                    "tcp": lambda: ours("tcp"),
                    "tls": lambda: ours("tls"),
                    "bare": bare,
                    "again": bare,
                }
            )
            values |= {f"{name} {size}": seconds for name, seconds in found.items()}
        return values


def _free_port() -> int:
    with socket.create_server(("", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def _relay(
    namespace: str, delay: float, at: tuple[str, int], target: tuple[str, int]
) -> Iterator[int]:
    """A relay in the namespace; its port."""
    module = ["-m", "gridbench_testbed.links.relay", str(delay), *map(str, (*at, *target))]
    command = ["ip", "netns", "exec", namespace, *PYTHON, *module]
    relay = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=iproute.environment(),
    )  # fmt: skip
    try:
        port = relay.stdout.readline() if relay.stdout else ""
        if not port:
            raise RuntimeError("the relay ended at once")
        yield int(port)
    finally:
        relay.communicate()


def area(extent: Extent) -> Area:
    """One case for each link."""
    folder, missing = programs()
    missing = missing or lacks_links()
    sizes = {
        link: [n for n in _SIZES[extent] if n <= 1000 or link.seconds(n) <= _LONGEST[extent]]
        for link in _LINKS
    }
    cases = [
        AreaCase(link.name, moved, {
                "folder": folder, "rate": link.rate, "delay": link.delay, "sizes": sizes[link],
                "budget": _TIME[extent],
            }, missing=missing, most_runs=3, timeout=1800)
        for link in _LINKS
    ]  # fmt: skip
    return Area(
        "hosts/distance",
        "Argument over message size; limit: bare TCP through the same link",
        tuple(cases),
        lambda samples: _rows(samples, sizes),
        part="distance",
        picture=lambda samples: _picture(samples, sizes),
    )


def _rows(samples: Points, sizes: dict[_Link, list[int]]) -> list[Row]:
    rows = []
    for link, used in sizes.items():
        for size in used:
            bare = samples.of(link.name, f"bare {size}")
            for kind in _KINDS:
                rows.append(
                    Row(
                        f"{size:,} bytes over {kind.upper()}, {link.name}",
                        "s",
                        samples.of(link.name, f"{kind} {size}"),
                        limit=bare,
                        digits=5,
                    )
                )
            rows.append(
                noise_row(
                    f"{size:,} bytes bare, {link.name}, by itself",
                    bare,
                    samples.of(link.name, f"again {size}"),
                )
            )
    return rows


def _picture(samples: Points, sizes: dict[_Link, list[int]]) -> str:
    lines = []
    for number, (link, used) in enumerate(sizes.items()):
        for name, what, dashed in (("bare", "TCP", True), ("tcp", "gridrpc", False)):
            seconds = [samples.of(link.name, f"{name} {size}").median for size in used]
            rates = [size / 1e6 / taken for size, taken in zip(used, seconds, strict=True)]
            lines.append(Line(f"{what}, {link.name}", list(used), rates, number, dashed))
    return curves("Bytes per second over message size", "message, bytes", "MB/s", lines)
