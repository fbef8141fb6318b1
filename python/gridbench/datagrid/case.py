"""One case: connect clients, store objects, warm up, measure, and check the data."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

from gridbench.datagrid import timeouts
from gridbench.datagrid.clients import Clients, connected
from gridbench.datagrid.cluster import Cluster, Running
from gridbench.datagrid.plan import PlannedCase
from gridbench.datagrid.processes import ProcessError, Processes
from gridbench.datagrid.record import (
    WINDOW,
    Checked,
    Counted,
    Counts,
    DataGridCase,
    Latencies,
    Loading,
    MemberUse,
    Tasks,
    WarmUp,
    Windows,
)
from gridbench.datagrid.work import WarmUpLimits

_TO_HEAL = 60.0
"""Seconds that a cluster has after the run to count all its objects, when members were killed."""
_LOOK = 0.25
"""Seconds between two counts meanwhile."""
_MEASURED, _CHECKED = 0.3, 0.8
"""At which share of a case, roughly, the measurement begins, and the reading of all objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all cases of a session have in common."""

    processes: Processes
    client_hosts: tuple[str, ...]
    client_memory: int
    """Bytes of heap of each client process."""
    warm_up: WarmUpLimits | None
    placed: str
    """In words."""
    loads: int
    """How often the objects are stored; the last time counts."""
    count: Callable[[str, int, int, float], object]
    """Told what is counted, how many are done, of how many, and which share that is of the case."""


def measure(wanted: PlannedCase, cluster: Cluster, setting: Setting) -> DataGridCase:
    """What came of it; also of what has failed."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    running = _Running(wanted, cluster, setting)
    try:
        running.run()
    except ProcessError as error:
        running.found |= {"status": "failed", "why": str(error)}
    except TimeoutError as error:
        running.found |= {"status": "failed", "why": f"{error} did not answer in time"}
    return DataGridCase(
        engine=wanted.engine,
        title=cluster.engine.described.title,
        stated=cluster.engine.described.stated,
        label=wanted.workload.label,
        scenario=wanted.workload.scenario,
        parameters=wanted.workload.parameters.to_dict(),
        scaled=dict(wanted.workload.scaled),
        repeat=wanted.repeat,
        loop=wanted.loop,
        rate=wanted.rate,
        updates=wanted.updates,
        mix=None if wanted.workload.mix is None else dict(wanted.workload.mix),
        kill=wanted.kill,
        backups=cluster.backups,
        placed=setting.placed,
        at=at,
        cluster_in=cluster.seconds,
        **running.found,
    )


class _Running:
    """A case while it runs: what is known of it so far."""

    def __init__(self, wanted: PlannedCase, cluster: Cluster, setting: Setting) -> None:
        self.found: dict[str, Any] = {
            "version": cluster.engine.described.version,
            "processes": wanted.processes,
            "status": "done",
        }
        self._wanted = wanted
        self._cluster = cluster
        self._setting = setting
        self._parameters = wanted.workload.parameters

    def run(self) -> None:
        """Do all of it. ProcessError if a process fails, TimeoutError if one hangs."""
        parameters = self._parameters
        with connected(
            self._setting.processes,
            self._cluster,
            self._setting.client_hosts,
            clients=parameters.nnodes,
            count=self._wanted.processes,
            memory=self._setting.client_memory,
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

    def _load(self, clients: Clients) -> None:
        parameters = self._parameters
        count = parameters.nobjects + parameters.shared_data_size
        size = parameters.object_bytes
        counted = self._counted("loading object", count, 0.0)
        for _ in range(self._setting.loads - 1):
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

    def _use(self, index: int, member: Running, state: Mapping[str, Any]) -> MemberUse:
        return MemberUse(
            index=index,
            host=member.host,
            joined_in=member.joined_in,
            memory=self._cluster.resident(member),
            used=state["used"],
            entries=state["entries"],
            backups=state["backups"],
        )

    def _warm_up(self, clients: Clients) -> None:
        warm_up = self._setting.warm_up
        warm = asdict(warm_up or WarmUpLimits(least=0.0, most=0.0))
        seconds = warm["most"] + timeouts.TO_ANSWER
        if warm_up is not None:
            seconds += timeouts.for_first_tasks(self._parameters)
        told = clients.warm(self._plan() | {"warm": warm}, seconds).values()
        self.found["cold"] = tuple(seconds for one in told for seconds in one["cold"])
        if warm_up is not None:
            self.found["warm_up"] = WarmUp(
                seconds=max(one["seconds"] for one in told),
                steady=all(one["steady"] for one in told),
                operations=sum(one["operations"] for one in told),
            )

    def _plan(self) -> dict[str, Any]:
        wanted, parameters = self._wanted, self._parameters
        return {
            "parameters": parameters.to_dict() | {"size": parameters.object_bytes},
            "loop": wanted.loop,
            "rate": wanted.rate,
            "updates": wanted.updates,
            "mix": wanted.workload.mix,
            "window": WINDOW,
        }

    def _run(self, clients: Clients) -> None:
        wanted, tasks = self._wanted, self._parameters.ntasks
        killed: list[float] = []
        counted = self._counted("task", tasks, _MEASURED)

        def report(done: int, operations: int) -> None:
            del operations
            counted(done)
            if wanted.kill and not killed and done >= tasks / 2:
                killed.append(self._cluster.kill(wanted.kill))

        to_answer = timeouts.for_an_answer(self._parameters, wanted.rate)
        at, told = clients.run(to_answer, report)
        for when in killed:
            self._note_killed(when - at)
        ran = list(told.values())
        self.found |= {
            "seconds": max(one["ended"] for one in ran) / 1e9,
            "tasks": _tasks(ran),
            "latencies": _latencies(ran),
            "windows": _windows(ran),
            "counts": Counts(**_summed(one["counts"] for one in ran)),
            "errors": _summed(one["errors"] for one in ran),
            "wrong": sum(one["wrong"] for one in ran),
            "missing": sum(one["missing"] for one in ran),
            "conflicts": sum(one["conflicts"] for one in ran),
            "client_cpu": sum(one["process"]["cpu"] for one in ran),
            "client_gc": sum(one["process"]["gc"] for one in ran),
        }
        self._in_doubt = sum(one["in_doubt"] for one in ran)
        self._doubtful = [key for one in ran for key in one["doubtful"]]

    def _note_killed(self, when: float) -> None:
        self.found["members"] = tuple(
            replace(one, killed_at=when) if one.index in self._wanted.kill else one
            for one in self.found["members"]
        )

    def _check(self, clients: Clients) -> None:
        parameters, counts = self._parameters, self.found["counts"]
        stored = parameters.nobjects + parameters.shared_data_size
        # Where the keys of a mix's insertions are is its clients' own affair.
        last = stored + (parameters.inserted if self._wanted.workload.mix is None else 0)
        expected = stored + counts.inserts
        size = parameters.object_bytes
        doubtful = clients.check([(key, key + 1) for key in self._doubtful], size, _nothing)
        found = self._count(clients, expected + doubtful.read)
        report = self._counted("checking object", last, _CHECKED)
        checking = clients.check([(0, last)], size, report)
        # Keys of a mix's insertions are not read back with the others.
        absent = doubtful.missing if self._wanted.workload.mix is None else 0
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
        """What is told how many have been done: of a part of the case that begins at this share."""
        ends = next(end for end in (_MEASURED, _CHECKED, 1.0) if end > begins)

        def told(done: int) -> None:
            share = begins + (ends - begins) * done / max(of, 1)
            self._setting.count(what, done, of, share)

        return told

    def _count(self, clients: Clients, expected: int) -> int:
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


def _tasks(ran: Sequence[Mapping[str, Any]]) -> Tasks:
    """Those of all client processes, in the order in which they began."""
    names = ("began", "id", "client", "ended", "operations", "why")
    rows = sorted(row for one in ran for row in zip(*(one["tasks"][n] for n in names), strict=True))
    began, ids, clients, ended, operations, why = zip(*rows, strict=True) if rows else ((),) * 6
    return Tasks(
        id=ids,
        client=clients,
        began=tuple(ns / 1e9 for ns in began),
        ended=tuple(ns / 1e9 for ns in ended),
        operations=operations,
        why=why,
    )


def _latencies(ran: Sequence[Mapping[str, Any]]) -> tuple[Latencies, ...]:
    """The histograms of all client processes, added up."""
    merged: dict[tuple[str, Counted], Counter[int]] = {}
    for one in ran:
        for each in one["latencies"]:
            counts = merged.setdefault((each["operation"], each["from"]), Counter())
            counts.update(dict(zip(each["values"], each["counts"], strict=True)))
    return tuple(
        Latencies(
            operation=operation,
            counted=counted,
            values=tuple(sorted(counts)),
            counts=tuple(counts[value] for value in sorted(counts)),
        )
        for (operation, counted), counts in merged.items()
    )


def _windows(ran: Sequence[Mapping[str, Any]]) -> Windows:
    """Throughput of all client processes together."""

    def added(what: str) -> tuple[int, ...]:
        return tuple(map(sum, zip_longest(*(one["windows"][what] for one in ran), fillvalue=0)))

    return Windows(length=WINDOW, operations=added("operations"), errors=added("errors"))


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _nothing(_: int) -> None:
    return
