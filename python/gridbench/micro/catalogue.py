"""The figures that are made of the points, and what each is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from gridbench.bench.series import Points
from gridbench.micro.figures import Better
from gridbench.micro.workloads import bytes_named
from gridbench.statistics.series import Series
from gridbench.workload.body import SLEEP, SPIN
from gridbench.workload.workload import Kind


@dataclass(frozen=True, slots=True)
class Source:
    """One quantity of the points of a workload."""

    workload: str
    quantity: str
    parameters: dict[str, Any] = field(default_factory=dict)
    """Those that the points have to have; they may have others."""
    factor: float = 1.0
    """From the point's unit to the figure's."""

    def by_engine(self, points: Points) -> dict[str, Series]:
        """Its values, in the figure's unit."""
        return points.by_engine(self.workload, self.quantity, self.parameters, self.factor)

    def with_parameter(self, name: str, value: Any) -> Source:
        """The same of points that have this parameter too."""
        return replace(self, parameters=self.parameters | {name: value})


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of the machine, in the figure's unit."""

    name: str
    source: Source
    points: str = ""
    """The name that its points have, if it is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOf:
    """A figure before anything was measured."""

    id: str
    workload: str
    title: str
    unit: str
    better: Better
    source: Source
    limits: tuple[Limit, ...] = ()
    parameter: tuple[str, float] | None = None
    compared: bool = True
    """Whether engines are compared; not where they did different amounts of work."""
    best_of: str = ""
    """A parameter of which each engine gets the value that is best for it."""


def catalogue(
    arrays: tuple[int, ...], crews: tuple[int, ...], shared: int, bodies: tuple[str, ...]
) -> list[FigureOf]:
    """All figures, in the order in which they are shown."""
    return [
        *_calls(),
        *_arrays(arrays),
        *_shared(shared),
        *_start(crews),
        *_farm(),
        *_work(bodies),
        *_grain(),
    ]


def _limit(name: str, quantity: str, factor: float = 1.0, **parameters: Any) -> Limit:
    return Limit(name, Source("limit", quantity, parameters, factor))


def _new_memory(size: int, factor: float) -> Limit:
    source = Source("limit", "new_ms", {"bytes": size}, factor)
    return Limit("memcpy, new memory", source, points="memcpy")


def _calls() -> Iterator[FigureOf]:
    echo = _limit("windowed_echo", "per_second")
    yield FigureOf(
        id="null_call",
        workload="null calls",
        title="a call that does nothing, one after the other",
        unit="us",
        better="less",
        source=Source("null_call", "us"),
        limits=(
            # Where both look until something comes, as gridrpc's workers do for a while.
            _limit("ping_pong_memory", "us"),
            _limit("ping_pong_unix", "us"),
            _limit("ping_pong_tcp", "us"),
            _limit("ping_pong_unix, Python", "us"),
            _limit("ping_pong_tcp, Python", "us"),
            _limit("pickled_call_unix", "us"),
            _limit("pickled_call_spin", "us"),
        ),
    )
    yield FigureOf(
        id="null_rate",
        workload="null calls",
        title="null calls per second, submitted singly",
        unit="calls/s",
        better="more",
        source=Source("null_rate", "per_second"),
        limits=(echo,),
    )
    yield FigureOf(
        id="map_rate",
        workload="null calls",
        title="null calls per second by map, each engine with its best chunk size",
        unit="calls/s",
        better="more",
        source=Source("map_rate", "per_second"),
        limits=(echo,),
        best_of="chunk",
    )
    yield FigureOf(
        id="null_rate_4_clients",
        workload="null calls",
        title="null calls per second of 4 client processes together",
        unit="calls/s",
        better="more",
        source=Source("null_rate_4_clients", "per_second"),
        limits=(echo,),
    )


def _arrays(sizes: tuple[int, ...]) -> Iterator[FigureOf]:
    for workload, title, trips in (
        ("argument", "an array as argument", 1),
        ("echo", "an array there and back", 2),
    ):
        for size in sizes:
            yield FigureOf(
                id=f"{workload}_{bytes_named(size)}",
                workload=title,
                title=f"{title}, {bytes_named(size)}",
                unit="ms",
                better="less",
                source=Source(workload, "ms", {"bytes": size}),
                parameter=("bytes", float(size)),
                limits=(
                    _limit("memcpy", "ms", trips, bytes=size),
                    _new_memory(size, trips),
                    # The program sends the bytes there and back.
                    _limit("loopback", "s", 1000 * trips / 2, bytes=size),
                ),
            )
    for size in sizes:
        yield FigureOf(
            id=f"argument_{bytes_named(size)}_copies",
            workload="copies of an array as argument",
            title=f"copies made of an argument of {bytes_named(size)}",
            unit="copies",
            better="less",
            source=Source("argument", "copies", {"bytes": size}),
            parameter=("bytes", float(size)),
            compared=False,
        )
    for_solve = "NumPy's solve in a worker, by the time it takes in the client"
    yield FigureOf(
        id="solve",
        workload="solve",
        title=for_solve,
        unit="",
        better="less",
        source=Source("solve", "ratio"),
    )


def _shared(size: int) -> Iterator[FigureOf]:
    for quantity, title in (("first", "first time"), ("later", "later")):
        yield FigureOf(
            id=f"shared_100MB_{quantity}",
            workload="shared data",
            title=f"{bytes_named(size)} read by all workers, {title}",
            unit="s",
            better="less",
            source=Source("shared_100MB", quantity),
            limits=(
                _new_memory(size, 1e-3)
                if quantity == "first"
                else _limit("memcpy", "ms", 1e-3, bytes=size),
            ),
        )
    yield FigureOf(
        id="shared_100MB_copies",
        workload="shared data",
        title="copies of shared data that all processes hold",
        unit="copies",
        better="less",
        source=Source("shared_100MB", "copies"),
    )


def _start(crews: tuple[int, ...]) -> Iterator[FigureOf]:
    clients = (("bare", "", ""), ("numpy", "_numpy", ", client with NumPy loaded"))
    for client, ending, words in clients:
        for crew in crews:
            for quantity, title in (("first", "to the first task"), ("all", "to all at work")):
                yield FigureOf(
                    id=f"start_{crew}_{quantity}{ending}",
                    workload="start",
                    title=f"from nothing {title}, {crew} workers{words}",
                    unit="s",
                    better="less",
                    source=Source("start", quantity, {"workers": crew, "client": client}),
                    parameter=("workers", float(crew)),
                    limits=(_limit("fork", "seconds", workers=crew),) if quantity == "all" else (),
                )
    for client, ending, words in clients:
        for crew in crews:
            yield FigureOf(
                id=f"memory_{crew}{ending}",
                workload="memory",
                title=f"memory of {crew} idle workers and what serves them{words}",
                unit="MB",
                better="less",
                source=Source("start", "bytes", {"workers": crew, "client": client}, 1e-6),
                parameter=("workers", float(crew)),
            )


def _farm() -> Iterator[FigureOf]:
    for kind, title in (
        ("short", "1000 tasks of 0.1 s on 100 workers; the ideal is 1 s"),
        ("null", "10,000 tasks of 0 s on 100 workers"),
    ):
        yield FigureOf(
            id=f"tasks_100_{kind}",
            workload="100 workers",
            title=title,
            unit="s",
            better="less",
            source=Source("tasks_100", "seconds", {"tasks": kind}),
        )
    million: tuple[tuple[str, str, str, Better, Source], ...] = (
        ("million", "a million calls in one go: calls per second", "calls/s", "more",
         Source("million", "per_second")),
        ("million_count", "calls that fitted into the time", "calls", "more",
         Source("million", "count")),
        ("million_peak", "the client's peak memory with so many calls", "MB", "less",
         Source("million", "peak", factor=1e-6)),
        ("million_steady", "rate of the last tenth by that of the first", "", "more",
         Source("million", "steady")),
    )  # fmt: skip
    for name, title, unit, better, source in million:
        yield FigureOf(
            id=name,
            workload="million",
            title=title,
            unit=unit,
            better=better,
            source=source,
            compared=name == "million",
        )


def _work(bodies: tuple[str, ...]) -> Iterator[FigureOf]:
    for body in bodies:
        what = {SLEEP: "10 ms that sleep", SPIN: "10 ms that compute"}.get(body, Kind(body).told)
        yield FigureOf(
            id=f"work_{body.rpartition('/')[2]}",
            workload="work",
            title=f"tasks {'of ' if body in (SLEEP, SPIN) else ''}{what}, on 2 workers",
            unit="tasks/s",
            better="more",
            source=Source("work", "per_second", {"task": body}),
            limits=(_limit("one process", "per_second", task=body),),
        )


def _grain() -> Iterator[FigureOf]:
    for by, ending, words in (("submit", "", "submitted singly"), ("map", "_map", "by map")):
        for share in (50, 90):
            yield FigureOf(
                id=f"metg_{share}{ending}",
                workload="grain",
                title=f"METG({share} %): shortest tasks, {words}",
                unit="us",
                better="less",
                source=Source("metg", f"us_{share}", {"by": by}),
            )
