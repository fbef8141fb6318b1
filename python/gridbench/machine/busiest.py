"""Who uses the machine, and how much of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from gridbench.machine.available import available_processors, shares_processors
from gridbench.machine.load import Load, Moment, reading
from gridbench.machine.processes import Process, processes, whose

_MOST = 4  # users that are told
_LEAST = 0.02  # processors; less is not told


@dataclass(frozen=True, slots=True)
class User:
    """A process of somebody else."""

    name: str
    pid: int
    processors: float
    """That it used."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of others for a moment."""

    load: Load
    users: tuple[User, ...]
    """The busiest first."""
    began: Moment | None = None
    """When that was; None: it is not known."""

    @property
    def rest(self) -> float:
        """Processors used by what is not told by name: the kernel, many small ones, and processes
        that ended meanwhile."""
        return max(0.0, self.load.others - self.load.stolen - sum(u.processors for u in self.users))


@dataclass(frozen=True, slots=True)
class Begun:
    """A look that has begun."""

    table: Mapping[int, Process]
    reading: Moment


def begin() -> Begun:
    """Begin a look, which `look` ends: what we ourselves do meanwhile does not count."""
    return Begun(processes(), reading(os.getpid()))


def look(seconds: float, begun: Begun | None = None) -> Look:
    """Who uses the machine for so many seconds, from now on or since a look has begun. This returns
    when they are over."""
    own = os.getpid()
    begun = begun or begin()
    table, before = begun.table, begun.reading
    time.sleep(max(0.0, before.at + seconds - time.monotonic()))
    after = reading(own)
    now = processes()
    processors = available_processors()
    users = []
    for pid in whose(now, own).others:
        one, then = now[pid], table.get(pid)
        known = then.used if then is not None and then.began == one.began else 0.0
        share = (one.used - known) / (after.at - before.at)
        if share >= _LEAST and shares_processors(pid, processors):
            users.append(User(one.name, pid, share))
    users.sort(key=lambda user: -user.processors)
    return Look(after.load_since(before), tuple(users[:_MOST]), before)
