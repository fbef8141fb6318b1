"""Models of engines as a file: JSON that is checked when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.errors import InputError
from gridbench.model.file import KIND, REMEDY, TASKS, read_record, write
from gridbench.model.fit import Estimate, Fit
from gridbench.model.held_out import HeldOut
from gridbench.model.model import Model
from gridbench.model.observation import Place
from gridbench.model.ranges import Range
from gridbench.model.repeated import Repeated
from gridbench.model.terms import Shape, Unit, terms_of
from gridbench.records import RecordError, from_record

_FORMAT = 2


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
class _Model:
    place: Place
    shape: Shape
    runs: int
    known: int
    spread: float
    terms: tuple[_Term, ...]
    covariance: tuple[tuple[float, ...], ...]
    measured: Range
    held_out: tuple[HeldOut, ...]
    repeated: Repeated | None
    tried: tuple[_Tried, ...]
    disturbed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    kind: str
    format: int
    models: tuple[_Model, ...]


def to_record(models: Sequence[Model]) -> dict[str, Any]:
    """For JSON: all that is known of the models, with the errors that follow from held-out runs."""
    file = _File(kind=KIND, format=_FORMAT, models=tuple(map(_saved, models)))
    record = asdict(file)
    for model, saved in zip(models, record["models"], strict=True):
        for one, way in zip(model.held_out, saved["held_out"], strict=True):
            way["errors"] = errors_of(one)
    return record


def errors_of(one: HeldOut) -> dict[str, float | int | None]:
    """Medians and 90th percentiles of the sizes of errors, as shares; None where no run tells."""
    return {
        "runs": len(one.cases),
        "runs_with_weighty_overhead": len(one.weighty),
        "overhead_median": _known(one.overhead(50)),
        "overhead_90th_percentile": _known(one.overhead(90)),
        "total_median": _known(one.total(50)),
        "total_90th_percentile": _known(one.total(90)),
    }


def save_models(models: Sequence[Model], path: Path) -> None:
    """Write them, completely or not at all. InputError if `path` cannot be written."""
    write(to_record(models), path)


def load_models(path: Path) -> list[Model]:
    """The models in a file. InputError if it is none, or damaged."""
    try:
        return models_of(read_record(path))
    except RecordError as error:
        raise InputError(f"is not a model: {error}", file=path, remedy=REMEDY) from None


def models_of(record: Any) -> list[Model]:
    """The models in what `to_record` gives. RecordError if it is something else."""
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise RecordError(f"it is not a {KIND}")
    if (of := record.get("of", TASKS)) != TASKS:
        raise RecordError(f"it is of {of}, and not of {TASKS}")
    if record.get("format") != _FORMAT:
        raise RecordError(f"its format is {record.get('format')!r}, and {_FORMAT} is known")
    return [_model(saved) for saved in from_record(_File, record).models]


def _saved(model: Model) -> _Model:
    fit = model.fit
    return _Model(
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
        measured=model.measured,
        held_out=model.held_out,
        repeated=model.repeated,
        tried=tuple(_Tried(shape=shape, cost=cost) for shape, cost in fit.tried),
        disturbed=model.disturbed,
    )


def _model(saved: _Model) -> Model:
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
    return Model(
        fit=Fit(
            place=saved.place,
            shape=saved.shape,
            estimates=tuple(
                Estimate(known[one.name], one.value, one.low, one.high, one.determined)
                for one in saved.terms
            ),
            covariance=covariance,
            runs=saved.runs,
            known=saved.known,
            spread=saved.spread,
            tried=tuple((one.shape, one.cost) for one in saved.tried),
        ),
        measured=saved.measured,
        held_out=saved.held_out,
        repeated=saved.repeated,
        disturbed=saved.disturbed,
    )


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
