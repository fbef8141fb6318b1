"""Models that are kept for the next advice: one for each engine, version and machine.

With a model lie the runs that it was fitted to, so that runs for another work add to them. They are
in the user's cache directory, which can be emptied at any time.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.atomic_write import cache_file, write_file
from gridbench.errors import InputError
from gridbench.formats import age, counted
from gridbench.model.model import PipelineModel
from gridbench.model.observation import EnginePlace, Observation, RunTimes, Situation
from gridbench.model.saved import pipeline_models, pipeline_record
from gridbench.records import RecordError, from_record

_KIND = "gridbench kept model"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model of an engine on this machine."""

    model: PipelineModel
    observations: tuple[Observation, ...]
    """That it was fitted to."""
    made: float
    """When the last of them was, in seconds since 1970."""

    @property
    def place(self) -> EnginePlace:
        """What it holds for."""
        return self.model.fit.place

    def describe(self, now: float) -> str:
        """Where it comes from and how old it is, in a sentence."""
        place = self.place
        return (
            f"This is from a model that was kept: of {place.engine} {place.version} on"
            f" {place.host}, fitted to {counted(self.model.fit.runs, 'case')}, the last of which"
            f" was run {age(now - self.made)} ago. --renew measures again."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedRun:
    """A run whose tasks are all alike; seconds and bytes."""

    cores: int
    tasks: int
    sleep: float
    bytes_in: float
    bytes_shared: float
    bytes_out: float
    warm: bool
    most_outstanding: float | None
    measured: RunTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class _CacheFile:
    kind: str
    format: int
    made: float
    runs: tuple[_CachedRun, ...]


def cache_path(engine: str, version: str, host: str, processors: int) -> Path:
    """Where the model of an engine on a machine lies, if there is one."""
    return cache_file("models", engine, version, host, str(processors))


def path_of(place: EnginePlace) -> Path:
    """Where the model of a place lies."""
    return cache_path(place.engine, place.version, place.host, place.processors)


def load_cached(path: Path) -> CachedModel | None:
    """The model in a file; None if there is none, or none that this version can read."""
    try:
        record = json.loads(path.read_bytes())
        file = from_record(_CacheFile, record)
        (model,) = pipeline_models(record["model"])
    except (OSError, ValueError, RecursionError, KeyError, RecordError):
        return None
    if (file.kind, file.format) != (_KIND, _FORMAT) or path_of(model.fit.place) != path:
        return None
    place = model.fit.place
    runs = tuple(_observation(number, place, one) for number, one in enumerate(file.runs, 1))
    return CachedModel(model, runs, file.made)


def keep(model: PipelineModel, observations: Sequence[Observation]) -> None:
    """Keep a model for the next advice, with the runs that it was fitted to, as far as their tasks
    are alike and all their figures are known. That it cannot be written is no error: nothing
    but time is lost."""
    runs = [_run(one) for one in observations if _can_be_kept(one)]
    file = _CacheFile(kind=_KIND, format=_FORMAT, made=time.time(), runs=tuple(runs))
    record: dict[str, Any] = asdict(file) | {"model": pipeline_record([model])}
    path = path_of(model.fit.place)
    with suppress(OSError, InputError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(record, allow_nan=False) + "\n")


def forget(place: EnginePlace) -> None:
    """Keep no model of a place any more."""
    with suppress(OSError):
        path_of(place).unlink()


def _can_be_kept(one: Observation) -> bool:
    sleep = one.situation.sleep
    return bool(np.ptp(sleep) == 0) and all(map(math.isfinite, astuple(one.measured)))


def _run(one: Observation) -> _CachedRun:
    its = one.situation
    return _CachedRun(
        cores=its.cores,
        tasks=its.tasks,
        sleep=float(its.sleep.max()),
        bytes_in=its.bytes_in,
        bytes_shared=its.bytes_shared,
        bytes_out=its.bytes_out,
        warm=its.warm,
        most_outstanding=its.most_outstanding if math.isfinite(its.most_outstanding) else None,
        measured=RunTimes(*map(float, astuple(one.measured))),
    )


def _observation(number: int, place: EnginePlace, run: _CachedRun) -> Observation:
    situation = Situation(
        cores=run.cores,
        sleep=np.full(run.tasks, run.sleep),
        bytes_in=run.bytes_in,
        bytes_shared=run.bytes_shared,
        bytes_out=run.bytes_out,
        warm=run.warm,
        most_outstanding=math.inf if run.most_outstanding is None else run.most_outstanding,
    )
    return Observation(f"kept run {number}", place, situation, run.measured, others=0.0)
