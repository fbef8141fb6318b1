"""Hosts that a user names: the host file, and where workers go.

    # A line may be as in the files of any of these:
    node1 8               name and cores
    node2 slots=8         OpenMPI
    node3:8               MPICH, Slurm
    8/user@node4          GNU parallel
    node5                 one core for each such line (PBS)

Lines of the same host add up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Literal

from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.read_config import read_text
from gridbench.workload.numbers import MOST_CORES, parse_whole, shown

Placement = Literal["spread", "fill"]
"""`spread`: one worker on each host, then a second one on each, and so on; `fill`: all cores of a
host before those of the next one."""

_REMEDY = "write a host and its cores on each line, such as `node1 8`"
_FORMS = "write `node1 8`, `node1 slots=8`, `node1:8` or `8/node1`"
# No name begins with a hyphen: programs would take it for an option.
_NAME = re.compile(r"(?:[\w.][\w.+-]*@)?(?:[\w.][\w.-]*|\[[0-9A-Fa-f:.]+(?:%\w+)?\])\Z", re.ASCII)
_LONGEST = 253 + 1 + 64  # of a name, with that of a user
_CORES = ("slots", "cpu", "cpus", "np")
_LIMITS = ("max_slots", "max-slots")
"""What OpenMPI reads as well: with how many more workers than slots it stops."""


@dataclass(frozen=True, slots=True)
class HostSlots:
    """A line of the file, or several of the same host."""

    name: str
    """Perhaps with a user before it: `user@node1`."""
    cores: int


def read_hosts(path: Path) -> tuple[HostSlots, ...]:
    """The hosts of a file, in its order. InputError names file, line and remedy."""
    lines = read_text(path, "host file", _REMEDY).splitlines()
    cores: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            name, count = _host(words)
            cores[name] = cores.get(name, 0) + count
            if cores[name] > MOST_CORES:
                raise ValueError(f"{shown(name)} has more than {MOST_CORES:,} cores in all")
        except ValueError as error:
            raise InputError(str(error), file=path, line=number, remedy=_FORMS) from None
    if not cores:
        raise InputError("names no host", file=path, remedy=_REMEDY)
    return tuple(HostSlots(name, count) for name, count in cores.items())


def place(
    hosts: Sequence[HostSlots],
    workers: int,
    placement: Placement = "spread",
    *,
    oversubscribe: bool = False,
) -> list[tuple[str, int]]:
    """For each worker the name of its host, and which of the workers there it is, from 0.

    InputError if there are more workers than cores, unless that is wanted: then they go over all
    cores again and again.
    """
    cores = sum(host.cores for host in hosts)
    if workers > cores and not oversubscribe:
        have = "has" if len(hosts) == 1 else "have"
        raise InputError(
            f"{counted(workers, 'worker')} cannot have a core each: the"
            f" {counted(len(hosts), 'host')} {have} {counted(cores, 'core')}",
            remedy=f"ask for {cores} workers at most, name more hosts or cores, or add"
            " --oversubscribe",
        )
    slots = _spread(hosts) if placement == "spread" else _filled(hosts)
    ranks: Counter[str] = Counter()
    found = []
    for host in islice(cycle(slots), workers):
        found.append((host.name, ranks[host.name]))
        ranks[host.name] += 1
    return found


def _spread(hosts: Sequence[HostSlots]) -> Iterator[HostSlots]:
    most = max(host.cores for host in hosts)
    return (host for level in range(most) for host in hosts if level < host.cores)


def _filled(hosts: Sequence[HostSlots]) -> Iterable[HostSlots]:
    return chain.from_iterable([host] * host.cores for host in hosts)


def _host(words: list[str]) -> tuple[str, int]:
    """Name and cores. ValueError says what is wrong."""
    name, count = _parts(words[0])
    if len(words) > 1 and count is not None:
        raise ValueError(f"`{shown(words[1])}` follows a host that has its cores already")
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if equals and key in _LIMITS:
            _cores(value)
        elif count is not None:
            raise ValueError(f"`{shown(word)}` is not known: a host and its cores were named")
        elif equals and key not in _CORES:
            raise ValueError(f"`{shown(key)}` is not known")
        else:
            count = _cores(value if equals else word)
    if not _NAME.match(name) or len(name) > _LONGEST:
        raise ValueError(f"`{shown(name)}` is not the name of a host")
    return name, 1 if count is None else count


def _parts(word: str) -> tuple[str, int | None]:
    """The name in the first word, and the cores if they are in it as well."""
    before, slash, after = word.partition("/")
    if slash:
        return after, _cores(before)
    name, colon, after = word.rpartition(":")
    if not colon or word.endswith("]"):
        return word, None
    if ":" in name and not name.endswith("]"):
        raise ValueError(f"`{shown(word)}` could be an address or an address and its cores")
    return name, _cores(after)


def _cores(text: str) -> int:
    try:
        return parse_whole(text, 1, MOST_CORES)
    except ValueError as error:
        raise ValueError(f"the number of cores {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChoice:
    """Which hosts; by default this machine."""

    hosts: tuple[HostSlots, ...] = ()
    """Of a host file; they are reached by ssh."""
    grid: Path | None = None
    """A grid.toml, whose servers are used."""
    names: tuple[str, ...] = ()
    """Which of them; or URLs."""
    emulated: str | None = None
    """The kind of cluster that gridbench starts on this machine; None: none."""
    nodes: int = 4
    """Of that."""
    patience: float = 180.0
    """Seconds until all hosts have to be there."""

    def record(self) -> dict[str, object]:
        """For the header of results."""
        return {
            "hosts": {host.name: host.cores for host in self.hosts},
            "grid": None if self.grid is None else str(self.grid.resolve()),
            "servers": list(self.names),
            "emulated": self.emulated,
            "nodes": self.nodes if self.emulated else None,
        }
