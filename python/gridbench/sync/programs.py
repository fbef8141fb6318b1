"""The processor time of the processes that have certain names, such as a server's."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection
from typing import NamedTuple

from gridbench.machine.processes import ids, process, processor_time

_NAME = 15  # bytes of a name that Linux keeps
_TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """An id can be used again."""

    pid: int
    began: int
    """Ticks since the host was started."""


class Programs:
    """The processes with some names. One that has lived between two looks is not seen, and of one
    that has ended what it used after the last look is not known."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = frozenset(names)
        self._by_name = {name.encode()[:_NAME].decode(errors="ignore"): name for name in names}
        self._used: dict[str, dict[Process, float]] = {name: {} for name in names}
        self._running: dict[int, tuple[str, Process, float]] = {}
        """With what each had used before it was known."""
        self._others: set[int] = set()
        """Those with other names, which are not looked at again."""
        self._once: set[int] = set()
        """Such that were looked at once: a program has the name of the shell that starts it first,
        and its own a little later."""
        self._forks: int | None = None
        self._looked = -math.inf
        """When that was, in seconds since the host was started."""

    def look(
        self, forks: int | None = None, *, find: bool = True
    ) -> dict[str, dict[Process, float]]:
        """Seconds that each has used, by name; those that have ended as well. Only differences
        between two looks mean something. `forks`: how many processes and threads the host has
        started so far; if that is no more than before, there are no new ones to find. `find`: look
        for new ones at all."""
        if not self.names:
            return {}
        self._update_all()
        if find and (forks is None or forks != self._forks or self._once):
            self._find()
            self._forks = forks
        self._looked = time.clock_gettime(time.CLOCK_BOOTTIME)
        return {name: dict(used) for name, used in self._used.items()}

    def look_at_all_again(self) -> None:
        """At the next look: names may have changed, and ids may be those of new processes."""
        self._once |= self._others
        self._others.clear()

    def forget_ended(self) -> None:
        """Of what has ended nothing is told from now on."""
        self._update_all()
        running = {one for _, one, _ in self._running.values()}
        for name, used in self._used.items():
            self._used[name] = {one: seconds for one, seconds in used.items() if one in running}

    def _find(self) -> None:
        there = set(ids())
        again = self._once
        self._once = set()
        self._others &= there
        for pid in there - self._running.keys() - self._others:
            if not self._meet(pid):
                (self._others if pid in again else self._once).add(pid)

    def _update_all(self) -> None:
        for pid, (name, one, before) in list(self._running.items()):
            used = processor_time(pid)
            # A clock that went back is that of a new process.
            if used is None or used - before < self._used[name][one]:
                del self._running[pid]
            else:
                self._used[name][one] = used - before

    def _meet(self, pid: int) -> bool:
        """Whether the process has one of the names; it may have ended."""
        found = process(pid)
        if found is None or found.name not in self._by_name:
            return False
        name, one = self._by_name[found.name], Process(pid, found.began)
        used = processor_time(pid)
        used = found.used if used is None else used
        # One that is older than the last look had another name then: when it used what is not
        # known.
        before = used if (found.began + 1) / _TICKS < self._looked else 0.0
        self._used[name][one] = used - before
        self._running[pid] = name, one, before
        return True
