"""Who uses the machine, and how much of it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from gridbench.machine.load import Load, reading
from gridbench.machine.processes import processes, whose

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
    """What was seen in a moment of doing nothing."""

    load: Load
    users: tuple[User, ...]
    """The busiest first."""

    @property
    def rest(self) -> float:
        """Processors used by what is not told by name: the kernel, many small ones, and processes
        that ended meanwhile."""
        return max(0.0, self.load.others - self.load.stolen - sum(u.processors for u in self.users))


def look(seconds: float) -> Look:
    """Who uses the machine while we do nothing for so many seconds."""
    own = os.getpid()
    table = processes()
    before = reading(own)
    time.sleep(seconds)
    after = reading(own)
    now = processes()
    users = []
    for pid in whose(now, own).others:
        one, then = now[pid], table.get(pid)
        known = then.used if then is not None and then.began == one.began else 0.0
        share = (one.used - known) / (after.at - before.at)
        if share >= _LEAST:
            users.append(User(one.name, pid, share))
    users.sort(key=lambda user: -user.processors)
    return Look(after.load_since(before), tuple(users[:_MOST]))
