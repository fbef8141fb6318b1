"""What `Grid.stats` tells."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Counts of calls by how they ended, since the grid was opened.

    Calls that have not ended count in `submitted` alone. A chunk of `map` counts as one call.
    """

    submitted: int
    """Calls that were submitted."""
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
    """Calls that ended for another reason: there are no workers, or a call that they need has
    failed."""
    inside: int
    """Calls that a worker ran while it waited for them in another call."""
    argument_bytes: int
    """Bytes of the arguments of all calls; shared data is not counted."""
    result_bytes: int
    """Bytes of the results that came to this process."""
    seconds: float
    """Seconds that the functions of all calls ran."""

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
    """The function's name: "module/function", or its name in Python."""


@dataclass(frozen=True, slots=True)
class HostStats:
    """The workers of one host."""

    server: str
    """The server that the host belongs to; "localhost": the workers of this machine."""
    host: str
    """The host's name; with a batch system, the server's name with a number."""
    state: str
    """The host's state, as in `HostState`."""
    detail: str
    """Further details, for people to read."""
    workers: int
    """Number of workers that the host will have; 0: not known yet."""
    ready: int
    """Workers that have answered."""
    busy: int
    """Workers that run a call, or keep their slot free for a call that uses several."""
    reserved: int
    """Further workers, each for one remote object."""
    calls: int
    """Calls that were answered there."""
    losses: int
    """Workers that were lost there; on other hosts, only those that were lost with a call."""


@dataclass(frozen=True, slots=True)
class GridStats:
    """The state of a grid at one moment. `gridrpc top --json` prints the same."""

    gridrpc: str
    """The version of gridrpc."""
    pid: int
    """Process id of the grid's client."""
    grid: int
    """Number of the grid in that process, from 1 on."""
    program: str
    """The command line of that process, its first 200 characters."""
    host: str
    """The machine of that process."""
    uptime: float
    """Seconds since the grid was opened."""
    workers: int
    """Number of workers, started or not; those of a host count once it has joined."""
    ready: int
    """Workers that have answered."""
    busy: int
    """Workers that run a call."""
    queued: int
    """Calls that wait for a worker, or for results of other calls."""
    queued_bytes: int
    """Bytes of the arguments of these calls."""
    running: int
    """Calls that have been sent to a worker and have not ended."""
    losses: int
    """Workers that were lost."""
    results_moved: int
    """Results that went from one host to another as arguments, or are on the way."""
    results_not_moved: int
    """Results that could not, and went through the client."""
    calls: CallCounts
    """All calls."""
    functions: tuple[FunctionStats, ...]
    """The calls of each function, with the function that has run longest first. Beyond 200
    functions, all others are counted together, as "(others)"."""
    hosts: tuple[HostStats, ...]
    """The hosts of the workers: this machine first, if it has workers."""

    @staticmethod
    def parsed(text: str) -> GridStats:
        """What a grid tells, in JSON."""
        reported = json.loads(text)
        counts = reported.pop("calls")
        functions, hosts = reported.pop("functions"), reported.pop("hosts")
        return GridStats(
            calls=CallCounts(**counts),
            functions=tuple(FunctionStats(**one) for one in functions),
            hosts=tuple(HostStats(**one) for one in hosts),
            **reported,
        )
