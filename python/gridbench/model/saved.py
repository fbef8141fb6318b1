"""Models as files: JSON that is checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.model.cost_model import CostEstimate, CostModel
from gridbench.model.fit import PipelineFit
from gridbench.model.formula import Formula
from gridbench.model.held_out import HeldOutErrors, HeldOutRuns, RepeatSpread
from gridbench.model.kind import FittedModel, ModelKind, Span, kind_named
from gridbench.model.least_squares import TermEstimate
from gridbench.model.model import PipelineModel
from gridbench.model.observation import EnginePlace, Range
from gridbench.model.terms import Shape, Unit, terms_of
from gridbench.records import RecordError, from_record

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
    """Write a file of models. InputError if `path` cannot be written."""
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
    """Content of a file of models. InputError if it cannot be read, RecordError if it is none."""
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


_PIPELINE_FORMAT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """An estimate. Unit and meaning are for readers."""

    name: str
    unit: Unit
    meaning: str
    value: float
    low: float
    high: float
    determined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    shape: Shape
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _PipelineRecord:
    place: EnginePlace
    shape: Shape
    runs: int
    known: int
    spread: float
    terms: tuple[_Term, ...]
    covariance: tuple[tuple[float, ...], ...]
    measured: Range
    held_out: tuple[HeldOutRuns, ...]
    repeated: RepeatSpread | None
    tried: tuple[_Tried, ...]
    disturbed: int = 0
    made: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PipelineFile:
    kind: str
    format: int
    models: tuple[_PipelineRecord, ...]


def pipeline_record(models: Sequence[PipelineModel]) -> dict[str, Any]:
    """For JSON: all that is known of the models, with the errors that follow from held-out runs."""
    file = _PipelineFile(
        kind=KIND, format=_PIPELINE_FORMAT, models=tuple(map(_saved_pipeline, models))
    )
    record = asdict(file)
    for model, saved in zip(models, record["models"], strict=True):
        for one, way in zip(model.held_out, saved["held_out"], strict=True):
            way["errors"] = errors_of(one)
    return record


def errors_of(one: HeldOutRuns) -> dict[str, float | int | None]:
    """Medians and 90th percentiles of the sizes of errors, as shares; None where no run tells."""
    return {
        "runs": len(one.cases),
        "runs_with_weighty_overhead": len(one.weighty),
        "overhead_median": _known(one.overhead(50)),
        "overhead_90th_percentile": _known(one.overhead(90)),
        "total_median": _known(one.total(50)),
        "total_90th_percentile": _known(one.total(90)),
    }


def save_models(models: Sequence[PipelineModel], path: Path) -> None:
    """Write them, completely or not at all. InputError if `path` cannot be written."""
    write(pipeline_record(models), path)


def load_models(path: Path) -> list[PipelineModel]:
    """The models in a file. InputError if it is none, or damaged."""
    try:
        return pipeline_models(read_record(path))
    except RecordError as error:
        raise InputError(f"is not a model: {error}", file=path, remedy=REMEDY) from None


def is_model_of_tasks(path: Path) -> bool:
    """Whether a file looks like models of tasks; whether it is, loading tells."""
    try:
        record = read_record(path)
    except (InputError, RecordError):
        return False
    return bool(record.get("of", TASKS) == TASKS)


def pipeline_models(record: Any) -> list[PipelineModel]:
    """The models in what `pipeline_record` gives. RecordError if it is something else."""
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise RecordError(f"it is not a {KIND}")
    if (of := record.get("of", TASKS)) != TASKS:
        raise RecordError(f"it is of {of}, and not of {TASKS}")
    if record.get("format") != _PIPELINE_FORMAT:
        raise RecordError(
            f"its format is {record.get('format')!r}, and {_PIPELINE_FORMAT} is known"
        )
    return [_pipeline_model(saved) for saved in from_record(_PipelineFile, record).models]


def _saved_pipeline(model: PipelineModel) -> _PipelineRecord:
    fit = model.fit
    return _PipelineRecord(
        place=fit.place,
        shape=fit.shape,
        runs=fit.runs,
        known=fit.known,
        spread=fit.spread,
        terms=tuple(
            _Term(
                name=one.term.name,
                unit=one.term.unit,
                meaning=one.term.meaning,
                value=one.value,
                low=one.low,
                high=one.high,
                determined=one.determined,
            )
            for one in fit.estimates
        ),
        covariance=tuple(map(tuple, fit.covariance.tolist())),
        measured=model.ranges,
        held_out=model.held_out,
        repeated=model.repeated,
        tried=tuple(_Tried(shape=shape, cost=cost) for shape, cost in fit.tried),
        disturbed=model.disturbed,
        made=model.made,
    )


def _pipeline_model(saved: _PipelineRecord) -> PipelineModel:
    known = {term.name: term for term in terms_of(saved.shape)}
    for one in saved.terms:
        if one.name not in known:
            raise RecordError(f"it has a term `{one.name}` that is not known")
        if not 0 <= one.low <= one.value <= one.high:
            raise RecordError(f"the term `{one.name}` is not in its interval")
    covariance = np.array(saved.covariance, dtype=np.float64).reshape(len(saved.covariance), -1)
    if covariance.shape != (len(saved.terms), len(saved.terms)):
        raise RecordError("its covariance is not of as many terms as it has")
    if saved.place.processors < 1:
        raise RecordError("it is of a machine without processors")
    return PipelineModel(
        fit=PipelineFit(
            place=saved.place,
            shape=saved.shape,
            estimates=tuple(
                TermEstimate(known[one.name], one.value, one.low, one.high, one.determined)
                for one in saved.terms
            ),
            covariance=covariance,
            runs=saved.runs,
            known=saved.known,
            spread=saved.spread,
            tried=tuple((one.shape, one.cost) for one in saved.tried),
        ),
        ranges=saved.measured,
        held_out=saved.held_out,
        repeated=saved.repeated,
        disturbed=saved.disturbed,
        made=saved.made,
    )


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None


COST_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _ErrorsRecord:
    of: str
    """A part, or all of them together."""
    what: str
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CostRecord:
    name: str
    told: str
    estimates: tuple[CostEstimate, ...]
    measured: dict[str, Span]
    cases: int
    repeats: int
    uncounted: int
    spread: float
    held_out: tuple[_ErrorsRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CostFile:
    format: int
    models: tuple[_CostRecord, ...]


def cost_record(models: Sequence[CostModel]) -> dict[str, Any]:
    """For JSON: all that is known of the models."""
    record = asdict(_CostFile(format=COST_FORMAT, models=tuple(map(_saved_costs, models))))
    for model, saved in zip(models, record["models"], strict=True):
        saved["quantity"] = model.quantity
        for errors in saved["held_out"]:
            one = HeldOutErrors(what=errors["what"], errors=errors["errors"])
            errors |= {"median": one.typical, "largest": one.largest}
    return record


def cost_models(formula: Formula, record: Any) -> list[CostModel]:
    """The models of a formula in what `cost_record` gives. RecordError if it is something else."""
    file = from_record(_CostFile, record)
    if file.format != COST_FORMAT:
        raise RecordError(f"its format is {file.format!r}, and {COST_FORMAT} is known")
    return [_cost_model(formula, saved) for saved in file.models]


def _saved_costs(model: CostModel) -> _CostRecord:
    return _CostRecord(
        name=model.name,
        told=model.told,
        estimates=model.estimates,
        measured=dict(model.measured),
        cases=model.cases,
        repeats=model.repeats,
        uncounted=model.uncounted,
        spread=model.spread,
        held_out=tuple(
            _ErrorsRecord(of=name, what=one.what, errors=one.errors)
            for name, ways in model.held_out.items()
            for one in ways
        ),
    )


def _cost_model(formula: Formula, saved: _CostRecord) -> CostModel:
    known = {
        (part.name, name)
        for part in formula.parts
        for name in (*(cost.name for cost in part.costs), *(["filled"] if part.sharing else []))
    }
    for one in saved.estimates:
        if (one.part, one.name) not in known:
            raise RecordError(f"it has a term `{one.part}.{one.name}` that is not known")
        if (one.value is not None and one.value < 0) or (one.name == "filled" and one.value == 0):
            raise RecordError(f"the term `{one.part}.{one.name}` is {one.value}")
    parameters = {one.name for one in formula.parameters}
    if absent := parameters - saved.measured.keys():
        raise RecordError(f"it does not say what was measured of {min(absent)}")
    if odd := saved.measured.keys() - parameters:
        raise RecordError(f"it was measured over {min(odd)}, which is not known")
    held_out: dict[str, tuple[HeldOutErrors, ...]] = {}
    for way in saved.held_out:
        if not way.errors:
            raise RecordError(f"{way.what} was held out, and has no errors")
        one_way = HeldOutErrors(what=way.what, errors=way.errors)
        held_out[way.of] = (*held_out.get(way.of, ()), one_way)
    return CostModel(
        formula=formula,
        name=saved.name,
        told=saved.told,
        estimates=saved.estimates,
        measured=saved.measured,
        cases=saved.cases,
        repeats=saved.repeats,
        uncounted=saved.uncounted,
        spread=saved.spread,
        held_out=held_out,
    )
