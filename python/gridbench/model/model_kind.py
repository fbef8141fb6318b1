"""Tasks of engines, as `gridbench.model.kind.ModelKind`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gridbench.model.held_out import WAYS
from gridbench.model.kind import Fitting, ModelParameter, ModelSubjects, nobody
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.observation import EnginePlace, Observation
from gridbench.model.saved import pipeline_models as from_record
from gridbench.model.saved import pipeline_record as to_record
from gridbench.model.sources import REMEDY, read_source

if TYPE_CHECKING:
    pass


__all__ = ["from_record", "name", "parameters", "read", "to_record"]

name = "tasks"
parameters = (
    ModelParameter("cores", "cores"),
    ModelParameter("tasks", "tasks"),
    ModelParameter("sleep", "time of a task", "s", harder="less"),
    ModelParameter("input", "task data", "bytes", usual=0.0),
    ModelParameter("shared", "shared data", "bytes", usual=0.0),
    ModelParameter("output", "output data", "bytes", usual=0.0),
)


@dataclass(frozen=True, slots=True)
class EngineRuns:
    """The runs of an engine in one place, as `gridbench.model.kind.Subject`."""

    place: EnginePlace
    observations: Sequence[Observation]

    @property
    def name(self) -> str:
        """Of the engine."""
        return self.place.engine

    @property
    def told(self) -> str:
        """Engine, machine and links."""
        return self.place.told()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.observations)

    def fits(self, *, test: bool) -> int:
        """How many fits a model takes."""
        return 1 + (WAYS if test else 0)

    def fit(self, *, test: bool, fitting: Fitting = nobody) -> PipelineModel:
        """The model. InputError if there are too few runs."""
        return model_of(self.observations, test=test, fitting=fitting)


def read(folders: Sequence[Path]) -> ModelSubjects:
    """The runs of each engine, in each place. InputError for a folder that cannot be used."""
    source = read_source(
        folders, others=", the very folder of gridbench data or sync, or task logs by their names"
    )
    return ModelSubjects(
        subjects=[EngineRuns(place, runs) for place, runs in source.by_place().items()],
        noun="run",
        left_out=source.left_out,
        remedy=REMEDY,
    )
