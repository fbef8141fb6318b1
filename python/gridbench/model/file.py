"""Models of any kind as a file: JSON that is checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.model.kinds import kind_named
from gridbench.model_kind import FittedModel, ModelKind
from gridbench.records import RecordError

KIND = "gridbench model"
TASKS = "tasks"
"""What models are of if their file does not say it."""
_LARGEST_FILE = 64 * 2**20
"""Bytes; a model of some hundred runs has some ten thousand."""
REMEDY = "give a file that `gridbench model --out` has written"


def document(kind: ModelKind, models: Sequence[FittedModel]) -> dict[str, Any]:
    """For JSON: all that is known of the models."""
    return {"kind": KIND, "of": kind.name, **kind.to_record(models)}


def save(kind: ModelKind, models: Sequence[FittedModel], path: Path) -> None:
    """Write them, completely or not at all. InputError if `path` cannot be written."""
    write(document(kind, models), path)


def write(record: dict[str, Any], path: Path) -> None:
    """Write what is in a file of models. InputError if `path` cannot be written."""
    write_file(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def load(path: Path) -> tuple[ModelKind, Sequence[FittedModel]]:
    """The models in a file, with their kind. InputError if it is none, or damaged."""
    try:
        record = read_record(path)
        of = str(record.get("of", TASKS))
        kind = kind_named(of)
        if kind is None:
            raise RecordError(f"it is of {of[:40]}, which are not known")
        return kind, kind.from_record(record)
    except RecordError as error:
        raise InputError(f"is not a model: {error}", file=path, remedy=REMEDY) from None


def read_record(path: Path) -> dict[str, Any]:
    """What is in a file of models. InputError if it cannot be read, RecordError if it is none."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy=REMEDY) from None
    if len(text) > _LARGEST_FILE:
        raise RecordError("it is too large")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(str(error)) from None
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise RecordError(f"it is not a {KIND}")
    return record
