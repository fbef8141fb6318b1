"""Processors that others used during a measurement.

That is the time in which our available processors were not idle, less the time of our processes.
Time stolen by the hypervisor is not idle, so it counts as others' load and is reported separately.
The kernel's network time does not count: a run behind links causes most of it, and no process is
charged for it. Where a control group limits us to a part of a node, neighbours count only while our
own tasks waited for a processor.
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

_GRAIN = 0.03  # seconds; clocks tick in hundredths, so less is noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Load by others during an interval, in processors."""

    seconds: float
    """Length of the interval."""
    others: float
    """Load that was not idle and is not known to be ours."""
    stolen: float = 0.0
    """The part that the hypervisor gave to other machines."""
    at_least: float = 0.0
    """Load known to be others': existing processes, and the hypervisor."""
    apart: bool = False
    """We may have workers on this machine that do not descend from us: the truth is between
    `at_least` and `others`."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A reading of the machine's clocks, in seconds."""

    at: float
    """Monotonic clock."""
    not_idle: float
    """Sum over our available processors; only differences are meaningful."""
    own: float
    """Processor time of the process and all that work for it, ended ones included."""
    stolen: float = 0.0
    """Time stolen by the hypervisor."""
    seen: float = 0.0
    """Processor time of others' existing processes."""
    apart: bool = False
    """See `Load`."""
    waited: float | None = None
    """Upper bound on processor time that others took from us, if a control group has it."""

    def load_since(self, before: ClockReading) -> Load:
        """Others' load since an earlier reading."""
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
    """Read the clocks; `pid` is the process whose family is ours. `table`: all processes, if just
    read."""
    group = control_group()
    processors = available_processors(group)
    left = unused_of(Path("/proc/stat").read_text(encoding="ascii"), processors)
    at = time.monotonic()
    if table is None:
        table = processes()
    known = whose(table, pid)
    everywhere = len(processors) == os.cpu_count()
    waited = group.waited
    if waited is not None:  # some task waited; all may have
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


_EVERY = 2.0  # seconds; each look disturbs a little
_SHARE = 0.005  # of the time, at most: many processes make a look slow


class OrphanCpu:
    """Processor time of ended descendants of a process that no ancestor waited for."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._due = 0.0
        self._family: dict[int, Process] = {}
        self.seconds = 0.0
        """Unaccounted processor time: for each process, its usage when last seen."""

    def look_if_due(self) -> None:
        """Look every two seconds, or less often with thousands of processes."""
        if time.monotonic() >= self._due:
            self.look()

    def look(self) -> Mapping[int, Process]:
        """Add processes that ended since the last look; all existing processes."""
        began = time.monotonic()
        table = processes()
        self.seconds += orphan_seconds(self._family, table)
        self._family = {pid: table[pid] for pid in descendants(table, {self._root})}
        ended = time.monotonic()
        self._due = ended + max(_EVERY, (ended - began) / _SHARE)
        return table

    def reading(self) -> ClockReading:
        """Read the clocks, with unaccounted time in `own`."""
        moment = reading(self._root, self.look())
        return replace(moment, own=moment.own + self.seconds)


def orphan_seconds(family: Mapping[int, Process], now: Mapping[int, Process]) -> float:
    """Seconds that ended processes of a family had used, less those since accounted to their
    nearest living ancestors. `now`: all processes."""
    ended: dict[int, float] = defaultdict(float)  # by that ancestor
    for pid, one in family.items():
        if not _lives(pid, one, now):
            ancestor = one.parent
            while ancestor in family and not _lives(ancestor, family[ancestor], now):
                ancestor = family[ancestor].parent
            if ancestor in family:
                ended[ancestor] += one.used + one.waited_for
    return sum(
        max(0.0, seconds - (now[pid].waited_for - family[pid].waited_for))
        for pid, seconds in ended.items()
    )


def _lives(pid: int, process: Process, now: Mapping[int, Process]) -> bool:
    """Whether the process exists, and is not another one with the same id."""
    return pid in now and now[pid].began == process.began


_MOST = 4  # processes in a message
_LEAST = 0.02  # processors; less is not reported


@dataclass(frozen=True, slots=True)
class BusyProcess:
    """A process of another user or program."""

    name: str
    pid: int
    processors: float
    """Processors that it used."""


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Load by others for a moment."""

    load: Load
    users: tuple[BusyProcess, ...]
    """The busiest first."""
    began: ClockReading | None = None
    """Reading at its begin; None: not known."""

    @property
    def rest(self) -> float:
        """Processors used by the kernel, small processes, and processes that ended."""
        return max(0.0, self.load.others - self.load.stolen - sum(u.processors for u in self.users))


@dataclass(frozen=True, slots=True)
class SampleStart:
    """A sample that has begun."""

    table: Mapping[int, Process]
    reading: ClockReading


def begin_sample() -> SampleStart:
    """Begin a sample for `take_sample`: our own work meanwhile does not count."""
    return SampleStart(processes(), reading(os.getpid()))


def take_sample(seconds: float, begun: SampleStart | None = None) -> LoadSample:
    """Sample who uses the machine for so many seconds, from now or since `begun`."""
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
