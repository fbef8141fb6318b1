"""What `Grid.stats` tells."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallCounts:
    """What has become of calls, counted since the grid was opened.

    Those that have not ended are in `submitted` alone. Of `map`, a chunk is one call.
    """

    submitted: int
    """Calls that the grid has taken."""
    returned: int
    """Calls whose function returned."""
    raised: int
    """Calls whose function raised an error."""
    cancelled: int
    """Calls that were cancelled, or ended as the grid was closed."""
    expired: int
    """Calls whose deadline passed."""
    lost: int
    """Calls that were lost with their worker."""
    failed: int
    """Calls that ended for another reason: there are no workers, or what they need has failed."""
    inside: int
    """Calls that were run by the worker that waited for them, as part of another call."""
    argument_bytes: int
    """Bytes of the arguments of all calls; shared data is not counted."""
    result_bytes: int
    """Bytes of the results that came to this process."""
    seconds: float
    """How long the functions of all calls ran, s."""

    @property
    def ended(self) -> int:
        """Calls that have ended, in whichever way."""
        return (
            self.returned + self.raised + self.cancelled + self.expired
            + self.lost + self.failed + self.inside
        )  # fmt: skip

    @property
    def alive(self) -> int:
        """Calls that have not ended."""
        return self.submitted - self.ended


@dataclass(frozen=True, slots=True)
class FunctionStats(CallCounts):
    """The calls of one function."""

    name: str
    """Its name: "module/function", or what Python calls it."""


@dataclass(frozen=True, slots=True)
class HostStats:
    """The workers of one host."""

    server: str
    """The server that it belongs to; "localhost": the workers of this machine."""
    host: str
    """Its name; of a batch system the server's name with a number."""
    state: str
    """How it is getting on, as in `HostState`."""
    detail: str
    """What else is known, for people."""
    workers: int
    """How many workers there are to be; 0: it has not told yet."""
    ready: int
    """Workers that have answered."""
    busy: int
    """Workers that run a call, or keep their place free for one that uses several."""
    reserved: int
    """Further workers, each of which works for one remote object alone."""
    calls: int
    """Calls that were answered there."""
    losses: int
    """Workers that were lost there; of a host, those that were lost with a call."""


@dataclass(frozen=True, slots=True)
class GridStats:
    """How a grid is getting on, at one moment. `gridrpc top --json` prints the same."""

    gridrpc: str
    """The version of gridrpc."""
    pid: int
    """The process of the grid."""
    grid: int
    """Which grid of that process it is, from 1 on."""
    program: str
    """The command line of that process, its first 200 characters."""
    host: str
    """The machine that it is on."""
    uptime: float
    """How long the grid has been open, s."""
    workers: int
    """How many workers there are to be, those of hosts as far as they have told."""
    ready: int
    """Workers that have answered."""
    busy: int
    """Workers that run a call."""
    queued: int
    """Calls that wait for a worker, or for the results of others."""
    queued_bytes: int
    """Bytes of their arguments."""
    running: int
    """Calls that have been sent to a worker and have not ended."""
    losses: int
    """Workers that were lost."""
    calls: CallCounts
    """All calls."""
    functions: tuple[FunctionStats, ...]
    """The calls of each function, the one that has run longest first. Beyond 200 functions, all
    others are told of together, as "(others)"."""
    hosts: tuple[HostStats, ...]
    """Where the workers are: this machine first, if it has some."""

    @staticmethod
    def parsed(text: str) -> GridStats:
        """What a grid tells, in JSON."""
        told = json.loads(text)
        counts = told.pop("calls")
        functions, hosts = told.pop("functions"), told.pop("hosts")
        return GridStats(
            calls=CallCounts(**counts),
            functions=tuple(FunctionStats(**one) for one in functions),
            hosts=tuple(HostStats(**one) for one in hosts),
            **told,
        )
