"""A client program of a real run: it names a directory, and makes the calls of a plan.

It makes them twice: first with nothing known of the servers, then with what it has learned.
"""

from __future__ import annotations

import collections
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gridrpc
from gridbench.process.inside import LineChannel, serve

_LONGEST_WAIT = 600.0
"""Seconds for the result of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementOrder:
    """A client's work."""

    directory: str
    """URL."""
    policy: str
    """A name; empty: calls go to the servers of `assignment`."""
    assignment: Sequence[str] = ()
    """Of each call the address of its server."""
    functions: Sequence[tuple[str, int, int]]
    """Name, bytes of the arguments, and of the results."""
    calls: Sequence[tuple[float, int]]
    """Seconds after the start, and number of the function."""
    seed: int


class GivenServers:
    """A policy that sends calls to given servers, one after the other."""

    def __init__(self) -> None:
        self.next: collections.deque[str] = collections.deque()

    def __call__(self, predictions: list[gridrpc.Prediction]) -> gridrpc.Prediction:
        """The prediction for the next server."""
        address = self.next.popleft()
        for one in predictions:
            if one.address == address:
                return one
        ready = ", ".join(one.address for one in predictions)
        raise LookupError(f"the server at {address} takes no calls (ready: {ready})")


def main(descriptor: str) -> None:
    """Connect; then report all calls after each order to begin, until the channel ends."""
    channel = LineChannel(serve(descriptor))
    order = PlacementOrder(**channel.receive())
    given = GivenServers()
    try:
        with gridrpc.Grid(directory=order.directory, policy=order.policy or given) as grid:
            client = PlacementClient(grid, order)
            channel.send({"ready": True})
            while True:
                begin = channel.receive()
                given.next.extend(order.assignment)
                channel.send({"calls": client.run(begin["start"])})
    except EOFError:
        return
    except (gridrpc.GridError, OSError, LookupError, TimeoutError) as error:
        channel.send({"error": f"{type(error).__name__}: {error}"})


class PlacementClient:
    """The calls of a client."""

    def __init__(self, grid: gridrpc.Grid, order: PlacementOrder) -> None:
        self._calls = order.calls
        draw = np.random.default_rng(order.seed)
        # Bytes that no compression makes fewer.
        self._functions = [
            (grid.function(name), draw.integers(0, 256, size, dtype=np.uint8), result)
            for name, size, result in order.functions
        ]

    def run(self, start: float) -> list[list[Any]]:
        """Make the calls: of each the function, the server's address, and when it was submitted,
        started, computed and ended, in seconds after the start."""
        begun = []
        for at, number in self._calls:
            time.sleep(max(0.0, start + at - time.monotonic()))
            function, data, result = self._functions[number]
            begun.append((number, function.submit(data=data, m=result)))
        found = []
        for number, call in begun:
            call.result(_LONGEST_WAIT)
            profile = call.profile
            stamps = (profile.submit, profile.calc_in, profile.calc_out, profile.retrieve)
            found.append([number, profile.host, *(round(one - start, 6) for one in stamps)])
        return found


if __name__ == "__main__":
    main(*sys.argv[1:])
