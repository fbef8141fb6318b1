"""Running the cases that are missing, cluster by cluster."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rich.console import Console

from gridbench.datagrid.case import Setting, measure
from gridbench.datagrid.clients import connected
from gridbench.datagrid.cluster import Cluster, running_cluster
from gridbench.datagrid.cluster import Wanted as WantedCluster
from gridbench.datagrid.engines.engine import Engine
from gridbench.datagrid.figures import throughput, verdict
from gridbench.datagrid.keeper import Keeper
from gridbench.datagrid.memory import need_of
from gridbench.datagrid.plan import Wanted, with_rate
from gridbench.datagrid.processes import ProcessError, Processes
from gridbench.datagrid.record import Case, Latencies
from gridbench.datagrid.request import Request
from gridbench.datagrid.timeline_file import write_timeline
from gridbench.errors import InputError
from gridbench.formats import counted, digits
from gridbench.hosts.place import open_place
from gridbench.machine.watch import Watch
from gridbench.process.interrupt import Stopped
from gridbench.progress import Steps
from gridbench.record_file import RecordFile

TIMELINES = "timelines"
"""The folder of timelines, within that of results."""
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
    request: Request, check: Callable[[], None], console: Console
) -> Iterator[Session]:
    """The hosts, as long as it is open. InputError if they do not come. `check` is called ten times
    a second, and raises Stopped when the user wants an end."""
    engines = {engine.name: engine for engine in request.engines}
    with open_place(request.where, 1, console, Keeper) as place:
        try:
            processes = Processes(place, check)
        except ProcessError as error:
            raise InputError(str(error), remedy="see to the host, and run it again") from error
        yield Session(request, engines, processes, console)


class Session:
    """One call of the program."""

    def __init__(
        self,
        request: Request,
        engines: Mapping[str, Engine],
        processes: Processes,
        console: Console,
    ) -> None:
        self._request = request
        self._engines = engines
        self._processes = processes
        self._console = console
        self._hosts = Hosts.of(processes.hosts)

    def run(self, wanted: Sequence[Wanted], file: RecordFile[Case]) -> None:
        """Run these cases, until all are done or the user wants an end, and keep what comes of
        each. InputError if the cluster of an engine does not start, after those of the others."""
        failed: dict[str, InputError] = {}
        with Steps(self._console, "case", len(wanted), transient=False) as steps:
            for (engine, _), group in groupby(wanted, key=lambda one: one.cluster):
                todo = list(group)
                if engine in failed:
                    continue
                try:
                    self._group(todo, file, steps)
                except Stopped:
                    return
                except InputError as error:
                    failed[engine] = error
                    steps.say(str(error))
        if failed:
            raise next(iter(failed.values()))

    def _group(self, todo: list[Wanted], file: RecordFile[Case], steps: Steps) -> None:
        """Cases that can share a cluster; it is started again when a case has damaged it."""
        while todo:
            steps.note(f"starting {todo[0].engine}")
            with self.cluster(todo[0]) as cluster:
                whole = True
                while todo and whole:
                    whole = self._one(todo.pop(0), cluster, file, steps)

    def _one(self, wanted: Wanted, cluster: Cluster, file: RecordFile[Case], steps: Steps) -> bool:
        """Run a case; whether the cluster can have another one."""
        known = with_rate(wanted, file.records)
        if known is None:
            steps.say(f"{wanted.told()}: left out, as its closed loop was not measured")
            steps.skip()
            return True
        steps.begin(known.told())
        began = time.monotonic()
        case = self.measure(known, cluster, steps)
        file.add(case)
        name = f"{len(file.records):03}-{case.engine}.parquet"
        write_timeline(case, file.path.parent / TIMELINES / name)
        steps.end(time.monotonic() - began)
        steps.say(f"{known.told()}: {told(case)}")
        return case.status == "done" and cluster.whole

    @contextlib.contextmanager
    def cluster(self, wanted: Wanted) -> Iterator[Cluster]:
        """The cluster that a case needs, while it is active. InputError if it does not start."""
        engine = self._engines[wanted.engine]
        asked = WantedCluster(
            engine=engine,
            count=wanted.members,
            hosts=self._hosts.members,
            backups=self._request.backups,
            memory=self._request.memory_of(wanted.members),
            patience=self._request.where.patience,
        )
        with running_cluster(self._processes, asked) as cluster:
            yield cluster

    def bare(self, wanted: Wanted, cluster: Cluster, operations: int) -> Latencies:
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

    def _client_memory(self, wanted: Wanted) -> int:
        described = self._engines[wanted.engine].described
        return need_of(wanted, described, self._request.backups).client

    def measure(
        self, wanted: Wanted, cluster: Cluster, steps: Steps | None = None, *, loads: int = 1
    ) -> Case:
        """Run one case on a cluster; a record of it also if it fails. Stopped if the user wants an
        end. `loads`: how often its objects are stored; the last time counts."""
        setting = Setting(
            processes=self._processes,
            client_hosts=self._hosts.clients,
            client_memory=self._client_memory(wanted),
            warm_up=self._request.warm_up,
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


def told(case: Case) -> str:
    """What came of a case, in a line."""
    if case.status == "failed":
        return f"failed: {case.why.splitlines()[0]}"
    rate = f"{digits(throughput(case))} operations/s"
    kind, reasons = verdict(case)
    return rate if kind == "valid" else f"{rate}; {kind}: {'; '.join(reasons)}"


def _nothing(*_: object) -> None:
    return
