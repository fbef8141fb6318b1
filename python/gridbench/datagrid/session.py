"""Sessions on hosts: clusters, and single cases on them.

A case connects clients, stores objects, warms up, measures, and checks the data.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

from rich.console import Console

from gridbench.datagrid.cluster import (
    TO_ANSWER,
    ClientProcesses,
    ClusterPlan,
    DataGridCluster,
    RunningMember,
    answer_timeout,
    connected,
    first_tasks_timeout,
    running_cluster,
)
from gridbench.datagrid.figures import merged
from gridbench.datagrid.plan import DataGridOrder, DataGridWork, WarmUpLimits, need_of
from gridbench.datagrid.processes import HostController, ProcessError, Processes
from gridbench.datagrid.record import (
    WINDOW,
    Checked,
    DataGridCase,
    Latencies,
    Loading,
    MemberUse,
    OperationCounts,
    TaskTimeline,
    WarmUp,
    Windows,
)
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.hosts.host_group import open_hosts
from gridbench.machine.judgement import Watch
from gridbench.progress import Steps

_CLIENTS = 4
"""Of so many hosts, one has clients; the others have members."""
_TO_HEAL = 60.0
"""Seconds that a cluster has after the run to count all its objects, when members were killed."""
_LOOK = 0.25
"""Seconds between two counts meanwhile."""
_MEASURED, _CHECKED = 0.3, 0.8
"""At which share of a case, roughly, the measurement begins, and the reading of all objects."""


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

    def describe(self, *, away: bool) -> str:
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
    with open_hosts(work.where, 1, console, HostController) as place:
        try:
            processes = Processes(place, check)
        except ProcessError as error:
            raise InputError(str(error), remedy="see to the host, and run it again") from error
        yield DataGridSession(work, processes)


class DataGridSession:
    """The hosts, while they are open."""

    def __init__(self, work: DataGridWork, processes: Processes) -> None:
        self.work = work
        self.processes = processes
        self.hosts = Hosts.of(processes.hosts)
        self._engines = {engine.name: engine for engine in work.engines}

    @contextlib.contextmanager
    def cluster(self, wanted: DataGridOrder) -> Iterator[DataGridCluster]:
        """The cluster that a case needs, while it is active. InputError if it does not start."""
        engine = self._engines[wanted.engine]
        requested = ClusterPlan(
            engine=engine,
            count=wanted.members,
            hosts=self.hosts.members,
            backups=self.work.parameters.backups,
            memory=self.work.memory_of(wanted.members),
            patience=self.work.where.patience,
        )
        with running_cluster(self.processes, requested) as cluster:
            yield cluster

    def bare(self, wanted: DataGridOrder, cluster: DataGridCluster, operations: int) -> Latencies:
        """What the plainest loop of reads sees, in one thread, of objects that a case of the same
        parameters has left in the cluster. ProcessError if that cannot be."""
        own = wanted.workload.parameters
        with connected(
            self.processes,
            cluster,
            self.hosts.clients,
            clients=1,
            count=1,
            memory=self.client_memory(wanted),
        ) as clients:
            found = clients.bare(operations, own.object_bytes, own.nobjects)
        return Latencies(
            operation="read",
            counted="service",
            values=tuple(found["values"]),
            counts=tuple(found["counts"]),
        )

    def client_memory(self, wanted: DataGridOrder) -> int:
        """Bytes of heap of each client process."""
        manifest = self._engines[wanted.engine].manifest
        return need_of(wanted, manifest, self.work.parameters.backups).client

    def measure(
        self,
        wanted: DataGridOrder,
        cluster: DataGridCluster,
        steps: Steps | None = None,
        *,
        loads: int = 1,
    ) -> DataGridCase:
        """Run one case on a cluster; a record of it also if it fails. Stopped if the user wants an
        end. `loads`: how often its objects are stored; the last time counts."""
        watch = Watch(os.getpid())
        watch.begin()
        running = _RunningCase(self, wanted, cluster, steps, loads)
        at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        try:
            running.run()
        except ProcessError as error:
            running.found |= {"status": "failed", "why": str(error)}
        except TimeoutError as error:
            running.found |= {"status": "failed", "why": f"{error} did not answer in time"}
        watch.end()
        watch.look_after()
        return DataGridCase(
            **wanted.planned_fields,
            title=cluster.engine.manifest.title,
            stated=cluster.engine.manifest.stated,
            scaled=dict(wanted.workload.scaled),
            backups=cluster.backups,
            placed=self.hosts.describe(away=self.processes.away),
            at=at,
            cluster_in=cluster.seconds,
            load=watch.record(),
            **running.found,
        )


class _RunningCase:
    """A case while it runs, with the results so far."""

    def __init__(
        self,
        session: DataGridSession,
        wanted: DataGridOrder,
        cluster: DataGridCluster,
        steps: Steps | None,
        loads: int,
    ) -> None:
        self.found: dict[str, Any] = {
            "version": cluster.engine.manifest.version,
            "processes": wanted.processes,
            "status": "done",
        }
        self._session = session
        self._wanted = wanted
        self._cluster = cluster
        self._steps = steps
        self._loads = loads
        self._parameters = wanted.workload.parameters

    def run(self) -> None:
        """Do all of it. ProcessError if a process fails, TimeoutError if one hangs."""
        parameters = self._parameters
        with connected(
            self._session.processes,
            self._cluster,
            self._session.hosts.clients,
            clients=parameters.nnodes,
            count=self._wanted.processes,
            memory=self._session.client_memory(self._wanted),
        ) as clients:
            self.found |= {
                "version": clients.version,
                "processes": len(clients.processes),
                "clients_in": clients.seconds,
            }
            clients.clear()
            # They collect garbage for that: what an earlier case has left in a cluster that serves
            # several is not to count as this one's memory.
            self._cluster.states()
            self._load(clients)
            self._warm_up(clients)
            self._run(clients)
            self._check(clients)

    def _load(self, clients: ClientProcesses) -> None:
        count, size = self._parameters.stored, self._parameters.object_bytes
        counted = self._counted("loading object", count, 0.0)
        for _ in range(self._loads - 1):
            clients.load(0, count, size, counted)
            clients.clear()
        seconds = clients.load(0, count, size, counted)
        self.found["loading"] = Loading(
            objects=count,
            bytes=count * size,
            seconds=seconds,
            client_memory=clients.most_memory(),
        )
        states = self._cluster.states()
        self.found["members"] = tuple(
            self._use(index, member, states[member.name])
            for index, member in enumerate(self._cluster.members)
        )

    def _use(self, index: int, member: RunningMember, state: Mapping[str, Any]) -> MemberUse:
        return MemberUse(
            index=index,
            host=member.host,
            joined_in=member.joined_in,
            memory=self._cluster.resident(member),
            used=state["used"],
            entries=state["entries"],
            backups=state["backups"],
        )

    def _warm_up(self, clients: ClientProcesses) -> None:
        warm_up = self._session.work.warm_up
        warm = asdict(warm_up or WarmUpLimits(least=0.0, most=0.0))
        seconds = warm["most"] + TO_ANSWER
        if warm_up is not None:
            seconds += first_tasks_timeout(self._parameters)
        reported = clients.warm(self._plan() | {"warm": warm}, seconds).values()
        self.found["cold"] = tuple(seconds for one in reported for seconds in one["cold"])
        if warm_up is not None:
            self.found["warm_up"] = WarmUp(
                seconds=max(one["seconds"] for one in reported),
                steady=all(one["steady"] for one in reported),
                operations=sum(one["operations"] for one in reported),
            )

    def _plan(self) -> dict[str, Any]:
        wanted, parameters = self._wanted, self._parameters
        return {
            "parameters": parameters.to_dict() | {"size": parameters.object_bytes},
            "loop": wanted.loop,
            "rate": wanted.rate,
            "updates": wanted.updates,
            "mix": wanted.mix,
            "window": WINDOW,
        }

    def _run(self, clients: ClientProcesses) -> None:
        wanted, tasks = self._wanted, self._parameters.ntasks
        killed: list[float] = []
        counted = self._counted("task", tasks, _MEASURED)

        def report(done: int, operations: int) -> None:
            del operations
            counted(done)
            if wanted.kill and not killed and done >= tasks / 2:
                killed.append(self._cluster.kill(wanted.kill))

        to_answer = answer_timeout(self._parameters, wanted.rate)
        at, reported = clients.run(to_answer, report)
        for when in killed:
            self._note_killed(when - at)
        ran = list(reported.values())
        self.found |= _results_of(ran)
        self._in_doubt = sum(one["in_doubt"] for one in ran)
        self._doubtful = [key for one in ran for key in one["doubtful"]]

    def _note_killed(self, when: float) -> None:
        self.found["members"] = tuple(
            replace(one, killed_at=when) if one.index in self._wanted.kill else one
            for one in self.found["members"]
        )

    def _check(self, clients: ClientProcesses) -> None:
        parameters, counts = self._parameters, self.found["counts"]
        stored = parameters.stored
        # Where the keys of a mix's insertions are is its clients' own affair.
        last = stored + (parameters.inserted if self._wanted.mix is None else 0)
        expected = stored + counts.inserts
        size = parameters.object_bytes
        doubtful = clients.check([(key, key + 1) for key in self._doubtful], size, _nothing)
        found = self._count(clients, expected + doubtful.read)
        report = self._counted("checking object", last, _CHECKED)
        checking = clients.check([(0, last)], size, report)
        # Keys of a mix's insertions are not read back with the others.
        absent = doubtful.missing if self._wanted.mix is None else 0
        self.found["checked"] = Checked(
            expected=expected,
            found=found,
            read=checking.read,
            missing=checking.missing - absent,
            wrong=checking.wrong,
            updates=checking.updates,
            updates_expected=counts.updates,
            in_doubt=self._in_doubt,
            doubtful=doubtful.read,
            may_collide=self._wanted.updates == "plain" and self._wanted.workload.may_collide,
        )
        states = self._cluster.states()
        self.found["members"] = tuple(
            replace(use, entries_after=states[member.name]["entries"])
            if member.name in states
            else use
            for use, member in zip(self.found["members"], self._cluster.members, strict=True)
        )

    def _counted(self, what: str, of: int, begins: float) -> Callable[[int], None]:
        """Callback for the number done: of a part of the case that begins at this share."""
        ends = next(end for end in (_MEASURED, _CHECKED, 1.0) if end > begins)

        def describe(done: int) -> None:
            share = begins + (ends - begins) * done / max(of, 1)
            if self._steps is not None:
                self._steps.count(what, done, of, share)

        return describe

    def _count(self, clients: ClientProcesses, expected: int) -> int:
        """The objects of the cluster, which may need time after the loss of members."""
        until = time.monotonic() + (_TO_HEAL if self._wanted.kill else 0.0)
        while True:
            late = time.monotonic() >= until
            try:
                found = clients.size()
                if found == expected or late:
                    return found
            except ProcessError as error:
                # Members may still ask one that has been killed.
                if late or not error.goes_on:
                    raise
            time.sleep(_LOOK)


def _results_of(ran: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The results of all client processes together, as fields of the record."""
    latencies = merged(
        Latencies(
            operation=each["operation"],
            counted=each["from"],
            values=tuple(each["values"]),
            counts=tuple(each["counts"]),
        )
        for one in ran
        for each in one["latencies"]
    )
    windows = {
        what: tuple(map(sum, zip_longest(*(one["windows"][what] for one in ran), fillvalue=0)))
        for what in ("operations", "errors")
    }
    return {
        "seconds": max(one["ended"] for one in ran) / 1e9,
        "tasks": _timeline(ran),
        "latencies": tuple(latencies),
        "windows": Windows(length=WINDOW, **windows),
        "counts": OperationCounts(**_summed(one["counts"] for one in ran)),
        "errors": _summed(one["errors"] for one in ran),
        **{what: sum(one[what] for one in ran) for what in ("wrong", "missing", "conflicts")},
        "client_cpu": sum(one["process"]["cpu"] for one in ran),
        "client_gc": sum(one["process"]["gc"] for one in ran),
    }


def _timeline(ran: Sequence[Mapping[str, Any]]) -> TaskTimeline:
    """Those of all client processes, in the order in which they began."""
    names = ("began", "id", "client", "ended", "operations", "why")
    rows = sorted(row for one in ran for row in zip(*(one["tasks"][n] for n in names), strict=True))
    began, ids, clients, ended, operations, why = zip(*rows, strict=True) if rows else ((),) * 6
    return TaskTimeline(
        id=ids,
        client=clients,
        began=tuple(ns / 1e9 for ns in began),
        ended=tuple(ns / 1e9 for ns in ended),
        operations=operations,
        why=why,
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _nothing(_: int) -> None:
    return
