"""The figures that are made of the points, the limits that they are compared with, and targets."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gridbench.bench.points import Points
from gridbench.formats import whole
from gridbench.micro.record import Better, Lead, MicroFigure
from gridbench.micro.workloads import EMPTY, NATIVE, POOL, PYTHON, C, bytes_named
from gridbench.statistics.series import Series, paired_ratios
from gridbench.workload.body import SLEEP, SPIN
from gridbench.workload.workload import Kind


@dataclass(frozen=True, slots=True)
class PointSource:
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

    def with_parameter(self, name: str, value: Any) -> PointSource:
        """The same of points that have this parameter too."""
        return replace(self, parameters=self.parameters | {name: value})


@dataclass(frozen=True, slots=True)
class MachineLimit:
    """A limit of the machine, in the figure's unit."""

    name: str
    source: PointSource
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
    source: PointSource
    limits: tuple[MachineLimit, ...] = ()
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


def _limit(name: str, quantity: str, factor: float = 1.0, **parameters: Any) -> MachineLimit:
    return MachineLimit(name, PointSource("limit", quantity, parameters, factor))


def _new_memory(size: int, factor: float) -> MachineLimit:
    source = PointSource("limit", "new_ms", {"bytes": size}, factor)
    return MachineLimit("memcpy, new memory", source, points="memcpy")


def _calls() -> Iterator[FigureOf]:
    echo = _limit("windowed_echo", "per_second")
    yield FigureOf(
        id="null_call",
        workload="null calls",
        title="a call that does nothing, one after the other",
        unit="us",
        better="less",
        source=PointSource("null_call", "us"),
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
        source=PointSource("null_rate", "per_second"),
        limits=(echo,),
    )
    yield FigureOf(
        id="map_rate",
        workload="null calls",
        title="null calls per second by map, each engine with its best chunk size",
        unit="calls/s",
        better="more",
        source=PointSource("map_rate", "per_second"),
        limits=(echo,),
        best_of="chunk",
    )
    yield FigureOf(
        id="null_rate_4_clients",
        workload="null calls",
        title="null calls per second of 4 client processes together",
        unit="calls/s",
        better="more",
        source=PointSource("null_rate_4_clients", "per_second"),
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
                source=PointSource(workload, "ms", {"bytes": size}),
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
            source=PointSource("argument", "copies", {"bytes": size}),
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
        source=PointSource("solve", "ratio"),
    )


def _shared(size: int) -> Iterator[FigureOf]:
    for quantity, title in (("first", "first time"), ("later", "later")):
        yield FigureOf(
            id=f"shared_100MB_{quantity}",
            workload="shared data",
            title=f"{bytes_named(size)} read by all workers, {title}",
            unit="s",
            better="less",
            source=PointSource("shared_100MB", quantity),
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
        source=PointSource("shared_100MB", "copies"),
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
                    source=PointSource("start", quantity, {"workers": crew, "client": client}),
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
                source=PointSource("start", "bytes", {"workers": crew, "client": client}, 1e-6),
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
            source=PointSource("tasks_100", "seconds", {"tasks": kind}),
        )
    million: tuple[tuple[str, str, str, Better, PointSource], ...] = (
        ("million", "a million calls in one go: calls per second", "calls/s", "more",
         PointSource("million", "per_second")),
        ("million_count", "calls that fitted into the time", "calls", "more",
         PointSource("million", "count")),
        ("million_peak", "the client's peak memory with so many calls", "MB", "less",
         PointSource("million", "peak", factor=1e-6)),
        ("million_steady", "rate of the last tenth by that of the first", "", "more",
         PointSource("million", "steady")),
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
            source=PointSource("work", "per_second", {"task": body}),
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
                source=PointSource("metg", f"us_{share}", {"by": by}),
            )


# ---- Targets

PEER = "best peer"


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on the median of an engine in a figure, or on its ratio to another's."""

    what: str
    figure: str
    engine: str
    sense: Literal["<=", ">="]
    bound: float
    against: str = ""
    """The best peer, an engine, or a limit of the figure; nothing: the median itself counts."""
    of: str = ""
    """The figure in which `against` is, if it is another one."""
    least: tuple[str, float] | None = None
    """A figure in which the engine has to have at least so much, for this to mean anything."""


_MILLION = ("million_count", 1e6)

GOALS = (
    Goal("null call, Python function, by the fastest engine", "null_call", PYTHON, "<=", 1 / 8,
         PEER),
    Goal("the same by the bare pickled call", "null_call", PYTHON, "<=", 1, "pickled_call_unix"),
    Goal("null call, native function, from C, by raw ping-pong", "null_call", C, "<=", 1.5,
         "ping_pong_unix"),
    Goal("null calls per second, Python function, single submits", "null_rate", PYTHON, ">=", 25,
         PEER),
    Goal("the same by map, by the fastest engine's single submits", "map_rate", PYTHON, ">=", 150,
         PEER, "null_rate"),
    Goal("the same by map, by the pool's map at its best chunk size", "map_rate", PYTHON, ">=", 1,
         POOL),
    Goal("null calls per second, native function, from Python by map", "map_rate", NATIVE, ">=",
         3_000_000),
    Goal("null calls per second, native function, from C one by one", "null_rate", C, ">=", 1,
         "windowed_echo"),
    Goal("1 MB argument, by the fastest engine", "argument_1MB", PYTHON, "<=", 1 / 6, PEER),
    Goal("10 MB argument, by memcpy", "argument_10MB", PYTHON, "<=", 1.3, "memcpy"),
    Goal("100 MB argument, by Ray", "argument_100MB", PYTHON, "<=", 1, "ray"),
    # The head of the call, which describes the array, is moved.
    Goal("copies of 1 MB from gridrpc.empty", "argument_1MB_copies", EMPTY, "<=", 0.01),
    Goal("copies of 10 MB from gridrpc.empty", "argument_10MB_copies", EMPTY, "<=", 0.01),
    Goal("copies of 100 MB from gridrpc.empty", "argument_100MB_copies", EMPTY, "<=", 0.01),
    Goal("100 MB to 16 workers, first time, by Ray", "shared_100MB_first", PYTHON, "<=", 1, "ray"),
    Goal("100 MB to 16 workers, later, by Ray", "shared_100MB_later", PYTHON, "<=", 1, "ray"),
    Goal("100 Python workers ready, by the forking pool", "start_100_all", PYTHON, "<=", 0.7, POOL),
    Goal("100 native workers ready, by the forking pool", "start_100_all", NATIVE, "<=", 0.2, POOL),
    Goal("memory of 100 idle Python workers, by the forking pool", "memory_100", PYTHON, "<=", 0.75,
         POOL),
    Goal("1000 x 0.1 s on 100 Python workers", "tasks_100_short", PYTHON, "<=", 1.02),
    Goal("NumPy solve, remote by local", "solve", PYTHON, "<=", 1.10),
    Goal("the same from gridrpc.empty", "solve", EMPTY, "<=", 1.05),
    Goal("1,000,000 calls: the client's peak memory", "million_peak", PYTHON, "<=", 500,
         least=_MILLION),
    Goal("1,000,000 calls: rate of the last tenth by that of the first", "million_steady", PYTHON,
         ">=", 0.9, least=_MILLION),
    Goal("METG(50 %), single submits, by the fastest engine", "metg_50", PYTHON, "<=", 1 / 20,
         PEER),
    Goal("METG(50 %), map, by the fastest engine's single submits", "metg_50_map", PYTHON, "<=",
         1 / 100, PEER, "metg_50"),
)  # fmt: skip

Values = Mapping[str, Mapping[str, Series]]


def lead_of(figures: Sequence[MicroFigure], values: Values) -> Iterator[Lead]:
    """All goals; `values` are those of engines and limits by round, by figure."""
    by_id = {figure.id: figure for figure in figures}
    for goal in GOALS:
        other = goal.of or goal.figure
        against = goal.against
        if against == PEER and other in by_id:
            against = by_id[other].best_peer or PEER
        ours = values.get(goal.figure, {}).get(goal.engine, Series())
        theirs = values.get(other, {}).get(against, Series())
        value, why = _value(goal, ours, theirs, against)
        if value is not None and goal.least is not None:
            figure, least = goal.least
            had = min(values[figure][goal.engine].values)
            if had < least:
                value, why = None, f"only {whole(had)} {by_id[figure].unit} fitted into the time"
        reached = None
        if value is not None:
            reached = value <= goal.bound if goal.sense == "<=" else value >= goal.bound
        yield Lead(
            what=goal.what,
            figure=goal.figure,
            engine=goal.engine,
            against=f"best peer: {against}" if goal.against == PEER != against else goal.against,
            bound=goal.bound,
            sense=goal.sense,
            value=value,
            reached=reached,
            why=why,
        )


def _value(goal: Goal, ours: Series, theirs: Series, against: str) -> tuple[float | None, str]:
    """The median or ratio of what was not disturbed, or why there is none."""
    if not ours.values:
        return None, f"{goal.engine} was not measured"
    sound, others = ours.undisturbed, theirs.undisturbed
    if goal.against and not theirs.values:
        return None, f"{against} was not measured" if against != PEER else "no peer was measured"
    values = paired_ratios(sound, others) if goal.against else sound.values
    if not values:
        return None, "other programs disturbed all its rounds"
    return statistics.median(values), ""
