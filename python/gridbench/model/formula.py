"""Formulas: times that are a sum of costs, and the costs that fit measured times best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.model.kind import ModelParameter

Cases = Mapping[str, Floats]
"""By the names of parameters, their values in some cases, each of shape (cases,)."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A term."""

    name: str
    meaning: str
    unit: Literal["s", "s/byte", "s/flop"]
    times: Callable[[Cases], Floats]
    """How often it counts, shape (cases,)."""
    crowded: bool = False
    """It takes longer where more share something than fill it."""


@dataclass(frozen=True, slots=True)
class FormulaPart:
    """A time that is measured by itself: the sum of its costs."""

    name: str
    what: str
    costs: tuple[Cost, ...]
    """Where some of them cannot be told apart, the earlier ones stand for the later ones."""
    sharing: str = ""
    """The parameter that says how many share what is crowded; empty: nothing is."""
    filled: str = ""
    """What the number is that fills it."""

    def columns(self, cases: Cases, crowd: Floats | float) -> list[Floats]:
        """How often each cost counts, and how many times as long it takes: one for each, of shape
        (cases,) or that of `crowd`."""
        return [
            np.asarray(cost.times(cases) * (crowd if cost.crowded else 1.0)) for cost in self.costs
        ]

    def crowd(self, cases: Cases, filled: float) -> Floats | float:
        """How many times as long it takes as for one alone."""
        return np.maximum(1.0, cases[self.sharing] / filled) if self.sharing else 1.0


@dataclass(frozen=True, slots=True)
class Formula:
    """What a benchmark's measurements are made of, one part after the other."""

    quantity: str
    """What the parts are together, in words."""
    noun: str
    """What a measurement is called."""
    parameters: tuple[ModelParameter, ...]
    parts: tuple[FormulaPart, ...]


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """A case that was measured."""

    values: Mapping[str, float]
    """Of the parameters, by name."""
    repeats: tuple[Mapping[str, float], ...]
    """Seconds of each part, by name, once for each repeat; at least one."""

    def time(self, part: str) -> float:
        """The median of the repeats, seconds."""
        return median(one[part] for one in self.repeats)

    @property
    def total(self) -> float:
        """The median of all parts together."""
        return median(sum(one.values()) for one in self.repeats)


def cases_of(values: Sequence[Mapping[str, float]]) -> Cases:
    """Cases by their parameters; at least one."""
    return {name: np.array([one[name] for one in values]) for name in values[0]}


_STEPS = 60
"""Places tried, on a logarithmic scale, for how many fill what they share."""


def least_squares(columns: Sequence[Floats], values: Floats) -> list[float]:
    """Coefficients, none below 0, for the least sum of squares of relative errors."""
    from scipy.optimize import nnls

    matrix = np.stack(columns, axis=1) / values[:, None]
    # Bytes and seconds are many powers of ten apart.
    scale = np.linalg.norm(matrix, axis=0)
    found, _ = nnls(matrix / scale, np.ones(len(values)))
    return [float(one) for one in found / scale]


def crowded_least_squares(
    columns: Callable[[Floats], Sequence[Floats]], sharing: Floats, values: Floats
) -> tuple[list[float], float, float]:
    """Coefficients; the sum of the squares of relative errors; and how many fill what they share:
    with fewer each gets what one alone gets, and with more each waits `sharing` over that number
    times as long.

    `columns` makes the columns of how many times as long each case waits, for all numbers that are
    tried at once: of shape (numbers, cases). `sharing` is how many there are in each case.
    """
    from scipy.optimize import nnls

    fills = np.geomspace(1.0, float(sharing.max()), _STEPS)
    crowds = np.maximum(1.0, sharing / fills[:, None])
    made = [np.broadcast_to(column, crowds.shape) for column in columns(crowds)]
    matrices = np.stack(made, axis=2) / values[:, None]
    scales = np.linalg.norm(matrices, axis=1)
    ones = np.ones(len(values))
    scaled = [nnls(one, ones)[0] for one in matrices / scales[:, None, :]]
    found = np.array(scaled) / scales
    errors = (matrices @ found[:, :, None])[:, :, 0] - 1
    squares = np.square(errors).sum(axis=1)
    best = int(np.argmin(squares))
    return found[best].tolist(), float(squares[best]), float(fills[best])


_SPARE = 1
"""Cases that there must be beyond the number of terms."""
_APART = 0.1
"""Share of a cost's column that those of the other costs do not explain. Below it, noise decides
which of them has the time."""
_DRAWS = 200
_SURE = 0.95
"""Of what chance does."""
_SEED = 1


@dataclass(frozen=True, slots=True)
class PartCosts:
    """What was found for a part."""

    values: Mapping[str, float]
    """Of the costs that the cases tell apart, by name; all others are in these."""
    filled: float | None
    """How many fill what they share; None: nothing is crowded, or all cases have as many."""

    def of(self, part: FormulaPart, cases: Cases) -> Floats:
        """Seconds that this part takes, shape (cases,)."""
        columns = part.columns(cases, part.crowd(cases, self.filled) if self.filled else 1.0)
        found = np.zeros(len(columns[0]))
        for cost, column in zip(part.costs, columns, strict=True):
            found += self.values.get(cost.name, 0.0) * column
        return found


FoundCosts = Mapping[str, PartCosts]
"""By the names of parts."""


def total(formula: Formula, found: FoundCosts, values: Mapping[str, float]) -> float:
    """Seconds that a case takes."""
    return sum(times(formula, found, values).values())


def times(formula: Formula, found: FoundCosts, values: Mapping[str, float]) -> dict[str, float]:
    """The same of each part."""
    case = cases_of([values])
    return {part.name: float(found[part.name].of(part, case)[0]) for part in formula.parts}


def needed(formula: Formula, points: Sequence[MeasuredCase]) -> int:
    """How many cases a fit to such points takes: one more than the terms that they tell apart."""
    cases = cases_of([one.values for one in points])
    return _SPARE + max(_terms(part, cases, _times(part, points)) for part in formula.parts)


def fit(formula: Formula, points: Sequence[MeasuredCase]) -> FoundCosts | None:
    """The costs, from the medians of the repeats; None if there are too few cases."""
    if not points or len(points) < needed(formula, points):
        return None
    cases = cases_of([one.values for one in points])
    return {part.name: _fit(part, cases, _times(part, points)) for part in formula.parts}


def drawn(formula: Formula, points: Sequence[MeasuredCase]) -> list[FoundCosts]:
    """Fits to repeats that are drawn at random from those of each case, as many as it has: how far
    they differ is how far the medians leave the costs open. Empty without repeats."""
    if all(len(one.repeats) == 1 for one in points):
        return []
    draw = np.random.default_rng(_SEED)
    found = []
    for _ in range(_DRAWS):
        chosen = [
            MeasuredCase(
                one.values,
                tuple(
                    one.repeats[again]
                    for again in draw.integers(len(one.repeats), size=len(one.repeats))
                ),
            )
            for one in points
        ]
        fitted = fit(formula, chosen)
        # Other repeats may tell more terms apart, for which there are too few cases.
        found += [] if fitted is None else [fitted]
    return found


def spread(errors: Sequence[float]) -> float:
    """The root of the mean square of relative errors, as logarithms of ratios."""
    logarithms = [math.log(max(1 + one, 1e-9)) for one in errors]
    return float(np.sqrt(np.mean(np.square(logarithms)))) if logarithms else 0.0


def _times(part: FormulaPart, points: Sequence[MeasuredCase]) -> Floats:
    return np.array([one.time(part.name) for one in points])


def _fit(part: FormulaPart, cases: Cases, values: Floats) -> PartCosts:
    names = _apart(part, cases, values)
    some, there = _with_time(cases, values)
    if not names:
        return PartCosts({}, None)

    def columns(crowd: Floats | float) -> list[Floats]:
        made = zip(part.costs, part.columns(some, crowd), strict=True)
        return [column for cost, column in made if cost.name in names]

    if _crowds(part, some):
        return _fit_crowded(names, columns, some[part.sharing], there)
    return PartCosts(dict(zip(names, least_squares(columns(1.0), there), strict=True)), None)


def _fit_crowded(
    names: Sequence[str],
    columns: Callable[[Floats | float], Sequence[Floats]],
    sharing: Floats,
    values: Floats,
) -> PartCosts:
    """Where many share something, they may take longer for that alone, or for a cost of each of
    them: a later cost is told apart from this only if it makes the errors clearly smaller."""
    best: tuple[int, list[float], float, float] | None = None
    for terms in range(1, len(names) + 1):

        def some(crowd: Floats, terms: int = terms) -> Sequence[Floats]:
            return columns(crowd)[:terms]

        found, error, filled = crowded_least_squares(some, sharing, values)
        free = len(values) - terms - 1
        if best is None or _clearly_less(error, best[2], terms - best[0], free):
            best = (terms, found, error, filled)
    assert best is not None, "there are names"
    return PartCosts(dict(zip(names, best[1], strict=False)), best[3])


def _clearly_less(error: float, before: float, more: int, free: int) -> bool:
    """Whether so many more terms take away more of a sum of squares than chance would, by an F
    test; `free`: how many more cases than terms there are."""
    if free < 1 or not error < before:
        return False
    if error == 0.0:
        return True
    from scipy.special import fdtri

    ratio = (before - error) / more / (error / free)
    return ratio > float(fdtri(more, free, _SURE))


def _with_time(cases: Cases, values: Floats) -> tuple[Cases, Floats]:
    """Without a time of nothing at all, such as the skew of a single worker: it has no relative
    error."""
    there = values > 0
    return {name: column[there] for name, column in cases.items()}, values[there]


def _terms(part: FormulaPart, cases: Cases, values: Floats) -> int:
    return len(_apart(part, cases, values)) + _crowds(part, _with_time(cases, values)[0])


def _crowds(part: FormulaPart, cases: Cases) -> bool:
    """Whether cases have different numbers of those that share something."""
    return bool(part.sharing) and len(np.unique(cases[part.sharing])) > 1


def _apart(part: FormulaPart, cases: Cases, values: Floats) -> list[str]:
    """The costs that can be told apart, in the order of the part."""
    some, there = _with_time(cases, values)
    names: list[str] = []
    known: list[Floats] = []
    for cost, column in zip(part.costs, part.columns(some, 1.0), strict=True):
        # Errors are relative, so that it counts by its share of the time.
        own = column / there
        left = own - sum((float(own @ one) * one for one in known), np.zeros_like(own))
        size, left_over = float(np.linalg.norm(own)), float(np.linalg.norm(left))
        if size and left_over > _APART * size:
            names.append(cost.name)
            known.append(left / left_over)
    return names
