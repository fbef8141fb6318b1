"""The sessions of each engine, and of the machine's limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gridbench.bench.session import Item, Session
from gridbench.engines.functions import Chunk
from gridbench.engines.servers import Servers
from gridbench.formats import as_given
from gridbench.micro.workloads import (
    AGAIN,
    EMPTY,
    INHERITED,
    LIMITS,
    NATIVE,
    ON_SERVERS,
    ONLY_HERE,
    POOL,
    PYTHON,
    TWINS,
    C,
    Sizes,
)
from gridbench.statistics.claims import ENOUGH

_MEASURES = "gridbench.micro.measures"

START_SECONDS: Mapping[str, tuple[float, float, float]] = {
    # Bringing up 2, 16 and 100 workers took about so long on two cores; what is 160 never ended.
    "ray": (7, 17, 55),
    "dask": (3, 10, 160),
    "parsl": (9, 15, 50),
    "ipyparallel": (9, 18, 160),
    "mpi": (1.5, 6, 16),
    "loky": (1, 5, 12),
    "hyperqueue": (2, 2, 2),
    PYTHON: (0.5, 1, 2),
    NATIVE: (0.3, 0.3, 1.5),
    POOL: (0.3, 0.5, 1),
}
_SERVERS_START = 5.0
"""Bringing up workers on servers takes so many seconds, about."""
_SLOWNESS: Mapping[str, float] = {
    # So many times longer than its budget a quantity takes, as so few calls fit into it.
    "ray": 1.3,
    "dask": 1.5,
    "parsl": 4,
    "ipyparallel": 1.6,
    "hyperqueue": 4,
}
_SHARED_SECONDS = {PYTHON: 1, "ray": 2, "dask": 4, "mpi": 7, "ipyparallel": 8, "loky": 12}
"""Sharing 100 MB twice takes about so long; 16 s with others."""
_OURS = (PYTHON, NATIVE, POOL)
"""What the comparison is about: measured in all rounds, and in both kinds of client."""


def sessions_of(
    engines: Mapping[str, str],
    workloads: Sequence[str],
    sizes: Sizes,
    programs: str,
    elsewhere: Elsewhere | None = None,
) -> list[Session]:
    """All sessions. `engines`: driver (MODULE:CLASS) by name; `programs`: folder of C programs;
    `elsewhere`: engines that are measured on servers besides.

    Without a folder of programs nothing is measured from C.
    """
    found: list[Session] = []
    for name, place in engines.items():
        if name == C:
            found += _c_sessions(workloads, sizes, programs)
            continue
        for label in (name, name + AGAIN) if name in TWINS else (name,):
            found += _Engine(name, label, place, workloads, sizes).sessions()
        if elsewhere is not None and name in elsewhere.engines:
            label = name + ON_SERVERS
            there = _Engine(name, label, place, workloads, sizes, servers=elsewhere.servers)
            found += there.sessions()
    if POOL in engines and "shared_100MB" in workloads:
        found.append(_inherited(sizes))
    limits = list(_limits(workloads, sizes, programs))
    if limits:
        found.append(
            Session(
                name=LIMITS, engine=LIMITS, label=LIMITS, items=tuple(limits), start_seconds=0.5,
                workers=sizes.workers,
                rounds=sizes.rounds,
            )
        )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What is measured with workers on servers of a grid, beside the same on this machine."""

    engines: tuple[str, ...]
    servers: Servers
    """With as many workers as there are on this machine in most sessions."""


class _Engine:
    """What is measured with one engine, under one name."""

    def __init__(
        self,
        name: str,
        label: str,
        place: str,
        workloads: Sequence[str],
        sizes: Sizes,
        *,
        servers: Servers | None = None,
    ) -> None:
        self._name = name
        self._label = label
        self._place = place
        self._workloads = workloads
        self._sizes = sizes
        self._native = name == NATIVE
        self._servers = servers
        self._twin = label.endswith(AGAIN)
        starts = START_SECONDS.get(name, (1, 2, 5))
        self._starts = starts if servers is None else (_SERVERS_START,) * len(starts)
        self._slowness = _SLOWNESS.get(name, 1.0)
        # Grids find the size of chunks themselves; the others get several chunks for each worker.
        self._chunk: Chunk = "auto" if name == PYTHON else max(sizes.chunks)

    def sessions(self) -> Iterator[Session]:
        """Those that have something to measure."""
        sizes = self._sizes
        everything = (
            ("calls", sizes.workers, self._calls(), self._starts[0]),
            ("clients", sizes.workers, self._clients(), sizes.clients * self._starts[0] / 2),
            ("shared", sizes.readers, self._shared(), self._starts[1]),
            ("million", sizes.workers, self._million(), self._starts[0]),
            *self._bring_ups(),
        )
        for name, workers, items, start in everything:
            chosen = tuple(item for item in items if item.workload in self._workloads)
            if chosen:
                seconds = 0.5 + start + sum(item.seconds for item in chosen)
                yield Session(
                    name=name, engine=self._name, label=self._label, place=self._place,
                    workers=workers, servers=self._servers, items=chosen,
                    start_seconds=0.5 + start, rounds=self._rounds(name, seconds),
                    left_out=self._left_out(name, chosen),
                )  # fmt: skip

    def _left_out(self, session: str, items: Sequence[Item]) -> str:
        """Why a run of this size, or in this place, does without a session; nothing if it does
        not. What cannot be measured on servers has sessions of its own."""
        if self._servers is not None and (here := ONLY_HERE.get(items[0].workload)):
            return f"it is for one machine: {here}"
        for count, start in zip(self._sizes.worker_counts, self._starts, strict=False):
            if session.startswith(f"{count} workers") and start > self._sizes.longest:
                return (
                    f"bringing up {count} workers takes it longer than the"
                    f" {as_given(self._sizes.longest)} that a {self._sizes.name} run has for it"
                )
        return ""

    def _rounds(self, session: str, seconds: float) -> int:
        """Fewer for what takes long, so that all of it takes about an hour; but as many as a claim
        takes, unless it is only for a first look."""
        ours = self._name in _OURS
        rounds = self._sizes.rounds if ours else self._sizes.peer_rounds
        if ours and session == "calls":
            return rounds
        least = min(rounds, ENOUGH) if self._sizes.thorough else 1
        return max(least, min(rounds, round(self._sizes.each / seconds)))

    def _item(
        self, workload: str, measure: str, *, seconds: float, engine: str = "", **more: Any
    ) -> Item:
        """`engine`: the name it is shown under, if it is another."""
        return Item(
            workload=workload, engine=engine or self._label, measure=f"{_MEASURES}.{measure}",
            seconds=seconds, **more,
        )  # fmt: skip

    def _calls(self) -> Iterator[Item]:
        """What is measured with an engine that runs on a few workers."""
        sizes = self._sizes
        seconds = 1.4 * self._sizes.budget * self._slowness
        yield self._item("null_call", "calls:null_call", seconds=seconds)
        yield self._item("null_rate", "calls:null_rate", seconds=seconds)
        map_rate = "calls:native_map_rate" if self._native else "calls:map_rate"
        by_itself = ("auto",) if self._name in (PYTHON, NATIVE) else ()
        for chunk in (*self._sizes.chunks, *by_itself):
            given = {"chunk": chunk}
            yield self._item(
                "map_rate", map_rate, parameters=given, arguments=given, seconds=seconds
            )
        if not self._native:
            yield from self._arrays(seconds)
            yield self._item(
                "work", "tasks:work_rate", parameters={"task": sizes.body},
                arguments={"body": sizes.body, "seconds": sizes.body_seconds},
                seconds=2 * sizes.budget * self._slowness,
            )  # fmt: skip
            for by_map in (False, True):
                yield self._item(
                    "metg", "tasks:metg", parameters={"by": "map" if by_map else "submit"},
                    arguments={
                        "by_map": by_map, "chunk": self._chunk, "longest": sizes.longest_grain,
                    },
                    seconds=3 * self._slowness,
                )  # fmt: skip

    def _arrays(self, seconds: float) -> Iterator[Item]:
        """Arrays to and fro, and solving equations; with gridrpc also in its own memory."""
        kinds = {self._label: "ordinary"}
        if self._label == PYTHON:
            kinds[EMPTY] = "gridrpc.empty"
        ours = self._name == PYTHON
        for workload in ("argument", "echo"):
            for size in self._sizes.arrays:
                # A pipe takes about a second for 100 MB, there and back two, and four are sent.
                moving = 0.0 if ours and self._servers is None else size / 4e7
                for engine, array in kinds.items():
                    yield self._item(
                        workload, f"arrays:{workload}", engine=engine, parameters={"bytes": size},
                        arguments={"size": size, "array": array}, seconds=seconds + moving,
                    )  # fmt: skip
        for engine, array in kinds.items():
            yield self._item(
                "solve", "arrays:remote_solve", engine=engine, seconds=2 * seconds,
                arguments={"order": self._sizes.order, "array": array},
            )  # fmt: skip

    def _clients(self) -> Iterator[Item]:
        yield self._item(
            "null_rate_4_clients", "calls:rate_of_clients",
            arguments={"clients": self._sizes.clients},
            seconds=2 * self._sizes.budget * self._slowness,
        )  # fmt: skip

    def _shared(self) -> Iterator[Item]:
        if not self._native and (self._sizes.thorough or not self._twin):
            size = self._sizes.shared
            yield self._item(
                "shared_100MB", "arrays:shared", parameters={"bytes": size},
                arguments={"size": size}, seconds=_SHARED_SECONDS.get(self._name, 16),
            )  # fmt: skip

    def _million(self) -> Iterator[Item]:
        if not self._twin:
            count, seconds = self._sizes.calls, self._sizes.calls_seconds
            yield self._item(
                "million", "calls:million", arguments={"count": count, "seconds": seconds},
                seconds=min(seconds, 8) if self._name in (PYTHON, NATIVE) else 0.85 * seconds,
                repeatable=False,
            )  # fmt: skip

    def _bring_ups(self) -> Iterator[tuple[str, int, Iterator[Item], float]]:
        """Sessions that begin with nothing; the workers of the largest then get tasks."""
        sizes = self._sizes
        for count, start in zip(sizes.worker_counts, self._starts, strict=False):
            yield f"{count} workers", count, self._bring_up_items(count, start), 1.0
            if sizes.thorough and self._name in _OURS:
                bring_up = iter([self._bring_up(count, start, "numpy")])
                yield f"{count} workers, NumPy loaded", count, bring_up, 1.0

    def _bring_up_items(self, count: int, start: float) -> Iterator[Item]:
        yield self._bring_up(count, start, "bare")
        if count == max(self._sizes.worker_counts):
            farm = "tasks:native_tasks" if self._native else "tasks:tasks"
            count, sleep = self._sizes.short_tasks
            many = self._sizes.null_tasks
            for kind, tasks, seconds in (("short", count, sleep), ("null", many, 0.0)):
                yield self._item(
                    "tasks_100", farm, parameters={"tasks": kind},
                    arguments={"count": tasks, "seconds": seconds},
                    seconds=0.5 + tasks * max(seconds / count, self._slowness / 5000),
                )  # fmt: skip

    def _bring_up(self, count: int, start: float, client: str) -> Item:
        return self._item(
            "start", "tasks:native_bring_up" if self._native else "tasks:bring_up",
            parameters={"workers": count, "client": client},
            arguments={"numpy_loaded": client == "numpy"},
            seconds=start, repeatable=False,
        )  # fmt: skip


def _inherited(sizes: Sizes) -> Session:
    item = Item(
        workload="shared_100MB", engine=INHERITED, measure=f"{_MEASURES}.arrays:inherited",
        parameters={"bytes": sizes.shared}, arguments={"size": sizes.shared},
        seconds=1.0, repeatable=False,
    )  # fmt: skip
    return Session(
        name="inherited", engine=POOL, label=INHERITED, workers=sizes.readers, items=(item,),
        start_seconds=1.0, rounds=sizes.rounds,
    )  # fmt: skip


def _c_sessions(workloads: Sequence[str], sizes: Sizes, programs: str) -> Iterator[Session]:
    count = max(100, round(20_000 * sizes.budget))
    items = tuple(
        Item(
            workload=workload, engine=C, measure=f"{_MEASURES}.calls:{workload}_from_c",
            arguments={"folder": programs, "count": many}, seconds=1.0,
        )
        for workload, many in (("null_call", count), ("null_rate", 5 * count))
        if workload in workloads
    )  # fmt: skip
    if items and programs:
        yield Session(
            name="calls", engine=C, label=C, items=items, start_seconds=0.5, rounds=sizes.rounds
        )


def _limits(workloads: Sequence[str], sizes: Sizes, programs: str) -> Iterator[Item]:
    """What the machine allows, as far as the workloads are compared with it."""
    wanted = set(workloads)
    count = max(100, round(20_000 * sizes.budget))

    def item(name: str, measure: str, parameters: dict[str, Any], **arguments: Any) -> Item:
        return Item(
            workload="limit", engine=name, measure=f"{_MEASURES}.{measure}",
            parameters=parameters, arguments=arguments, seconds=1.2 * sizes.budget,
        )  # fmt: skip

    def program(name: str, mode: str, unit: str, *numbers: int, **parameters: Any) -> Item:
        return item(
            name, "limits:of_program", parameters,
            folder=programs, mode=mode, numbers_of=list(numbers), unit=unit,
        )  # fmt: skip

    if wanted & {"null_call", "null_rate", "map_rate", "null_rate_4_clients"}:
        if programs:
            yield program("ping_pong_memory", "ping-pong-memory", "us", count)
            yield program("ping_pong_unix", "ping-pong", "us", count)
            yield program("ping_pong_tcp", "ping-pong-tcp", "us", count)
            yield program("windowed_echo", "echo-window", "per_second", 5 * count)
        yield item("ping_pong_unix, Python", "limits:ping_pong", {}, tcp=False)
        yield item("ping_pong_tcp, Python", "limits:ping_pong", {}, tcp=True)
        yield item("pickled_call_unix", "limits:pickled_call", {}, spin=False)
        yield item("pickled_call_spin", "limits:pickled_call", {}, spin=True)
    if "work" in wanted:
        yield item(
            "one process", "tasks:work_alone", {"task": sizes.body},
            body=sizes.body, seconds=sizes.body_seconds,
        )  # fmt: skip
    if wanted & {"argument", "echo", "shared_100MB"}:
        for size in sorted({*sizes.arrays, sizes.shared}):
            yield item("memcpy", "limits:copying", {"bytes": size}, size=size)
            if programs:
                repeats = max(5, min(1000, 100_000_000 // size))
                yield program("loopback", "tcp", "s", size, repeats, bytes=size)
    if "start" in wanted:
        for count in sizes.worker_counts:
            yield item("fork", "limits:forking", {"workers": count}, processes=count)
