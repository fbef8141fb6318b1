"""Counters of the hosts during each phase of a round.

The begin of a phase is not recorded: phases are taken to follow each other without gaps from the
task's first instruction. Shares, such as that of a busy disk, are of the time from when half of a
host's tasks had begun the phase until half had ended it; amounts, such as bytes read, are of the
time from the first begin to the last end.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gridbench.formats import counted
from gridbench.sync.record import HostUse, Round, Sample, TaskRun

SHORTEST = 0.1
"""Seconds; in less time, counters that tick in hundredths of a second give no shares."""
_COVERED = 0.8
"""Share of a sample that must lie in a phase for the sample to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCounters:
    """Counters of a machine, which may be several hosts, during a phase."""

    hosts: tuple[HostUse, ...]
    tasks: int
    """Number of tasks that ran on it."""
    bytes: int
    """Bytes that they report as read or written."""
    mean: Sample | None
    """None: too short to tell."""
    read: float
    """Bytes read from its disks; NaN if unknown, as for the others."""
    written: float
    dirtied: float
    received: float
    sent: float
    loopback: float

    @property
    def name(self) -> str:
        """The name of its first host, and the number of the others."""
        more = len(self.hosts) - 1
        others = f" and {counted(more, 'other host')} on the same machine" if more else ""
        return self.hosts[0].host + others

    @property
    def cores(self) -> int:
        """Number of processors."""
        return self.hosts[0].cores

    @property
    def memory(self) -> int:
        """Bytes."""
        return self.hosts[0].memory

    @property
    def busy(self) -> float:
        """Share of its processors that was busy; NaN if unknown."""
        return self.mean.processors / self.cores if self.mean else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseCounters:
    """Counters of all machines during a phase."""

    phase: str
    """Empty: the tasks report no phases, and this is the whole round."""
    machines: tuple[MachineCounters, ...]
    """Machines that ran tasks, and others that were sampled."""
    complete: bool
    """Whether all machines that ran tasks were sampled."""
    bytes: int
    operations: int
    task_seconds: float
    """Sum over all tasks."""
    computed: float
    """Share of the tasks' time, over all of their phases, in which they used a processor."""

    @property
    def working(self) -> list[MachineCounters]:
        """The machines that ran tasks."""
        return [machine for machine in self.machines if machine.tasks]

    def total(self, of: Callable[[MachineCounters], float], *, everywhere: bool = False) -> float:
        """Sum over the machines that ran tasks, or over all; NaN if unknown for one."""
        return math.fsum(map(of, self.machines if everywhere else self.working))


@dataclass(frozen=True, slots=True)
class _TaskPhase:
    """A phase of a task."""

    task: TaskRun
    began: float
    ended: float
    bytes: int
    operations: int


def phase_counters(one: Round) -> list[PhaseCounters]:
    """The counters of each phase of a round."""
    parts: dict[str, list[_TaskPhase]] = {}
    for task in one.tasks:
        for name, part in _parts(task):
            parts.setdefault(name, []).append(part)
    return [_of_phase(name, found, one.hosts) for name, found in parts.items()]


def _parts(task: TaskRun) -> Iterable[tuple[str, _TaskPhase]]:
    if task.began is None or task.ended is None or task.status != "ok":
        return
    if not task.phases:
        yield "", _TaskPhase(task, task.began, task.ended, 0, 0)
    at = task.began
    for phase in task.phases:
        yield phase.name, _TaskPhase(task, at, at + phase.seconds, phase.bytes, phase.operations)
        at += phase.seconds


def _of_phase(name: str, parts: Sequence[_TaskPhase], uses: Sequence[HostUse]) -> PhaseCounters:
    machines: dict[str, list[HostUse]] = {}
    for use in uses:
        machines.setdefault(use.boot or use.host, []).append(use)
    tasks = {part.task.worker: part.task for part in parts}
    used = math.fsum(task.user + task.system for task in tasks.values())
    return PhaseCounters(
        phase=name,
        machines=tuple(_of_machine(tuple(hosts), parts) for hosts in machines.values()),
        complete={task.host for task in tasks.values()} <= {use.host for use in uses},
        bytes=sum(part.bytes for part in parts),
        operations=sum(part.operations for part in parts),
        task_seconds=math.fsum(part.ended - part.began for part in parts),
        computed=used / (math.fsum(task.seconds or 0.0 for task in tasks.values()) or math.inf),
    )


def _of_machine(hosts: tuple[HostUse, ...], parts: Sequence[_TaskPhase]) -> MachineCounters:
    names = {host.host for host in hosts}
    own = [part for part in parts if part.task.host in names]
    # A machine without tasks may have a server that all tasks used.
    counting = own or parts
    half = [statistics.median(part.began for part in counting)]
    half.append(statistics.median(part.ended for part in counting))
    all_of_it = min(p.began for p in counting), max(p.ended for p in counting)
    first = _samples_between(hosts[0], *all_of_it)
    # Each host on a machine has its own interfaces.
    each = [sample for host in hosts for sample in _samples_between(host, *all_of_it)]
    return MachineCounters(
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


def _samples_between(use: HostUse, began: float, ended: float) -> list[tuple[Sample, float]]:
    """Samples with the share of each that lies in a time span; in a short round the whole round."""
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
    """The mean of the samples that lie mostly in a time span."""
    found = [
        sample
        for sample in use.during or ((use.whole,) if use.whole else ())
        if _inside(sample, began, ended) >= _COVERED * sample.seconds
    ]
    if math.fsum(sample.seconds for sample in found) < SHORTEST:
        return None
    return mean_of(found)


def mean_of(samples: Sequence[Sample]) -> Sample:
    """The mean of successive samples, with the disk and the link that were busiest over all."""
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
