"""How many processors others used while something was measured.

Counted is the time for which the processors that we may use were not idle, less what our own
processes used. What the hypervisor took away is not idle time either, so it counts as others' work,
and is shown apart. The kernel's work for the network does not count: a run behind links makes most
of it, and no process is charged for it. Where a control group limits us to a part of a node,
neighbours count only for as long as our own tasks waited for a processor.
"""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gridbench.machine.processes import Process, descendants, processes, seconds_of, whose
from gridbench.machine.processors import (
    available_processors,
    control_group,
    shares_processors,
    unused_of,
)

_GRAIN = 0.03  # seconds; the clocks tick in hundredths, so that less says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What others did meanwhile, in processors."""

    seconds: float
    """How long that was looked at."""
    others: float
    """All that was not idle, and is not known to be ours."""
    stolen: float = 0.0
    """The part of it that the hypervisor gave to other machines."""
    at_least: float = 0.0
    """What is known to be others': processes that are still there, and the hypervisor."""
    apart: bool = False
    """We have, or may have, workers on this machine that do not descend from us, so that the truth
    is between `at_least` and `others`."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A reading of the machine's clocks, in seconds."""

    at: float
    """Monotonic clock."""
    not_idle: float
    """All processors that we may use together; only differences mean something."""
    own: float
    """Processor time of the process asked for and all that work for it, ended ones too."""
    stolen: float = 0.0
    """What the hypervisor took away."""
    seen: float = 0.0
    """Processor time of others' processes that there are now."""
    apart: bool = False
    """See `Load`."""
    waited: float | None = None
    """Processor time that others took from us at most, if a control group tells."""

    def load_since(self, before: ClockReading) -> Load:
        """Others' work since then."""
        passed = self.at - before.at
        stolen = self.stolen - before.stolen
        others = (self.not_idle - before.not_idle) - (self.own - before.own)
        if self.waited is not None and before.waited is not None:
            others = min(others, self.waited - before.waited)
        apart = self.apart or before.apart
        if passed <= 0 or others < _GRAIN:
            return Load(seconds=max(0.0, passed), others=0.0, apart=apart)
        at_least = max(0.0, self.seen - before.seen) + stolen
        return Load(
            seconds=passed,
            others=others / passed,
            stolen=min(others, stolen) / passed,
            at_least=min(others, at_least) / passed,
            apart=apart,
        )


def reading(pid: int, table: Mapping[int, Process] | None = None) -> ClockReading:
    """The clocks now; `pid` is the process whose family is ours. `table`: all processes, if they
    have been looked up just now."""
    group = control_group()
    processors = available_processors(group)
    left = unused_of(Path("/proc/stat").read_text(encoding="ascii"), processors)
    at = time.monotonic()
    if table is None:
        table = processes()
    known = whose(table, pid)
    everywhere = len(processors) == os.cpu_count()
    waited = group.waited
    if waited is not None:  # some task waited; all of them may have
        waited = None if math.isinf(group.limit) else waited * len(processors)
    return ClockReading(
        at=at,
        not_idle=at * len(processors) - (left.idle + left.waiting + left.network),
        own=seconds_of(table, known.ours),
        stolen=left.stolen,
        seen=sum(
            table[one].used + table[one].waited_for
            for one in known.others
            if everywhere or shares_processors(one, processors)
        ),
        apart=known.apart,
        waited=waited,
    )


_EVERY = 2.0  # seconds, as each look disturbs a little
_SHARE = 0.005  # of the time, at most: the more processes there are, the longer a look takes


class OrphanCpu:
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
        self.seconds += orphan_seconds(self._family, table)
        self._family = {pid: table[pid] for pid in descendants(table, {self._root})}
        ended = time.monotonic()
        self._due = ended + max(_EVERY, (ended - began) / _SHARE)
        return table

    def reading(self) -> ClockReading:
        """The machine's clocks now; `own` has what is missing as well."""
        moment = reading(self._root, self.look())
        return replace(moment, own=moment.own + self.seconds)


def orphan_seconds(family: Mapping[int, Process], now: Mapping[int, Process]) -> float:
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


_MOST = 4  # users that are told
_LEAST = 0.02  # processors; less is not told


@dataclass(frozen=True, slots=True)
class BusyProcess:
    """A process of somebody else."""

    name: str
    pid: int
    processors: float
    """That it used."""


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What was seen of others for a moment."""

    load: Load
    users: tuple[BusyProcess, ...]
    """The busiest first."""
    began: ClockReading | None = None
    """When that was; None: it is not known."""

    @property
    def rest(self) -> float:
        """Processors used by what is not told by name: the kernel, many small ones, and processes
        that ended meanwhile."""
        return max(0.0, self.load.others - self.load.stolen - sum(u.processors for u in self.users))


@dataclass(frozen=True, slots=True)
class SampleStart:
    """A look that has begun."""

    table: Mapping[int, Process]
    reading: ClockReading


def begin_sample() -> SampleStart:
    """Begin a look, which `look` ends: what we ourselves do meanwhile does not count."""
    return SampleStart(processes(), reading(os.getpid()))


def take_sample(seconds: float, begun: SampleStart | None = None) -> LoadSample:
    """Who uses the machine for so many seconds, from now on or since a look has begun. This returns
    when they are over."""
    own = os.getpid()
    begun = begun or begin_sample()
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
            users.append(BusyProcess(one.name, pid, share))
    users.sort(key=lambda user: -user.processors)
    return LoadSample(after.load_since(before), tuple(users[:_MOST]), before)
