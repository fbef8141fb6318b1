"""The processors that this process may use, by affinity mask, cpuset and control group.

Programs on other processors of a shared node do not count as load. Usage is elapsed time less idle
time: on many machines the kernel samples usage, but not idle time.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")
_GROUPS = "sys/fs/cgroup"


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """Settings of the process's group in cgroup v2; defaults without one."""

    processors: frozenset[int] = frozenset()
    """Cpuset; empty: not known."""
    limit: float = math.inf
    """Limit on processors, the smallest of this group and all above."""
    waited: float | None = None
    """Seconds in which some task waited for a processor (Linux PSI)."""


def control_group(root: Path = _ROOT) -> ControlGroup:
    """The group of this process. `root`: parent folder of /proc and /sys."""
    folders = list(_folders(root))
    if not folders:
        return ControlGroup()
    own = folders[0]
    return ControlGroup(
        processors=_numbers(_text(own / "cpuset.cpus.effective")),
        limit=min(_limit(_text(folder / "cpu.max")) for folder in folders),
        waited=_waited(_text(own / "cpu.pressure")),
    )


def available_processors(group: ControlGroup | None = None) -> frozenset[int]:
    """Numbers of the processors that this process may run on."""
    mask = frozenset(os.sched_getaffinity(0))
    return mask & (group or control_group()).processors or mask


def available_count(group: ControlGroup | None = None) -> int:
    """Number of processors that this process may use at a time."""
    group = group or control_group()
    count = len(available_processors(group))
    return count if math.isinf(group.limit) else max(1, min(count, math.ceil(group.limit)))


def shares_processors(pid: int, processors: frozenset[int]) -> bool:
    """Whether a process may run on one of these processors."""
    try:
        return not processors.isdisjoint(os.sched_getaffinity(pid))
    except OSError:  # ended
        return False


def _folders(root: Path) -> Iterator[Path]:
    """The folder of the group, then of all visible groups above it."""
    line = next((x for x in _text(root / "proc/self/cgroup").splitlines() if x[:3] == "0::"), "")
    if not line:
        return
    groups = root / _GROUPS
    own = groups / line[3:].strip("/")
    for folder in (own, *own.parents):
        if folder.is_dir() and folder.is_relative_to(groups):
            yield folder


def _limit(text: str) -> float:
    """`200000 100000` are 2 processors; `max 100000` is no limit."""
    quota, _, period = text.partition(" ")
    with contextlib.suppress(ValueError, ZeroDivisionError):
        return int(quota) / int(period)
    return math.inf


def _waited(text: str) -> float | None:
    """The total of `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`, which is in µs."""
    for line in text.splitlines():
        kind, *fields = line.split()
        if kind == "some" and fields and fields[-1].startswith("total="):
            with contextlib.suppress(ValueError):
                return int(fields[-1].removeprefix("total=")) / 1e6
    return None


def _numbers(text: str) -> frozenset[int]:
    """`0-2,5` are 0, 1, 2 and 5."""
    found: set[int] = set()
    with contextlib.suppress(ValueError):
        for part in filter(None, text.strip().split(",")):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii")
    return ""


_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Unused:
    """Idle and other unused time of all processors, in seconds."""

    idle: float
    waiting: float
    """Idle while waiting for a disk."""
    network: float
    """In soft interrupts, mostly of the network, charged to no process."""
    stolen: float
    """Stolen by the hypervisor."""


def unused(stat: str) -> Unused:
    """Parse the first line of /proc/stat."""
    return _unused(stat.split("\n", 1)[0])


def unused_of(stat: str, processors: Collection[int]) -> Unused:
    """Sum over some processors in /proc/stat."""
    names = {f"cpu{number}" for number in processors}
    lines = [_unused(line) for line in stat.splitlines() if line.split(" ", 1)[0] in names]
    return Unused(
        idle=sum(one.idle for one in lines),
        waiting=sum(one.waiting for one in lines),
        network=sum(one.network for one in lines),
        stolen=sum(one.stolen for one in lines),
    )


def _unused(line: str) -> Unused:
    fields = [int(field) / _TICKS for field in line.split()[1:]]
    return Unused(
        idle=fields[3],
        waiting=fields[4],
        network=fields[6],
        stolen=fields[7] if len(fields) > 7 else 0.0,
    )
