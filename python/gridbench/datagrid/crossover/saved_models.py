"""Models of the crossovers on this machine, saved for `gridbench advise`: of all engines and data
grids that were measured without disturbance.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from gridbench.atomic_write import write_file
from gridbench.cache import kept_file
from gridbench.datagrid.crossover.answer import CrossoverAnswer
from gridbench.datagrid.crossover.models import ComputeModel, GridModel
from gridbench.errors import InputError
from gridbench.jsonl_store import Header
from gridbench.records import RecordError, from_record

_KIND = "gridbench kept crossover"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedComputeModel:
    """A compute grid."""

    version: str
    with_each_task: bool
    """The data goes with each task, and not once to each worker."""
    model: ComputeModel
    readers: int
    """The most that were measured."""
    bytes: int
    """The same."""
    made: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedGridModel:
    """A data grid."""

    title: str
    version: str
    model: GridModel
    readers: int
    bytes: int
    made: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossoverModels:
    """All that is known on a machine."""

    host: str
    processors: int
    compute: dict[str, SavedComputeModel] = field(default_factory=dict)
    """By the names of engines."""
    grids: dict[str, SavedGridModel] = field(default_factory=dict)


def kept_of(header: Header, answer: CrossoverAnswer, *, quiet: bool) -> CrossoverModels:
    """What an answer tells; with `quiet` only what rests on undisturbed measurements alone."""
    now = time.time()
    compute: dict[str, SavedComputeModel] = {}
    grids: dict[str, SavedGridModel] = {}
    for curve in answer.curves:
        if curve.there or (quiet and not all(case.counts for case in curve.cases)):
            continue
        if (engine := answer.compute.get(curve.engine)) and curve.side == "compute grid":
            compute[curve.engine] = SavedComputeModel(
                version=curve.first.version,
                with_each_task=curve.first.with_each_task,
                model=engine.model,
                readers=engine.readers[1],
                bytes=engine.bytes[1],
                made=now,
            )
        if (grid := answer.grids.get(curve.engine)) and curve.side == "data grid":
            grids[curve.engine] = SavedGridModel(
                title=curve.first.title or curve.engine,
                version=curve.first.version,
                model=grid.model,
                readers=grid.readers[1],
                bytes=grid.bytes[1],
                made=now,
            )
    machine = header.machine
    return CrossoverModels(
        host=str(machine["host"]),
        processors=int(machine["cores_usable"]),
        compute=compute,
        grids=grids,
    )


def keep(header: Header, answer: CrossoverAnswer) -> None:
    """Keep what an answer tells, beside what is known of other engines. That it cannot be written
    is no error: nothing but time is lost."""
    found = kept_of(header, answer, quiet=True)
    if not found.compute and not found.grids:
        return
    before = load_kept(found.host, found.processors)
    if before is not None:
        found = replace(
            found,
            compute={**before.compute, **found.compute},
            grids={**before.grids, **found.grids},
        )
    path = _path(found.host, found.processors)
    record = {"kind": _KIND, "format": _FORMAT, **asdict(found)}
    with suppress(OSError, InputError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(record, allow_nan=False) + "\n")


def load_kept(host: str, processors: int) -> CrossoverModels | None:
    """What is known on a machine; None if there is nothing, or nothing that this version can
    read."""
    try:
        record = json.loads(_path(host, processors).read_bytes())
        if (record["kind"], record["format"]) != (_KIND, _FORMAT):
            return None
        return from_record(CrossoverModels, record)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, RecordError):
        return None


def _path(host: str, processors: int) -> Path:
    return kept_file("crossover", host, str(processors))
