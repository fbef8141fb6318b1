"""What the hosts' counters say of a phase of a round.

When a task's phases began is not recorded. It is taken that they follow each other from the task's
first instruction on, without gaps. Shares, such as how busy a disk was, are those from when half of
a host's tasks had begun the phase until half had ended it; amounts, such as bytes that were read,
are from the first begin to the last end.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gridbench.formats import counted
from gridbench.sync.record import HostUse, Round, Sample, Task

SHORTEST = 0.1
"""Seconds; in less, counters that tick in hundredths of a second tell no shares."""
_COVERED = 0.8
"""Of what was counted, as a share of the time: with less in the phase it says nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine during a phase; several hosts may be on it."""

    hosts: tuple[HostUse, ...]
    tasks: int
    """That it ran."""
    bytes: int
    """What they say that they read or wrote."""
    mean: Sample | None
    """Its counters; None: they do not tell."""
    read: float
    """Bytes, of its disks; NaN: not known, as are the others."""
    written: float
    dirtied: float
    received: float
    sent: float
    loopback: float

    @property
    def name(self) -> str:
        """That of a host, and of how many there are beside it."""
        more = len(self.hosts) - 1
        others = f" and {counted(more, 'other host')} on the same machine" if more else ""
        return self.hosts[0].host + others

    @property
    def cores(self) -> int:
        """Processors."""
        return self.hosts[0].cores

    @property
    def memory(self) -> int:
        """Bytes."""
        return self.hosts[0].memory

    @property
    def busy(self) -> float:
        """Share of its processors that was used; NaN if not known."""
        return self.mean.processors / self.cores if self.mean else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """All machines during a phase."""

    phase: str
    """Empty: tasks tell of none, and it is the whole round."""
    machines: tuple[Machine, ...]
    """Those that ran tasks, and others that were looked at."""
    complete: bool
    """All that ran tasks were looked at."""
    bytes: int
    operations: int
    task_seconds: float
    """Of all tasks together."""
    computed: float
    """Share of the time of these tasks in which they used a processor, in all of their phases."""

    @property
    def working(self) -> list[Machine]:
        """The machines that ran tasks."""
        return [machine for machine in self.machines if machine.tasks]

    def total(self, of: Callable[[Machine], float], *, everywhere: bool = False) -> float:
        """Of the machines that ran tasks, or of all; NaN if it is not known of one."""
        return math.fsum(map(of, self.machines if everywhere else self.working))


@dataclass(frozen=True, slots=True)
class _Part:
    """A phase of a task."""

    task: Task
    began: float
    ended: float
    bytes: int
    operations: int


def meanwhile(one: Round) -> list[Meanwhile]:
    """Each phase of the round, in the order of the tasks."""
    parts: dict[str, list[_Part]] = {}
    for task in one.tasks:
        for name, part in _parts(task):
            parts.setdefault(name, []).append(part)
    return [_of_phase(name, found, one.hosts) for name, found in parts.items()]


def _parts(task: Task) -> Iterable[tuple[str, _Part]]:
    if task.began is None or task.ended is None or task.status != "ok":
        return
    if not task.phases:
        yield "", _Part(task, task.began, task.ended, 0, 0)
    at = task.began
    for phase in task.phases:
        yield phase.name, _Part(task, at, at + phase.seconds, phase.bytes, phase.operations)
        at += phase.seconds


def _of_phase(name: str, parts: Sequence[_Part], uses: Sequence[HostUse]) -> Meanwhile:
    machines: dict[str, list[HostUse]] = {}
    for use in uses:
        machines.setdefault(use.boot or use.host, []).append(use)
    tasks = {part.task.worker: part.task for part in parts}
    used = math.fsum(task.user + task.system for task in tasks.values())
    return Meanwhile(
        phase=name,
        machines=tuple(_of_machine(tuple(hosts), parts) for hosts in machines.values()),
        complete={task.host for task in tasks.values()} <= {use.host for use in uses},
        bytes=sum(part.bytes for part in parts),
        operations=sum(part.operations for part in parts),
        task_seconds=math.fsum(part.ended - part.began for part in parts),
        computed=used / (math.fsum(map(_lasted, tasks.values())) or math.inf),
    )


def _lasted(task: Task) -> float:
    return (task.ended or 0.0) - (task.began or 0.0)


def _of_machine(hosts: tuple[HostUse, ...], parts: Sequence[_Part]) -> Machine:
    names = {host.host for host in hosts}
    own = [part for part in parts if part.task.host in names]
    # One without tasks may have a server that all tasks used.
    counting = own or parts
    half = [statistics.median(part.began for part in counting)]
    half.append(statistics.median(part.ended for part in counting))
    all_of_it = min(p.began for p in counting), max(p.ended for p in counting)
    first = _within(hosts[0], *all_of_it)
    # Hosts on one machine have interfaces of their own.
    each = [sample for host in hosts for sample in _within(host, *all_of_it)]
    return Machine(
        hosts=hosts,
        tasks=len({part.task.worker for part in own}),
        bytes=sum(part.bytes for part in own),
        mean=_mean(hosts[0], *half),
        read=_amount(first, lambda s: s.disk_read * s.seconds),
        written=_amount(first, lambda s: s.disk_written * s.seconds),
        dirtied=_amount(first, lambda s: s.dirtied),
        received=_amount(each, lambda s: s.network_in * s.seconds),
        sent=_amount(each, lambda s: s.network_out * s.seconds),
        loopback=_amount(each, lambda s: s.loopback * s.seconds),
    )


def _within(use: HostUse, began: float, ended: float) -> list[tuple[Sample, float]]:
    """Samples with the share of each that lies in a time; in a short round that of all of it."""
    if not use.during:
        return [(use.whole, 1.0)] if use.whole else []
    pairs = [(sample, _inside(sample, began, ended) / sample.seconds) for sample in use.during]
    return [(sample, share) for sample, share in pairs if share > 0]


def _inside(sample: Sample, began: float, ended: float) -> float:
    return max(0.0, min(sample.at, ended) - max(sample.at - sample.seconds, began))


def _amount(samples: Iterable[tuple[Sample, float]], of: Callable[[Sample], float]) -> float:
    found = [of(sample) * share for sample, share in samples]
    return math.fsum(found) if found else math.nan


def _mean(use: HostUse, began: float, ended: float) -> Sample | None:
    """The counters of a time, of samples that are mostly of it."""
    found = [
        sample
        for sample in use.during or ((use.whole,) if use.whole else ())
        if _inside(sample, began, ended) >= _COVERED * sample.seconds
    ]
    if math.fsum(sample.seconds for sample in found) < SHORTEST:
        return None
    return mean_of(found)


def mean_of(samples: Sequence[Sample]) -> Sample:
    """One sample of several that follow each other; the disk and the link are those that were
    busiest over all of them."""
    seconds = math.fsum(sample.seconds for sample in samples)

    def mean(of: Callable[[Sample], float]) -> float:
        return math.fsum(of(sample) * sample.seconds for sample in samples) / seconds

    def means(of: Callable[[Sample], Mapping[str, float]]) -> dict[str, float]:
        names = dict.fromkeys(name for sample in samples for name in of(sample))
        return {name: mean(functools.partial(_named, of, name)) for name in names}

    disk = _most(means(lambda s: {s.disk: s.disk_busy}))
    link = _most(means(lambda s: {s.link: s.link_used}))
    last = samples[-1]
    return Sample(
        at=last.at,
        seconds=seconds,
        processors=mean(lambda s: s.processors),
        waiting=mean(lambda s: s.waiting),
        disk=disk,
        disk_busy=mean(lambda s: s.disk_busy if s.disk == disk else 0.0),
        disk_queue=mean(lambda s: s.disk_queue if s.disk == disk else 0.0),
        disk_read=mean(lambda s: s.disk_read),
        disk_written=mean(lambda s: s.disk_written),
        network_in=mean(lambda s: s.network_in),
        network_out=mean(lambda s: s.network_out),
        loopback=mean(lambda s: s.loopback),
        link=link,
        link_used=mean(lambda s: s.link_used if s.link == link else 0.0),
        dirty=last.dirty,
        dirtied=sum(sample.dirtied for sample in samples),
        available=last.available,
        pressure=means(lambda s: s.pressure),
        watched=means(lambda s: s.watched),
        watched_busiest=means(lambda s: s.watched_busiest),
    )


def _named(of: Callable[[Sample], Mapping[str, float]], name: str, sample: Sample) -> float:
    return of(sample).get(name, 0.0)


def _most(shares: Mapping[str, float]) -> str:
    return max(shares, key=lambda name: shares[name])
