"""The rules for results of areas: see docs/rules.md."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.bench.points import Point
from gridbench.bench.series import Points
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.records import RecordError, from_record
from gridbench.rules import Rules, Seen, broken_by, enough, recorded

_EXACT = 1e-9
"""Share by which what is worked out again may differ."""
_NO_POINTS = "the file is an older one, and has no single runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """Those of an engine, or a limit, in a row."""

    median: float | None
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of a table, as far as it is judged."""

    what: str
    gridrpc: _Values
    peer: _Values | None = None
    limit: _Values | None = None
    ratio_to_peer: float | None = None
    ratio_to_limit: float | None = None
    ratios: dict[str, tuple[float, ...]]
    """Those of single rounds, by `peer` and `limit`."""
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Area:
    """A table."""

    rows: tuple[_Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The file."""

    machine: dict[str, Any]
    versions: dict[str, str]
    extent: str
    complete: bool
    areas: dict[str, _Area]
    points: tuple[Point, ...] | None = None
    """None: it is an older file."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The results, as the rules look at them."""

    record: _Record
    points: Points | None
    """Of a run that was repeated, the one that counts; None: the file has no single runs."""

    @property
    def rows(self) -> Iterator[tuple[str, _Row]]:
        """All of them, with the areas' names."""
        return ((name, row) for name, area in self.record.areas.items() for row in area.rows)


def read(file: Path) -> Measured:
    """The results in a file. InputError if it is damaged."""
    try:
        record = from_record(_Record, json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError, RecordError) as error:
        raise InputError(
            f"is no file of `python -m benchmarks`, or it is damaged: {error}",
            file=file,
            remedy="give the file that --out named, or measure anew",
        ) from None
    return Measured(record, None if record.points is None else Points(record.points))


def _complete(found: Measured) -> Seen:
    areas = counted(len(found.record.areas), "table")
    if not found.record.complete:
        return "broken", f"it was ended early, with {areas}"
    return "kept", f"all that was asked for was tried: {areas}"


def _no_failure_is_hidden(found: Measured) -> Seen:
    if found.points is None:
        return "not known", _NO_POINTS
    problems = [problem for _, row in found.rows for problem in row.problems]
    failed = found.points.failed
    hidden = [
        f"{point.workload}, round {point.round + 1}"
        for point in failed
        if not any(point.workload in problem or point.why in problem for problem in problems)
    ]
    told = f"{counted(len(failed), 'run')} failed, and the tables say so" if failed else ""
    return broken_by(hidden, "no table tells that these failed", told or "no run failed")


def _figures(found: Measured) -> Seen:
    wrong = [f"{row.what} ({area})" for area, row in found.rows if not _follows(row)]
    told = "medians and ratios, worked out again from the values of the rounds"
    return broken_by(wrong, "medians or ratios are not those of the values", told)


def _follows(row: _Row) -> bool:
    parts = [part for part in (row.gridrpc, row.peer, row.limit) if part is not None]
    pairs = [
        (part.median, statistics.median(part.values) if part.values else None) for part in parts
    ]
    pairs += [
        (ratio, statistics.median(each))
        for ratio, name in ((row.ratio_to_peer, "peer"), (row.ratio_to_limit, "limit"))
        if (each := row.ratios.get(name))
    ]
    return all(_same(then, now) for then, now in pairs)


def _same(then: float | None, now: float | None) -> bool:
    if then is None or now is None:
        return then is now
    return math.isclose(then, now, rel_tol=_EXACT)


def _repeated(found: Measured) -> Seen:
    if found.points is None:
        return "not known", _NO_POINTS
    runs: dict[str, int] = {}
    for point in found.points.run:
        if point.status == "ok":
            runs[point.workload] = runs.get(point.workload, 0) + (not point.disturbed)
    return enough(runs.items(), "undisturbed run")


def _recorded(found: Measured) -> Seen:
    return recorded(found.record.machine, found.record.versions)


_EACH: dict[str, Callable[[Measured], Seen]] = {
    "complete": _complete,
    "no failure is hidden": _no_failure_is_hidden,
    "figures follow from the values": _figures,
    "repeated": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="bench", read=read, each=_EACH)
