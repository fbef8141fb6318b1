"""The members and client processes of a data grid: starts, requests and answers, timeouts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gridbench.datagrid.engine import DataGridEngine
from gridbench.datagrid.processes import ProcessError, Processes, ProcessStart
from gridbench.datagrid.workload import TaskParameters
from gridbench.errors import InputError
from gridbench.formats import as_given, counted
from gridbench.hosts.host_group import ask_clock

# ---- Members

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
    """A cluster that is requested."""

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
        return "end what uses the port, or run it again: free ports are looked for again"
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


# ---- Timeouts of clients: longer than anything that works

TO_ANSWER = 120.0
"""Seconds for what takes milliseconds, unless the cluster is about to replace a member."""
_LEAST_RATE = 100.0
"""Objects per second, of all clients together, below which reading or storing them is hanging."""
_LEAST_BYTES = 1 << 20
"""Bytes per second below which it is."""
_CALL = 1e-7
"""Seconds of a call of the random generator on the slowest processor that is believed."""
_WAYS = 2
"""An update reads its object, and writes it."""


def objects_timeout(objects: int, size: int) -> float:
    """Seconds for reading or storing so many objects of `size` bytes."""
    return TO_ANSWER + max(objects / _LEAST_RATE, objects * size / _LEAST_BYTES)


def first_tasks_timeout(own: TaskParameters) -> float:
    """Seconds for a task of each client, which all begin together."""
    operations = own.busy_clients * own.operations_of_task
    return objects_timeout(_WAYS * operations, own.object_bytes) + own.nrepeats * _load(own)


def answer_timeout(own: TaskParameters, rate: float | None) -> float:
    """Seconds in which one of the clients has an answer, or ends a task, as long as they work.

    `rate`: operations per second of all clients that a schedule has; None: there is none.
    """
    # Iterations without operations of their own follow each other without an answer.
    silent = 1 if own.keys_of_iteration + own.write_data_size else own.nrepeats
    scheduled = 0.0 if rate is None else own.busy_clients / rate
    operation = objects_timeout(_WAYS * own.busy_clients, own.object_bytes)
    return operation + silent * _load(own) + scheduled


def _load(own: TaskParameters) -> float:
    """Seconds of an iteration between its operations: all clients sleep at the same time, and
    compute, at worst, on one processor."""
    return own.sleep_time + own.busy_clients * own.process_time * _CALL


# ---- Client processes

Report = Callable[[int], object]
"""Of how much is done, of all processes together."""

_BATCH = 1 << 20
"""Bytes that are stored with one request."""
_LEAD = 50_000_000
"""Nanoseconds from the request to begin until all client processes do."""


@dataclass(frozen=True, slots=True)
class Checking:
    """The data read back."""

    read: int
    missing: int
    wrong: int
    updates: int


@dataclass(frozen=True, slots=True)
class _ClientShare:
    """One that has the clients from `first` on."""

    name: str
    first: int
    count: int


@dataclass(slots=True)
class ClientProcesses:
    """Client processes that are connected."""

    all: int
    """Clients, of all processes together."""
    processes: list[_ClientShare]
    version: str = ""
    """Of the product."""
    seconds: float = 0.0
    """From the start of the first process until all were connected."""
    _on: Processes = field(repr=False, kw_only=True)

    @property
    def names(self) -> list[str]:
        """Of the processes."""
        return [process.name for process in self.processes]

    def clear(self) -> None:
        """Remove all objects from the cluster."""
        self._one({"do": "clear"}, "cleared")

    def size(self) -> int:
        """How many objects the cluster counts."""
        return int(self._one({"do": "size"}, "size"))

    def load(self, first: int, last: int, size: int, report: Report) -> float:
        """Store the objects with keys from `first` to `last` - 1, of `size` bytes each; seconds."""
        began = time.monotonic()
        shares = _shares(first, last, self.names)
        for name, (start, end) in shares.items():
            request = {"do": "load", "first": start, "last": end, "size": size, "batch": _BATCH}
            self._on.send(name, request)
        self._on.answers(shares, "loaded", _until(last - first, size), _sum(report))
        return time.monotonic() - began

    def check(self, ranges: Sequence[tuple[int, int]], size: int, report: Report) -> Checking:
        """Read the objects of these ranges of keys back."""
        found: list[dict[str, int]] = []
        for first, last in ranges:
            shares = _shares(first, last, self.names)
            for name, (start, end) in shares.items():
                request = {"do": "check", "first": start, "last": end, "size": size}
                self._on.send(name, request)
            until = _until(last - first, size)
            found += self._on.answers(shares, "checked", until, _sum(report)).values()
        return Checking(*(sum(one[what] for one in found)
                          for what in ("read", "missing", "wrong", "updates")))  # fmt: skip

    def warm(self, plan: Mapping[str, Any], seconds: float) -> dict[str, dict[str, Any]]:
        """Have all get ready to run a plan, within so many seconds: what each says of its warm-up,
        by its name. They then wait for `run`."""
        for process in self.processes:
            ours = {"all": self.all, "first": process.first, "count": process.count}
            self._on.send(process.name, {"do": "run", "plan": {**plan, "clients": ours}})
        return self._on.answers(self.names, "warm", time.monotonic() + seconds)

    def run(
        self, patience: float, report: Callable[[int, int], object]
    ) -> tuple[float, dict[str, dict[str, Any]]]:
        """Let all go at one instant: that instant, and what each says of the run, by its name.

        `patience`: seconds in which one of them has an answer, or ends a task; ProcessError if none
        does. `report`: of tasks and operations that are done.
        """
        clocks = {
            host: ask_clock(self._on.clock(host))
            for host in {self._on.host_of(n) for n in self.names}
        }
        # Each host gets the time in turn and acknowledges it.
        telling = sum(clocks[self._on.host_of(name)].trip for name in self.names)
        at = time.monotonic_ns() + 2 * telling + _LEAD
        for name in self.names:
            there = at + clocks[self._on.host_of(name)].offset
            self._on.send(name, {"do": "go", "at": there})
        done: dict[str, tuple[int, int]] = {}

        def progress(name: str, message: Mapping[str, Any]) -> float | None:
            before = done.get(name)
            done[name] = message["done"], message["operations"]
            report(*map(sum, zip(*done.values(), strict=True)))
            return None if done[name] == before else time.monotonic() + patience

        try:
            until = time.monotonic() + patience
            return at / 1e9, self._on.answers(self.names, "ran", until, progress)
        except TimeoutError as error:
            first = str(error).split(", ")[0]
            what = f"has had no answer of the data grid for {as_given(patience)}"
            raise ProcessError(first, what, self._on.log(first)) from None

    def bare(self, operations: int, size: int, objects: int) -> dict[str, list[int]]:
        """What the plainest loop of reads sees, in one thread of the first process: a histogram of
        nanoseconds."""
        request = {
            "do": "bare",
            "operations": operations,
            "warm": operations,
            "size": size,
            "first": 0,
            "last": objects,
        }
        found: dict[str, list[int]] = self._one(request, "bare")
        return found

    def most_memory(self) -> int:
        """The most bytes that one of the processes has had resident."""
        return max(self._on.memory(name).most for name in self.names)

    def _one(self, request: dict[str, Any], key: str) -> Any:
        """Ask the first process for what one can do for all."""
        name = self.names[0]
        self._on.send(name, request)
        return self._on.answers([name], key, time.monotonic() + TO_ANSWER)[name]


@contextmanager
def connected(
    processes: Processes,
    cluster: DataGridCluster,
    hosts: Sequence[str],
    *,
    clients: int,
    count: int,
    memory: int,
) -> Iterator[ClientProcesses]:
    """So many clients in `count` processes on these hosts, each with `memory` bytes of heap.

    ProcessError if one cannot connect.
    """
    count = 1 if not cluster.members else min(count, clients)
    found = ClientProcesses(clients, [], _on=processes)
    began = time.monotonic()
    try:
        for number in range(count):
            first, last = clients * number // count, clients * (number + 1) // count
            process = _ClientShare(f"client process {number}", first, last - first)
            found.processes.append(process)
            host = hosts[number % len(hosts)]
            settings = {
                "engine": cluster.engine.manifest.class_name,
                "cluster": cluster.settings_on(processes.facts[host].folder),
                "address": processes.address(host),
                "clients": process.count,
            }
            start = ProcessStart(process.name, cluster.engine.known_as, "client", memory, settings)
            processes.start(start, host)
        try:
            answers = processes.answers(found.names, "connected", time.monotonic() + TO_ANSWER)
        except TimeoutError as error:
            late = str(error).split(", ")[0]
            what = f"has not connected within {as_given(TO_ANSWER)}"
            raise ProcessError(late, what, processes.log(late)) from None
        found.seconds = time.monotonic() - began
        found.version = answers[found.names[0]]["version"]
        yield found
    finally:
        processes.end(found.names)


def _shares(first: int, last: int, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The keys, in equal parts; who would get none is left out."""
    count = last - first
    parts = {
        name: (first + count * i // len(names), first + count * (i + 1) // len(names))
        for i, name in enumerate(names)
    }
    return {name: part for name, part in parts.items() if part[0] < part[1]}


def _until(objects: int, size: int) -> float:
    """By when so many objects have been stored or read, unless something hangs."""
    return time.monotonic() + objects_timeout(objects, size)


def _sum(report: Report) -> Callable[[str, Mapping[str, Any]], None]:
    done: dict[str, int] = {}

    def progress(name: str, message: Mapping[str, Any]) -> None:
        done[name] = message["done"]
        report(sum(done.values()))

    return progress
