"""The points of a run, saved one by one as they come, and read back to go on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gridbench.engines.names import current_name
from gridbench.jsonl_store import Form, Header, RecordFile, load_records, open_records
from gridbench.statistics.series import Status

__all__ = ["POINTS", "Header", "Point", "PointsFile", "key_of", "load_points"]

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", current_name(self.engine))

    @property
    def key(self) -> Key:
        """What it is a measurement of; a repeated one has the same."""
        return key_of(self.workload, self.engine, self.parameters, self.round)


def key_of(workload: str, engine: str, parameters: dict[str, Any], number: int) -> Key:
    """See `Point.key`."""
    return workload, engine, json.dumps(parameters, sort_keys=True), number


_FORM = Form(kind="gridbench micro", of="a micro benchmark", noun="point", record=Point)


def stands(point: Point, *, retry_failed: bool) -> bool:
    """Whether a call that goes on leaves a point of an earlier one as it is: it has a value, or it
    failed, no other programs can be the reason, and that is not to be tried again."""
    return point.status == "ok" or (bool(point.at) and not point.disturbed and not retry_failed)


class PointsFile(RecordFile[Point]):
    """The file of a run, open to be added to."""

    def __init__(
        self, path: Path, header: Header, points: list[Point], *, retry_failed: bool = False
    ) -> None:
        super().__init__(path, header, points)
        self._standing = [one for one in points if stands(one, retry_failed=retry_failed)]

    @property
    def points(self) -> list[Point]:
        """Those of earlier calls first."""
        return self.records

    @property
    def standing(self) -> list[Point]:
        """The points of what is not measured again: what stands of earlier calls, and all that was
        tried since the file was opened."""
        return self._standing + self.new

    @property
    def failed_before(self) -> set[Key]:
        """What failed in earlier calls, has no value, and is not tried again."""
        values = {point.key for point in self._standing if point.status == "ok"}
        return {point.key for point in self._standing} - values


def open_points(
    folder: Path, header: Header, *, fresh: bool, retry_failed: bool = False
) -> PointsFile:
    """The points in `folder`, or an empty file with `header` if there are none or `fresh`.

    `retry_failed`: what failed before is to be tried again. Raises InputError if the folder cannot
    be used, if the file is damaged, or if it is of another machine, version or size of run.
    """
    path = folder / POINTS
    header, points = open_records(path, _FORM, header, fresh=fresh)
    return PointsFile(path, header, points, retry_failed=retry_failed)


def load_points(path: Path) -> tuple[Header, list[Point]]:
    """Header and points of a file, without a last line that was not written in full.

    Raises InputError that names the line that is damaged.
    """
    return load_records(path, _FORM)
