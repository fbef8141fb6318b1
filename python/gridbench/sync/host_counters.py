"""Counters of a Linux host during a round: processors, disks, network, memory, watched programs.

`Counters` takes readings, `CounterReading.sample_since` turns two of them into a `Sample`, and a
`CounterSampler` takes samples during a round. The files of /proc stay open, as opening takes longer
than reading. Counters that a host lacks, such as /proc/pressure in a container, are 0.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gridbench.machine.processes import ids, process, processor_time
from gridbench.machine.processors import Unused, unused
from gridbench.sync.record import HostUse, Sample

EVERY = 0.1
"""Seconds between two samples."""
MOST = 200
"""Samples of a round; in longer rounds there is more time between them."""
_SECTOR = 512  # bytes, whatever the disk's own are
_IN_MEMORY = re.compile(r"(loop|ram|zram)\d+\Z")
_MIRROR = re.compile(r"ifb\d+\Z")  # repeats the traffic of another interface
_PRESSURES = {f"pressure/{name}": name for name in ("cpu", "io", "memory")}
_PIECE = 1 << 16
_MEGABIT = 1e6 / 8  # bytes


@dataclass(frozen=True, slots=True)
class DiskCounters:
    """Totals of a disk since the host was started."""

    read: int
    """Bytes."""
    written: int
    busy: float
    """Seconds in which the disk was busy."""
    queued: float
    """Seconds of all requests together."""


_NEW = DiskCounters(read=0, written=0, busy=0.0, queued=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReading:
    """The counters at one moment. Only `dirty` and `available` have a meaning without another
    reading."""

    at: float
    """CLOCK_MONOTONIC, seconds."""
    cores: int
    unused: Unused | None
    disks: Mapping[str, DiskCounters]
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
    watched: Mapping[str, Mapping[ProcessId, float]] = field(default_factory=dict)
    """Seconds of processor time by name and process; for a process that has ended, the last value
    that was read."""

    def sample_since(self, before: CounterReading, instant: float) -> Sample:
        """The sample between two readings. Its time starts at `instant`, of the same clock."""
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
                name: _clamped(1.0, (seen - before.pressure.get(name, seen)) / passed)
                for name, seen in self.pressure.items()
            },
            watched={name: sum(used) for name, used in processes.items()},
            watched_busiest={name: max(used, default=0.0) for name, used in processes.items()},
        )

    def _busy(self, before: CounterReading, passed: float) -> float:
        """Busy processors; time that the hypervisor took (steal) counts as busy."""
        if self.unused is None or before.unused is None:
            return 0.0
        idle = self.unused.idle - before.unused.idle
        waiting = self.unused.waiting - before.unused.waiting
        return _clamped(self.cores, self.cores - (idle + waiting) / passed)

    def _waiting(self, before: CounterReading, passed: float) -> float:
        if self.unused is None or before.unused is None:
            return 0.0
        return _clamped(self.cores, (self.unused.waiting - before.unused.waiting) / passed)

    def _busiest_disk(self, before: CounterReading, passed: float) -> tuple[str, float, float]:
        """Name of the busiest disk, share of the time in which it was busy, length of its queue."""
        found = ("", 0.0, 0.0)
        for name, now in self.disks.items():
            then = before.disks.get(name, _NEW)
            busy = _clamped(1.0, (now.busy - then.busy) / passed)
            if busy > found[1]:
                found = name, busy, max(0.0, now.queued - then.queued) / passed
        return found

    def _transferred(self, before: CounterReading, which: Callable[[str], bool]) -> tuple[int, int]:
        """Bytes that some of the interfaces received and sent."""
        pairs = [
            (now, before.network.get(name, (0, 0)))
            for name, now in self.network.items()
            if which(name)
        ]
        received = sum(max(0, now[0] - then[0]) for now, then in pairs)
        return received, sum(max(0, now[1] - then[1]) for now, then in pairs)

    def _fullest_link(self, before: CounterReading, passed: float) -> tuple[str, float]:
        found = ("", 0.0)
        for name, speed in self.speeds.items():
            now, then = self.network[name], before.network.get(name, (0, 0))
            used = max(now[0] - then[0], now[1] - then[1]) / passed / speed
            if used > found[1]:
                found = name, used
        return found


def _clamped(most: float, value: float) -> float:
    """Counters are not read at the same moment, and some go back a little."""
    return min(max(0.0, value), most)


class Counters:
    """Reads the counters of this host; not for several threads at once."""

    def __init__(self, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> None:
        """`proc`, `sys`: folders of all counters but those of single processes."""
        self.cores = os.cpu_count() or 1
        self.boot = ""
        """Id of the kernel's boot."""
        with contextlib.suppress(OSError):
            self.boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        self._sys = sys
        self._files = {
            name: _opened(proc / name)
            for name in ("stat", "diskstats", "net/dev", "meminfo", *_PRESSURES)
        }
        self._whole: dict[str, bool] = {}
        self._base: dict[str, bool] = {}
        self._speed: dict[str, float | None] = {}
        self._programs = WatchedPrograms(())

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._files.values():
            if descriptor is not None:
                os.close(descriptor)
        self._files = dict.fromkeys(self._files)

    def watch(self, names: Collection[str]) -> None:
        """Read the processor time of the processes with these names from now on. The first call
        looks at all processes, at some 25 µs each."""
        if frozenset(names) == self._programs.names:
            self._programs.forget_ended()
        else:
            self._programs = WatchedPrograms(names)
            self._programs.look()

    def look_at_all_again(self) -> None:
        """Look at all processes again at the next reading."""
        self._programs.look_at_all_again()

    def read(self, *, find: bool = True) -> CounterReading:
        """The counters now. `find`: look for new processes of watched programs."""
        stat = self._text("stat")
        at = time.monotonic()
        memory = _memory(self._text("meminfo"))
        network = self._network()
        return CounterReading(
            at=at,
            cores=self.cores,
            unused=unused(stat) if stat else None,
            disks=self._disks(),
            network=network,
            speeds={name: speed for name in network if (speed := self._speed[name])},
            memory=memory.get("MemTotal", 0),
            dirty=memory.get("Dirty", 0) + memory.get("Writeback", 0),
            available=memory.get("MemAvailable", 0),
            pressure={
                name: seconds
                for file, name in _PRESSURES.items()
                if (seconds := _pressure(self._text(file))) is not None
            },
            watched=self._programs.look(_forks(stat), find=find),
        )

    def _text(self, name: str) -> str:
        """All of a file; empty if there is none."""
        descriptor = self._files[name]
        if descriptor is None:
            return ""
        found = b""
        try:
            # The kernel writes long files in pieces.
            while piece := os.pread(descriptor, _PIECE, len(found)):
                found += piece
        except OSError:  # some kernels have pressure files without counting it
            return ""
        return found.decode("ascii", errors="replace")

    def _disks(self) -> dict[str, DiskCounters]:
        found = {}
        for line in self._text("diskstats").splitlines():
            name, *fields = line.split()[2:]
            if not self._is_whole(name):
                continue
            counts = [int(number) for number in fields[:11]]
            found[name] = DiskCounters(
                read=counts[2] * _SECTOR,
                written=counts[6] * _SECTOR,
                busy=counts[9] / 1e3,
                queued=counts[10] / 1e3,
            )
        return found

    def _is_whole(self, name: str) -> bool:
        """Whether it is a disk. Partitions and disks in memory are not, nor disks made of other
        disks, whose traffic would count twice."""
        if name not in self._whole:
            # Some disks have a slash in their names.
            folder = self._sys / "block" / name.replace("/", "!")
            slaves = folder / "slaves"
            self._whole[name] = (
                _IN_MEMORY.match(name) is None
                and folder.is_dir()
                and not (slaves.is_dir() and any(slaves.iterdir()))
            )
        return self._whole[name]

    def _network(self) -> dict[str, tuple[int, int]]:
        found = {}
        for line in self._text("net/dev").splitlines()[2:]:
            name, _, rest = line.partition(":")
            name = name.strip()
            if self._is_base(name):
                fields = rest.split()
                found[name] = int(fields[0]), int(fields[8])
        return found

    def _is_base(self, name: str) -> bool:
        """Whether it is an interface of its own. The traffic of bridges and bonds would count
        twice."""
        if name not in self._base:
            folder = self._sys / "class/net" / name
            upon = folder.is_dir() and any(folder.glob("lower_*"))
            self._base[name] = not upon and _MIRROR.match(name) is None
            self._speed[name] = _speed(folder)
        return self._base[name]


class CounterSampler:
    """Samples the counters of this host during rounds, in a thread."""

    def __init__(self, host: str, counters: Counters | None = None) -> None:
        """`host`: its name in the results."""
        self._host = host
        self._counters = counters or Counters()
        self._readings: list[CounterReading] = []
        self._instant = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, names: Collection[str]) -> None:
        """Find the programs with these names before the first round."""
        self._counters.watch(names)

    def begin(self, at: float, names: Collection[str] = (), every: float = EVERY) -> None:
        """Begin a round that starts at this instant of CLOCK_MONOTONIC, in seconds. Counting starts
        now; the first sample is taken `every` seconds after the instant, so that a shorter round is
        not disturbed. `names`: programs to watch."""
        self._end()
        self._instant = at
        self._counters.watch(names)
        # Looking at each of the new tasks now would delay their start.
        self._readings = [self._counters.read(find=False)]
        self._thread = threading.Thread(
            target=self._sample, args=(every,), name="counters", daemon=True
        )
        self._thread.start()

    def finish(self) -> HostUse:
        """End the round; its samples."""
        self._end()
        self._counters.look_at_all_again()
        first = self._readings[0]
        last = self._counters.read()
        samples = self._readings[1:]
        # The time since the last sample may be too short for counters that tick.
        if samples and last.at - samples[-1].at < (last.at - first.at) / len(samples) / 2:
            samples.pop()
        during = [*samples, last] if len(self._readings) > 1 else []
        return HostUse(
            host=self._host,
            cores=self._counters.cores,
            memory=last.memory,
            boot=self._counters.boot,
            whole=last.sample_since(first, self._instant),
            during=tuple(
                now.sample_since(then, self._instant)
                for then, now in zip([first, *during], during, strict=False)
            ),
        )

    def close(self) -> None:
        """Stop sampling and close the files."""
        self._end()
        self._counters.close()

    def _end(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._stop.clear()
            self._thread = None

    def _sample(self, every: float) -> None:
        due = self._instant + every
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self._readings.append(self._counters.read())
            if len(self._readings) > MOST:
                # Counters only grow, so removing a reading joins two samples.
                del self._readings[1::2]
                every *= 2
            due = max(due + every, time.monotonic())


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _forks(stat: str) -> int | None:
    """Processes and threads that the host has started."""
    _, found, rest = stat.rpartition("\nprocesses ")
    return int(rest.split("\n", 1)[0]) if found else None


def _memory(text: str) -> dict[str, int]:
    """The lines of /proc/meminfo in bytes."""
    found = {}
    for line in text.splitlines():
        name, _, amount = line.partition(":")
        if amount.endswith("kB"):
            found[name] = int(amount[:-2]) * 1024
    return found


def _pressure(text: str) -> float | None:
    """Seconds in which some process waited."""
    total = re.match(r"some .*total=(\d+)", text)
    return int(total[1]) / 1e6 if total else None


def _speed(folder: Path) -> float | None:
    """Bytes per second, if known; virtual interfaces report a made-up speed."""
    try:
        megabits = int((folder / "speed").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return megabits * _MEGABIT if megabits > 0 and (folder / "device").exists() else None


# ---- Watched programs

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
