"""Cases that were not measured, predicted by a model of any kind that `gridbench model` has fitted:
`--case clients=20,40 --case size=1MB`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import whole
from gridbench.model.kind import CaseEstimate, FittedModel, ModelParameter, Unit
from gridbench.model.saved import load
from gridbench.model.spans import Span
from gridbench.quantities import parse_list, parse_size
from gridbench.simulate.sweep import parse_count, parse_time
from gridbench.workload.numbers import shown

OPTION = "--case"
FAR = 10.0
"""Times beyond what was measured from which on nothing is predicted, unless that is asked for."""
_MOST_CASES = 1000
_PARSE: Mapping[Unit, Callable[[str, str], float]] = {
    "": parse_count,
    "bytes": parse_size,
    "s": parse_time,
}


@dataclass(frozen=True, slots=True)
class CasePrediction:
    """What a model says of a case."""

    model: FittedModel
    case: Mapping[str, float]
    expected: CaseEstimate

    def to_dict(self) -> dict[str, Any]:
        """For JSON; times in seconds."""
        found = self.expected
        return {
            "model": self.model.told,
            "case": dict(self.case),
            "total_s": found.total,
            "low_s": found.low,
            "high_s": found.high,
            "parts_s": dict(found.parts),
            "outside": list(found.outside),
        }


@dataclass(frozen=True, slots=True)
class CasePredictions:
    """The cases that are asked for, by each model of a file."""

    parameters: Sequence[ModelParameter]
    rows: Sequence[CasePrediction]


def predict(path: Path, asked: Sequence[str], engine: str | None, *, far: bool) -> CasePredictions:
    """All combinations of the values that are asked for, by each model of the file, or those of
    `engine` alone.

    InputError for a file that is no model, for parameters that it does not have or that have to
    be given, and for values that are more than `FAR` times beyond what was measured, unless `far`.
    """
    kind, models = load(path)
    chosen = [one for one in models if engine in (None, one.name)]
    if not chosen:
        names = ", ".join(sorted({one.name for one in models}))
        raise InputError(
            f"holds no model of `{engine}`", file=path, remedy=f"give --engine: there are {names}"
        )
    given = _given(asked, kind.parameters, kind.name)
    rows = []
    for model in chosen:
        for case in _cases(model, kind.parameters, given):
            if not far:
                _refuse_far(model, kind.parameters, case)
            rows.append(CasePrediction(model, case, model.expect(case)))
    return CasePredictions(kind.parameters, rows)


def _given(
    asked: Sequence[str], parameters: Sequence[ModelParameter], of: str
) -> dict[str, Sequence[float]]:
    known = {one.name: one for one in parameters}
    found: dict[str, Sequence[float]] = {}
    for text in asked:
        name, equals, values = text.partition("=")
        if not equals or name not in known:
            raise InputError(
                f"{OPTION}: `{shown(text)}` is not one of what decides about {of}",
                remedy=f"give {', '.join(f'{OPTION} {one}=...' for one in known)}",
            )
        if name in found:
            raise InputError(
                f"{OPTION}: {name} is given twice",
                remedy=f"give all values in one list, such as {OPTION} {name}=1,2",
            )
        found[name] = parse_list(f"{OPTION} {name}", values, _PARSE[known[name].unit])
    return found


def _cases(
    model: FittedModel, parameters: Sequence[ModelParameter], given: Mapping[str, Sequence[float]]
) -> list[dict[str, float]]:
    values = [given.get(one.name) or _usual(model.measured[one.name], one) for one in parameters]
    if math.prod(map(len, values)) > _MOST_CASES:
        raise InputError(f"{OPTION}: these are more than {_MOST_CASES:,} cases")
    names = [one.name for one in parameters]
    return [dict(zip(names, each, strict=True)) for each in product(*values)]


def _usual(span: Span, parameter: ModelParameter) -> Sequence[float]:
    """What nobody has given: the only one that was measured, or what is usual."""
    if span.low == span.high:
        return [span.low]
    if parameter.usual is not None:
        return [parameter.usual]
    raise InputError(
        f"{OPTION}: the model needs {parameter.name}",
        remedy=f"give {OPTION} {parameter.name}=...: {span.told(parameter.shown)} were measured",
    )


def _refuse_far(
    model: FittedModel, parameters: Sequence[ModelParameter], case: Mapping[str, float]
) -> None:
    for one in parameters:
        span, value = model.measured[one.name], case[one.name]
        # What is easier than all that was measured counts as measured.
        value = max(value, span.low) if one.harder == "more" else min(value, span.high)
        if span.factor(value) > FAR:
            far = f": more than {whole(FAR)} times as far" if span.high > 0 else ""
            raise InputError(
                f"{model.told}: {span.outside(one.what, value, one.shown)}{far}",
                remedy="measure nearer to it, or give --far to have it predicted all the same",
            )
