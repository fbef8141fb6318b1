"""What a Linux host counts of itself while a round goes on: processors, disks, network, memory, and
single programs.

`Counters` takes readings. It keeps the files of /proc open, as opening them takes longer than
reading them; what the host does not have, such as a container without /proc/pressure, counts as 0.
A `Watcher` takes them during a round.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Collection
from pathlib import Path

from gridbench.machine.unused import unused
from gridbench.sync.programs import Programs
from gridbench.sync.reading import Disk, Reading
from gridbench.sync.record import HostUse

EVERY = 0.1
"""Seconds between two looks, unless somebody wants others."""
MOST = 200
"""Samples of a round; in a longer one there is more time between two looks."""
_SECTOR = 512  # bytes, whatever the disk's own are
_IN_MEMORY = re.compile(r"(loop|ram|zram)\d+\Z")
_MIRROR = re.compile(r"ifb\d+\Z")  # gets what another interface has got already
_PRESSURES = {f"pressure/{name}": name for name in ("cpu", "io", "memory")}
_PIECE = 1 << 16
_MEGABIT = 1e6 / 8  # bytes


class Counters:
    """Takes readings of this host, one after the other and not from several threads at once."""

    def __init__(self, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> None:
        """`proc`, `sys`: where the kernel tells all but what single processes use."""
        self.cores = os.cpu_count() or 1
        self.boot = ""
        """Id of the kernel's start."""
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
        self._programs = Programs(())

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._files.values():
            if descriptor is not None:
                os.close(descriptor)
        self._files = dict.fromkeys(self._files)

    def watch(self, names: Collection[str]) -> None:
        """From now on tell the processor time of the processes with these names. The first time all
        processes are looked at, which takes some 25 µs for each."""
        if frozenset(names) == self._programs.names:
            self._programs.forget_ended()
        else:
            self._programs = Programs(names)
            self._programs.look()

    def look_at_all_again(self) -> None:
        """With the next reading, see whether processes have got one of these names since."""
        self._programs.look_at_all_again()

    def read(self, *, find: bool = True) -> Reading:
        """The counters now. `find`: programs that have come since are looked for."""
        stat = self._text("stat")
        at = time.monotonic()
        memory = _memory(self._text("meminfo"))
        network = self._network()
        return Reading(
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
        """A file from its beginning; nothing if there is none."""
        descriptor = self._files[name]
        if descriptor is None:
            return ""
        found = b""
        try:
            # The kernel makes long files in pieces.
            while piece := os.pread(descriptor, _PIECE, len(found)):
                found += piece
        except OSError:  # pressure is told by some kernels that do not count it
            return ""
        return found.decode("ascii", errors="replace")

    def _disks(self) -> dict[str, Disk]:
        found = {}
        for line in self._text("diskstats").splitlines():
            name, *fields = line.split()[2:]
            if not self._is_whole(name):
                continue
            counts = [int(number) for number in fields[:11]]
            found[name] = Disk(
                read=counts[2] * _SECTOR,
                written=counts[6] * _SECTOR,
                busy=counts[9] / 1e3,
                queued=counts[10] / 1e3,
            )
        return found

    def _is_whole(self, name: str) -> bool:
        """Whether it is a disk: no partition, nothing in memory, and not made of other disks, for
        then all would be counted twice."""
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
        """Whether it is an interface that does not lie upon others, such as a bridge or a bond, for
        then all would be counted twice."""
        if name not in self._base:
            folder = self._sys / "class/net" / name
            upon = folder.is_dir() and any(folder.glob("lower_*"))
            self._base[name] = not upon and _MIRROR.match(name) is None
            self._speed[name] = _speed(folder)
        return self._base[name]


class Watcher:
    """Looks at this host during rounds, in a thread; all its methods are called from one other."""

    def __init__(self, host: str, counters: Counters | None = None) -> None:
        """`host`: as it is called in what `finish` returns."""
        self._host = host
        self._counters = counters or Counters()
        self._readings: list[Reading] = []
        self._instant = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, names: Collection[str]) -> None:
        """Find the programs with these names ahead of the first round."""
        self._counters.watch(names)

    def begin(self, at: float, names: Collection[str] = (), every: float = EVERY) -> None:
        """A round starts at this instant of CLOCK_MONOTONIC, seconds. What it uses is counted from
        now on, and the first look comes `every` seconds after the instant, so that a shorter round
        is not disturbed. `names`: of the programs to watch."""
        self._end()
        self._instant = at
        self._counters.watch(names)
        # The tasks are new processes, and now is no time to look at each of them.
        self._readings = [self._counters.read(find=False)]
        self._thread = threading.Thread(
            target=self._look_on, args=(every,), name="counters", daemon=True
        )
        self._thread.start()

    def finish(self) -> HostUse:
        """The round is over: what happened since it began."""
        self._end()
        self._counters.look_at_all_again()
        first = self._readings[0]
        last = self._counters.read()
        looks = self._readings[1:]
        # What is left behind the last look may be too short for counters that tick.
        if looks and last.at - looks[-1].at < (last.at - first.at) / len(looks) / 2:
            looks.pop()
        during = [*looks, last] if len(self._readings) > 1 else []
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
        """No more rounds."""
        self._end()
        self._counters.close()

    def _end(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._stop.clear()
            self._thread = None

    def _look_on(self, every: float) -> None:
        due = self._instant + every
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self._readings.append(self._counters.read())
            if len(self._readings) > MOST:
                # All counters go on and on, so that a reading left out joins two samples.
                del self._readings[1::2]
                every *= 2
            due = max(due + every, time.monotonic())


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _forks(stat: str) -> int | None:
    """Processes and threads that were started since the host was."""
    _, found, rest = stat.rpartition("\nprocesses ")
    return int(rest.split("\n", 1)[0]) if found else None


def _memory(text: str) -> dict[str, int]:
    """Bytes."""
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
    """Bytes per second, if it is known; virtual interfaces name some speed that is not theirs."""
    try:
        megabits = int((folder / "speed").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return megabits * _MEGABIT if megabits > 0 and (folder / "device").exists() else None
