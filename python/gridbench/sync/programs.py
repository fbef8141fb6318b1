"""The processor time of the processes that have certain names, such as a server's."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from gridbench.machine.processes import ids, process, processor_time

_NAME = 15  # bytes of a name that Linux keeps


class Process(NamedTuple):
    """An id can be used again."""

    pid: int
    began: int
    """Ticks since the host was started."""


class Programs:
    """The processes with some names. One that has lived between two looks is not seen, and of one
    that has ended what it used after the last look is not known."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = {name.encode()[:_NAME].decode(errors="ignore"): name for name in names}
        self._used: dict[str, dict[Process, float]] = {name: {} for name in names}
        self._running: dict[int, tuple[str, Process]] = {}
        self._others: dict[int, bool] = {}
        """Those with other names; True: for good. A program that has just been started has the
        name of the shell that starts it, so that it is looked at a second time."""

    def look(self) -> dict[str, dict[Process, float]]:
        """Seconds that each has used since it began, by name; those that have ended as well."""
        if not self._names:
            return {}
        there = set(ids())
        for pid in self._others.keys() - there:
            del self._others[pid]
        for pid in list(self._running):
            self._update(pid)
        for pid in there - self._running.keys():
            if not self._others.get(pid, False):
                self._meet(pid)
        return {name: dict(used) for name, used in self._used.items()}

    def _update(self, pid: int) -> None:
        name, one = self._running[pid]
        used = processor_time(pid)
        # A clock that went back is that of a new process.
        if used is None or used < self._used[name][one]:
            del self._running[pid]
        else:
            self._used[name][one] = used

    def _meet(self, pid: int) -> None:
        found = process(pid)
        if found is None:
            return
        if found.name not in self._names:
            self._others[pid] = pid in self._others
            return
        self._others.pop(pid, None)
        name, one = self._names[found.name], Process(pid, found.began)
        used = processor_time(pid)
        self._used[name][one] = found.used if used is None else used
        self._running[pid] = name, one
