"""What processes of ours used that ended without being waited for.

The kernel adds what a process has used to its parent's account when that waits for it. Some never
do, such as Ray's raylet and servers that fork for each connection: they ignore SIGCHLD. What their
children used would count as others' work. So ours are looked at now and then, and what is missing
from the accounts of those that go on is added.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from gridbench.machine.load import Moment, reading
from gridbench.machine.processes import Process, descendants, processes

_EVERY = 2.0  # seconds, as each look disturbs a little
_SHARE = 0.005  # of the time, at most: the more processes there are, the longer a look takes


class Unwaited:
    """Looks at the descendants of a process."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._due = 0.0
        self._family: dict[int, Process] = {}
        self.seconds = 0.0
        """Processor time that is in no account; of each process, what it had used when it was last
        seen."""

    def look_if_due(self) -> None:
        """Look every two seconds, or less often where there are thousands of processes."""
        if time.monotonic() >= self._due:
            self.look()

    def look(self) -> Mapping[int, Process]:
        """See who has ended since the last look; all processes that there are now."""
        began = time.monotonic()
        table = processes()
        self.seconds += unwaited(self._family, table)
        self._family = {pid: table[pid] for pid in descendants(table, {self._root})}
        ended = time.monotonic()
        self._due = ended + max(_EVERY, (ended - began) / _SHARE)
        return table

    def reading(self) -> Moment:
        """The machine's clocks now; `own` has what is missing as well."""
        moment = reading(self._root, self.look())
        return replace(moment, own=moment.own + self.seconds)


def unwaited(family: Mapping[int, Process], now: Mapping[int, Process]) -> float:
    """Seconds that processes of a family had used which have ended, less what their nearest
    ancestors that go on have on their accounts more than before. `now`: all processes."""
    ended: dict[int, float] = defaultdict(float)  # by that ancestor
    for pid, one in family.items():
        if not _goes_on(pid, one, now):
            ancestor = one.parent
            while ancestor in family and not _goes_on(ancestor, family[ancestor], now):
                ancestor = family[ancestor].parent
            if ancestor in family:
                ended[ancestor] += one.used + one.waited_for
    return sum(
        max(0.0, seconds - (now[pid].waited_for - family[pid].waited_for))
        for pid, seconds in ended.items()
    )


def _goes_on(pid: int, process: Process, now: Mapping[int, Process]) -> bool:
    """Whether it is there still, and not another one with the same number."""
    return pid in now and now[pid].began == process.began
