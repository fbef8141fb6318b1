"""Bottlenecks of a round, as the counters of its hosts show them.

Each bottleneck belongs to a phase of the tasks, as a round that writes and then reads has two.
Counters do not show all: a round of less than a tenth of a second has no bottlenecks, and neither
has a server on a host without samples.
"""

from __future__ import annotations

import functools
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gridbench.formats import amount, counted, digits, duration, percent, size
from gridbench.sync.phase_counters import SHORTEST, MachineCounters, PhaseCounters, phase_counters
from gridbench.sync.record import Round, Sample

DISK_BUSY = 0.9
"""Share of the time from which on a disk is saturated: at most a ninth more is possible."""
DISK_QUEUE = 1.5
"""Mean queue length below which requests come one after the other: then the disk's latency limits,
not its bandwidth."""
CACHED = 0.1
"""Share of the bytes read below which disks and network had no part in the speed."""
FROM_DISK = 0.5
"""Share from which on most bytes came from disks."""
FITS = 0.8
"""Share of the memory that files can use; programs and the kernel need the rest."""
REACHED_DISK = 0.5
"""Share of the bytes written below which most of them only reached memory."""
ONE_PROCESSOR = (0.9, 1.1)
"""Processors used by a process with one thread that computes all the time."""
SERVER_BUSY = 0.9
"""Share of all processors from which on a server is saturated."""
PROCESSORS_BUSY = 0.95
"""Share; the rest goes to starting and ending tasks."""
MOSTLY = 0.5
"""Share of the busy processors below which known programs do not explain the load."""
MEMORY_PRESSURE = 0.1
"""Share of the time in which some process waits for memory."""
LINK_BUSY = 0.9
"""Share of its speed; the gaps between packets are not counted as bytes."""
COMPUTING = 0.9
"""Share of its time in which a task computes if it waits for nothing."""
LITTLE = 0.5
"""Share of processors and disks below which tasks mostly wait for something else."""
HOSTS_DIFFER = 1.25
"""Ratio of the hosts' median task times that hosts of the same kind do not reach."""

_READS = re.compile(r"\b(?:rand|seq)?read\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:rand|seq)?write\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A resource that limited a round."""

    what: str
    """A few words, with the phase."""
    told: str
    """Sentences with the figures that show it."""


def bottlenecks(one: Round) -> tuple[Bottleneck, ...]:
    """All bottlenecks of a round, phase by phase."""
    found: list[Bottleneck] = []
    for phase in phase_counters(one):
        known = [*_disks(phase), *_servers(phase), *_processors(phase), *_memory(phase)]
        known += _network(phase)
        found += [*known, *_read_from(phase), *_written_to(phase)]
        if not known:
            found += _elsewhere(phase)
    return (*found, *_uneven_hosts(one))


def frequent_bottlenecks(rounds: Iterable[Round]) -> list[tuple[str, int, str]]:
    """Each bottleneck of these rounds, the number of rounds that have it, and the sentence of the
    first of them; the most frequent first."""
    count: Counter[str] = Counter()
    text: dict[str, str] = {}
    for one in rounds:
        for what, sentence in {found.what: found.told for found in bottlenecks(one)}.items():
            count[what] += 1
            text.setdefault(what, sentence)
    return [(what, times, text[what]) for what, times in count.most_common()]


# ---- Saturated resources


def _disks(phase: PhaseCounters) -> Iterator[Bottleneck]:
    if not (found := _worst(phase, lambda mean, _: mean.disk_busy, DISK_BUSY)):
        return
    mean = found.mean
    text = (
        f"The disk {mean.disk}{found.of} was busy for {percent(mean.disk_busy, 0)} of the"
        f" time{_during(phase)}{found.others}, reading {_rate(mean.disk_read)} and writing"
        f" {_rate(mean.disk_written)}, with {digits(mean.disk_queue, 2)} requests in its queue on"
        " average."
    )
    if mean.disk_queue < DISK_QUEUE:
        yield Bottleneck(
            _what("disk, one request at a time", phase),
            f"{text} Requests came one after the other, as with fsync after each write: the latency"
            " of the disk limits, not its bandwidth.",
        )
    else:
        yield Bottleneck(
            _what("disk saturated", phase),
            f"{text} It can do little more, unless it serves many requests at once.",
        )


def _servers(phase: PhaseCounters) -> Iterator[Bottleneck]:
    means = [machine.mean for machine in phase.machines if machine.mean]
    for name in dict.fromkeys(name for mean in means for name in mean.watched):
        if found := _worst(phase, functools.partial(_used_by_all, name), SERVER_BUSY):
            yield Bottleneck(
                _what(f"{name} saturated", phase),
                f"The processes of {name} used {digits(found.mean.watched[name])} of the"
                f" {counted(found.machine.cores, 'processor')}{found.of}{_during(phase)}"
                f"{found.others}: all of them.",
            )
        elif found := _worst(phase, functools.partial(_used_by_one, name), ONE_PROCESSOR[0]):
            yield Bottleneck(
                _what(f"{name} saturated", phase),
                f"A process of {name}{found.of} used"
                f" {digits(found.mean.watched_busiest[name])} processors{_during(phase)}"
                f"{found.others}: all that one thread can use.",
            )


def _used_by_all(name: str, mean: Sample, machine: MachineCounters) -> float:
    return mean.watched.get(name, 0.0) / machine.cores


def _used_by_one(name: str, mean: Sample, _: MachineCounters) -> float:
    used = mean.watched_busiest.get(name, 0.0)
    # A process that uses more than one processor has several threads, and may use still more.
    return used if used < ONE_PROCESSOR[1] else 0.0


def _processors(phase: PhaseCounters) -> Iterator[Bottleneck]:
    found = _worst(phase, lambda mean, machine: mean.processors / machine.cores, PROCESSORS_BUSY)
    if not found:
        return
    machine, cores = found.machine, counted(found.machine.cores, "processor")
    text = (
        f"The {cores}{found.of} were busy for {percent(machine.busy, 0)} of the"
        f" time{_during(phase)}{found.others}"
    )
    # The use by tasks is only known over all of their phases.
    tasks = (
        {counted(machine.tasks, "task"): machine.tasks * phase.computed} if machine.tasks else {}
    )
    used = tasks | found.mean.watched
    text += "".join(f", {digits(much, 2)} by {who}" for who, much in used.items()) + "."
    if sum(used.values()) < MOSTLY * found.mean.processors:
        text += " Other programs did most of the work, perhaps for these."
    yield Bottleneck(_what("processors saturated", phase), text)


def _memory(phase: PhaseCounters) -> Iterator[Bottleneck]:
    found = _worst(phase, lambda mean, _: mean.pressure.get("memory", 0.0), MEMORY_PRESSURE)
    if found:
        yield Bottleneck(
            _what("memory pressure", phase),
            f"Some process{found.of} waited for memory for"
            f" {percent(found.mean.pressure['memory'], 0)} of the time{_during(phase)}"
            f"{found.others}; {size(found.mean.available)} of {size(found.machine.memory)} were"
            " available at the end.",
        )


def _network(phase: PhaseCounters) -> Iterator[Bottleneck]:
    if found := _worst(phase, lambda mean, _: mean.link_used, LINK_BUSY):
        mean = found.mean
        yield Bottleneck(
            _what("network saturated", phase),
            f"The interface {mean.link}{found.of} used {percent(mean.link_used, 0)} of its speed"
            f"{_during(phase)}{found.others}: {_rate(mean.network_in)} were received and"
            f" {_rate(mean.network_out)} sent.",
        )


@dataclass(frozen=True, slots=True)
class _SaturatedMachine:
    """The machine on which a resource is most saturated."""

    machine: MachineCounters
    mean: Sample
    of: str
    """` of MACHINE`, if there are several."""
    others: str
    """The number of other machines with the same bottleneck."""


def _worst(
    phase: PhaseCounters, of: Callable[[Sample, MachineCounters], float], least: float
) -> _SaturatedMachine | None:
    """The machine with the highest value, if that is at least `least`."""
    found = [
        (value, place)
        for place, machine in enumerate(phase.machines)
        if machine.mean is not None and (value := of(machine.mean, machine)) >= least
    ]
    if not found:
        return None
    machine = phase.machines[max(found, key=lambda one: (one[0], -one[1]))[1]]
    assert machine.mean is not None
    more = len(found) - 1
    others = f" (as on {counted(more, 'other machine')})" if more else ""
    return _SaturatedMachine(machine, machine.mean, _place(" of ", phase, machine), others)


# ---- Where bytes came from and went to


def _read_from(phase: PhaseCounters) -> Iterator[Bottleneck]:
    if not phase.complete or not phase.bytes or not _READS.search(phase.phase):
        return
    disks = phase.total(lambda machine: machine.read, everywhere=True)
    arrived = phase.total(lambda machine: machine.received)
    tasks = (
        f"Of the {size(phase.bytes)} that tasks read{_during(phase)}, {size(disks)} came from disks"
    )
    if disks + arrived <= CACHED * phase.bytes:
        looped = phase.total(lambda machine: machine.loopback)
        server = (
            f"; {size(looped)} came from a server on the same host"
            if looped >= FROM_DISK * phase.bytes
            else ""
        )
        yield Bottleneck(
            _what("page cache", phase),
            f"{tasks} and {size(arrived)} over the network{server}: the files were in memory, so"
            " the rate is not that of a disk.",
        )
    elif disks >= FROM_DISK * phase.bytes:
        most = max(phase.working, key=lambda machine: machine.bytes / max(1, machine.memory))
        fits = most.bytes <= FITS * most.memory
        yield Bottleneck(
            _what("read from disks" if fits else "page cache exceeded", phase),
            f"{tasks} ({percent(min(1.0, disks / phase.bytes), 0)}): files of {size(most.bytes)}"
            + _place(" on ", phase, most)
            + (" would fit" if fits else " do not fit")
            + f" into its memory of {size(most.memory)}"
            + (", but were not there, or reads bypassed it." if fits else "."),
        )


def _written_to(phase: PhaseCounters) -> Iterator[Bottleneck]:
    if not phase.complete or not phase.bytes or not _WRITES.search(phase.phase):
        return
    disks = phase.total(lambda machine: machine.written, everywhere=True)
    left = phase.total(lambda machine: machine.sent)
    waiting = phase.total(lambda machine: machine.dirtied, everywhere=True)
    # A file system in memory writes nothing later.
    if disks + left < REACHED_DISK * phase.bytes <= disks + left + 2 * waiting:
        yield Bottleneck(
            _what("writes in memory", phase),
            f"Of the {size(phase.bytes)} that tasks wrote{_during(phase)}, {size(disks)} had"
            f" reached disks at the end, and {size(waiting)} more waited in memory to be written:"
            " without fsync the rate is that of memory.",
        )


# ---- Nothing saturated


def _elsewhere(phase: PhaseCounters) -> Iterator[Bottleneck]:
    means = [machine.mean for machine in phase.working if machine.mean]
    if not phase.complete or not means or len(means) < len(phase.working):
        return
    busiest = max(phase.working, key=lambda machine: machine.busy)
    disk = max(means, key=lambda mean: mean.disk_busy)
    text = (
        f"No counted resource was saturated{_during(phase)}: processors were busy for"
        f" {percent(busiest.busy, 0)} of the time{_place(' on ', phase, busiest)}"
    )
    text += f", and the disk {disk.disk} for {percent(disk.disk_busy, 0)}." if disk.disk else "."
    if phase.computed >= COMPUTING:
        yield Bottleneck(
            _what("processors of the tasks", phase),
            f"{text} But tasks computed for {percent(phase.computed, 0)} of their time: more"
            " workers can do more, up to the number of processors.",
        )
        return
    if max(busiest.busy, disk.disk_busy) >= LITTLE:
        yield Bottleneck(_what("nothing saturated", phase), text)
        return
    if phase.operations:
        each = duration(phase.task_seconds / phase.operations)
        text += f" An operation took {each}."
    yield Bottleneck(
        _what("waits elsewhere", phase),
        f"{text} Tasks mostly wait for something else, such as a server, the network, a lock or a"
        " timer; more workers can do more, until a resource is saturated.",
    )


def _uneven_hosts(one: Round) -> Iterator[Bottleneck]:
    """Hosts whose tasks take longer than those of others."""
    times: dict[str, list[float]] = {}
    error = 0.0
    for task in one.tasks:
        if task.seconds is not None:
            times.setdefault(task.host, []).append(task.seconds)
            error = max(error, task.clock_error)
    medians = {host: statistics.median(found) for host, found in times.items()}
    if len(medians) < 2:
        return
    slow, fast = max(medians, key=lambda h: medians[h]), min(medians, key=lambda h: medians[h])
    longest, shortest = medians[slow], medians[fast]
    if longest < max(SHORTEST, HOSTS_DIFFER * shortest) or longest - shortest <= 2 * error:
        return
    cores = {use.host: use.cores for use in one.hosts}
    placed = [
        f"{counted(len(times[host]), 'worker')}"
        + (f" on {counted(cores[host], 'processor')}" if host in cores else "")
        for host in (slow, fast)
    ]
    yield Bottleneck(
        "hosts differ",
        f"The median task took {duration(longest)} on {slow} ({placed[0]}), and"
        f" {duration(shortest)} on {fast} ({placed[1]}): the slowest host decides when a round"
        " ends.",
    )


# ---- Words


def _what(limit: str, phase: PhaseCounters) -> str:
    return f"{limit} ({phase.phase})" if phase.phase else limit


def _during(phase: PhaseCounters) -> str:
    return f" in the phase {phase.phase}" if phase.phase else ""


def _place(word: str, phase: PhaseCounters, machine: MachineCounters) -> str:
    """The name of the machine, if there are several."""
    return word + machine.name if len(phase.machines) > 1 else ""


def _rate(value: float) -> str:
    return amount(value, "bytes/s")
