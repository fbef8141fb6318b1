"""The members of a data grid, from the start of the first to the end of all."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gridbench.datagrid.engine import DataGridEngine
from gridbench.datagrid.processes import ProcessError, Processes, ProcessStart
from gridbench.errors import InputError
from gridbench.formats import as_given, counted

_TRIES = 3
"""Starts, when a port that was free is taken meanwhile."""
_TO_TELL = 60.0
"""Seconds that a member has to say how it is: it may collect garbage for that."""


@dataclass(slots=True)
class RunningMember:
    """A member."""

    name: str
    host: str
    joined_in: float = 0.0
    """Seconds from its start until it worked with all others."""
    killed_at: float | None = None
    """Of the monotonic clock."""


@dataclass(slots=True)
class DataGridCluster:
    """All members, or none for an engine that needs none."""

    engine: DataGridEngine
    backups: int
    members: list[RunningMember]
    settings: dict[str, Any]
    """For members and clients, but for the folder of their host."""
    seconds: float = 0.0
    """From the start of the first member until all worked together."""
    _processes: Processes = field(repr=False, kw_only=True)

    def settings_on(self, folder: str) -> dict[str, Any]:
        """As a process gets them, on a host that has this folder for its files."""
        return {**self.settings, "folder": folder}

    @property
    def whole(self) -> bool:
        """Whether no member has been killed."""
        return all(member.killed_at is None for member in self.members)

    @property
    def alive(self) -> list[RunningMember]:
        """Those that have not been killed."""
        return [member for member in self.members if member.killed_at is None]

    def states(self) -> dict[str, dict[str, Any]]:
        """What each member says of itself."""
        names = [member.name for member in self.alive]
        for name in names:
            self._processes.send(name, {"do": "state"})
        return self._processes.answers(names, "state", time.monotonic() + _TO_TELL)

    def resident(self, member: RunningMember) -> int:
        """Bytes of memory of the processes that hold its data."""
        return self._processes.memory(member.name, self.engine.manifest.storage).resident

    def kill(self, indices: tuple[int, ...]) -> float:
        """Kill members at once, without a word; when, by the monotonic clock of this machine."""
        at = time.monotonic()
        for index in indices:
            self._processes.kill(self.members[index].name)
            self.members[index].killed_at = at
        return at

    def end(self) -> None:
        """End all members."""
        self._processes.end(member.name for member in self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """A cluster that is asked for."""

    engine: DataGridEngine
    count: int
    """Of members; an engine that has none gets none."""
    hosts: tuple[str, ...]
    """Where they are, one after the other."""
    backups: int
    """Copies of each object, as far as there are members for them."""
    memory: int
    """Bytes of each member: of its heap, if that has the data."""
    patience: float
    """Seconds until all work together."""


@contextmanager
def running_cluster(processes: Processes, wanted: ClusterPlan) -> Iterator[DataGridCluster]:
    """The cluster while it is active. InputError if its members do not come together in time."""
    cluster = _started(processes, wanted)
    try:
        yield cluster
    finally:
        cluster.end()


def _started(processes: Processes, wanted: ClusterPlan) -> DataGridCluster:
    for left in reversed(range(_TRIES)):
        try:
            return _start(processes, _placed(processes, wanted), wanted)
        except ProcessError as error:
            if not error.port or not left:
                raise InputError(
                    f"{wanted.engine.manifest.title} does not start: {error}",
                    remedy=_remedy(error),
                ) from error
    raise AssertionError


def _placed(processes: Processes, wanted: ClusterPlan) -> DataGridCluster:
    engine, hosts = wanted.engine, wanted.hosts
    count = wanted.count if engine.manifest.members else 0
    where = [hosts[index % len(hosts)] for index in range(count)]
    each = engine.manifest.ports
    # All of a host together, as ports that are free are not yet taken.
    ports = {host: processes.free_ports(host, each * where.count(host)) for host in set(where)}
    places = []
    for host in where:
        ours, ports[host] = ports[host][:each], ports[host][each:]
        places.append({"address": processes.address(host), "ports": ours})
    backups = min(wanted.backups, max(count - 1, 0))
    name = f"gridbench-{secrets.token_hex(4)}"
    return DataGridCluster(
        engine,
        backups,
        [RunningMember(f"member {index}", host) for index, host in enumerate(where)],
        {"name": name, "backups": backups, "members": places},
        _processes=processes,
    )


def _start(processes: Processes, cluster: DataGridCluster, wanted: ClusterPlan) -> DataGridCluster:
    """Start its members, and wait until they work together; if that fails, none is left."""
    try:
        _start_members(processes, cluster, wanted)
        return cluster
    except BaseException:
        cluster.end()
        raise


def _start_members(processes: Processes, cluster: DataGridCluster, wanted: ClusterPlan) -> None:
    began = time.monotonic()
    manifest = wanted.engine.manifest
    first = 1 if manifest.alone else len(cluster.members)
    for wave in (cluster.members[:first], cluster.members[first:]):
        for member in wave:
            settings = {
                "engine": manifest.class_name,
                "cluster": cluster.settings_on(processes.facts[member.host].folder),
                "index": cluster.members.index(member),
                "memory": manifest.data_of(wanted.memory),
            }
            heap = manifest.heap_of(wanted.memory)
            processes.start(
                ProcessStart(member.name, wanted.engine.known_as, "member", heap, settings),
                member.host,
            )
        joined = _joined(processes, wave, began + wanted.patience, wanted.patience)
        for member in wave:
            member.joined_in = joined[member.name]["seconds"]
    if cluster.members:
        cluster.seconds = time.monotonic() - began


def _joined(
    processes: Processes, wave: list[RunningMember], until: float, patience: float
) -> dict[str, Any]:
    try:
        return processes.answers([member.name for member in wave], "joined", until)
    except TimeoutError as error:
        first, *others = str(error).split(", ")
        more = f", nor have {counted(len(others), 'other')}" if others else ""
        what = f"has not joined within {as_given(patience)}{more}"
        raise ProcessError(first, what, processes.log(first)) from None


def _remedy(error: ProcessError) -> str:
    if error.port:
        return "end what uses the port, or run it again: free ports are looked for anew"
    if "has been lost" in error.what:
        return "see to the host, and run it again: what was measured is kept"
    if "not joined" in error.what:
        return (
            "wait longer by --start-timeout S, or ask for fewer members, or for less memory of each"
            " by --member-memory"
        )
    if error.log:
        return "the lines behind | are what it printed last, and mostly say why"
    return "run it again; if it is so once more, have fewer members or less --member-memory"
