"""What is to be reached, and whether it was."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gridbench.formats import whole
from gridbench.micro.figures import Figure, Lead
from gridbench.micro.workloads import EMPTY, NATIVE, POOL, PYTHON, C
from gridbench.statistics.series import Series, paired_ratios

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


def lead_of(figures: Sequence[Figure], values: Values) -> Iterator[Lead]:
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
