"""The plan of `gridbench data`: what is measured, on which data grids, in which order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gridbench.datagrid.engine import DataGridManifest
from gridbench.datagrid.figures import throughput
from gridbench.datagrid.options import DataGridParameters, Offered
from gridbench.datagrid.record import DataGridCase, PlannedDataGridCase
from gridbench.datagrid.workload import DataGridWorkload, TaskParameters
from gridbench.errors import InputError
from gridbench.formats import as_given, counted, rounded, size
from gridbench.hosts.host_group import near
from gridbench.hosts.hosts_file import HostChoice
from gridbench.jsonl_store import latest
from gridbench.machine.judgement import disturbed
from gridbench.quantities import MB
from gridbench.run.machine import usable_processors
from gridbench.schema import record_of

if TYPE_CHECKING:
    from gridbench.datagrid.engine import DataGridEngine

LEAST_MEMORY, MOST_MEMORY = 128 * MB, 2048 * MB
"""Of a member, if the user says nothing."""
_SHARE = 4  # a quarter of what is available is for members
_ELSEWHERE = 1024 * MB  # of a member on hosts whose memory nobody has told


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpLimits:
    """How long tasks' operations are made before the measurement."""

    least: float = 2.5
    """Seconds."""
    most: float = 20.0
    """Seconds, if throughput does not become steady before."""
    window: float = 0.5
    """Seconds over which throughput is taken."""
    within: float = 0.1
    """So much of their mean the last windows may differ from it, to be steady; or by what so few
    operations scatter."""

    @classmethod
    def of(cls, most: float) -> WarmUpLimits:
        """That of so many seconds at most: steady needs five windows, however short."""
        return cls(least=min(2.5, most), most=most, window=min(0.5, most / 5))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGridWork:
    """The workloads that are measured, on which data grids and where."""

    name: str = "data"
    """Of the folder of results, if the user names none."""
    engines: tuple[DataGridEngine, ...]
    """No two of the same name."""
    workloads: tuple[DataGridWorkload, ...]
    parameters: DataGridParameters
    warm_up: WarmUpLimits | None = field(default_factory=WarmUpLimits)
    """None: what starting costs is in the measurement."""
    available: int
    """Bytes of memory of this machine that could be used when it was read."""
    where: HostChoice = field(default_factory=HostChoice)

    @property
    def elsewhere(self) -> bool:
        """Whether the members are on hosts whose memory is not this machine's."""
        return bool(self.where.hosts or self.where.grid or self.where.names)

    def memory_of(self, members: int) -> int:
        """Bytes of each of so many members: what the user says, or else what the machine has."""
        if self.parameters.member_memory is not None:
            return self.parameters.member_memory
        return _ELSEWHERE if self.elsewhere else default_member_memory(self.available, members)

    def cautions(self) -> list[str]:
        """What the user may not have meant, in whole sentences, each once."""
        found = [reported for one in self.workloads for reported in one.cautions()]
        for members in sorted({one.parameters.mnodes for one in self.workloads}):
            if members <= self.parameters.backups and any(
                one.manifest.members for one in self.engines
            ):
                held = "is 1 copy" if members == 1 else f"are {members} copies"
                found.append(f"On {counted(members, 'member')} there {held} of each object in all.")
        return list(dict.fromkeys(found))

    def record(self) -> dict[str, object]:
        """For the header of results: what all of their cases have in common, and no case tells."""
        warm_up = None if self.warm_up is None else asdict(self.warm_up)
        return {"warm_up": warm_up, **record_of(self.parameters), "where": self.where.record()}


def default_member_memory(available: int, members: int) -> int:
    """Bytes of each of so many members if the user says nothing: the largest power of two that
    leaves three quarters of what is available, from 128 MB to 2 GB. A case that resumes later finds
    the same, unless the machine has changed much."""
    share = available // _SHARE // max(1, members)
    return min(MOST_MEMORY, max(LEAST_MEMORY, 1 << max(0, share.bit_length() - 1)))


# ---- Cases

MOST_PROCESSES = 4
_CLOSED = Offered()
_REMEDY = (
    "have more members (MNodes of the set-up, or --members), kill others or fewer by --kill-node,"
    " have fewer --backups, or choose another data grid"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGridOrder(PlannedDataGridCase):
    """A planned case with what running it needs."""

    workload: DataGridWorkload
    members: int
    """Of the cluster that it needs; 0: its data grid has none, whatever MNodes is."""
    processes: int
    """Client processes."""

    @property
    def cluster(self) -> tuple[str, int]:
        """Cases after each other with the same one can share a cluster."""
        return self.engine, self.members

    @classmethod
    def of(
        cls, workload: DataGridWorkload, *, members: int, processes: int, **planned: Any
    ) -> DataGridOrder:
        """The order of a workload; `planned`: the other fields of the planned case."""
        return cls(
            workload=workload,
            label=workload.label,
            scenario=workload.scenario,
            parameters=workload.parameters.to_dict(),
            mix=None if workload.mix is None else dict(workload.mix),
            members=members,
            processes=processes,
            **planned,
        )

    def describe(self) -> str:
        """In words, on one line."""
        parts = [self.engine, self.workload.describe(members=self.members)]
        if self.rate is not None:
            parts.append(f"open loop, {as_given(self.rate, 'operations/s')}")
        elif self.share is not None:
            parts.append(f"open loop, {as_given(self.share, '')} of the closed one's throughput")
        if self.updates == "atomic":
            parts.append("atomic updates")
        if self.kill:
            numbers = " and ".join(map(str, self.kill))
            parts.append(f"{'members' if len(self.kill) > 1 else 'member'} {numbers} killed")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class DataGridPlan:
    """The request."""

    wanted: tuple[DataGridOrder, ...]
    skipped: tuple[tuple[DataGridOrder, str], ...] = ()
    """Cases that their engine cannot have, and why."""


def plan_of(work: DataGridWork) -> DataGridPlan:
    """All cases.

    Repeats come last, so that what changes with time meets all alike; each begins with another
    engine. Within a repeat a cluster is started once for all cases of an engine with so many
    members. InputError if there is none that its data grid can have.
    """
    wanted: list[DataGridOrder] = []
    skipped: list[tuple[DataGridOrder, str]] = []
    by_members = sorted(work.workloads, key=lambda one: one.parameters.mnodes)
    for repeat in range(work.parameters.rounds):
        for engine in _turned(work.engines, repeat):
            for workload in by_members:
                why = why_not(work, engine, workload)
                for offered in (_CLOSED, *work.parameters.offered):
                    one = _wanted(work, engine, workload, offered, repeat)
                    if not why:
                        wanted.append(one)
                    elif repeat == 0 and offered is _CLOSED:
                        skipped.append((one, why))
    if not wanted:
        raise InputError(skipped[0][1], remedy=_REMEDY)
    return DataGridPlan(tuple(wanted), tuple(skipped))


def why_not(work: DataGridWork, engine: DataGridEngine, workload: DataGridWorkload) -> str:
    """Why the data grid cannot have the case; empty: it can."""
    least, members = engine.manifest.least_members, workload.parameters.mnodes
    if not engine.manifest.members:
        if work.parameters.kill:
            return f"{engine.manifest.title} has no members that could be killed"
        return ""
    if members < least:
        return f"{engine.manifest.title} needs {counted(least, 'member')} at least"
    if 0 < engine.manifest.most_backups < work.parameters.backups:
        most = counted(engine.manifest.most_backups, "backup")
        return f"{engine.manifest.title} keeps {most} of an object at most"
    return _why_not_killed(work, members)


def _why_not_killed(work: DataGridWork, members: int) -> str:
    """Why so many members cannot lose those that are to be killed; empty: they can."""
    if absent := [index for index in work.parameters.kill if index >= members]:
        return f"there is no member {absent[0]} to kill: the last one is {members - 1}"
    if len(work.parameters.kill) == members:
        return "all members would be killed, and none be left to answer"
    return ""


def with_rate(wanted: DataGridOrder, cases: Iterable[DataGridCase]) -> DataGridOrder | None:
    """The case with the rate that it offers. That may be a share of the throughput that its
    closed loop had when it was first measured undisturbed, or disturbed if it never was, so that
    all repeats offer the same; None if it has not been."""
    if wanted.share is None:
        return wanted
    closed = _closed(wanted)
    measured = [one for one in cases if one.status == "done" and one.identity == closed]
    undisturbed = (one for one in measured if not disturbed(one))
    case = next(undisturbed, measured[0] if measured else None)
    if case is None or not math.isfinite(done := throughput(case)):
        return None
    # Three digits, as people read them; and no less than a rate can be.
    rate = max(1e-3, rounded(wanted.share * done))
    return replace(wanted, rate=rate, share=None)


def missing(
    wanted: Iterable[DataGridOrder], cases: Iterable[DataGridCase], *, accepted: bool = False
) -> list[DataGridOrder]:
    """Those without a record of a case that went well, with their rates as far as they are known.
    What failed is among them, and what other programs disturbed, if that was not `accepted`."""
    records = list(cases)
    last = latest(records)
    done = {one.identity for one in last if one.status == "done" and not disturbed(one)}
    if accepted:
        done |= measured_disturbed(last)
    known = [with_rate(one, records) or one for one in wanted]
    return [one for one in known if one.identity not in done]


def without(
    wanted: Iterable[DataGridOrder], failed: Iterable[DataGridOrder]
) -> list[DataGridOrder]:
    """Those that are left without some that failed, and without open loops that would need these
    for their rates."""
    out = {one.identity for one in failed}
    return [
        one
        for one in wanted
        if one.identity not in out and (one.share is None or _closed(one) not in out)
    ]


def _closed(wanted: DataGridOrder) -> tuple[object, ...]:
    """The identity of the closed loop that its rate is a share of."""
    return replace(wanted, loop="closed", share=None, repeat=0).identity


def measured_disturbed(cases: Iterable[DataGridCase]) -> set[tuple[object, ...]]:
    """The identities of cases that went well but for other programs, which disturbed them."""
    return {one.identity for one in cases if one.status == "done" and disturbed(one)}


def _wanted(
    work: DataGridWork,
    engine: DataGridEngine,
    workload: DataGridWorkload,
    offered: Offered,
    repeat: int,
) -> DataGridOrder:
    members = workload.parameters.mnodes if engine.manifest.members else 0
    if members:
        here = usable_processors() if near(work.where) else MOST_PROCESSES
        processes = work.parameters.processes or min(MOST_PROCESSES, here)
    else:  # all data are in the client's own process
        processes = 1
    return DataGridOrder.of(
        workload,
        engine=engine.name,
        repeat=repeat,
        loop="closed" if offered is _CLOSED else "open",
        rate=offered.rate,
        share=offered.share,
        updates=work.parameters.updates,
        kill=work.parameters.kill,
        members=members,
        processes=min(processes, workload.parameters.nnodes),
    )


def _turned(engines: Sequence[DataGridEngine], by: int) -> list[DataGridEngine]:
    at = by % len(engines)
    return [*engines[at:], *engines[:at]]


# ---- Memory

_KEY = 8  # bytes
_ROOM = 1.25  # members' parts are not quite the same, and a heap that is full collects all the time
_UNDER_WAY = 2  # an object that a client works on is in a member as what came, and as what goes
_IN_CLIENT = 6  # and in the client as what was read and changed, and in the product's buffers
_CLIENT = 256 * MB  # of the heap of a client process, without objects
_WARMING = 64 * MB  # the most that a warm-up inserts before it removes it, but for an object each
_MOST_WARMING = 1000  # objects of a client that it inserts
_REGION = MB  # of the heap, as G1 divides one of less than 4 GB
_HEAP = 48 * MB  # of a member whose data are outside of it, without what is under way
_BUFFERED = 14  # so many times what is under way, with clients that meet at one of the members and
# buffers that stay as large; with 10 clients and objects of 10 MB, 10 times were too few in Ignite
_OUTSIDE = 64 * MB  # of each Java process, outside of its heap


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What a case needs, bytes."""

    member: int
    """Of each member; 0: there are none."""
    client: int
    """Of the heap of each client process."""


def need_of(wanted: DataGridOrder, manifest: DataGridManifest, backups: int) -> MemoryNeed:
    """What a case needs at most. `backups`: copies beside the first one, as asked for."""
    workload = wanted.workload
    own = workload.parameters
    objects = workload.at_most + (_inserted_warming(own) if workload.inserted_at_most else 0)
    held = _ROOM * objects * _bytes_of_object(own, manifest)
    threads = -(-own.nnodes // wanted.processes)
    client = _CLIENT + _IN_CLIENT * threads * _in_heap(own.object_bytes)
    if not wanted.members:
        return MemoryNeed(0, round(client + held))
    left = wanted.members - len(wanted.kill)  # they come to hold what the others held
    return MemoryNeed(round(_needed(own, manifest, held * copies(left, backups) / left)), client)


def copies(members: int, backups: int) -> int:
    """Of each object, the first one included: on one member there is no other."""
    return 1 + min(backups, members - 1)


def capacity(own: TaskParameters, manifest: DataGridManifest, backups: int, memory: int) -> int:
    """How many objects of this size fit into members of so many bytes; without members, into so
    many bytes of the client's own process."""
    data: float = memory
    if manifest.members:
        data = _room(own, manifest, memory) * own.mnodes / copies(own.mnodes, backups)
    objects = int(data / _ROOM / _bytes_of_object(own, manifest))
    return max(0, objects - (_inserted_warming(own) if own.write_data_size else 0))


def check_members(
    wanted: DataGridOrder, manifest: DataGridManifest, backups: int, memory: int
) -> None:
    """InputError if members of so many bytes cannot hold what the case has in the end."""
    need = need_of(wanted, manifest, backups).member
    if need <= memory:
        return
    own = wanted.workload.parameters
    left = wanted.members - len(wanted.kill)
    held = copies(left, backups)
    objects = f"{wanted.workload.at_most:,} objects of {size(own.object_bytes)}"
    raise InputError(
        f"{objects} do not fit into {counted(left, 'member')} of {manifest.title}"
        f"{', which are left' if wanted.kill else ''}: each would need {size(need)}, with"
        f" {'1 copy' if held == 1 else f'{held} copies'} of each object in all,"
        f" and has {size(memory)}",
        remedy=f"give members more by --member-memory {-(-need // MB)}MB, have more of them, or"
        " make NObjects or ObjectSize smaller, or have tasks insert less",
    )


def check_machine(
    wanted: DataGridOrder,
    manifest: DataGridManifest,
    backups: int,
    memory: int,
    available: int,
) -> None:
    """InputError if so many bytes are too few for all processes of the case. `memory`: bytes of a
    member."""
    total = machine_need(wanted, manifest, backups, memory)
    if total > available:
        members = f"{counted(wanted.members, 'member')} of {size(memory)} and "
        raise InputError(
            f"{manifest.title}: {members if wanted.members else ''}"
            f"{_processes(wanted.processes)} would need"
            f" {size(total)} in all, and {size(available)} is available",
            remedy="make --member-memory smaller, have fewer members or smaller objects, or end"
            " other programs",
        )


def machine_need(
    wanted: DataGridOrder, manifest: DataGridManifest, backups: int, memory: int
) -> int:
    """Bytes of all processes of a case together, members having so many each."""
    members = wanted.members * (memory if manifest.divided else memory + _OUTSIDE)
    client = need_of(wanted, manifest, backups).client
    return members + wanted.processes * (client + _OUTSIDE)


def _inserted_warming(own: TaskParameters) -> int:
    """Objects that are there for the time of the warm-up only, at most."""
    each = min(_MOST_WARMING, _WARMING // own.nnodes // own.object_bytes)
    return own.nnodes * max(1, each)


def _bytes_of_object(own: TaskParameters, manifest: DataGridManifest) -> int:
    held = own.object_bytes + _KEY + manifest.object_overhead
    return _in_heap(held) if manifest.heap else held


def _in_heap(held: int) -> int:
    """Java gives regions of its heap to what is larger than half of one, and nothing else shares
    them: an object of 1 MB takes two."""
    return -(-held // _REGION) * _REGION if held > _REGION // 2 else held


def _needed(own: TaskParameters, manifest: DataGridManifest, data: float) -> float:
    """Bytes of a member that holds so many of data."""
    if not manifest.divided:
        return _itself(manifest) + _under_way(own) + data
    share = manifest.heap_percent / 100
    return max((_itself(manifest) + data) / (1 - share), _heap_at_least(own) / share)


def _room(own: TaskParameters, manifest: DataGridManifest, memory: int) -> float:
    """Bytes for data in a member of so many; below 0: it is too small even without any."""
    if not manifest.divided:
        return memory - _itself(manifest) - _under_way(own)
    share = manifest.heap_percent / 100
    if _heap_at_least(own) > memory * share:
        return 0.0
    return memory * (1 - share) - _itself(manifest)


def _heap_at_least(own: TaskParameters) -> int:
    """Bytes of a heap that has no data, and so no room to spare for what is under way."""
    return _HEAP + _BUFFERED * _under_way(own)


def _itself(manifest: DataGridManifest) -> int:
    """Of a member, without data and clients."""
    return manifest.member_overhead * MB


def _under_way(own: TaskParameters) -> int:
    """Data in transit between clients and a member."""
    return _UNDER_WAY * own.busy_clients * own.object_bytes // own.mnodes


def _processes(count: int) -> str:
    return f"{count} client {'process' if count == 1 else 'processes'}"
