"""The rules for models of `gridbench advise`, see docs/rules.md.

The runs behind a model are not stored, so that a rule reads what the model says of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.machine.judgement import disturbed_count
from gridbench.model.model import PipelineModel
from gridbench.model.saved import is_model_of_tasks, load_models
from gridbench.rules import Rules, Seen, broken_by

MODEL = "model.json"
"""In the folder of an advice."""


def advice_folders(source: Path) -> list[Path]:
    """The folders with models of tasks: `source` and those below it."""
    if not source.is_dir():
        return []
    return sorted(file.parent for file in source.rglob(MODEL) if is_model_of_tasks(file))


def _quiet(models: Sequence[PipelineModel]) -> Seen:
    busy = [
        f"{model.name}: {disturbed_count(model.disturbed, model.fit.runs, 'runs')}"
        for model in models
        if model.disturbed
    ]
    runs = sum(model.fit.runs for model in models)
    kept = f"nothing disturbed {counted(runs, 'run')}"
    return broken_by(busy, "models are fitted to disturbed runs", kept)


def _recorded(models: Sequence[PipelineModel]) -> Seen:
    if undated := [model.name for model in models if not model.made]:
        return "not known", f"the record lacks the date of the model of {', '.join(undated)}"
    return "kept", "; ".join(f"{model.fit.place.describe()}, {model.made}" for model in models)


def _read(folder: Path) -> Sequence[PipelineModel]:
    models = load_models(folder / MODEL)
    if not models:
        raise InputError("holds no model", file=folder / MODEL, remedy="leave the folder out")
    return models


RULES: Rules[Sequence[PipelineModel]] = Rules(
    key="models",
    places=advice_folders,
    read=_read,
    each={"nothing else was at work": _quiet, "who measured what, where": _recorded},
)
