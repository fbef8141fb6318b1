"""Tasks of engines, as `gridbench.model.kind.ModelKind`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridbench.model.document import pipeline_document, place_told
from gridbench.model.held_out import WAYS
from gridbench.model.kind import CaseEstimate, Fitting, ModelParameter, ModelSubjects, nobody
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.observation import EnginePlace, Observation, Situation
from gridbench.model.saved import pipeline_models
from gridbench.model.saved import pipeline_record as record_of
from gridbench.model.sources import REMEDY, read_source
from gridbench.model.spans import Span

if TYPE_CHECKING:
    from gridbench.pages.document import Document


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
class TasksModel:
    """A model of an engine, as `gridbench.model.kind.FittedModel`."""

    model: PipelineModel

    @property
    def name(self) -> str:
        """Of the engine."""
        return self.model.name

    @property
    def told(self) -> str:
        """Engine, machine and links."""
        return place_told(self.model.fit.place)

    @property
    def quantity(self) -> str:
        """What it predicts."""
        return "total time"

    @property
    def measured(self) -> Mapping[str, Span]:
        """By the names of the parameters."""
        known = self.model.measured
        return {
            "cores": known.cores,
            "tasks": known.tasks,
            "sleep": known.sleep,
            "input": known.bytes_in,
            "shared": known.bytes_shared,
            "output": known.bytes_out,
        }

    def expect(self, case: Mapping[str, float]) -> CaseEstimate:
        """What tasks that all take the same take, with a cold start if any run had one."""
        cores, tasks = int(case["cores"]), int(case["tasks"])
        found = self.model.predict(
            Situation(
                cores=cores,
                sleep=np.full(tasks, case["sleep"]),
                bytes_in=case["input"],
                bytes_shared=case["shared"],
                bytes_out=case["output"],
                warm="cold" not in self.model.measured.starts,
            )
        )
        return CaseEstimate(
            total=found.total,
            low=found.low,
            high=found.high,
            parts={"ideal": found.ideal, "overhead": found.overhead},
            outside=found.extrapolated,
        )

    def document(self) -> Document:
        """All that is known of it."""
        return pipeline_document(self.model)


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
        return place_told(self.place)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.observations)

    def fits(self, *, test: bool) -> int:
        """How many fits a model takes."""
        return 1 + (WAYS if test else 0)

    def fit(self, *, test: bool, fitting: Fitting = nobody) -> TasksModel:
        """The model. InputError if there are too few runs."""
        return TasksModel(model_of(self.observations, test=test, fitting=fitting))


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


def to_record(models: Sequence[TasksModel]) -> dict[str, Any]:
    """For JSON: all that is known of the models."""
    return record_of([one.model for one in models])


def from_record(record: Any) -> Sequence[TasksModel]:
    """The models in what `to_record` gives. RecordError if it is something else."""
    return [TasksModel(one) for one in pipeline_models(record)]
