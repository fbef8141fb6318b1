"""A network of nodes on this machine, whose links have a known rate.

    client ══ switch ══ node 1
                 ╠═════ node 2
                 ╚═════ ...

The switch is a bridge in a network namespace of its own, and each node is a namespace; the client
stays where it is. A link is a pair of virtual Ethernet devices, each of which sends through a token
bucket (tc-tbf(8)) of the nominal rate: so it has that rate in each direction, and the client's
link is the bottleneck when several nodes are sent to, as on a real switch.
"""

from __future__ import annotations

import ipaddress
import itertools
import math
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from gridbench_testbed.errors import InputError
from gridbench_testbed.links import iproute
from gridbench_testbed.links.owners import (
    CLIENT_PORT,
    NAMESPACES,
    leftovers,
    node_of,
    one_at_a_time,
    port_of,
    remove,
    switch_of,
    tag_of,
)

MOST_NODES = 250
SLOWEST, FASTEST = 64e3, 100e9  # bits per second
MTU = 1500  # bytes: what Ethernet carries without further ado

_RANGE = ipaddress.IPv4Network("198.18.0.0/15")  # set apart for benchmarks of networks by RFC 2544
_PREFIX = 24
_BURST = 1e-3  # seconds of the rate that may be sent at once; timers are not that exact
_SMALLEST_BURST = 2 * (MTU + 14)  # bytes, with the Ethernet header
_QUEUE = 20e-3  # seconds of the rate that wait; more is dropped
_SMALLEST_QUEUE = 40_000  # bytes

_numbers = itertools.count()


class Network:
    """While active, there are `nodes` network namespaces behind links of `rate` bits per second.

    It is taken down at the end, also on errors and Ctrl-C; what a killed process has left is
    removed by the next one that makes a network. Entering raises InputError when this is not root,
    iproute2 is not installed, or the kernel lacks what is needed.
    """

    def __init__(self, nodes: int, rate: float) -> None:
        if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes <= MOST_NODES:
            raise InputError(
                f"{nodes!r} nodes are not possible", remedy=f"choose from 1 to {MOST_NODES}"
            )
        _check_rate(rate)
        self.nodes = nodes
        self.rate = float(rate)
        """Bits per second, in each direction of each link, headers included."""
        number = next(_numbers)
        self.client_interface = f"gb{os.getpid()}n{number}"
        """The client's end of its link."""
        self.client_address = ""
        self.node_addresses: list[str] = []
        self._tag = tag_of(number)

    @property
    def namespaces(self) -> list[Path]:
        """The nodes."""
        return [NAMESPACES / node_of(self._tag, number) for number in self._numbers()]

    @property
    def switch(self) -> Path:
        """The namespace with the bridge, whose ports are `client`, `port1`, `port2`, ..."""
        return NAMESPACES / switch_of(self._tag)

    @property
    def burst(self) -> int:
        """Bytes that a link takes at once before its rate counts."""
        return max(_SMALLEST_BURST, round(self.rate / 8 * _BURST))

    @property
    def queue(self) -> int:
        """Bytes that wait for a link; what goes beyond is dropped, as by a switch."""
        return max(_SMALLEST_QUEUE, round(self.rate / 8 * _QUEUE)) + self.burst

    def __enter__(self) -> Network:
        iproute.require()
        try:
            with one_at_a_time():
                for tag in leftovers():
                    remove(tag)
                self._choose_addresses()
                self._make()
        except BaseException:
            self._take_down()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._take_down()

    def _numbers(self) -> range:
        return range(1, self.nodes + 1)

    def _choose_addresses(self) -> None:
        taken = []
        for route in iproute.ask("ip", ["-4", "route", "show", "table", "all"]):
            if route["dst"] != "default":
                network = ipaddress.IPv4Network(route["dst"], strict=False)
                # Ours go before wider ones.
                if network.prefixlen >= _RANGE.prefixlen and network.overlaps(_RANGE):
                    taken.append(network)
        for subnet in _RANGE.subnets(new_prefix=_PREFIX):
            if not any(subnet.overlaps(network) for network in taken):
                hosts = map(str, subnet.hosts())
                self.client_address = next(hosts)
                self.node_addresses = list(itertools.islice(hosts, self.nodes))
                return
        raise InputError(
            f"all addresses of {_RANGE} are in use",
            remedy="end other runs with links, or remove routes to these addresses",
        )

    def _make(self) -> None:
        switch, mine = switch_of(self._tag), self.client_interface
        nodes = [node_of(self._tag, number) for number in self._numbers()]
        spaces = [f"netns add {name}" for name in [switch, *nodes]]
        iproute.run("ip", spaces, needs="network namespaces (CONFIG_NET_NS)")
        pair = f"link add name {mine} mtu {MTU} type veth peer name {CLIENT_PORT} mtu {MTU}"
        veth = "virtual Ethernet pairs (CONFIG_VETH)"
        iproute.run("ip", [f"{pair} netns {switch}"], needs=veth)
        bridge = ["link add name bridge type bridge", "link set dev bridge up"]
        iproute.run("ip", bridge, namespace=switch, needs="bridges (CONFIG_BRIDGE)")
        ports = [
            f"link add name {port_of(number)} mtu {MTU}"
            f" type veth peer name link mtu {MTU} netns {node}"
            for number, node in zip(self._numbers(), nodes, strict=True)
        ]
        names = [CLIENT_PORT, *map(port_of, self._numbers())]
        ports += [f"link set dev {name} master bridge up" for name in names]
        iproute.run("ip", ports, namespace=switch, needs=veth)
        self._shape(names, namespace=switch)
        for node, address in zip(nodes, self.node_addresses, strict=True):
            self._bring_up("link", address, namespace=node)
            iproute.run("ip", ["link set dev lo up"], namespace=node)
        self._bring_up(mine, self.client_address)

    def _bring_up(self, interface: str, address: str, *, namespace: str = "") -> None:
        self._shape([interface], namespace=namespace)
        commands = [
            f"address add {address}/{_PREFIX} dev {interface}",
            f"link set dev {interface} up",
        ]
        iproute.run("ip", commands, namespace=namespace)

    def _shape(self, interfaces: list[str], *, namespace: str) -> None:
        bucket = f"tbf rate {self.rate:.0f}bit burst {self.burst} limit {self.queue}"
        commands = [f"qdisc replace dev {interface} root {bucket}" for interface in interfaces]
        needs = "the token bucket (CONFIG_NET_SCH_TBF)"
        iproute.run("tc", commands, namespace=namespace, needs=needs)

    def _take_down(self) -> None:
        with uninterrupted(), one_at_a_time():
            remove(self._tag)


def _check_rate(rate: float) -> None:
    number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    if not number or not math.isfinite(rate) or not SLOWEST <= rate <= FASTEST:
        raise InputError(
            f"links of {rate!r} bit/s cannot be made here",
            remedy=f"choose from {SLOWEST / 1e3:.0f} kbit/s to {FASTEST / 1e9:.0f} Gbit/s",
        )


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals that ask for an end have to wait: half a network would be left."""
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
