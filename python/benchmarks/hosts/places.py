"""Where calls go, what the machine has to have for that, and the network without gridrpc."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote, urlencode

from benchmarks.figures import Values
from benchmarks.programs import built_for_hosts
from gridbench.bench.programs import numbers
from gridbench.engines.gridrpc_engines import servers_in
from gridbench.errors import InputError
from gridbench_testbed.links import iproute, sshd
from gridbench_testbed.links.network import Network

Kind = Literal["tcp", "tls"]
ENCRYPTION: dict[Kind, str] = {"tcp": "none", "tls": "tls"}
"""What servers are told for each kind of connection."""
LOOPBACK = "127.0.0.1"


def programs() -> tuple[str, str]:
    """The folder with the programs and the module, and why there is none."""
    try:
        return str(built_for_hosts()), ""
    except InputError as error:
        return "", str(error)


def lacks_links() -> str:
    """Why there can be no links of known rate here; empty if there can."""
    try:
        with Network(1, 1e9):
            return ""
    except InputError as error:
        return str(error)


def lacks_sshd() -> str:
    """Why there can be no hosts with sshds here; empty if there can."""
    why = sshd.why_not()
    remedy = "run as root; `scripts/ensure-sshd` installs OpenSSH and iproute2"
    return f"{why}\nhint: {remedy}" if why else ""


def local(hosts: int, workers: int, kind: Kind) -> str:
    """A server of so many agents on this machine, each with so many workers."""
    values = {"hosts": f"h[1-{hosts}]", "workers": workers, "encryption": ENCRYPTION[kind]}
    return f"local:?{urlencode(values, quote_via=quote, safe='[]')}"


def behind(network: Network, workers: int, kind: Kind, **keys: object) -> list[str]:
    """A server in each node of the network, each with so many workers."""
    total = workers * network.nodes
    return servers_in(network.namespaces, total, encryption=ENCRYPTION[kind], **keys)


def places(servers: Sequence[str]) -> Mapping[str, str]:
    """Variables for programs in C."""
    return {"GRIDRPC_SERVERS": " ".join(servers)}


def shuffled(steps: Mapping[str, Callable[[], float]]) -> Values:
    """What each step gives, in random order: what disturbs the machine disturbs all alike."""
    return {name: value for one in in_random_order(steps) for name, value in one.items()}


def in_random_order(steps: Mapping[str, Callable[[], float]]) -> Iterator[Values]:
    """The same, one after the other as they come."""
    order = list(steps)
    random.shuffle(order)
    for name in order:
        yield {name: steps[name]()}


class Wire:
    """While active, a program at `address` answers bytes that come over TCP, bare or with TLS."""

    def __init__(self, folder: str, address: str = LOOPBACK, namespace: str = "") -> None:
        self._folder = folder
        self.address = address
        self._prefix = ["ip", "netns", "exec", namespace] if namespace else []
        self._ports: dict[Kind, int] = {}
        self._server: Any = None

    def port(self, kind: Kind) -> int:
        """Where it listens."""
        return self._ports[kind]

    def ping(self, kind: Kind, count: int, size: int = 64) -> float:
        """Median us for `size` bytes there and back."""
        return self._ask("ping", kind, size, count)

    def send(self, kind: Kind, size: int, count: int, at: tuple[str, int] | None = None) -> float:
        """Median s for `size` bytes there and one back; `at`: by way of another address."""
        return self._ask("send", kind, size, count, at)

    def _ask(
        self, what: str, kind: Kind, size: int, count: int, at: tuple[str, int] | None = None
    ) -> float:
        address, port = at or (self.address, self._ports[kind])
        return numbers(self._folder, "wire", what, kind, address, port, size, count)[0]

    def __enter__(self) -> Wire:
        command = [*self._prefix, f"{self._folder}/wire", "serve", self.address]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=iproute.environment(),
        )  # fmt: skip
        for kind in ENCRYPTION:
            self._ports[kind] = int(self._server.stdout.readline())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.communicate()
