"""Least squares for the terms of an engine, for one shape.

The terms are multiples of their guesses, with a loss that lets single runs that went wrong pull
little. A search over their logarithms would lose terms: one that has become small has no slope
there, and does not come back. A weak pull towards the initial guess holds terms that the runs do
not determine. Their intervals are wide, and they are not shown as results.

Differences are logarithms of ratios, so that a tenth too long counts alike in runs of 0.1 s and of
100 s. What is less than a run can tell (`_FLOOR` and `_PART` of its total) does not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gridbench.analysis.columns import Floats, Integers
from gridbench.model.kind import SearchWatch
from gridbench.model.observation import EnginePlace, Observation
from gridbench.model.pipeline import PipelineCase, PipelineParameters, figures
from gridbench.model.terms import Shape, Term, case_of, parameters_of, relevant, terms_of

_FLOOR = 0.001
"""Seconds."""
_PART = 0.005
_SURE = 0.1
"""Standard error of the logarithm of a case's overhead from which on it counts clearly less."""
_WEIGHTS = (1.0, 0.4, 0.4, 0.3)
"""Of overhead, first calc-in, last worker's first calc-in, and extra time of tasks."""
QUANTITIES = len(_WEIGHTS)
_TYPICAL = 0.1
"""Weighted difference from which on one pulls less and less."""
_PULL = 8.0
"""Standard deviation of the pull to the initial guess, of the logarithm: it is next to nothing."""
_COARSE, _FINE = (0.1, 0.05), (0.03, 0.01)
"""For derivatives: a share of the term, and at least of its guess. A search begins with coarse
ones, which look over the steps of a simulation with few tasks, and ends with fine ones."""
_WIDE = 2.5
"""A term is not determined if its interval reaches to more than so many times its value."""
_INSIDE = 1.5
"""How far from the ends of what a term may be a search begins."""
_CONFIDENCE = 0.95
_WIDER = 2.5
"""Times as wide as if totals were straight lines over the terms: of six sets of runs with known
terms, 93 % lie inside then."""
_LEAST_VARIANCE = 1e-8
"""Of weighted differences; no fit is better than its steps."""
_MOST_STEPS = 20
"""Of a search, with each size of steps for derivatives."""
_APART = 1.0
"""How far from the guesses other searches begin, which end in different valleys: a standard
deviation, of the logarithm."""
_AGAIN, _MOST_TIMES = 0.01, 3
"""A search on all runs begins again where it has ended as long as that takes more than this part
off the cost, at most so many times."""
_EXACT, _ROUGH = 1e-4, 0.005
"""What the cost may still change by, as a part of it; where beginnings and shapes are compared."""


class Yardstick:
    """Runs that models are held against."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        measured = [one.measured for one in observations]
        totals = np.array([one.total for one in measured])
        self._ideal = np.array([one.ideal for one in observations])
        self._floor = (_FLOOR + _PART * totals)[:, np.newaxis]
        overheads = np.array(
            [
                (one.total - run.ideal, one.first_calc_in, one.last_worker_calc_in, one.extra)
                for run, one in zip(observations, measured, strict=True)
            ]
        ).reshape(len(observations), QUANTITIES)
        self._measured = np.log(np.maximum(overheads, 0.0) + self._floor)
        # Those of a case whose runs differ among each other count less.
        doubts = [math.hypot(1, one.uncertainty / _SURE) for one in observations]
        self._weights = np.array(_WEIGHTS) / np.array(doubts)[:, np.newaxis]
        # What a run does not tell counts nothing.
        self._weights[np.isnan(self._measured)] = 0.0
        self._measured = np.nan_to_num(self._measured)

    def differences(self, runs: Integers, figures: Floats) -> Floats:
        """Weighted differences, shape (n, `QUANTITIES`); above 0 where the model takes longer.

        `runs` are the numbers of those that models are held against, shape (n,), and `figures`
        what the models say of them, as `pipeline.figures` gives it.
        """
        ours = figures.copy()
        ours[:, 0] -= self._ideal[runs]
        logarithms = np.log(np.maximum(ours, 0.0) + self._floor[runs])
        return np.asarray(self._weights[runs] * (logarithms - self._measured[runs]))


@dataclass(frozen=True, slots=True)
class TermEstimate:
    """What was found for a term."""

    term: Term
    value: float
    low: float
    """Of the 95 % interval; so too `high`."""
    high: float
    determined: bool
    """The runs say what it is; otherwise they say at most that it is below `high`."""


class SearchCount:
    """Of searches, for who watches."""

    def __init__(self, planned: int, watch: SearchWatch | None) -> None:
        self._done, self._planned, self._watch = 0, planned, watch

    def more(self, planned: int) -> None:
        self._planned += planned

    def done(self) -> None:
        self._done += 1
        self.tell()

    def tell(self) -> None:
        if self._watch:
            self._watch(self._done, self._planned)


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """Where the search has ended."""

    at: Floats
    cost: float


class TermSearch:
    """Least squares for one shape. The unknowns are the terms as multiples of their guesses, shape
    (terms,)."""

    def __init__(
        self,
        shape: Shape,
        place: EnginePlace,
        observations: Sequence[Observation],
        count: SearchCount,
    ) -> None:
        self.shape = shape
        self._place = place
        self._observations = observations
        self._cases = [case_of(place, one.situation) for one in observations]
        self._yardstick = Yardstick(observations)
        self._count = count
        self._terms = relevant(terms_of(shape), [one.situation for one in observations])
        self._guess = np.array([term.guess for term in self._terms])
        self._known: tuple[bytes, Floats] = (b"", np.empty(0))
        """Where the residuals were wanted last, and what they are."""

    def search(self, begin: Mapping[str, float], most_change: float = _ROUGH) -> SearchEnd:
        """With coarse derivatives, and then with fine ones."""
        rough = self.solve(begin, _COARSE, _ROUGH)
        found = self.solve(self.values(rough.at), _FINE, most_change)
        self._count.done()
        return found

    def with_all(
        self, observations: Sequence[Observation], found: SearchEnd
    ) -> tuple[TermSearch, SearchEnd]:
        """The same of more runs, and where a search ends that begins where this one's has ended."""
        problem = TermSearch(self.shape, self._place, observations, self._count)
        return problem, problem.search(self.values(found.at))

    def is_as(self, other: TermSearch, found: SearchEnd) -> bool:
        """Whether both shapes say the same of the runs, where the search for the other has ended:
        without data it does not matter how that travels."""
        return self._terms == other._terms and np.array_equal(
            self._residuals(found.at), other._residuals(found.at)
        )

    def settle(self, found: SearchEnd) -> SearchEnd:
        """Search on from there for as long as that gains."""
        for _ in range(_MOST_TIMES):
            last = found
            self._count.more(1)
            found = self.search(self.values(last.at), _EXACT)
            if found.cost > last.cost * (1 - _AGAIN):
                return min(found, last, key=lambda one: one.cost)
        return found

    def elsewhere(self, number: int) -> list[dict[str, float]]:
        """Other beginnings around the guesses, drawn with a seed."""
        random = np.random.default_rng(1)
        begins = np.exp(random.normal(0, _APART, (number, len(self._terms))))
        return [self.values(at) for at in begins]

    def solve(
        self, begin: Mapping[str, float], steps: tuple[float, float], most_change: float = _EXACT
    ) -> SearchEnd:
        """Search from these values on, or the guesses, until the cost changes by less than this
        part of it."""
        from scipy.optimize import least_squares

        start = np.array([begin.get(term.name, term.guess) for term in self._terms])
        low = np.array([term.low for term in self._terms])
        high = np.array([term.high for term in self._terms])
        result = least_squares(
            lambda at: np.concatenate([self._residuals(at).ravel(), self._pull(at)]),
            np.clip(start, low * _INSIDE, high / _INSIDE) / self._guess,
            jac=lambda at: self._with_pull(at, steps),
            bounds=(low / self._guess, high / self._guess),
            loss="soft_l1",
            f_scale=_TYPICAL,
            xtol=1e-4,
            ftol=most_change,
            max_nfev=_MOST_STEPS,
        )
        return SearchEnd(np.asarray(result.x, dtype=np.float64), float(result.cost))

    def spread(self, found: SearchEnd) -> float:
        """Robust standard deviation of the differences of totals."""
        return float(np.median(np.abs(self._residuals(found.at)[:, 0])) / 0.6745)

    def estimates(self, found: SearchEnd, reaches: Floats) -> tuple[TermEstimate, ...]:
        """The terms with their intervals. `reaches`: half widths of these, as logarithms."""
        return tuple(
            _estimate(term, middle, reach)
            for term, middle, reach in zip(
                self._terms, np.log(found.at * self._guess), reaches, strict=True
            )
        )

    def covariance(self, found: SearchEnd) -> tuple[Floats, float]:
        """Of the logarithms; and how many standard deviations an interval reaches to either side.

        The larger of two: of the curvature with the spread of all residuals, and of how much the
        residuals of single runs pull, which holds also when those of one run go together.
        """
        from scipy.special import stdtrit

        at = found.at
        residuals, jacobian = self._residuals(at), self._jacobian(at, _FINE) * at
        runs, unknowns = len(residuals), len(at)
        weights = 1 / np.sqrt(1 + (residuals / _TYPICAL) ** 2)
        free = max(1, runs - unknowns)
        variance = float((weights * residuals**2).sum() / weights.sum()) * runs / free
        variance = max(variance, _LEAST_VARIANCE)
        weighted = jacobian * weights[:, :, np.newaxis]
        curvature = np.einsum("rqi,rqj->ij", weighted, jacobian)
        # The pull, as if the guess were one more observation of each term.
        curvature += np.eye(unknowns) * variance / _PULL**2
        inverse = np.linalg.pinv(curvature)
        pulls = np.einsum("rqi,rq->ri", weighted, residuals)
        sandwich = inverse @ (pulls.T @ pulls) @ inverse * (runs / free)
        both = inverse * variance
        larger = np.sqrt(np.maximum(1.0, np.diag(sandwich) / np.diag(both)))
        reach = _WIDER * float(stdtrit(free, 0.5 + _CONFIDENCE / 2))
        return both * np.outer(larger, larger), reach

    def values(self, at: Floats) -> dict[str, float]:
        """By name."""
        names = [term.name for term in self._terms]
        return dict(zip(names, (self._guess * at).tolist(), strict=True))

    def _residuals(self, at: Floats) -> Floats:
        """Shape (runs, quantities)."""
        if self._known[0] != at.tobytes():
            rows = range(len(self._observations))
            residuals = self._evaluate(rows, self._jobs(self.values(at), rows))
            self._known = (at.tobytes(), residuals)
        return self._known[1]

    def _jacobian(self, at: Floats, steps: tuple[float, float]) -> Floats:
        """Shape (runs, quantities, terms). A term is tried only in runs that it touches."""
        rows: list[int] = []
        columns: list[int] = []
        jobs: list[tuple[PipelineCase, PipelineParameters]] = []
        share, least = steps
        each = np.maximum(share * at, least)
        for column, term in enumerate(self._terms):
            step = np.zeros(len(at))
            step[column] = each[column]
            touched = [
                row for row, one in enumerate(self._observations) if term.touches(one.situation)
            ]
            rows += touched
            columns += [column] * len(touched)
            jobs += self._jobs(self.values(at + step), touched)
        base = self._residuals(at)
        jacobian = np.zeros((len(self._observations), QUANTITIES, len(at)))
        moved = self._evaluate(rows, jobs) - base[rows]
        jacobian[rows, :, columns] = moved / each[columns, np.newaxis]
        return jacobian

    def _pull(self, at: Floats) -> Floats:
        return np.asarray(np.log(at) * (_TYPICAL / _PULL), dtype=np.float64)

    def _with_pull(self, at: Floats, steps: tuple[float, float]) -> npt.NDArray[np.float64]:
        data = self._jacobian(at, steps)
        self._count.tell()
        return np.concatenate([*data, np.diag(_TYPICAL / _PULL / at)])

    def _jobs(
        self, values: Mapping[str, float], rows: Sequence[int]
    ) -> list[tuple[PipelineCase, PipelineParameters]]:
        """For some of the observations, by number: what the model is given."""
        known: dict[tuple[bool, float, float], PipelineParameters] = {}
        jobs = []
        for row in rows:
            its = self._observations[row].situation
            key = (its.warm, its.bytes_in, its.most_outstanding)
            if key not in known:
                known[key] = parameters_of(self.shape, values, self._place, its)
            jobs.append((self._cases[row], known[key]))
        return jobs

    def _evaluate(
        self, rows: Sequence[int], jobs: Sequence[tuple[PipelineCase, PipelineParameters]]
    ) -> Floats:
        """Weighted differences of these observations, shape (rows, quantities)."""
        return self._yardstick.differences(np.array(rows, dtype=np.int64), figures(jobs))


def _estimate(term: Term, middle: float, reach: float) -> TermEstimate:
    determined = reach < math.log(_WIDE) and middle > math.log(term.low) + 0.1
    value = math.exp(middle)
    low = max(term.low, math.exp(middle - reach)) if determined else term.low
    high = min(term.high, math.exp(middle + reach))
    return TermEstimate(term, value, min(value, low), max(value, high), bool(determined))
