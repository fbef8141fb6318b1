"""A node behind a link of known rate and round-trip time."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gridbench_testbed.links.network import Network


@dataclass(frozen=True, slots=True)
class ShapedLink:
    """A link of known rate and round-trip time."""

    rate: float
    """Bits per second."""
    round_trip: float
    """Seconds, added to those of the machine."""


class LinkedNode:
    """A network namespace with a link of its own to this machine, while active.

    Entering raises InputError as `Network` does.
    """

    def __init__(self, link: ShapedLink) -> None:
        self.link = link
        self._network = Network(1, link.rate)
        self._stack = ExitStack()

    @property
    def namespace(self) -> Path:
        """Its network namespace."""
        return self._network.namespaces[0]

    @property
    def address(self) -> str:
        """Its address."""
        return self._network.node_addresses[0]

    @property
    def client_address(self) -> str:
        """Address of this machine at the link."""
        return self._network.client_address

    def delayed(self, port: int, at: int = 0) -> int:
        """A port of the node that leads to another one of its ports, and delays bytes in each
        direction by half the round-trip time. `at`: its number; 0: any that is free."""
        relay = subprocess.Popen(
            [
                "nsenter", f"--net={self.namespace}",
                sys.executable, "-m", "gridbench_testbed.links.relay",
                str(self.link.round_trip / 2), self.address, str(at), self.address, str(port),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self._stack.enter_context(relay)
        assert relay.stdin is not None
        assert relay.stdout is not None
        self._stack.callback(relay.stdin.close)
        return int(relay.stdout.readline())

    def __enter__(self) -> Self:
        self._stack.enter_context(self._network)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
