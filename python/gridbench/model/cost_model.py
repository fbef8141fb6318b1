"""A model of costs: its terms, how wrong it is, and what it predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.model.formula import (
    Formula,
    FoundCosts,
    MeasuredCase,
    PartCosts,
    drawn,
    fit,
    needed,
    spread,
    times,
    total,
)
from gridbench.model.held_out import EACH, HeldOutErrors, models_without
from gridbench.model.kind import (
    BEYOND,
    LEAST_ERROR,
    CaseEstimate,
    Fitting,
    ModelParameter,
    Span,
    nobody,
    span_of,
    widening,
)

if TYPE_CHECKING:
    from gridbench.pages.document import Document


TOTAL = "all"
"""The name of all parts together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """What was found for a term."""

    part: str
    name: str
    meaning: str
    unit: Literal["s", "s/byte", "s/flop", ""]
    """None: it is a number of what shares something."""
    value: float | None
    """None: the cases do not tell it apart from the terms before it."""
    low: float | None = None
    """Of the 95 % interval over repeats; so too `high`. None: there were none."""
    high: float | None = None


@dataclass(frozen=True, slots=True)
class CostModel:
    """What is known of one engine or program, as `gridbench.model.kind.FittedModel`."""

    formula: Formula
    name: str
    told: str
    estimates: tuple[CostEstimate, ...]
    measured: Mapping[str, Span]
    cases: int
    repeats: int
    """Measurements of these cases."""
    uncounted: int
    """Cases without a valid measurement: their prediction claims nothing."""
    spread: float
    """Typical difference between model and cases, as logarithm of a ratio."""
    held_out: Mapping[str, tuple[HeldOutErrors, ...]]
    """By the names of parts, and `TOTAL`; none: not tried, or too few cases."""

    @property
    def quantity(self) -> str:
        """What it predicts."""
        return self.formula.quantity

    @property
    def found(self) -> FoundCosts:
        """Its costs."""
        costs = {}
        for part in self.formula.parts:
            own = [one for one in self.estimates if one.part == part.name]
            filled = next((one.value for one in own if not one.unit), None)
            known = {one.name: one.value for one in own if one.unit and one.value is not None}
            costs[part.name] = PartCosts(known, filled)
        return costs

    @property
    def error(self) -> float:
        """Of what it was not fitted to or, if nothing was held out, of what it was, as standard
        deviation of the logarithm of a ratio."""
        for one in self.held_out.get(TOTAL, ()):
            if one.what == EACH:
                return max(LEAST_ERROR, spread(one.errors))
        return max(LEAST_ERROR, self.spread)

    def expect(self, case: Mapping[str, float]) -> CaseEstimate:
        """What a case takes, with a range from how wrong the model is; outside of what was
        measured it is wider, by so much for each factor of distance."""
        parts = times(self.formula, self.found, case)
        distance = sum(span.distance(case[name]) for name, span in self.measured.items())
        factor = widening(math.hypot(self.error, BEYOND * distance))
        whole = sum(parts.values())
        return CaseEstimate(
            total=whole,
            low=whole / factor,
            high=whole * factor,
            parts=parts if len(parts) > 1 else {},
            outside=tuple(
                self.measured[one.name].outside(one.what, case[one.name], one.shown)
                for one in self.formula.parameters
                if not self.measured[one.name].holds(case[one.name])
            ),
        )

    def document(self) -> Document:
        """All that is known of it."""
        from gridbench.model.document import cost_document

        return cost_document(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSubject:
    """The cases of one engine or program, as `gridbench.model.kind.Subject`."""

    formula: Formula
    name: str
    told: str
    points: tuple[MeasuredCase, ...]
    uncounted: int = 0

    @property
    def count(self) -> int:
        """How many."""
        return len(self.points)

    def fits(self, *, test: bool) -> int:
        """How many fits that takes."""
        return 1 + (len(_ways(self.formula.parameters, self.points)) if test else 0)

    def fit(self, *, test: bool, fitting: Fitting = nobody) -> CostModel:
        """The model of these cases. InputError if there are too few."""
        fitting(f"all {self.formula.noun}s")
        formula, points = self.formula, self.points
        found = fit(formula, points)
        if found is None:
            missing = needed(formula, points) - len(points)
            varied = " or ".join(one.what for one in formula.parameters)
            raise InputError(
                f"{counted(len(points), formula.noun)} cannot tell so many costs apart: at least"
                f" {missing} more must be measured",
                remedy=f"measure with another {varied} too",
            )
        measured = {
            one.name: span_of(point.values[one.name] for point in points)
            for one in formula.parameters
        }
        errors = [total(formula, found, one.values) / one.total - 1 for one in points]
        return CostModel(
            formula=formula,
            name=self.name,
            told=self.told,
            estimates=_estimates(formula, found, drawn(formula, points)),
            measured=measured,
            cases=len(points),
            repeats=sum(len(one.repeats) for one in points),
            uncounted=self.uncounted,
            spread=spread(errors),
            held_out=_held_out(formula, points, fitting) if test else {},
        )


def _estimates(
    formula: Formula, found: FoundCosts, others: Sequence[FoundCosts]
) -> tuple[CostEstimate, ...]:
    made = []
    for part in formula.parts:
        own = found[part.name]
        for cost in part.costs:
            seen = [one[part.name].values.get(cost.name) for one in others]
            made.append(
                CostEstimate(
                    part=part.name,
                    name=cost.name,
                    meaning=cost.meaning,
                    unit=cost.unit,
                    value=own.values.get(cost.name),
                    **_ends(own.values.get(cost.name), seen),
                )
            )
        if part.sharing:
            made.append(
                CostEstimate(
                    part=part.name,
                    name="filled",
                    meaning=part.filled,
                    unit="",
                    value=own.filled,
                    **_ends(own.filled, [one[part.name].filled for one in others]),
                )
            )
    return tuple(made)


def _ends(value: float | None, seen: Sequence[float | None]) -> dict[str, float | None]:
    """Low and high of the interval: it holds the value, which is of the medians."""
    known = [one for one in seen if one is not None]
    if value is None or not known:
        return {"low": None, "high": None}
    low, high = (float(np.percentile(known, end)) for end in (2.5, 97.5))
    return {"low": min(low, value), "high": max(high, value)}


def _held_out(
    formula: Formula, points: Sequence[MeasuredCase], fitting: Fitting
) -> dict[str, tuple[HeldOutErrors, ...]]:
    errors: dict[str, list[HeldOutErrors]] = {}
    for what, parts in _ways(formula.parameters, points):
        fitting(f"all but {what}")
        pairs = models_without(points, parts, lambda rest: fit(formula, rest))
        if not pairs:
            continue
        expected = [times(formula, found, point.values) for point, found in pairs]
        measured = [point for point, _ in pairs]
        of_all = [
            sum(one.values()) / point.total - 1
            for one, point in zip(expected, measured, strict=True)
        ]
        errors.setdefault(TOTAL, []).append(HeldOutErrors(what=what, errors=tuple(of_all)))
        for part in formula.parts if len(formula.parts) > 1 else ():
            own = [
                one[part.name] / point.time(part.name) - 1
                for one, point in zip(expected, measured, strict=True)
                if point.time(part.name) > 0
            ]
            if own:
                errors.setdefault(part.name, []).append(HeldOutErrors(what=what, errors=tuple(own)))
    return {name: tuple(ways) for name, ways in errors.items()}


def _ways(
    parameters: Sequence[ModelParameter], points: Sequence[MeasuredCase]
) -> list[tuple[str, list[list[MeasuredCase]]]]:
    """Each case in turn, and all with the largest value of each parameter that varies, unless they
    are most of the cases."""
    ways = [(EACH, [[one] for one in points])]
    for one in parameters:
        largest = max(point.values[one.name] for point in points)
        held = [point for point in points if point.values[one.name] == largest]
        if 2 * len(held) <= len(points):
            most = "largest" if one.unit else "most"
            ways.append((f"the {most} {one.what}: {one.shown(largest)}", [held]))
    return ways
