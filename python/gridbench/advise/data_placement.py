"""Shared data through the engine, or from a data grid: what was measured of both, for a work."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from gridbench.advise.search import Split
from gridbench.advise.work import DivisibleWork
from gridbench.datagrid.crossover.answer import (
    CrossoverModels,
    SavedComputeModel,
    SavedGridModel,
    kept_of,
    load_kept,
)
from gridbench.errors import InputError
from gridbench.model.observation import EnginePlace
from gridbench.run.machine import usable_processors

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
    kept = kept_of(header, answer_of(found), quiet=False)
    if engine not in kept.compute or not kept.grids:
        known = ", ".join(kept.compute) or "no engine"
        raise InputError(
            f"does not tell enough of the engine `{engine}` and a data grid",
            file=folder,
            remedy=f"it has enough of {known}, and of {', '.join(kept.grids) or 'no data grid'};"
            f" measure with `gridbench data crossover --engine {engine}`",
        )
    return kept


def crossover_here(place: EnginePlace) -> CrossoverModels | None:
    """The one that was kept of this machine, if that is where the workers are."""
    here = platform.node()
    if place.transport != "one host" or place.host != here:
        return None
    return load_kept(here, usable_processors())


def from_where(
    kept: CrossoverModels | None, place: EnginePlace, work: DivisibleWork, split: Split
) -> FromWhere | None:
    """What both ways take; None if there is no shared data, or nothing to compare."""
    if not work.bytes_shared:
        return None
    known = None if kept is None else kept.compute.get(place.engine)
    if kept is None or known is None or known.version != place.version or not kept.grids:
        return FromWhere(size=work.bytes_shared, tasks=split.tasks, cores=split.cores)
    if known.with_each_task and not work.warm:
        return None  # workers that start get the data in another way, which was not measured
    return _compared(kept, known, place.engine, work.bytes_shared, split)


def _compared(
    kept: CrossoverModels, known: SavedComputeModel, engine: str, size: float, split: Split
) -> FromWhere:
    readers = split.tasks if known.with_each_task else split.cores
    grids = [_from_grid(one, size, split) for one in kept.grids.values()]
    sides: list[SavedComputeModel | SavedGridModel] = [known, *kept.grids.values()]
    return FromWhere(
        size=size,
        tasks=split.tasks,
        cores=split.cores,
        engine=engine,
        through=known.model.line(readers).at(size),
        grids=tuple(sorted(grids, key=lambda one: one.put_and_read)),
        host=kept.host,
        made=min(one.made for one in sides),
        most_readers=min(one.readers for one in sides),
        most_bytes=min(one.bytes for one in sides),
    )


def _from_grid(grid: SavedGridModel, size: float, split: Split) -> FromGrid:
    reading = grid.model.reading(split.cores, split.tasks).at(size)
    put = grid.model.put_start + grid.model.put * size
    return FromGrid(title=grid.title, put_and_read=put + reading, there_already=reading)
