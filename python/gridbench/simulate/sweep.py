"""One value of a simulation after another: `--sweep cores=1000,10000,100000`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import as_given, bit_rate, compact_size, whole
from gridbench.links.options import parse_rate
from gridbench.model.kind import CaseEstimate, FittedModel, ModelParameter, Span, Unit
from gridbench.model.saved import load
from gridbench.quantities import (
    Count,
    parse_list,
    parse_seconds,
    parse_size,
    parse_stddev,
)
from gridbench.simulate.account import Account
from gridbench.simulate.simulation import MOST_TASKS
from gridbench.workload.numbers import LONGEST_TIME, shown

_SWEEP = "--sweep"
STDDEV_SHARE = "stddev-share"
"""What is varied where deviations of times are given as shares of the mean."""
MOST_VALUES = 100


def parse_count(option: str, text: str) -> float:
    """A number of something. InputError names `option`."""
    return Count(1, MOST_TASKS).parse(option, text)


def parse_time(option: str, text: str) -> float:
    """Seconds, from `5`, `5s` or `200ms`. InputError names `option`."""
    value = parse_seconds(option, text)
    if not 0 <= value <= LONGEST_TIME:
        raise InputError(f"{option}: {shown(text)} is not from 0 to {as_given(LONGEST_TIME)}")
    return value


def _parse_share(option: str, text: str) -> float:
    """A share of the mean, from `50%`. InputError names `option`."""
    seconds, share = parse_stddev(option, text)
    if seconds:
        raise InputError(
            f"{option}: `{shown(text)}` is a time among shares of the mean",
            remedy="give either times or shares, such as 20%",
        )
    return share


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """Something that can be varied."""

    name: str
    parse: Callable[[str, str], float]
    text: Callable[[float], str]


AXES = {
    axis.name: axis
    for axis in (
        SweepAxis("cores", parse_count, whole),
        SweepAxis("tasks", parse_count, whole),
        SweepAxis("tasks-per-core", parse_count, whole),
        SweepAxis("sleep", parse_time, as_given),
        SweepAxis("stddev", parse_time, as_given),
        SweepAxis("input", parse_size, compact_size),
        SweepAxis("shared", parse_size, compact_size),
        SweepAxis("output", parse_size, compact_size),
        SweepAxis("link", parse_rate, bit_rate),
        SweepAxis("node-link", parse_rate, bit_rate),
    )
}

_SHARES = SweepAxis(STDDEV_SHARE, _parse_share, lambda share: as_given(share * 100, "%"))
"""Deviations of times, where they are given as shares of the mean."""


@dataclass(frozen=True, slots=True)
class SimulationSweep:
    """A varied parameter, and its values."""

    axis: SweepAxis
    values: Sequence[float]


def parse_sweep(text: str) -> SimulationSweep:
    """From `cores=1000,10000`. Raises InputError."""
    name, equals, values = text.partition("=")
    if not equals or name not in AXES:
        raise InputError(
            f"{_SWEEP}: `{shown(text)}` does not say what to vary",
            remedy=f"for example {_SWEEP} cores=1000,10000; also {', '.join(list(AXES)[1:])}",
        )
    axis = _SHARES if name == "stddev" and "%" in values else AXES[name]
    parsed = parse_list(_SWEEP, values, axis.parse)
    if len(parsed) > MOST_VALUES:
        raise InputError(f"{_SWEEP} has {len(parsed):,} values, more than {MOST_VALUES}")
    return SimulationSweep(axis, parsed)


@dataclass(frozen=True, slots=True)
class Swept:
    """Result of a sweep, as far as it got."""

    sweep: SimulationSweep
    accounts: Sequence[Account]
    """Of the first values, or all."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        axis, values = self.sweep.axis, self.sweep.values
        return {
            "sweep": axis.name,
            "complete": len(self.accounts) == len(values),
            "points": [
                {axis.name: value, **one.to_dict()}
                for value, one in zip(values, self.accounts, strict=False)
            ],
        }


# ---- Cases that were not measured

_CASE = "--case"
FAR = 10.0
"""Times beyond what was measured from which on nothing is predicted, unless that is requested."""
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
    """The cases that are requested, by each model of a file."""

    parameters: Sequence[ModelParameter]
    rows: Sequence[CasePrediction]


def predict(
    path: Path, requested: Sequence[str], engine: str | None, *, far: bool
) -> CasePredictions:
    """All combinations of the values that are requested, by each model of the file, or those of
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
    given = _given(requested, kind.parameters, kind.name)
    rows = []
    for model in chosen:
        for case in _cases(model, kind.parameters, given):
            if not far:
                _refuse_far(model, kind.parameters, case)
            rows.append(CasePrediction(model, case, model.expect(case)))
    return CasePredictions(kind.parameters, rows)


def _given(
    requested: Sequence[str], parameters: Sequence[ModelParameter], of: str
) -> dict[str, Sequence[float]]:
    known = {one.name: one for one in parameters}
    found: dict[str, Sequence[float]] = {}
    for text in requested:
        name, equals, values = text.partition("=")
        if not equals or name not in known:
            raise InputError(
                f"{_CASE}: `{shown(text)}` is not one of what decides about {of}",
                remedy=f"give {', '.join(f'{_CASE} {one}=...' for one in known)}",
            )
        if name in found:
            raise InputError(
                f"{_CASE}: {name} is given twice",
                remedy=f"give all values in one list, such as {_CASE} {name}=1,2",
            )
        found[name] = parse_list(f"{_CASE} {name}", values, _PARSE[known[name].unit])
    return found


def _cases(
    model: FittedModel, parameters: Sequence[ModelParameter], given: Mapping[str, Sequence[float]]
) -> list[dict[str, float]]:
    values = [given.get(one.name) or _usual(model.measured[one.name], one) for one in parameters]
    if math.prod(map(len, values)) > _MOST_CASES:
        raise InputError(f"{_CASE}: these are more than {_MOST_CASES:,} cases")
    names = [one.name for one in parameters]
    return [dict(zip(names, each, strict=True)) for each in product(*values)]


def _usual(span: Span, parameter: ModelParameter) -> Sequence[float]:
    """What nobody has given: the only one that was measured, or what is usual."""
    if span.low == span.high:
        return [span.low]
    if parameter.usual is not None:
        return [parameter.usual]
    raise InputError(
        f"{_CASE}: the model needs {parameter.name}",
        remedy=f"give {_CASE} {parameter.name}=...: {span.describe(parameter.shown)} were measured",
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
