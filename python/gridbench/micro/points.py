"""The points of a run, saved one by one as they come, and read back to go on.

The file's first line is the header, each further one a point, all of it JSON. A line is written
in one piece and flushed, so that a run that is cut off leaves at most a part of the last one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gridbench.errors import InputError
from gridbench.micro.records import RecordError, from_record

FORMAT = 1
KIND = "gridbench micro"
POINTS = "points.jsonl"

Key = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What all points of a file have in common."""

    machine: dict[str, Any]
    versions: dict[str, str]
    options: dict[str, Any]
    started: str
    """ISO 8601."""
    seed: int
    """Of the order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measurement."""

    workload: str
    engine: str
    parameters: dict[str, Any] = field(default_factory=dict)
    round: int
    """From 0."""
    values: dict[str, float] = field(default_factory=dict)
    samples: dict[str, Any] = field(default_factory=dict)
    status: Literal["ok", "failed", "cannot", "missing"] = "ok"
    why: str = ""
    disturbed: bool = False
    load: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    at: str = ""
    """When it ended, ISO 8601."""
    version: str = ""
    """Of the engine, if it told."""

    @property
    def key(self) -> Key:
        """What it is a measurement of; a repeated one has the same."""
        return key_of(self.workload, self.engine, self.parameters, self.round)


def key_of(workload: str, engine: str, parameters: dict[str, Any], number: int) -> Key:
    """See `Point.key`."""
    return workload, engine, json.dumps(parameters, sort_keys=True), number


class PointsFile:
    """The file of a run, open to be added to."""

    def __init__(self, path: Path, header: Header, points: list[Point]) -> None:
        self.path = path
        self.header = header
        self.points = points
        """Those of earlier calls first."""
        self.earlier = len(points)
        """How many are of earlier calls."""
        self._file = path.open("ab", buffering=0)

    def add(self, point: Point) -> None:
        """Append and flush. Raises InputError when there is no room; what is there is kept."""
        self.points.append(point)
        _write(self._file.fileno(), self.path, asdict(point))

    @property
    def new(self) -> list[Point]:
        """The points that were added since the file was opened."""
        return self.points[self.earlier :]

    def done(self) -> set[Key]:
        """What need not be measured: it has a value, or was tried since the file was opened."""
        known = {point.key for point in self.points[: self.earlier] if point.status == "ok"}
        return known | {point.key for point in self.new}

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_points(folder: Path, header: Header, *, fresh: bool) -> PointsFile:
    """The points in `folder`, or an empty file with `header` if there are none or `fresh`.

    Raises InputError if the folder cannot be used, if the file is damaged, or if it is of
    another machine, version or size of run.
    """
    path = folder / POINTS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        exists = path.exists() and path.stat().st_size > 0
    except OSError as error:
        raise _unusable(folder, error) from None
    points: list[Point] = []
    if exists and not fresh:
        before, points = load_points(path)
        _refuse_mixing(path, before, header)
        header = before
    else:
        _begin(folder, path, header)
    try:
        return PointsFile(path, header, points)
    except OSError as error:
        raise _unusable(folder, error) from None


def load_points(path: Path) -> tuple[Header, list[Point]]:
    """Header and points of a file, whose last line is cut away if it was not written in full.

    Raises InputError that names the line that is damaged.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unusable(path, error) from None
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with contextlib.suppress(OSError):  # it is cut off again the next time
            os.truncate(path, whole)
    lines = data[:whole].split(b"\n")[:-1]
    if not lines:
        raise _damaged(path, 1, "the header is missing")
    return _header(path, lines[0]), list(_points(path, lines[1:]))


def _header(path: Path, line: bytes) -> Header:
    record = _json(path, 1, line)
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise _damaged(path, 1, "is not the header of a micro benchmark")
    if record.get("format") != FORMAT:
        raise InputError(
            f"is in format {record.get('format')}, and this gridbench writes format {FORMAT}",
            file=path,
            line=1,
            remedy="choose another --out, or add --fresh to begin anew",
        )
    try:
        return from_record(Header, record)
    except RecordError as error:
        raise _damaged(path, 1, str(error)) from None


def _points(path: Path, lines: list[bytes]) -> Iterator[Point]:
    for number, line in enumerate(lines, 2):
        try:
            yield from_record(Point, _json(path, number, line))
        except RecordError as error:
            raise _damaged(path, number, str(error)) from None


def _json(path: Path, number: int, line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise _damaged(path, number, "is not JSON") from None


def _begin(folder: Path, path: Path, header: Header) -> None:
    """A new file with nothing but the header; it replaces another only when it is complete."""
    new = path.with_suffix(".new")
    try:
        with new.open("wb", buffering=0) as file:
            _write(file.fileno(), path, {"format": FORMAT, "kind": KIND} | asdict(header))
        new.replace(path)
    except OSError as error:
        raise _unusable(folder, error) from None


def _write(descriptor: int, path: Path, record: dict[str, Any]) -> None:
    line = (json.dumps(record, allow_nan=False) + "\n").encode()
    end = os.lseek(descriptor, 0, os.SEEK_END)
    try:
        while line:
            line = line[os.write(descriptor, line) :]
    except OSError as error:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, end)
        raise InputError(
            f"cannot save a result: {error.strerror}",
            file=path,
            remedy="make room, and run the same again: it goes on with what is missing",
        ) from None


def _refuse_mixing(path: Path, before: Header, now: Header) -> None:
    for what, one, other in (
        ("another machine", before.machine, now.machine),
        ("other versions", before.versions, now.versions),
        ("other options", before.options, now.options),
    ):
        names = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
        if names:
            name = min(names)
            raise InputError(
                f"holds results of {what}: {name} was `{one.get(name)}`,"
                f" and now is `{other.get(name)}`",
                file=path,
                remedy="choose another --out, or add --fresh to measure all of it anew",
            )


def _damaged(path: Path, line: int, what: str) -> InputError:
    anew = "add --fresh to measure all of it anew"
    return InputError(
        f"the file of points is damaged: {what}",
        file=path,
        line=line,
        remedy=f"all points need what this line tells: choose another --out, or {anew}"
        if line == 1
        else f"remove this line to lose one point, or {anew}",
    )


def _unusable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot use the output folder: {error.strerror}",
        file=path,
        remedy="choose another --out, one that can be written",
    )
