"""The client processes of a case: requests and answers, and when they count as hanging."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gridbench.datagrid.cluster import DataGridCluster
from gridbench.datagrid.processes import ProcessError, Processes, ProcessStart
from gridbench.datagrid.workload import TaskParameters
from gridbench.formats import as_given
from gridbench.hosts.host_group import ask_clock

# ---- Timeouts: longer than anything that works

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


# ---- Processes

Report = Callable[[int], object]
"""Of how much is done, of all processes together."""

_BATCH = 1 << 20
"""Bytes that are stored with one request."""
_LEAD = 50_000_000
"""Nanoseconds from when all client processes have been told to begin until they do."""


@dataclass(frozen=True, slots=True)
class Checking:
    """What was read back."""

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
        # One after the other is told, with an answer from its host.
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
