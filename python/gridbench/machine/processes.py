"""All processes of the machine, their processor time, and which of them are ours."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_MARK = "GRIDBENCH_MEASURES"
"""Environment variable that marks processes which a batch system starts for us: it passes on the
environment of the submitter."""
SERVICES = "GRIDBENCH_SERVICES"
"""Environment variable with the processes of measured services, such as a metadata server: their
usage is part of the measurement."""
_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL = "kthreadd"  # ancestor of all kernel threads


@dataclass(frozen=True, slots=True)
class Process:
    """A process. Times are in seconds of processor time."""

    name: str
    parent: int
    began: int
    """Ticks since boot."""
    used: float
    waited_for: float
    """Time of ended children that it has waited for."""


@dataclass(frozen=True, slots=True)
class Whose:
    """Processes by owner: ours, unclear, or others'."""

    ours: frozenset[int]
    unclear: frozenset[int]
    """New agents of grids and their processes: sshd passes no mark on, so these may be our workers
    or those of another user."""
    others: frozenset[int]
    """All others, without kernel threads."""
    apart: bool
    """Some processes that are or may be ours do not descend from us: when they end, their usage
    looks like that of others."""


def mark() -> None:
    """Mark all processes started from now on as ours."""
    os.environ[_MARK] = f"{os.getpid()}.{time.time_ns()}"


def with_service() -> str:
    """The value of SERVICES for a program that measures a service of this process."""
    me = os.getpid()
    own = process(me)
    known = [f"{me}.{own.began}"] if own is not None else []
    return ",".join([*filter(None, os.environ.get(SERVICES, "").split(",")), *known])


def processes() -> dict[int, Process]:
    """All processes by id."""
    found = {pid: process(pid) for pid in ids()}
    return {pid: one for pid, one in found.items() if one is not None}


def ids() -> list[int]:
    """The ids of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def process(pid: int) -> Process | None:
    """Read a process; None if it has ended."""
    text = _read(pid, "stat").decode("utf-8", errors="replace")
    if not text:
        return None
    # The name is in parentheses and can contain anything.
    head, _, rest = text.rpartition(")")
    fields = rest.split(maxsplit=20)
    return Process(
        name=head.partition("(")[2],
        parent=int(fields[1]),
        began=int(fields[19]),
        used=(int(fields[11]) + int(fields[12])) / _TICKS,
        waited_for=(int(fields[13]) + int(fields[14])) / _TICKS,
    )


def processor_time(pid: int) -> float | None:
    """Processor seconds of all threads of a process, ended ones included; None if it has ended."""
    try:
        # The clock of another process, as from clock_getcpuclockid(3): faster than reading a file.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def whose(table: Mapping[int, Process], root: int) -> Whose:
    """Divide processes by owner. Ours are `root`, measured services, and marked processes, all with
    their descendants, and newer ancestors of marked ones, such as a batch system's shepherd."""
    family = descendants(table, {root, *_services(table)})
    since = table[root].began if root in table else 0
    kernel = descendants(table, {p for p, one in table.items() if one.name == _KERNEL})
    young = {
        pid for pid, one in table.items()
        if one.began >= since and pid not in family and pid not in kernel
    }  # fmt: skip
    carrying = os.environ.get(_MARK, "")
    marked = {pid for pid in young if carrying and _carries(pid, carrying)}
    served = descendants(table, marked) | _young_ancestors(table, marked, young)
    agents = {pid for pid in young - served if _is_agent(pid, table[pid].name)}
    unclear = (
        (descendants(table, agents) | _young_ancestors(table, agents, young)) - served - family
    )
    ours = family | served
    return Whose(
        ours=frozenset(ours),
        unclear=frozenset(unclear),
        others=frozenset(table.keys() - ours - unclear - kernel),
        apart=bool(served - family or unclear),
    )


def descendants(table: Mapping[int, Process], roots: Iterable[int]) -> set[int]:
    """The existing roots and all their descendants."""
    inside = dict.fromkeys(roots, True)
    inside.setdefault(0, False)
    for one in table:
        path, pid = [], one
        while pid not in inside:
            path.append(pid)
            inside[pid] = False  # in case ids are reused meanwhile
            pid = table[pid].parent if pid in table else 0
        inside.update(dict.fromkeys(path, inside[pid]))
    return {pid for pid in table if inside[pid]}


def seconds_of(table: Mapping[int, Process], family: Iterable[int]) -> float:
    """Processor time of processes and of children that they waited for."""
    # Ticks are rounded down per process: many small processes would count as nothing.
    return sum(max(table[p].used, processor_time(p) or 0.0) + table[p].waited_for for p in family)


def _services(table: Mapping[int, Process]) -> set[int]:
    """Running processes in the variable; ids can be reused."""
    named = (one.partition(".") for one in os.environ.get(SERVICES, "").split(",") if one)
    return {
        int(pid) for pid, _, began in named
        if pid.isdigit() and int(pid) in table and str(table[int(pid)].began) == began
    }  # fmt: skip


def _young_ancestors(
    table: Mapping[int, Process], stored: Iterable[int], young: set[int]
) -> set[int]:
    """Ancestors that are no older than this process."""
    found = set()
    for pid in stored:
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
    """A file of /proc; empty if the process has ended or is not accessible."""
    # Each sample reads hundreds of them: file objects take several times as long as this.
    try:
        file = os.open(f"/proc/{pid}/{what}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    content = b""
    try:
        while more := os.read(file, 1 << 16):
            content += more
    except OSError:
        return b""
    finally:
        os.close(file)
    return content
