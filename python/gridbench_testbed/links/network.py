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

import contextlib
import fcntl
import ipaddress
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from gridbench_testbed.errors import InputError

Program = Literal["ip", "tc"]

_PATIENCE = 60.0  # seconds, for steps that take milliseconds
_SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin"  # not in everybody's PATH


def require_links() -> None:
    """Raise InputError unless this is root and iproute2 is installed."""
    if os.geteuid() != 0:
        raise InputError(
            "links between network namespaces can be made by root only",
            remedy="run it as root, or measure on one host, without links",
        )
    for program in ("ip", "tc"):
        if shutil.which(program, path=ip_environment()["PATH"]) is None:
            raise InputError(
                f"links need the program `{program}`, which is not installed",
                remedy="install iproute2: `apt install iproute2`, or"
                " `dnf install iproute iproute-tc`",
            )


def ip_environment() -> dict[str, str]:
    """The environment of this process, with the system folders of `ip` on PATH."""
    # An empty entry would be the current folder.
    return {**os.environ, "PATH": f"{os.environ.get('PATH') or os.defpath}:{_SYSTEM_FOLDERS}"}


def run_ip(
    program: Program,
    commands: Sequence[str],
    *,
    namespace: str = "",
    needs: str = "",
    whatever_comes: bool = False,
) -> None:
    """Run commands of `ip` or `tc`, in a network namespace if named.

    `needs`: the kernel feature that they need, for the error message. `whatever_comes`: ignore
    failures. InputError otherwise.
    """
    force = ["-force"] if whatever_comes else []
    inside = ["-netns", namespace] if namespace else []
    text = "".join(f"{command}\n" for command in commands)
    ran = _call([program, *inside, *force, "-batch", "-"], text)
    if ran.returncode == 0 or whatever_comes:
        return
    raise _refused(program, ran.stderr, needs)


def ask_ip(program: Program, arguments: Sequence[str], *, namespace: str = "") -> Any:
    """The output of `ip -json` or `tc -json`."""
    inside = ["-netns", namespace] if namespace else []
    ran = _call([program, *inside, "-json", *arguments], "")
    if ran.returncode != 0:
        raise _refused(program, ran.stderr, "")
    return json.loads(ran.stdout or "[]")


def _call(command: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    try:
        # In its own session: this process handles Ctrl-C, and then removes the network.
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
            env={**ip_environment(), "LC_ALL": "C"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"`{command[0]}` did not end within {_PATIENCE:.0f} s",
            remedy="see whether another program changes the network at the same time",
        ) from None


def _refused(program: Program, said: str, needs: str) -> InputError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # The last line has only the number of the failed command.
    lines = [line for line in lines if not line.startswith("Command failed")]
    what = lines[0] if lines else "no reason given"
    if "not permitted" in what or "Permission denied" in what:
        return InputError(
            f"this process may not change the network (`{program}`: {what})",
            remedy="a container needs CAP_SYS_ADMIN and CAP_NET_ADMIN, such as by `--privileged`",
        )
    return InputError(
        f"the system did not make the links (`{program}`: {what})",
        remedy=f"see that the kernel has {needs}" if needs else "",
    )


NAMESPACES = Path("/run/netns")
"""The folder of `ip netns`."""
CLIENT_PORT = "client"
"""The switch's end of the client's link."""

_LOCK = Path("/run/gridbench-links.lock")
_NAME = re.compile(r"(gridbench-([0-9]+)-([0-9]+)-[0-9]+)-(switch|node[0-9]+)")


def tag_of(number: int) -> str:
    """Prefix of the names of this process's network `number`."""
    pid = os.getpid()
    return f"gridbench-{pid}-{_start_of(pid)}-{number}"


def switch_of(tag: str) -> str:
    """The namespace of the bridge."""
    return f"{tag}-switch"


def node_of(tag: str, number: int | str) -> str:
    """The namespace of node `number`, from 1."""
    return f"{tag}-node{number}"


def port_of(number: int | str) -> str:
    """The switch's end of the link of node `number`."""
    return f"port{number}"


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Lock against other processes that create or remove a network."""
    with open(_LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove(tag: str) -> None:
    """Remove a network, complete or not."""
    switch, node = switch_of(tag), node_of(tag, "")
    names = [name for name in _names() if name.startswith(f"{tag}-")]
    numbers = [name.removeprefix(node) for name in names if name.startswith(node)]
    if switch in names:
        # Running workers keep their namespaces; links are removed at once.
        ports = [CLIENT_PORT, *map(port_of, numbers)]
        commands = [f"link delete dev {port}" for port in ports]
        run_ip("ip", commands, namespace=switch, whatever_comes=True)
    if names:
        run_ip("ip", [f"netns delete {name}" for name in names], whatever_comes=True)


def remove_leftovers() -> list[str]:
    """Remove all networks whose process has ended; their prefixes."""
    with one_at_a_time():
        left = leftovers()
        for tag in left:
            remove(tag)
    return left


def leftovers() -> list[str]:
    """Prefixes of networks whose process has ended."""
    found = {}
    for name in _names():
        if match := _NAME.fullmatch(name):
            found[match[1]] = (int(match[2]), match[3])
    return sorted(tag for tag, (pid, start) in found.items() if _start_of(pid) != start)


def _names() -> list[str]:
    try:
        return sorted(os.listdir(NAMESPACES))
    except FileNotFoundError:
        return []


def _start_of(pid: int) -> str:
    """Start time of a process in ticks since boot; empty if it has ended."""
    try:
        # The 3rd and further fields follow the name, which may contain anything.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def network_of(namespace: str | os.PathLike[str]) -> tuple[str, str, str]:
    """Of a node's namespace (a file): its address, this machine's on the same network, and the
    network in CIDR notation. InputError if they have none in common."""
    ours = [ipaddress.IPv4Interface(one) for one in _addresses([])]
    for address in _addresses(["nsenter", f"--net={os.fspath(namespace)}"]):
        node = ipaddress.IPv4Interface(address)
        for client in ours:
            if not node.is_loopback and client.network == node.network:
                return str(node.ip), str(client.ip), str(node.network)
    raise InputError(
        f"the network namespace {os.fspath(namespace)} has no network in common with this machine",
        remedy="name one that `gridbench_testbed.links.network.Network` has made",
    )


def _addresses(inside: Sequence[str]) -> list[str]:
    """IPv4 addresses in CIDR notation, with a prefix for the command that lists them."""
    ran = _call([*inside, "ip", "-json", "-4", "address"], "")
    if ran.returncode != 0:
        raise _refused("ip", ran.stderr, "")
    return [
        f"{one['local']}/{one['prefixlen']}"
        for interface in json.loads(ran.stdout or "[]")
        for one in interface["addr_info"]
    ]


MOST_NODES = 250
SLOWEST, FASTEST = 64e3, 100e9  # bits per second
MTU = 1500  # bytes, Ethernet's default

_RANGE = ipaddress.IPv4Network("198.18.0.0/15")  # reserved for network benchmarks by RFC 2544
_PREFIX = 24
_BURST = 1e-3  # seconds of the rate that may be sent at once, as timers are inexact
_SMALLEST_BURST = 2 * (MTU + 14)  # bytes, with the Ethernet header
_QUEUE = 20e-3  # seconds of the rate in the queue; more is dropped
_SMALLEST_QUEUE = 40_000  # bytes

_numbers = itertools.count()


class Network:
    """Network namespaces as nodes behind links of `rate` bits per second, while active.

    The end removes it, also after errors and Ctrl-C; the next network removes those of killed
    processes. Entering raises InputError if this is not root, iproute2 is not installed, or the
    kernel lacks a feature.
    """

    def __init__(self, nodes: int, rate: float, delay: float = 0.0) -> None:
        """`delay`: seconds that each packet between client and nodes takes more, one way."""
        if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes <= MOST_NODES:
            raise InputError(
                f"{nodes!r} nodes are not possible", remedy=f"choose from 1 to {MOST_NODES}"
            )
        _check_rate(rate)
        self.nodes = nodes
        self.rate = float(rate)
        """Bits per second, in each direction of each link, headers included."""
        self.delay = delay
        self._cable: subprocess.Popen[bytes] | None = None
        number = next(_numbers)
        self.client_interface = f"gb{os.getpid()}n{number}"
        """The interface at the client's end of its link."""
        self.client_address = ""
        self.node_addresses: list[str] = []
        self._tag = tag_of(number)

    @property
    def namespaces(self) -> list[Path]:
        """The nodes' namespaces."""
        return [NAMESPACES / node_of(self._tag, number) for number in self._numbers()]

    @property
    def switch(self) -> Path:
        """The namespace of the bridge, with ports `client`, `port1`, `port2`, ..."""
        return NAMESPACES / switch_of(self._tag)

    @property
    def burst(self) -> int:
        """Bytes that a link accepts at once before its rate limit."""
        return _burst(self.rate)

    @property
    def queue(self) -> int:
        """Bytes in a link's queue; more is dropped, as by a switch."""
        return _queue(self.rate)

    def set_client_rate(self, rate: float) -> None:
        """Set the rate of the client's link alone, in bits per second, while active."""
        _check_rate(rate)
        self._shape([CLIENT_PORT], namespace=switch_of(self._tag), rate=rate)
        self._shape([self.client_interface], rate=rate)

    def __enter__(self) -> Network:
        require_links()
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

    def __exit__(self, *_: object) -> None:
        self._take_down()

    def _numbers(self) -> range:
        return range(1, self.nodes + 1)

    def _choose_addresses(self) -> None:
        taken = []
        for route in ask_ip("ip", ["-4", "route", "show", "table", "all"]):
            if route["dst"] != "default":
                network = ipaddress.IPv4Network(route["dst"], strict=False)
                # Our routes take precedence over wider ones.
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
        run_ip("ip", spaces, needs="network namespaces (CONFIG_NET_NS)")
        pair = f"link add name {mine} mtu {MTU} type veth peer name {CLIENT_PORT} mtu {MTU}"
        veth = "virtual Ethernet pairs (CONFIG_VETH)"
        run_ip("ip", [f"{pair} netns {switch}"], needs=veth)
        bridge = ["link add name bridge type bridge", "link set dev bridge up"]
        run_ip("ip", bridge, namespace=switch, needs="bridges (CONFIG_BRIDGE)")
        ports = [
            f"link add name {port_of(number)} mtu {MTU}"
            f" type veth peer name link mtu {MTU} netns {node}"
            for number, node in zip(self._numbers(), nodes, strict=True)
        ]
        names = [CLIENT_PORT, *map(port_of, self._numbers())]
        joined = names
        if self.delay:
            # The relay is the cable between the client's port and the bridge.
            ports += [f"link add name cable mtu {MTU} type veth peer name far mtu {MTU}"]
            ports += [f"link set dev {name} up" for name in (CLIENT_PORT, "cable")]
            joined = [*names[1:], "far"]
        ports += [f"link set dev {name} master bridge up" for name in joined]
        run_ip("ip", ports, namespace=switch, needs=veth)
        self._shape(names, namespace=switch)
        if self.delay:
            self._cable = self._lay_cable()
        for node, address in zip(nodes, self.node_addresses, strict=True):
            self._bring_up("link", address, namespace=node)
            run_ip("ip", ["link set dev lo up"], namespace=node)
        self._bring_up(mine, self.client_address)

    def _lay_cable(self) -> subprocess.Popen[bytes]:
        """The relay that delays packets between the client's port and the bridge."""
        module = ["-m", "gridbench_testbed.links.delay", repr(self.delay), CLIENT_PORT, "cable"]
        cable = subprocess.Popen(
            ["nsenter", f"--net={self.switch}", sys.executable, *module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ip_environment(),
            start_new_session=True,
        )  # fmt: skip
        assert cable.stdout is not None
        if not cable.stdout.readline():
            raise InputError(
                "the relay that delays packets does not start",
                remedy="a container needs CAP_NET_RAW, such as by `--privileged`",
            )
        return cable

    def _bring_up(self, interface: str, address: str, *, namespace: str = "") -> None:
        self._shape([interface], namespace=namespace)
        commands = [
            f"address add {address}/{_PREFIX} dev {interface}",
            f"link set dev {interface} up",
        ]
        run_ip("ip", commands, namespace=namespace)

    def _shape(
        self, interfaces: list[str], *, namespace: str = "", rate: float | None = None
    ) -> None:
        rate = self.rate if rate is None else rate
        bucket = f"tbf rate {rate:.0f}bit burst {_burst(rate)} limit {_queue(rate)}"
        commands = [f"qdisc replace dev {interface} root {bucket}" for interface in interfaces]
        needs = "the token bucket (CONFIG_NET_SCH_TBF)"
        run_ip("tc", commands, namespace=namespace, needs=needs)

    def _take_down(self) -> None:
        with uninterrupted(), one_at_a_time():
            if self._cable is not None:
                self._cable.communicate()
                self._cable = None
            remove(self._tag)


def _burst(rate: float) -> int:
    return max(_SMALLEST_BURST, round(rate / 8 * _BURST))


def _queue(rate: float) -> int:
    return max(_SMALLEST_QUEUE, round(rate / 8 * _QUEUE)) + _burst(rate)


def _check_rate(rate: float) -> None:
    number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    if not number or not math.isfinite(rate) or not SLOWEST <= rate <= FASTEST:
        raise InputError(
            f"links of {rate!r} bit/s cannot be made here",
            remedy=f"choose from {SLOWEST / 1e3:.0f} kbit/s to {FASTEST / 1e9:.0f} Gbit/s",
        )


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Block signals that would leave half a network."""
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
