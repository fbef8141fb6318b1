"""Models of costs as JSON, checked when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gridbench.costs.formula import Formula
from gridbench.costs.held_out import HeldOut
from gridbench.costs.model import CostModel, Estimate
from gridbench.costs.spans import Span
from gridbench.records import RecordError, from_record

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errors:
    of: str
    """A part, or all of them together."""
    what: str
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    name: str
    told: str
    estimates: tuple[Estimate, ...]
    measured: dict[str, Span]
    cases: int
    repeats: int
    uncounted: int
    spread: float
    held_out: tuple[_Errors, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    format: int
    models: tuple[_Model, ...]


def to_record(models: Sequence[CostModel]) -> dict[str, Any]:
    """For JSON: all that is known of the models."""
    record = asdict(_File(format=FORMAT, models=tuple(map(_saved, models))))
    for model, saved in zip(models, record["models"], strict=True):
        saved["quantity"] = model.quantity
        for errors in saved["held_out"]:
            one = HeldOut(what=errors["what"], errors=errors["errors"])
            errors |= {"median": one.typical, "largest": one.largest}
    return record


def from_formula(formula: Formula, record: Any) -> list[CostModel]:
    """The models of a formula in what `to_record` gives. RecordError if it is something else."""
    file = from_record(_File, record)
    if file.format != FORMAT:
        raise RecordError(f"its format is {file.format!r}, and {FORMAT} is known")
    return [_model(formula, saved) for saved in file.models]


def _saved(model: CostModel) -> _Model:
    return _Model(
        name=model.name,
        told=model.told,
        estimates=model.estimates,
        measured=dict(model.measured),
        cases=model.cases,
        repeats=model.repeats,
        uncounted=model.uncounted,
        spread=model.spread,
        held_out=tuple(
            _Errors(of=name, what=one.what, errors=one.errors)
            for name, ways in model.held_out.items()
            for one in ways
        ),
    )


def _model(formula: Formula, saved: _Model) -> CostModel:
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
    held_out: dict[str, tuple[HeldOut, ...]] = {}
    for way in saved.held_out:
        if not way.errors:
            raise RecordError(f"{way.what} was held out, and has no errors")
        one_way = HeldOut(what=way.what, errors=way.errors)
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
