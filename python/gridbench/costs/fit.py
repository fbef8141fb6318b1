"""Finding the costs of a formula from what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from gridbench.analysis.columns import Floats
from gridbench.costs.formula import Cases, Formula, Part, Point, cases_of
from gridbench.costs.least_squares import crowded_least_squares, least_squares

_SPARE = 1
"""Cases that there must be beyond the number of terms."""
_APART = 0.1
"""Share of a cost's column that those of the other costs do not explain, from which on it is told
apart from them. Below that, what scatters decides about it."""
_DRAWS = 200
_SURE = 0.95
"""Of what chance does."""
_SEED = 1


@dataclass(frozen=True, slots=True)
class Costs:
    """What was found for a part."""

    values: Mapping[str, float]
    """Of the costs that the cases tell apart, by name; all others are in these."""
    filled: float | None
    """How many fill what they share; None: nothing is crowded, or all cases have as many."""

    def of(self, part: Part, cases: Cases) -> Floats:
        """Seconds that this part takes, shape (cases,)."""
        columns = part.columns(cases, part.crowd(cases, self.filled) if self.filled else 1.0)
        found = np.zeros(len(columns[0]))
        for cost, column in zip(part.costs, columns, strict=True):
            found += self.values.get(cost.name, 0.0) * column
        return found


Found = Mapping[str, Costs]
"""By the names of parts."""


def total(formula: Formula, found: Found, values: Mapping[str, float]) -> float:
    """Seconds that a case takes."""
    return sum(times(formula, found, values).values())


def times(formula: Formula, found: Found, values: Mapping[str, float]) -> dict[str, float]:
    """The same of each part."""
    case = cases_of([values])
    return {part.name: float(found[part.name].of(part, case)[0]) for part in formula.parts}


def needed(formula: Formula, points: Sequence[Point]) -> int:
    """How many cases a fit to such points takes: one more than the terms that they tell apart."""
    cases = cases_of([one.values for one in points])
    return _SPARE + max(_terms(part, cases, _times(part, points)) for part in formula.parts)


def fit(formula: Formula, points: Sequence[Point]) -> Found | None:
    """The costs, from the medians of the repeats; None if there are too few cases."""
    if not points or len(points) < needed(formula, points):
        return None
    cases = cases_of([one.values for one in points])
    return {part.name: _fit(part, cases, _times(part, points)) for part in formula.parts}


def drawn(formula: Formula, points: Sequence[Point]) -> list[Found]:
    """Fits to repeats that are drawn at random from those of each case, as many as it has: how far
    they differ is how far the medians leave the costs open. Empty without repeats."""
    if all(len(one.repeats) == 1 for one in points):
        return []
    draw = np.random.default_rng(_SEED)
    found = []
    for _ in range(_DRAWS):
        chosen = [
            Point(
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


def _times(part: Part, points: Sequence[Point]) -> Floats:
    return np.array([one.time(part.name) for one in points])


def _fit(part: Part, cases: Cases, values: Floats) -> Costs:
    names = _apart(part, cases, values)
    some, there = _with_time(cases, values)
    if not names:
        return Costs({}, None)

    def columns(crowd: Floats | float) -> list[Floats]:
        made = zip(part.costs, part.columns(some, crowd), strict=True)
        return [column for cost, column in made if cost.name in names]

    if _crowds(part, some):
        return _fit_crowded(names, columns, some[part.sharing], there)
    return Costs(dict(zip(names, least_squares(columns(1.0), there), strict=True)), None)


def _fit_crowded(
    names: Sequence[str],
    columns: Callable[[Floats | float], Sequence[Floats]],
    sharing: Floats,
    values: Floats,
) -> Costs:
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
    return Costs(dict(zip(names, best[1], strict=False)), best[3])


def _clearly_less(error: float, before: float, more: int, free: int) -> bool:
    """Whether so many more terms take away more of a sum of squares than chance would, by an F
    test; `free`: how many more cases than terms there are."""
    if free < 1 or not error < before:
        return False
    if error == 0.0:
        return True
    ratio = (before - error) / more / (error / free)
    return ratio > float(special.fdtri(more, free, _SURE))


def _with_time(cases: Cases, values: Floats) -> tuple[Cases, Floats]:
    """Without a time of nothing at all, such as the skew of a single worker: it has no relative
    error."""
    there = values > 0
    return {name: column[there] for name, column in cases.items()}, values[there]


def _terms(part: Part, cases: Cases, values: Floats) -> int:
    return len(_apart(part, cases, values)) + _crowds(part, _with_time(cases, values)[0])


def _crowds(part: Part, cases: Cases) -> bool:
    """Whether cases have different numbers of those that share something."""
    return bool(part.sharing) and len(np.unique(cases[part.sharing])) > 1


def _apart(part: Part, cases: Cases, values: Floats) -> list[str]:
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
