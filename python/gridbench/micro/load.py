"""Whether other work on the machine disturbed a measurement.

Counted is the time for which processors were not idle, less what our own processes used. What
the hypervisor took away is not idle time either, so it counts as others' work. The kernel's work
for the network does not count: a run behind links makes most of it, and no process is charged for
it.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")

DISTURBED = 0.15
"""Others' share of one processor above which a measurement counts as disturbed."""
_GRAIN = 0.03  # seconds; the clocks tick in hundredths, so that less says nothing


@dataclass(frozen=True, slots=True)
class Moment:
    """A reading of the machine's clocks, in seconds."""

    at: float
    """Monotonic clock."""
    not_idle: float
    """All processors together; only differences mean something."""
    own: float
    """Processor time of the process asked for and all that descend from it, ended ones too."""

    def others_since(self, before: Moment) -> float:
        """Others' work since then, as a share of one processor."""
        passed = self.at - before.at
        others = (self.not_idle - before.not_idle) - (self.own - before.own)
        return 0.0 if passed <= 0 or others < _GRAIN else others / passed


def reading(pid: int) -> Moment:
    """The clocks now; `pid` is the process whose family is ours."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    # Idle, waiting for a disk, and the network's soft interrupts.
    idle = (int(fields[4]) + int(fields[5]) + int(fields[7])) / _TICKS
    at = time.monotonic()
    return Moment(at=at, not_idle=at * (os.cpu_count() or 1) - idle, own=_family_time(pid))


def _family_time(root: int) -> float:
    """Seconds of processor time of `root` and its descendants, with those they waited for."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    waited_for: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = Path("/proc", name, "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        # The program's name stands in parentheses and can hold anything.
        fields = text.rpartition(")")[2].split()
        parents[int(name)] = int(fields[1])
        used[int(name)] = sum(map(int, fields[11:13]))
        waited_for[int(name)] = sum(map(int, fields[13:15]))
    inside = {root: True, 0: False}

    def descends(pid: int) -> bool:
        path = []
        while pid not in inside:
            path.append(pid)
            pid = parents.get(pid, 0)
        inside.update(dict.fromkeys(path, inside[pid]))
        return inside[pid]

    family = [pid for pid in used if descends(pid)]
    # Ticks are rounded down, for each process: many that have done little would count as nothing.
    alive = sum(max(used[pid] / _TICKS, _threads_time(pid)) for pid in family)
    return alive + sum(waited_for[pid] for pid in family) / _TICKS


def _threads_time(pid: int) -> float:
    """Seconds of processor time of the threads that a process has now, to the nanosecond."""
    total = 0
    with contextlib.suppress(OSError):  # it has ended, or the kernel does not tell
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total += int((thread / "schedstat").read_text(encoding="ascii").split()[0])
    return total / 1e9
