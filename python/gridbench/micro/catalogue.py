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
    """Required of the points, which may have others."""
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
    """False where engines did different amounts of work."""
    best_of: str = ""
    """A parameter; each engine is shown with its best value."""


def catalogue(
    arrays: tuple[int, ...], worker_counts: tuple[int, ...], shared: int, bodies: tuple[str, ...]
) -> list[FigureOf]:
    """All figures, in the order in which they are shown."""
    return [
        *_calls(),
        *_arrays(arrays),
        *_shared(shared),
        *_start(worker_counts),
        *_farm(),
        *_work(bodies),
        *_grain(),
    ]


def _figure(
    id: str,
    workload: str,
    title: str,
    source: PointSource,
    unit: str = "",
    *,
    better: Better = "less",
    **more: Any,
) -> FigureOf:
    return FigureOf(
        id=id, workload=workload, title=title, source=source, unit=unit, better=better, **more
    )


def _limit(name: str, quantity: str, factor: float = 1.0, **parameters: Any) -> MachineLimit:
    return MachineLimit(name, PointSource("limit", quantity, parameters, factor))


def _new_memory(size: int, factor: float) -> MachineLimit:
    source = PointSource("limit", "new_ms", {"bytes": size}, factor)
    return MachineLimit("memcpy, new memory", source, points="memcpy")


def _calls() -> Iterator[FigureOf]:
    yield _figure(
        "null_call",
        "null calls",
        "a call that does nothing, one after the other",
        PointSource("null_call", "us"),
        "us",
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
    for name, title, best_of in (
        ("null_rate", ", submitted singly", ""),
        ("map_rate", " by map, each engine with its best chunk size", "chunk"),
        ("null_rate_4_clients", " of 4 client processes together", ""),
    ):
        yield _figure(
            name,
            "null calls",
            f"null calls per second{title}",
            PointSource(name, "per_second"),
            "calls/s",
            better="more",
            limits=(_limit("windowed_echo", "per_second"),),
            best_of=best_of,
        )


def _arrays(sizes: tuple[int, ...]) -> Iterator[FigureOf]:
    for workload, title, trips in (
        ("argument", "an array as argument", 1),
        ("echo", "an array there and back", 2),
    ):
        for size in sizes:
            yield _figure(
                f"{workload}_{bytes_named(size)}",
                title,
                f"{title}, {bytes_named(size)}",
                PointSource(workload, "ms", {"bytes": size}),
                "ms",
                parameter=("bytes", float(size)),
                limits=(
                    _limit("memcpy", "ms", trips, bytes=size),
                    _new_memory(size, trips),
                    # The program sends the bytes there and back.
                    _limit("loopback", "s", 1000 * trips / 2, bytes=size),
                ),
            )
    for size in sizes:
        yield _figure(
            f"argument_{bytes_named(size)}_copies",
            "copies of an array as argument",
            f"copies made of an argument of {bytes_named(size)}",
            PointSource("argument", "copies", {"bytes": size}),
            "copies",
            parameter=("bytes", float(size)),
            compared=False,
        )
    title = "NumPy's solve in a worker, by the time it takes in the client"
    yield _figure("solve", "solve", title, PointSource("solve", "ratio"))


def _shared(size: int) -> Iterator[FigureOf]:
    for quantity, title, limit in (
        ("first", "first time", _new_memory(size, 1e-3)),
        ("later", "later", _limit("memcpy", "ms", 1e-3, bytes=size)),
    ):
        yield _figure(
            f"shared_100MB_{quantity}",
            "shared data",
            f"{bytes_named(size)} read by all workers, {title}",
            PointSource("shared_100MB", quantity),
            "s",
            limits=(limit,),
        )
    title = "copies of shared data that all processes hold"
    source = PointSource("shared_100MB", "copies")
    yield _figure("shared_100MB_copies", "shared data", title, source, "copies")


def _start(worker_counts: tuple[int, ...]) -> Iterator[FigureOf]:
    clients = (("bare", "", ""), ("numpy", "_numpy", ", client with NumPy loaded"))
    for client, ending, words in clients:
        for count in worker_counts:
            for quantity, title in (("first", "to the first task"), ("all", "to all at work")):
                yield _figure(
                    f"start_{count}_{quantity}{ending}",
                    "start",
                    f"from nothing {title}, {count} workers{words}",
                    PointSource("start", quantity, {"workers": count, "client": client}),
                    "s",
                    parameter=("workers", float(count)),
                    limits=(_limit("fork", "seconds", workers=count),) if quantity == "all" else (),
                )
    for client, ending, words in clients:
        for count in worker_counts:
            yield _figure(
                f"memory_{count}{ending}",
                "memory",
                f"memory of {count} idle workers and what serves them{words}",
                PointSource("start", "bytes", {"workers": count, "client": client}, 1e-6),
                "MB",
                parameter=("workers", float(count)),
            )


def _farm() -> Iterator[FigureOf]:
    for kind, title in (
        ("short", "1000 tasks of 0.1 s on 100 workers; the ideal is 1 s"),
        ("null", "10,000 tasks of 0 s on 100 workers"),
    ):
        source = PointSource("tasks_100", "seconds", {"tasks": kind})
        yield _figure(f"tasks_100_{kind}", "100 workers", title, source, "s")
    million: tuple[tuple[str, str, str, str, Better, float], ...] = (
        ("million", "a million calls in one go: calls per second", "per_second", "calls/s", "more",
         1.0),
        ("million_count", "calls that fitted into the time", "count", "calls", "more", 1.0),
        ("million_peak", "the client's peak memory with so many calls", "peak", "MB", "less", 1e-6),
        ("million_steady", "rate of the last tenth by that of the first", "steady", "", "more",
         1.0),
    )  # fmt: skip
    for name, title, quantity, unit, better, factor in million:
        source = PointSource("million", quantity, factor=factor)
        compared = name == "million"
        yield _figure(name, "million", title, source, unit, better=better, compared=compared)


def _work(bodies: tuple[str, ...]) -> Iterator[FigureOf]:
    for body in bodies:
        what = {SLEEP: "10 ms that sleep", SPIN: "10 ms that compute"}.get(body, Kind(body).told)
        yield _figure(
            f"work_{body.rpartition('/')[2]}",
            "work",
            f"tasks {'of ' if body in (SLEEP, SPIN) else ''}{what}, on 2 workers",
            PointSource("work", "per_second", {"task": body}),
            "tasks/s",
            better="more",
            limits=(_limit("one process", "per_second", task=body),),
        )


def _grain() -> Iterator[FigureOf]:
    for by, ending, words in (("submit", "", "submitted singly"), ("map", "_map", "by map")):
        for share in (50, 90):
            title = f"METG({share} %): shortest tasks, {words}"
            source = PointSource("metg", f"us_{share}", {"by": by})
            yield _figure(f"metg_{share}{ending}", "grain", title, source, "us")


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
