"""A reading of a host's counters, and what lies between two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gridbench.machine.unused import Unused
from gridbench.sync.programs import Process
from gridbench.sync.record import Sample


@dataclass(frozen=True, slots=True)
class Disk:
    """Since the host was started."""

    read: int
    """Bytes."""
    written: int
    busy: float
    """Seconds in which it had something to do."""
    queued: float
    """Seconds that requests took, all together."""


_NEW = Disk(read=0, written=0, busy=0.0, queued=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The counters at a moment. Only differences mean something, but for `dirty` and
    `available`."""

    at: float
    """CLOCK_MONOTONIC, seconds."""
    cores: int
    unused: Unused | None
    disks: Mapping[str, Disk]
    network: Mapping[str, tuple[int, int]]
    """Bytes that each interface has received and sent."""
    speeds: Mapping[str, float]
    """Bytes per second of those interfaces whose speed is known."""
    memory: int
    """Bytes."""
    dirty: int
    available: int
    pressure: Mapping[str, float] = field(default_factory=dict)
    """Seconds in which some process waited."""
    watched: Mapping[str, Mapping[Process, float]] = field(default_factory=dict)
    """Seconds of processor time by name and process. Of one that has ended it is what was last
    seen; what was not there before has begun since."""

    def sample_since(self, before: Reading, instant: float) -> Sample:
        """What happened in between, its time counted from an instant of the same clock."""
        passed = max(self.at - before.at, 1e-9)
        disk, busy, queue = self._busiest_disk(before, passed)
        link, used = self._fullest_link(before, passed)
        disks = [(now, before.disks.get(name, _NEW)) for name, now in self.disks.items()]
        received, sent = self._transferred(before, lambda name: name != "lo")
        loopback, _ = self._transferred(before, lambda name: name == "lo")
        processes = {
            name: [
                (used - before.watched.get(name, {}).get(one, 0.0)) / passed
                for one, used in seen.items()
            ]
            for name, seen in self.watched.items()
        }
        return Sample(
            at=self.at - instant,
            seconds=passed,
            processors=self._busy(before, passed),
            waiting=self._waiting(before, passed),
            disk_busy=busy,
            disk=disk,
            disk_queue=queue,
            disk_read=sum(max(0, now.read - then.read) for now, then in disks) / passed,
            disk_written=sum(max(0, now.written - then.written) for now, then in disks) / passed,
            network_in=received / passed,
            network_out=sent / passed,
            loopback=loopback / passed,
            link=link,
            link_used=used,
            dirty=self.dirty,
            dirtied=self.dirty - before.dirty,
            available=self.available,
            pressure={
                name: _within(1.0, (seen - before.pressure.get(name, seen)) / passed)
                for name, seen in self.pressure.items()
            },
            watched={name: sum(used) for name, used in processes.items()},
            watched_busiest={name: max(used, default=0.0) for name, used in processes.items()},
        )

    def _busy(self, before: Reading, passed: float) -> float:
        """Processors; what the hypervisor took away is not idle, and so is among them."""
        if self.unused is None or before.unused is None:
            return 0.0
        idle = self.unused.idle - before.unused.idle
        waiting = self.unused.waiting - before.unused.waiting
        return _within(self.cores, self.cores - (idle + waiting) / passed)

    def _waiting(self, before: Reading, passed: float) -> float:
        if self.unused is None or before.unused is None:
            return 0.0
        return _within(self.cores, (self.unused.waiting - before.unused.waiting) / passed)

    def _busiest_disk(self, before: Reading, passed: float) -> tuple[str, float, float]:
        """Its name, the share of time in which it was busy, and requests that waited there."""
        found = ("", 0.0, 0.0)
        for name, now in self.disks.items():
            then = before.disks.get(name, _NEW)
            busy = _within(1.0, (now.busy - then.busy) / passed)
            if busy > found[1]:
                found = name, busy, max(0.0, now.queued - then.queued) / passed
        return found

    def _transferred(self, before: Reading, which: Callable[[str], bool]) -> tuple[int, int]:
        """Bytes that some of the interfaces have received and sent."""
        pairs = [
            (now, before.network.get(name, (0, 0)))
            for name, now in self.network.items()
            if which(name)
        ]
        received = sum(max(0, now[0] - then[0]) for now, then in pairs)
        return received, sum(max(0, now[1] - then[1]) for now, then in pairs)

    def _fullest_link(self, before: Reading, passed: float) -> tuple[str, float]:
        found = ("", 0.0)
        for name, speed in self.speeds.items():
            now, then = self.network[name], before.network.get(name, (0, 0))
            used = max(now[0] - then[0], now[1] - then[1]) / passed / speed
            if used > found[1]:
                found = name, used
        return found


def _within(most: float, value: float) -> float:
    """Counters are not read all at the same moment, and some go back a little."""
    return min(max(0.0, value), most)
