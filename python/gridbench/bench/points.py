"""The points of a run, saved one by one as they come, and read back to go on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gridbench.record_file import FORMAT, Form, Header, RecordFile, load_records, open_records
from gridbench.statistics.series import Status

__all__ = ["FORMAT", "POINTS", "Header", "Point", "PointsFile", "key_of", "load_points"]

POINTS = "points.jsonl"

Key = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measurement."""

    workload: str
    engine: str = ""
    """Empty where one alone has the workload."""
    parameters: dict[str, Any] = field(default_factory=dict)
    round: int
    """From 0."""
    values: dict[str, float] = field(default_factory=dict)
    samples: dict[str, Any] = field(default_factory=dict)
    status: Status = "ok"
    why: str = ""
    at_limit: bool = False
    """It failed as it did not end within its limit, which another try would not either."""
    disturbed: bool = False
    load: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    at: str = ""
    """When it ended, ISO 8601; empty if it was not begun."""
    version: str = ""
    """Of the engine, if it told."""

    @property
    def key(self) -> Key:
        """What it is a measurement of; a repeated one has the same."""
        return key_of(self.workload, self.engine, self.parameters, self.round)


def key_of(workload: str, engine: str, parameters: dict[str, Any], number: int) -> Key:
    """See `Point.key`."""
    return workload, engine, json.dumps(parameters, sort_keys=True), number


_FORM = Form(kind="gridbench micro", of="a micro benchmark", noun="point", record=Point)


class PointsFile(RecordFile[Point]):
    """The file of a run, open to be added to."""

    @property
    def points(self) -> list[Point]:
        """Those of earlier calls first."""
        return self.records

    def done(self) -> set[Key]:
        """What need not be measured: it has a value, or was tried since the file was opened."""
        known = {point.key for point in self.points[: self.earlier] if point.status == "ok"}
        return known | {point.key for point in self.new}


def open_points(folder: Path, header: Header, *, fresh: bool) -> PointsFile:
    """The points in `folder`, or an empty file with `header` if there are none or `fresh`.

    Raises InputError if the folder cannot be used, if the file is damaged, or if it is of
    another machine, version or size of run.
    """
    path = folder / POINTS
    header, points = open_records(path, _FORM, header, fresh=fresh)
    return PointsFile(path, header, points)


def load_points(path: Path) -> tuple[Header, list[Point]]:
    """Header and points of a file, without a last line that was not written in full.

    Raises InputError that names the line that is damaged.
    """
    return load_records(path, _FORM)
