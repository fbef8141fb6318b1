"""All processes of the machine, what they have used, and which of them are ours."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_MARK = "GRIDBENCH_MEASURES"
"""The variable by which processes that a batch system starts for us are known: it passes on the
environment of who has submitted a job."""
SERVICES = "GRIDBENCH_SERVICES"
"""The variable that has the processes behind the services that are being measured, such as a
metadata server: what they use is part of what is measured."""
_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL = "kthreadd"  # the process that all threads of the kernel descend from


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the table. Times are in seconds of processor time."""

    name: str
    parent: int
    began: int
    """Ticks since the machine was started."""
    used: float
    waited_for: float
    """What children used that have ended, and that it has waited for."""


@dataclass(frozen=True, slots=True)
class Whose:
    """Processes by who has them at work."""

    ours: frozenset[int]
    unclear: frozenset[int]
    """Agents of grids that have come since, and what belongs to them: sshd passes no mark on, so
    that they may be our workers or those of somebody else."""
    others: frozenset[int]
    """All further ones, without the kernel's threads."""
    apart: bool
    """Some that are ours, or may be, do not descend from us: what they have used is lost when they
    end, and cannot be told from what others did."""


def mark() -> None:
    """Have all that is started from now on carry a mark by which it is known as ours."""
    os.environ[_MARK] = f"{os.getpid()}.{time.time_ns()}"


def with_service() -> str:
    """The value of SERVICES for what is to measure a service that this process has started."""
    me = os.getpid()
    own = process(me)
    known = [f"{me}.{own.began}"] if own is not None else []
    return ",".join([*filter(None, os.environ.get(SERVICES, "").split(",")), *known])


def processes() -> dict[int, Process]:
    """All that there are now, by id."""
    found = {pid: process(pid) for pid in ids()}
    return {pid: one for pid, one in found.items() if one is not None}


def ids() -> list[int]:
    """Those of all processes that there are now."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def process(pid: int) -> Process | None:
    """One line of the table; None if the process has ended."""
    text = _read(pid, "stat").decode("utf-8", errors="replace")
    if not text:
        return None
    # The program's name stands in parentheses and can hold anything.
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    return Process(
        name=head.partition("(")[2],
        parent=int(fields[1]),
        began=int(fields[19]),
        used=(int(fields[11]) + int(fields[12])) / _TICKS,
        waited_for=(int(fields[13]) + int(fields[14])) / _TICKS,
    )


def processor_time(pid: int) -> float | None:
    """Seconds that the threads of a process have used, ended ones too, to the nanosecond; None if
    the process has ended."""
    try:
        # Linux' number of the clock of another process, as clock_getcpuclockid(3) makes it: no
        # file has to be opened and read.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def whose(table: Mapping[int, Process], root: int) -> Whose:
    """Ours are `root` and its descendants; services that we measure; what carries our mark, with
    its descendants; and what has been started since to look after those, such as a batch system's
    shepherd of a job."""
    family = descendants(table, {root, *_services(table)})
    since = table[root].began if root in table else 0
    kernel = descendants(table, {p for p, one in table.items() if one.name == _KERNEL})
    young = {
        pid for pid, one in table.items()
        if one.began >= since and pid not in family and pid not in kernel
    }  # fmt: skip
    carrying = os.environ.get(_MARK, "")
    marked = {pid for pid in young if carrying and _carries(pid, carrying)}
    served = descendants(table, marked) | _keepers(table, marked, young)
    agents = {pid for pid in young - served if _is_agent(pid, table[pid].name)}
    unclear = (descendants(table, agents) | _keepers(table, agents, young)) - served - family
    ours = family | served
    return Whose(
        ours=frozenset(ours),
        unclear=frozenset(unclear),
        others=frozenset(table.keys() - ours - unclear - kernel),
        apart=bool(served - family or unclear),
    )


def descendants(table: Mapping[int, Process], roots: Iterable[int]) -> set[int]:
    """The roots, as far as they are there, and all below them."""
    inside = dict.fromkeys(roots, True)
    inside.setdefault(0, False)
    for one in table:
        path, pid = [], one
        while pid not in inside:
            path.append(pid)
            inside[pid] = False  # should ids be used again amid all this
            pid = table[pid].parent if pid in table else 0
        inside.update(dict.fromkeys(path, inside[pid]))
    return {pid for pid in table if inside[pid]}


def seconds_of(table: Mapping[int, Process], family: Iterable[int]) -> float:
    """Processor time of processes, with that of those they waited for."""
    # Ticks are rounded down, for each process: many that have done little would count as nothing.
    return sum(max(table[p].used, processor_time(p) or 0.0) + table[p].waited_for for p in family)


def _services(table: Mapping[int, Process]) -> set[int]:
    """Those that the variable names, if they still run: ids come again."""
    named = (one.partition(".") for one in os.environ.get(SERVICES, "").split(",") if one)
    return {
        int(pid) for pid, _, began in named
        if pid.isdigit() and int(pid) in table and str(table[int(pid)].began) == began
    }  # fmt: skip


def _keepers(table: Mapping[int, Process], kept: Iterable[int], young: set[int]) -> set[int]:
    """Ancestors that are no older than we are."""
    found = set()
    for pid in kept:
        parent = table[pid].parent
        while parent in young and parent not in found:
            found.add(parent)
            parent = table[parent].parent
    return found


def _carries(pid: int, value: str) -> bool:
    entry = f"{_MARK}={value}".encode()
    return entry in _read(pid, "environ").split(b"\0")


def _is_agent(pid: int, name: str) -> bool:
    return name == "gridrpc" and _read(pid, "cmdline").split(b"\0")[1:2] == [b"agent"]


def _read(pid: int, what: str) -> bytes:
    """A file of /proc; nothing if the process has ended, or is none of ours to look into."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{what}").read_bytes()
    return b""
