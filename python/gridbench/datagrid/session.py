"""Clusters on the hosts, and single cases on them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from gridbench.datagrid.case import Setting, measure
from gridbench.datagrid.clients import connected
from gridbench.datagrid.cluster import Cluster, ClusterPlan, running_cluster
from gridbench.datagrid.engines.engine import Engine
from gridbench.datagrid.host_controller import Keeper
from gridbench.datagrid.memory import need_of
from gridbench.datagrid.plan import PlannedCase
from gridbench.datagrid.processes import ProcessError, Processes
from gridbench.datagrid.record import DataGridCase, Latencies
from gridbench.datagrid.work import DataGridWork
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.hosts.place import open_place
from gridbench.machine.watch import Watch
from gridbench.progress import Steps

_CLIENTS = 4
"""Of so many hosts, one has clients; the others have members."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Which hosts have members, and which have clients."""

    members: tuple[str, ...]
    clients: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> Hosts:
        """The last quarter of several hosts, or the last one of few, has the clients."""
        if len(names) == 1:
            return cls(tuple(names), tuple(names))
        clients = max(1, len(names) // _CLIENTS)
        return cls(tuple(names[:-clients]), tuple(names[-clients:]))

    def told(self, *, away: bool) -> str:
        """In words."""
        if not away:
            return "this machine"
        if self.members == self.clients:
            return f"the host {self.members[0]}"
        members, clients = counted(len(self.members), "host"), counted(len(self.clients), "host")
        return f"members on {members}, clients on {clients}"


@contextlib.contextmanager
def open_session(
    work: DataGridWork, check: Callable[[], None], console: Console
) -> Iterator[DataGridSession]:
    """The hosts, as long as it is open. InputError if they do not come. `check` is called ten times
    a second, and raises Stopped when the user wants an end."""
    engines = {engine.name: engine for engine in work.engines}
    with open_place(work.where, 1, console, Keeper) as place:
        try:
            processes = Processes(place, check)
        except ProcessError as error:
            raise InputError(str(error), remedy="see to the host, and run it again") from error
        yield DataGridSession(work, engines, processes, console)


class DataGridSession:
    """The hosts, while they are open."""

    def __init__(
        self,
        work: DataGridWork,
        engines: Mapping[str, Engine],
        processes: Processes,
        console: Console,
    ) -> None:
        self._work = work
        self._engines = engines
        self._processes = processes
        self._console = console
        self._hosts = Hosts.of(processes.hosts)

    @contextlib.contextmanager
    def cluster(self, wanted: PlannedCase) -> Iterator[Cluster]:
        """The cluster that a case needs, while it is active. InputError if it does not start."""
        engine = self._engines[wanted.engine]
        asked = ClusterPlan(
            engine=engine,
            count=wanted.members,
            hosts=self._hosts.members,
            backups=self._work.parameters.backups,
            memory=self._work.memory_of(wanted.members),
            patience=self._work.where.patience,
        )
        with running_cluster(self._processes, asked) as cluster:
            yield cluster

    def bare(self, wanted: PlannedCase, cluster: Cluster, operations: int) -> Latencies:
        """What the plainest loop of reads sees, in one thread, of objects that a case of the same
        parameters has left in the cluster. ProcessError if that cannot be."""
        own = wanted.workload.parameters
        with connected(
            self._processes,
            cluster,
            self._hosts.clients,
            clients=1,
            count=1,
            memory=self._client_memory(wanted),
        ) as clients:
            found = clients.bare(operations, own.object_bytes, own.nobjects)
        return Latencies(
            operation="read",
            counted="service",
            values=tuple(found["values"]),
            counts=tuple(found["counts"]),
        )

    def _client_memory(self, wanted: PlannedCase) -> int:
        described = self._engines[wanted.engine].described
        return need_of(wanted, described, self._work.parameters.backups).client

    def measure(
        self, wanted: PlannedCase, cluster: Cluster, steps: Steps | None = None, *, loads: int = 1
    ) -> DataGridCase:
        """Run one case on a cluster; a record of it also if it fails. Stopped if the user wants an
        end. `loads`: how often its objects are stored; the last time counts."""
        setting = Setting(
            processes=self._processes,
            client_hosts=self._hosts.clients,
            client_memory=self._client_memory(wanted),
            warm_up=self._work.warm_up,
            loads=loads,
            placed=self._hosts.told(away=self._processes.away),
            count=_nothing if steps is None else steps.count,
        )
        watch = Watch(os.getpid())
        watch.begin()
        case = measure(wanted, cluster, setting)
        watch.end()
        watch.look_after()
        return replace(case, load=watch.record())


def _nothing(*_: object) -> None:
    return
