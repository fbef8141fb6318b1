"""The files of micro benchmarks: points.jsonl, and results.json, which is made of it.

`Results` has the form of results.json: `Results.to_record()` writes it, `load_results` reads it.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gridbench.bench.points import DataPoint, PointsForm
from gridbench.engines.names import RENAMED
from gridbench.errors import InputError
from gridbench.records import RecordError, from_record
from gridbench.statistics.series import Status

FORMAT = 1
KIND = "gridbench micro results"
RESULTS = "results.json"
FORM = PointsForm(
    kind="gridbench micro",
    of="a micro benchmark",
    noun="point",
    record=DataPoint,
    file="points.jsonl",
    command="gridbench micro",
)
"""How points are kept."""

Claim = Literal["faster", "slower", "no difference"]
Better = Literal["less", "more"]

_REMEDY = "run `gridbench micro` again with the same --out: it makes the file from what it has"


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEntry:
    """One engine (or one limit of the machine) in a figure."""

    engine: str
    status: Status = "ok"
    why: str = ""
    """Why there is no value: it failed, cannot do this, or was not run."""
    median: float | None = None
    """Over the runs, in the figure's unit; None if there is no value."""
    low: float | None = None
    high: float | None = None
    """95 % interval of the median; None if the runs are too few to tell."""
    runs: int = 0
    values: tuple[float, ...] = ()
    """One per run."""
    note: str = ""
    """What has to be known of the value, such as the chunk size that was best."""
    disturbed_runs: int = 0
    """How many of the runs other programs disturbed."""
    undisturbed: tuple[float, ...] = ()
    """The values of the others."""
    percentiles: dict[str, float] | None = None
    """By name ("50", "99.9"), from the merged samples of all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """An engine's value in terms of others', by rounds; below 1 is better where less is."""

    to_peer: float | None = None
    """To the best peer's."""
    low: float | None = None
    high: float | None = None
    """95 % interval of `to_peer`."""
    to_limit: float | None = None
    limit: str = ""
    """Which limit `to_limit` is to; empty: the figure's first."""
    claim: Claim = "no difference"
    """Outcome against the best peer, given the interval and the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureParameter:
    """What tells a figure from others of its workload."""

    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroFigure:
    """One quantity of all engines."""

    id: str
    workload: str
    title: str
    unit: str
    """us, ms, s, MB, calls/s and the like, or nothing for ratios."""
    better: Better
    parameter: FigureParameter | None = None
    entries: tuple[FigureEntry, ...]
    limits: tuple[FigureEntry, ...] = ()
    """What the machine itself does."""
    noise: float = 1.0
    """The factor between equals that were measured twice; no claim is made below it."""
    best_peer: str | None = None
    ratios: dict[str, Ratio] = field(default_factory=dict)
    """By engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveAxis:
    """What is along an axis, and in what unit."""

    name: str
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveLine:
    """One engine's part of a curve; all lists are of one length."""

    engine: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    """95 % intervals; empty if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureCurve:
    """A quantity over another."""

    id: str
    title: str
    x: CurveAxis
    y: CurveAxis
    log: bool = False
    """Whether axes whose values are far apart are logarithmic; shares of 1 never are."""
    lines: tuple[CurveLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Something to reach, and whether it was."""

    what: str
    figure: str
    """Its id; a figure that was not measured is not there."""
    engine: str
    against: str = ""
    """"best peer" or "best peer: NAME", the name of an engine or of a limit, or nothing: then the
    bound is on the median itself."""
    of: str = ""
    """The id of the figure in which `against` is; empty: the same figure."""
    bound: float
    sense: Literal["<=", ">="]
    value: float | None = None
    """The ratio, or without `against` the median in the figure's unit."""
    reached: bool | None = None
    """None if it could not be measured."""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """How much there is of what the last call of `gridbench micro` was to measure."""

    points: int
    planned: int
    """How many points there should be."""
    round: int
    """The first round in which any is missing; the last one if none is."""
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All that was found."""

    machine: dict[str, Any]
    versions: dict[str, str]
    """By engine, and of Python."""
    options: dict[str, Any] = field(default_factory=dict)
    started: str
    """Times are ISO 8601."""
    ended: str = ""
    extent: Completeness | None = None
    """None if it is not known."""
    figures: tuple[MicroFigure, ...]
    curves: tuple[FigureCurve, ...] = ()
    lead: tuple[Lead, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """What results.json holds."""
        return {"format": FORMAT, "kind": KIND} | dataclasses.asdict(self)


def holds_results(path: Path) -> bool:
    """Whether `path` looks like what `load_results` reads; whether it is, loading tells."""
    return (path / RESULTS).is_file() if path.is_dir() else path.suffix == ".json"


def load_results(path: Path) -> Results:
    """The results in `path`: a file, or the folder of a run that holds results.json.

    Raises InputError for a file that cannot be read, is damaged or cut off, is of something
    else, or of another format.
    """
    file = path / RESULTS if path.is_dir() else path
    record = _json(file)
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise InputError(
            "is not the results of micro benchmarks",
            file=file,
            remedy="give the folder that `gridbench micro --out` filled, or its results.json",
        )
    if record.get("format") != FORMAT:
        raise InputError(
            f"is in format {record.get('format')}, and this gridbench reads format {FORMAT}",
            file=file,
            remedy="read it with the version of gridbench that wrote it, or measure again",
        )
    try:
        results = from_record(Results, _with_present_names(record))
        _check(results)
    except RecordError as error:
        raise InputError(f"is damaged: {error}", file=file, remedy=_REMEDY) from None
    return results


def _with_present_names(value: Any) -> Any:
    """A record with the names that engines have today, wherever they stand."""
    if isinstance(value, str):
        name, comma, variant = value.partition(", ")
        return RENAMED.get(name, name) + comma + variant
    if isinstance(value, list):
        return [_with_present_names(one) for one in value]
    if isinstance(value, dict):
        return {RENAMED.get(key, key): _with_present_names(one) for key, one in value.items()}
    return value


def _json(file: Path) -> Any:
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        raise InputError(
            "there are no results here", file=file, remedy="run `gridbench micro` first"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot read the results: {error.strerror}", file=file, remedy="see its permissions"
        ) from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
        what = "is cut off" if cut else f"is not JSON: {error.msg}"
        raise InputError(what, file=file, line=error.lineno, remedy=_REMEDY) from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON text", file=file, remedy=_REMEDY) from None


def _check(results: Results) -> None:
    """What the types do not say; RecordError."""
    seen: set[str] = set()
    for figure in results.figures:
        if figure.id in seen:
            raise RecordError(f"figure {figure.id} is there twice")
        seen.add(figure.id)
        for entry in (*figure.entries, *figure.limits):
            if entry.status == "ok" and entry.median is None:
                raise RecordError(f"{entry.engine} in figure {figure.id} is ok without a median")
    for curve in results.curves:
        for line in curve.lines:
            intervals = {len(line.low), len(line.high)} - {0}
            if len(line.x) != len(line.y) or intervals - {len(line.x)}:
                where = f"{line.engine} in curve {curve.id}"
                raise RecordError(f"the lists of {where} differ in length")
