"""Advice for a work, with the numbers behind it. All times are in seconds."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gridbench.advise.profiled import Profiled
from gridbench.advise.search import (
    PredictionModel,
    Split,
    Within,
    best_split,
    predict,
    tasks_shown,
    total_of,
    within,
)
from gridbench.advise.uneven import Recorded
from gridbench.advise.work import DivisibleWork
from gridbench.datagrid.crossover.answer import (
    CrossoverModels,
    SavedComputeModel,
    SavedGridModel,
    cached_of,
    load_cached,
)
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel, TotalPrediction
from gridbench.model.observation import EnginePlace
from gridbench.quantities import KB, MB
from gridbench.run.machine import usable_processors
from gridbench.workload.numbers import MOST_CORES

GROUPS = (
    ("starting workers", ("start.",)),
    ("shared data", ("shared.",)),
    ("task data", ("in.",)),
    ("output", ("out.",)),
    ("handling tasks", ("submit", "take", "latency", "finish", "retrieve")),
)
"""Parts of the time, and how the names of their terms begin; they come off in this order."""
COMPUTING = "computing"
DIFFERENCES = "differences between tasks"
"""The part that tasks of equal length would not take."""
MEMORY = "memory bandwidth"
"""The part that it would not take if memory gave all data at once."""
COMPARED = (1, 10, 25, 50, 100, 200, 400, 1000)
"""Numbers of tasks that the advised one is held against."""


@dataclass(frozen=True, slots=True)
class TaskCountPoint:
    """A number of tasks on the advised cores, or on as many as tasks."""

    tasks: int
    prediction: TotalPrediction


@dataclass(frozen=True, slots=True)
class Help:
    """A change, and the total with it."""

    what: str
    """As the subject of a sentence: "workers that are there already"."""
    total: float


@dataclass(frozen=True, slots=True)
class SharedDataAdvice:
    """Data that all tasks need, sent with each task or shared."""

    size: float
    """Bytes."""
    with_tasks: float
    """Total if it goes with each task."""
    shared: float | None
    """Total if it is shared data; None: no run had any, so that it is not known."""
    is_shared: bool
    """It is shared in what was requested."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer."""

    model: PipelineModel | Profiled
    work: DivisibleWork
    split: Split
    expected: TotalPrediction
    parts: tuple[tuple[str, float], ...]
    """Where the time goes: the parts add up to the total."""
    points: tuple[TaskCountPoint, ...]
    """Totals over the number of tasks."""
    helps: tuple[Help, ...]
    """The most helpful first; none of them makes it longer."""
    sharing: SharedDataAdvice | None
    within: Within | None = None
    """How many cores end the work within a time, if that was requested."""
    origin: str = ""
    """Where the model comes from, in a sentence, if it was not made for this."""
    from_where: FromWhere | None = None
    """What was measured of shared data through the engine and from data grids."""
    cautions: tuple[str, ...] = ()
    """What the reader must know of a system's manager, as sentences."""

    @property
    def limit(self) -> tuple[str, float]:
        """The largest of the parts. What tasks compute counts for the memory if they wait for it:
        more processors would make none of them faster."""
        parts = dict(self.parts)
        if MEMORY in parts:
            parts[MEMORY] += parts.pop(COMPUTING)
        return max(parts.items(), key=lambda part: part[1])

    @property
    def compared(self) -> tuple[TaskCountPoint, ...]:
        """Points of round numbers of tasks."""
        return tuple(point for point in self.points if point.tasks in COMPARED)


def advise(
    model: PipelineModel | Profiled,
    work: DivisibleWork,
    origin: str = "",
    limit: float | None = None,
) -> Advice:
    """Find the best split and look at it from all sides. With a `limit`, in seconds, the split is
    the one on the fewest cores that ends within it, if there is one."""
    requested = None if limit is None else within(model, work, limit)
    split = requested.advised if requested else best_split(model, work)
    return Advice(
        model=model,
        work=work,
        split=split,
        expected=predict(model, work, split.tasks, split.cores),
        parts=parts_of(model, work, split),
        points=tuple(
            TaskCountPoint(tasks, predict(model, work, tasks, min(tasks, split.cores)))
            for tasks in tasks_shown(split, work.most_tasks)
        ),
        # Of the fewest cores that do, twice as many are a step; else of all that there are.
        helps=_helps(model, work if requested is None else replace(work, cores=split.cores), split),
        sharing=_sharing(model, work, split),
        within=requested,
        origin=origin,
        cautions=(
            model.cautions(work.drawn(split.tasks, split.cores)[0])
            if isinstance(model, Profiled)
            else ()
        ),
    )


def _named(costs: PredictionModel, beginnings: Sequence[str]) -> list[str]:
    names = costs.values
    return [name for name in names if name.startswith(tuple(beginnings))]


def parts_of(
    costs: PredictionModel, work: DivisibleWork, split: Split
) -> tuple[tuple[str, float], ...]:
    """What the total loses when one group of terms after the other costs nothing, and at last the
    tasks are alike."""
    changed: dict[str, float] = {}
    parts, before = [], _total(costs, work, split)
    for what, beginnings in GROUPS:
        changed |= dict.fromkeys(_named(costs, beginnings), 0.0)
        after = _total(costs, work, split, changed)
        parts.append((what, before - after))
        before = after
    if work.uneven:
        alike = work.divided(split.tasks, split.cores).ideal
        parts.append((DIFFERENCES, before - alike))
        before = alike
    if work.limited_by_memory(min(split.tasks, split.cores)):
        roofline = replace(work.roofline, bandwidth=0.0)
        free = replace(work, roofline=roofline).divided(split.tasks, split.cores).ideal
        parts.append((MEMORY, before - free))
        before = free
    # What overlaps may come off with a later group than the one that it would belong to, and
    # rounding may leave a rest below 0.
    return ((COMPUTING, before), *((what, max(0.0, part)) for what, part in parts))


def _helps(costs: PredictionModel, work: DivisibleWork, split: Split) -> tuple[Help, ...]:
    """What each change alone would bring, if the work is divided as advised."""
    now = _total(costs, work, split)
    found = []
    if not work.warm:
        warm = replace(work, warm=True)
        found.append(Help("workers that are there already", _total(costs, warm, split)))
    if isinstance(work.uneven, Recorded):
        in_order = replace(work, uneven=replace(work.uneven, longest_first=True))
        best = best_split(costs, in_order)
        found.append(Help(f"the longest of {best.tasks:,} tasks first", best.total))
    if work.uneven:
        alike = replace(work, uneven=None)
        found.append(Help("tasks that all take as long", _total(costs, alike, split)))
    ways = _named(costs, ("in.way", "out.way", "shared.way", "way"))
    what = "a link" if costs.linked else "a way for data"
    found.append(Help(f"{what} twice as fast", _cheaper(costs, work, split, ways)))
    half = replace(
        work,
        bytes_in=work.bytes_in / 2,
        bytes_in_each=work.bytes_in_each / 2,
        bytes_shared=work.bytes_shared / 2,
        bytes_out=work.bytes_out / 2,
        bytes_out_each=work.bytes_out_each / 2,
    )
    found.append(Help("half as much data", _total(costs, half, split)))
    handling = _named(costs, GROUPS[-1][1])
    found.append(Help("handling tasks in half the time", _cheaper(costs, work, split, handling)))
    if work.roofline.bandwidth:
        roofline = replace(work.roofline, bandwidth=2 * work.roofline.bandwidth)
        faster = best_split(costs, replace(work, roofline=roofline))
        found.append(Help("memory twice as fast", faster.total))
    if 2 * work.cores <= MOST_CORES:
        now_used = work.processors if work.units == "processors" else work.cores
        what = f"{2 * now_used:,} {work.units} instead of {now_used:,}"
        found.append(Help(what, best_split(costs, work.doubled()).total))
    # What is not there, such as data, changes nothing.
    return tuple(sorted((one for one in found if one.total < now), key=lambda one: one.total))


def _total(
    costs: PredictionModel,
    work: DivisibleWork,
    split: Split,
    changed: Mapping[str, float] | None = None,
) -> float:
    return total_of(costs, work, split.tasks, split.cores, changed)


def _cheaper(
    costs: PredictionModel, work: DivisibleWork, split: Split, names: Sequence[str]
) -> float:
    return _total(costs, work, split, {name: costs.values[name] / 2 for name in names})


def _sharing(costs: PredictionModel, work: DivisibleWork, split: Split) -> SharedDataAdvice | None:
    """For data that each task gets, or that is shared: the other way of sending it."""
    is_shared = work.bytes_shared > 0
    size = work.bytes_shared or work.bytes_in_each
    if not size:
        return None
    each = replace(work, bytes_in_each=work.bytes_in_each + work.bytes_shared, bytes_shared=0.0)
    together = replace(work, bytes_in_each=0.0, bytes_shared=size)
    known = bool(_named(costs, ("shared.",)))
    shared = work if is_shared else together
    return SharedDataAdvice(
        size=size,
        with_tasks=_total(costs, each, split),
        shared=_total(costs, shared, split) if known else None,
        is_shared=is_shared,
    )


TIMES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Seconds of a task."""
SIZES = (0, KB, 10 * KB, 100 * KB, MB, 10 * MB, 100 * MB)
"""Bytes of input of a task."""
BLOCKS = 4
"""Tasks for each core."""
_MOST_CORES = 1000
"""With more, a map takes longer than a user waits."""


@dataclass(frozen=True, slots=True)
class LimitsCell:
    """Tasks of one time and size."""

    seconds: float
    """Of a task; the next is its input."""
    bytes_in: int
    limits: str
    """The largest of the parts of the total."""
    share: float
    """Of the total, that it takes."""
    efficiency: float
    """Ideal by total."""
    measured: bool
    """Within what was measured of the engine."""


@dataclass(frozen=True, slots=True)
class LimitsMap:
    """Of an engine or a system."""

    name: str
    cores: int
    tasks: int
    cells: tuple[LimitsCell, ...]
    """For each size all times."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def limits_map(costs: PredictionModel, cores: int, *, warm: bool) -> LimitsMap:
    """On that many cores, or the most that are looked at, with `BLOCKS` tasks for each."""
    cores = min(cores, _MOST_CORES)
    split = Split(tasks=BLOCKS * cores, cores=cores, total=math.nan)
    cells = tuple(
        _cell(costs, split, seconds, size, warm=warm) for size in SIZES for seconds in TIMES
    )
    return LimitsMap(costs.name, split.cores, split.tasks, cells)


def _cell(
    costs: PredictionModel, split: Split, seconds: float, size: int, *, warm: bool
) -> LimitsCell:
    work = DivisibleWork(
        seconds=seconds * split.tasks, cores=split.cores, bytes_in_each=float(size), warm=warm
    )
    parts = parts_of(costs, work, split)
    what, part = max(parts, key=lambda one: one[1])
    situation = work.divided(split.tasks, split.cores)
    (total,) = costs.totals([situation]).tolist()
    return LimitsCell(
        seconds=seconds,
        bytes_in=size,
        limits=what,
        share=part / total,
        efficiency=situation.ideal / total,
        measured=not costs.outside(situation),
    )


# ---- Shared data

LARGE = 64 << 20
"""Bytes of shared data from which on it is worth a hint that data grids can be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromGrid:
    """What a data grid takes; seconds."""

    title: str
    put_and_read: float
    there_already: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FromWhere:
    """The shared data of the advised split."""

    size: float
    """Bytes."""
    tasks: int
    cores: int
    engine: str = ""
    through: float = 0.0
    """Seconds that it takes through the engine, until all have it."""
    grids: tuple[FromGrid, ...] = ()
    """The fastest first; none: nothing was measured."""
    host: str = ""
    """Where it was measured."""
    made: float = 0.0
    """When the older of both sides was, seconds since 1970."""
    most_readers: int = 0
    """That were measured; so too the bytes."""
    most_bytes: int = 0

    @property
    def beyond(self) -> bool:
        """Whether this is more than was measured."""
        return self.size > self.most_bytes or self.cores > self.most_readers


def crossover_in(folder: Path, work: DivisibleWork, engine: str) -> CrossoverModels:
    """The crossover in a folder of results. InputError if it does not tell anything of this work
    on the engine."""
    from gridbench.datagrid.crossover.answer import answer_of
    from gridbench.datagrid.crossover.record import FORM

    if not work.bytes_shared:
        raise InputError(
            "--crossover is for shared data, and there is none",
            remedy="add --shared SIZE, or leave --crossover out",
        )
    header, found = FORM.read(folder)
    stored = cached_of(header, answer_of(found), quiet=False)
    if engine not in stored.compute or not stored.grids:
        known = ", ".join(stored.compute) or "no engine"
        raise InputError(
            f"does not tell enough of the engine `{engine}` and a data grid",
            file=folder,
            remedy=f"it has enough of {known}, and of {', '.join(stored.grids) or 'no data grid'};"
            f" measure with `gridbench data crossover --engine {engine}`",
        )
    return stored


def crossover_here(place: EnginePlace) -> CrossoverModels | None:
    """The one that was kept of this machine, if that is where the workers are."""
    here = platform.node()
    if place.transport != "one host" or place.host != here:
        return None
    return load_cached(here, usable_processors())


def from_where(
    stored: CrossoverModels | None, place: EnginePlace, work: DivisibleWork, split: Split
) -> FromWhere | None:
    """What both ways take; None if there is no shared data, or nothing to compare."""
    if not work.bytes_shared:
        return None
    known = None if stored is None else stored.compute.get(place.engine)
    if stored is None or known is None or known.version != place.version or not stored.grids:
        return FromWhere(size=work.bytes_shared, tasks=split.tasks, cores=split.cores)
    if known.with_each_task and not work.warm:
        return None  # workers that start get the data in another way, which was not measured
    return _compared(stored, known, place.engine, work.bytes_shared, split)


def _compared(
    stored: CrossoverModels, known: SavedComputeModel, engine: str, size: float, split: Split
) -> FromWhere:
    readers = split.tasks if known.with_each_task else split.cores
    grids = [_from_grid(one, size, split) for one in stored.grids.values()]
    sides: list[SavedComputeModel | SavedGridModel] = [known, *stored.grids.values()]
    return FromWhere(
        size=size,
        tasks=split.tasks,
        cores=split.cores,
        engine=engine,
        through=known.model.line(readers).at(size),
        grids=tuple(sorted(grids, key=lambda one: one.put_and_read)),
        host=stored.host,
        made=min(one.made for one in sides),
        most_readers=min(one.readers for one in sides),
        most_bytes=min(one.bytes for one in sides),
    )


def _from_grid(grid: SavedGridModel, size: float, split: Split) -> FromGrid:
    reading = grid.model.reading(split.cores, split.tasks).at(size)
    put = grid.model.put_start + grid.model.put * size
    return FromGrid(title=grid.title, put_and_read=put + reading, there_already=reading)
