"""The rounds that are asked for, and where the tasks of each run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gridbench.formats import counted
from gridbench.hosts.hosts_file import place
from gridbench.hosts.place import Member
from gridbench.sync.arguments import expand
from gridbench.sync.messages import Order
from gridbench.sync.record import Start
from gridbench.sync.request import Request
from gridbench.sync.round import Planned


@dataclass(frozen=True, slots=True)
class Wanted:
    """A round that is asked for."""

    workers: int
    parameter: str
    start: Start
    repeat: int

    @property
    def identity(self) -> tuple[int, str, Start, int]:
        """As that of its record."""
        return self.workers, self.parameter, self.start, self.repeat

    def told(self) -> str:
        """In words."""
        parts = [counted(self.workers, "worker")]
        if self.parameter:
            parts.append(self.parameter)
        if self.start == "exec":
            parts.append("exec inside")
        return ", ".join(parts)


def wanted_of(request: Request, counts: Sequence[int]) -> list[Wanted]:
    """All rounds. Repeats come last, so that what changes with time meets all alike."""
    return [
        Wanted(workers, parameter, start, repeat)
        for repeat in range(request.repeats)
        for workers in counts
        for parameter in request.parameters
        for start in request.starts
    ]


def planned_of(request: Request, members: Iterable[Member], wanted: Wanted) -> list[Planned]:
    """Its tasks, each with its place. InputError if the hosts have too few cores."""
    by_name = {member.host.name: member for member in members}
    places = place(
        [member.host for member in by_name.values()],
        wanted.workers,
        request.placement,
        oversubscribe=request.oversubscribe or all(one.near for one in by_name.values()),
    )
    found = []
    for worker, (host, rank) in enumerate(places):
        values = {
            "parameter": wanted.parameter,
            "worker": str(worker),
            "rank": str(rank),
            "host": host,
            "round": str(wanted.repeat),
            "total": str(wanted.workers),
        }
        (folder,) = expand([request.directory], values)
        order = Order(
            worker=worker,
            program=request.program,
            arguments=tuple(expand(request.arguments, values)),
            directory=os.path.abspath(folder),
            environment={f"GRIDBENCH_{name.upper()}": value for name, value in values.items()},
        )
        found.append(Planned(order, by_name[host], rank))
    return found
