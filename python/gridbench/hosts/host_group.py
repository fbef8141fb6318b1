"""Opening a grid, with a remote object on each of its hosts that acts there, and their clocks."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from rich.console import Console

import gridrpc
from gridbench.errors import InputError
from gridbench.hosts.hosts_file import HostChoice, HostSlots
from gridbench.terminal import say
from gridbench_testbed.cluster import emulated
from gridrpc._native import processors

LOOKS = 5
"""Messages there and back for an answer; the shortest says most."""


@dataclass(frozen=True, slots=True)
class HostClock:
    """The host's clock was `offset` ahead, give or take `error`; nanoseconds."""

    offset: int = 0
    error: int = 0
    trip: int = 0
    """How long a message there and back takes at best."""


def ask_clock(clock: Callable[[], int], looks: int = LOOKS) -> HostClock:
    """Ask a host for its time. The time that it tells was some time between question and answer."""
    return min((_once(clock) for _ in range(looks)), key=lambda one: one.error)


def clock_between(before: HostClock, after: HostClock) -> HostClock:
    """What holds for the time between two such answers, in which the clock may drift."""
    middle = (before.offset + after.offset) // 2
    apart = abs(before.offset - after.offset) // 2
    return HostClock(middle, max(before.error, after.error) + apart, min(before.trip, after.trip))


def _once(clock: Callable[[], int]) -> HostClock:
    requested = monotonic_ns()
    there = clock()
    answered = monotonic_ns()
    trip = answered - requested
    return HostClock(there - (requested + answered) // 2, (trip + 1) // 2, trip)


_FOR_AN_OBJECT = 30.0
"""Seconds until the remote object has to be there, on a host that is."""
_LOCAL = ("localhost", "127.0.0.1", "::1", platform.node())


class HostFacts(Protocol):
    """What a host says of itself."""

    @property
    def host(self) -> str:
        """What it calls itself."""


class Remote(Protocol):
    """What acts on a host."""

    def facts(self) -> HostFacts:
        """About the host."""

    def close(self) -> None:
        """End it."""


@dataclass(slots=True)
class Member:
    """A host with its remote object."""

    host: HostSlots
    server: str | None
    """As the grid knows it; None: this machine, without a server."""
    remote: Any = None
    """The remote object; None: it has been lost."""

    @property
    def near(self) -> bool:
        """Whether its clock is the client's."""
        return self.server is None


class HostGroup:
    """Hosts with their remote objects, while the grid is open."""

    def __init__(
        self, grid: gridrpc.Grid, members: list[Member], kind: type[Remote], *arguments: object
    ) -> None:
        """`kind`: the class of the remote objects, which are made with these arguments."""
        self.members = members
        self._grid = grid
        self._kind = kind
        self._arguments = arguments

    @property
    def cores(self) -> int:
        """All hosts together."""
        return sum(member.host.cores for member in self.members)

    def man(self) -> None:
        """Have a remote object on each host. Raises what keeps a host from having one:
        gridrpc.GridError, TimeoutError, ImportError."""
        for member in self.members:
            if member.remote is None:
                self._man(member)

    def replace_lost(self) -> None:
        """Have new objects where some have been lost; one that is not back stays without."""
        for member in self.members:
            if member.remote is None:
                with contextlib.suppress(gridrpc.GridError, TimeoutError):
                    self._man(member)

    def _man(self, member: Member) -> None:
        member.remote = self._grid.object(
            self._kind, *self._arguments, server=member.server, start_timeout=_FOR_AN_OBJECT
        )

    def dismiss(self) -> None:
        """End the remote objects."""
        for member in self.members:
            remote, member.remote = member.remote, None
            if remote is not None:
                with contextlib.suppress(gridrpc.GridError):
                    remote.close()


@contextlib.contextmanager
def open_hosts(
    where: HostChoice, most: int, console: Console, kind: type[Remote], *arguments: object
) -> Iterator[HostGroup]:
    """The place, with its remote objects. `most`: cores that are used of all hosts together.
    InputError if its hosts do not come."""
    with contextlib.ExitStack() as stack:
        settings, cores = _settings(where, most, stack)
        if settings.get("servers") or settings.get("config"):
            say(console, "waiting for the hosts")
        try:
            grid = stack.enter_context(gridrpc.Grid(**settings))
            grid.wait_until_ready(where.patience)
            place = HostGroup(grid, _members(grid, where, cores), kind, *arguments)
            place.man()
            _tell(place, console)
        except (gridrpc.GridError, TimeoutError) as error:
            raise InputError(
                f"the hosts cannot be used: {error}",
                remedy="`gridrpc doctor` with the same servers reports what is wrong",
            ) from error
        except ImportError as error:
            raise InputError(
                f"Python on a host cannot import what it needs: {error}",
                remedy="install the same version of 'gridrpc[gridbench]' there, and name the Python"
                " that has it as `python` of the server in a grid.toml",
            ) from error
        try:
            yield place
        finally:
            place.dismiss()


def _tell(place: HostGroup, console: Console) -> None:
    for member in place.members:
        if not member.near:
            facts = member.remote.facts()
            say(
                console,
                f"{member.host.name}: {member.host.cores} workers at most; it calls itself"
                f" {facts.host}",
            )


def near(where: HostChoice) -> bool:
    """Whether all workers are on this machine, and need no server."""
    away = where.emulated is not None or where.grid is not None or bool(where.names)
    return not away and all(host.name in _LOCAL for host in where.hosts)


def _settings(
    where: HostChoice, most: int, stack: contextlib.ExitStack
) -> tuple[dict[str, Any], int | None]:
    """Those of the grid; and cores of each host, if neither the user nor the grid tells them."""
    if where.emulated is not None:
        each = max(1, -(-most // where.nodes))
        servers = stack.enter_context(emulated(where.emulated, where.nodes, each))
        return {"servers": servers}, each
    if where.grid is not None or where.names:
        chosen = {"servers": where.names} if where.names else {}
        return {"config": where.grid, **chosen}, None
    if near(where):
        return {"workers": 1}, None
    return {"servers": [_by_ssh(host) for host in where.hosts]}, None


def _by_ssh(host: HostSlots) -> str:
    if host.name in _LOCAL:
        return "local://localhost?workers=1"
    return f"ssh://{quote(host.name, safe='@:[]')}?{urlencode({'workers': 1})}"


def _members(grid: gridrpc.Grid, where: HostChoice, cores: int | None) -> list[Member]:
    states = grid.hosts()
    if not states:
        own = sum(host.cores for host in where.hosts) or processors()
        return [Member(HostSlots(platform.node(), own), None)]
    known = {host.name.rpartition("@")[2]: host.cores for host in where.hosts}
    return [
        Member(
            HostSlots(state.host, cores or known.get(state.host.rpartition("@")[2], state.ready)),
            state.host,
        )
        for state in states
    ]
