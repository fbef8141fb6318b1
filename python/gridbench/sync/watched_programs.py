"""Processor time of all processes with certain names, such as those of a server."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection
from typing import NamedTuple

from gridbench.machine.processes import ids, process, processor_time

_NAME = 15  # bytes of a process name that Linux keeps
_TICKS = os.sysconf("SC_CLK_TCK")


class ProcessId(NamedTuple):
    """An id with the start time, as ids are reused."""

    pid: int
    began: int
    """Ticks since the host was started."""


class WatchedPrograms:
    """Processor time of the processes with certain names, such as a server's. A process that lives
    only between two looks is missed, and so is what a process uses between its last look and its
    end."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = frozenset(names)
        self._by_name = {name.encode()[:_NAME].decode(errors="ignore"): name for name in names}
        self._used: dict[str, dict[ProcessId, float]] = {name: {} for name in names}
        self._running: dict[int, tuple[str, ProcessId, float]] = {}
        """Name, process, and what it had used before it was known."""
        self._others: set[int] = set()
        """Processes with other names, which are not looked at again."""
        self._once: set[int] = set()
        """Processes that were looked at once: a program first has the name of the shell that
        starts it."""
        self._forks: int | None = None
        self._looked = -math.inf
        """Time of the last look, in seconds since the host was started."""

    def look(
        self, forks: int | None = None, *, find: bool = True
    ) -> dict[str, dict[ProcessId, float]]:
        """Seconds that each process has used, by name, ended ones included. Only differences
        between two looks have a meaning. `forks`: number of processes and threads that the host
        has started; if it is unchanged there are no new ones. `find`: look for new ones."""
        if not self.names:
            return {}
        self._update_all()
        if find and (forks is None or forks != self._forks or self._once):
            self._find()
            self._forks = forks
        self._looked = time.clock_gettime(time.CLOCK_BOOTTIME)
        return {name: dict(used) for name, used in self._used.items()}

    def look_at_all_again(self) -> None:
        """Look at all processes at the next look: names change, and ids are reused."""
        self._once |= self._others
        self._others.clear()

    def forget_ended(self) -> None:
        """Drop the processes that have ended."""
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
        """Whether the process has one of the names."""
        found = process(pid)
        if found is None or found.name not in self._by_name:
            return False
        name, one = self._by_name[found.name], ProcessId(pid, found.began)
        used = processor_time(pid)
        used = found.used if used is None else used
        # If it is older than the last look it had another name then, and nobody knows when it used
        # how much.
        before = used if (found.began + 1) / _TICKS < self._looked else 0.0
        self._used[name][one] = used - before
        self._running[pid] = name, one, before
        return True
