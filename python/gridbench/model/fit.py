"""Finding an engine's terms from runs, and how well the runs determine them.

Least squares over the terms, each in multiples of its guess, with a loss that lets single runs that
went wrong pull little. A search over their logarithms would lose terms: one that has become small
has no slope there, and does not come back. A weak pull towards the initial guess holds terms that
the runs say nothing of; such terms are told apart by the width of their interval, and not shown as
results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.model.comparison import QUANTITIES, Yardstick
from gridbench.model.kind import SearchWatch
from gridbench.model.observation import EnginePlace, Observation
from gridbench.model.pipeline import PipelineCase, PipelineParameters, figures
from gridbench.model.terms import Movement, Shape, Term, case_of, parameters_of, relevant, terms_of

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
_MOST_TRIED = 60
"""Runs on which a search begins, for each shape."""
_MOST_TASKS = 40_000
"""Of all runs that a search goes on with."""
_MOST_STEPS = 20
"""Of a search, with each size of steps for derivatives."""
_NEAR = 1.5
"""Times the cost of the best shape, up to which another may still be better on all runs."""
MORE_STARTS, _APART = 6, 1.0
"""Searches besides the one from the guesses, for such shapes, and how far from those
they begin: a standard deviation, of the logarithm. They end in different valleys."""
_SMALL = 300
"""Tasks of a run that takes no long to evaluate."""
_GOING_ON = 2
"""Of these searches on few runs, so many are gone on with on all."""
_AGAIN, _MOST_TIMES = 0.01, 3
"""A search on all runs begins again where it has ended as long as that takes more than this part
off the cost, at most so many times."""
_EXACT, _ROUGH = 1e-4, 0.005
"""What the cost may still change by, as a part of it; where beginnings and shapes are compared."""
_SPARE = 3
"""Runs that there must be beyond the number of terms."""


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


@dataclass(frozen=True, slots=True)
class PipelineFit:
    """The terms of an engine in a place."""

    place: EnginePlace
    shape: Shape
    estimates: tuple[TermEstimate, ...]
    runs: int
    """That it was fitted to."""
    known: int
    """Runs of which these were drawn."""
    covariance: Floats
    """Of the logarithms of the terms, shape (terms, terms)."""
    spread: float
    """Typical difference between model and runs, as logarithm of a ratio."""
    tried: tuple[tuple[Shape, float], ...]
    """Shapes, each with the cost of its fit to some of the runs; the best first."""

    @property
    def values(self) -> dict[str, float]:
        """By name."""
        return {one.term.name: one.value for one in self.estimates}


def fit(
    observations: Sequence[Observation],
    *,
    shape: Shape | None = None,
    watch: SearchWatch | None = None,
    few: bool = False,
    starts: int = MORE_STARTS,
    begin: Mapping[str, float] | None = None,
) -> PipelineFit:
    """The model of the one engine that `observations` are of.

    Without a shape all are tried that fit the place, on some of the runs. Raises InputError if
    there are too few runs, and says which are missing. Half as many do for one who knows that they
    are `few`, and has chosen them well. Searches begin at the terms `begin`, such as those of a fit
    to fewer runs, or at the guesses, and in so many other places.
    """
    place = one_place(observations)
    shapes = [shape] if shape else shapes_of(place)
    refuse_too_few(observations, shapes, few=few)
    many = _affordable(observations)
    # A search takes as many evaluations on few runs as on many, so most of it is done on few.
    some = _some(many)
    count = _Count(1, watch)
    problems = [_Problem(one, place, some, count) for one in shapes]
    tried, ends = _compared(problems, count, starts, begin or {})
    if len(some) < len(many):
        count.more(len(ends))
        ends = [problem.with_all(many, found) for problem, found in ends]
    problem, found = min(ends, key=lambda end: end[1].cost)
    found = problem.settle(found)
    covariance, reach = problem.covariance(found)
    count.done()
    return PipelineFit(
        place=place,
        shape=problem.shape,
        estimates=problem.estimates(found, np.sqrt(np.diag(covariance)) * reach),
        covariance=covariance,
        runs=len(many),
        known=len(observations),
        spread=problem.spread(found),
        tried=tuple(tried),
    )


def _compared(
    problems: Sequence[_Problem], count: _Count, more_starts: int, begin: Mapping[str, float]
) -> tuple[list[tuple[Shape, float]], list[tuple[_Problem, _SearchEnd]]]:
    """Shapes that the runs tell apart, with the costs of a search from the beginning, the best
    first; and where some of the searches have ended, to go on from there."""
    count.more(len(problems))
    firsts: list[tuple[_Problem, _SearchEnd]] = []
    for problem in problems:
        if any(problem.is_as(*first) for first in firsts):
            count.done()
        else:
            firsts.append((problem, problem.search(begin)))
    firsts.sort(key=lambda first: first[1].cost)
    tried = [(problem.shape, found.cost) for problem, found in firsts]
    near = [first for first in firsts if first[1].cost <= _NEAR * firsts[0][1].cost]
    count.more(len(near) * more_starts)
    ends = []
    for problem, first in near:
        found = [first, *map(problem.search, problem.elsewhere(more_starts))]
        found.sort(key=lambda one: one.cost)
        ends += [(rank, one.cost, problem, one) for rank, one in enumerate(found)]
    # The best of each shape come first: what is least on few runs need not be so on all.
    ends.sort(key=lambda end: end[:2])
    return tried, [(problem, one) for _, _, problem, one in ends[:_GOING_ON]]


def one_place(observations: Sequence[Observation]) -> EnginePlace:
    """Of all observations; InputError if they are of several."""
    if not observations:
        raise InputError("there are no runs to fit a model to", remedy="measure some first")
    places = {one.place for one in observations}
    if len(places) > 1:
        raise InputError(
            "these runs are of different engines, versions, machines or links",
            remedy="fit one model to the runs of each",
        )
    return observations[0].place


def shapes_of(place: EnginePlace) -> list[Shape]:
    """Those that an engine in this place may have.

    One that gives data memory of its own is gridrpc, and how that works is known: workers take
    tasks as they come up, and data is copied where there is no network.
    """
    movements: tuple[Movement, ...] = ("copies", "pipe")
    if place.transport != "one host":
        movements = ("network",)
    if place.kept_from:
        return [Shape(movement=movements[0])]
    return [Shape(all_first, how) for how, all_first in product(movements, (False, True))]


def refuse_too_few(
    observations: Sequence[Observation], shapes: Sequence[Shape], *, few: bool = False
) -> None:
    """InputError that says what is missing, if the model cannot be found from these runs."""
    situations = [one.situation for one in observations]
    terms = max((relevant(terms_of(shape), situations) for shape in shapes), key=len)
    missing = []
    needed = len(terms) + _SPARE
    # Each run has several figures; two of them, at least, do not go together.
    if (short := (-(-needed // 2) if few else needed) - len(observations)) > 0:
        missing.append(
            f"{short} more run{'s' if short != 1 else ''}, as {len(terms)} terms are to be found"
        )
    if len({one.cores for one in situations}) < 2:
        missing.append("runs with another number of cores")
    if len({one.tasks / one.cores for one in situations}) < 2:
        missing.append("runs with more tasks on each core")
    for what, sizes in (
        ("task data", {one.bytes_in for one in situations}),
        ("shared data", {one.bytes_shared for one in situations}),
        ("output data", {one.bytes_out for one in situations}),
    ):
        if len(sizes) == 1 and sizes != {0.0}:
            missing.append(f"runs with another size of {what}, or without")
    if missing:
        verb = "is" if len(observations) == 1 else "are"
        raise InputError(
            f"{counted(len(observations), 'run')} {verb} too few"
            " to fit a model to; missing are " + "; ".join(missing),
            remedy="give more logs of this system"
            if observations[0].place.transport == "network"
            else "measure them with `gridbench run` or `gridbench scenario`",
        )


def _affordable(observations: Sequence[Observation]) -> list[Observation]:
    """All of them, or as many, drawn with a seed, as have no more than so many tasks together."""
    left = _MOST_TASKS
    drawn = []
    for index in np.random.default_rng(1).permutation(len(observations)):
        if (tasks := observations[index].situation.tasks) <= left:
            left -= tasks
            drawn.append(int(index))
    # Runs that are all too large to afford more than some are all taken.
    return (
        [observations[index] for index in sorted(drawn)]
        if len(drawn) >= _MOST_TRIED
        else list(observations)
    )


def _some(observations: Sequence[Observation]) -> list[Observation]:
    """At most `_MOST_TRIED` of them, drawn with a seed, without those that take long to evaluate
    if there are enough others."""
    small = [one for one in observations if one.situation.tasks <= _SMALL]
    among = small if len(small) >= _MOST_TRIED else list(observations)
    if len(among) <= _MOST_TRIED:
        return among
    chosen = np.random.default_rng(1).choice(len(among), _MOST_TRIED, replace=False)
    return [among[index] for index in sorted(chosen)]


class _Count:
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
class _SearchEnd:
    """Where the search has ended."""

    at: Floats
    cost: float


class _Problem:
    """Least squares for one shape. The unknowns are the terms as multiples of their guesses, shape
    (terms,)."""

    def __init__(
        self,
        shape: Shape,
        place: EnginePlace,
        observations: Sequence[Observation],
        count: _Count,
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

    def search(self, begin: Mapping[str, float], most_change: float = _ROUGH) -> _SearchEnd:
        """With coarse derivatives, and then with fine ones."""
        rough = self.solve(begin, _COARSE, _ROUGH)
        found = self.solve(self.values(rough.at), _FINE, most_change)
        self._count.done()
        return found

    def with_all(
        self, observations: Sequence[Observation], found: _SearchEnd
    ) -> tuple[_Problem, _SearchEnd]:
        """The same of more runs, and where a search ends that begins where this one's has ended."""
        problem = _Problem(self.shape, self._place, observations, self._count)
        return problem, problem.search(self.values(found.at))

    def is_as(self, other: _Problem, found: _SearchEnd) -> bool:
        """Whether both shapes say the same of the runs, where the search for the other has ended:
        without data it does not matter how that travels."""
        return self._terms == other._terms and np.array_equal(
            self._residuals(found.at), other._residuals(found.at)
        )

    def settle(self, found: _SearchEnd) -> _SearchEnd:
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
    ) -> _SearchEnd:
        """Search from these values on, or the guesses, until the cost changes by less than this
        part of it."""
        start = np.array([begin.get(term.name, term.guess) for term in self._terms])
        low = np.array([term.low for term in self._terms])
        high = np.array([term.high for term in self._terms])
        result = optimize.least_squares(
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
        return _SearchEnd(np.asarray(result.x, dtype=np.float64), float(result.cost))

    def spread(self, found: _SearchEnd) -> float:
        """Robust standard deviation of the differences of totals."""
        return float(np.median(np.abs(self._residuals(found.at)[:, 0])) / 0.6745)

    def estimates(self, found: _SearchEnd, reaches: Floats) -> tuple[TermEstimate, ...]:
        """The terms with their intervals, of which `reaches` are half, as logarithms."""
        return tuple(
            _estimate(term, middle, reach)
            for term, middle, reach in zip(
                self._terms, np.log(found.at * self._guess), reaches, strict=True
            )
        )

    def covariance(self, found: _SearchEnd) -> tuple[Floats, float]:
        """Of the logarithms; and how many standard deviations an interval reaches to either side.

        The larger of two: of the curvature with the spread of all residuals, and of how much the
        residuals of single runs pull, which holds also when those of one run go together.
        """
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
        reach = _WIDER * float(special.stdtrit(free, 0.5 + _CONFIDENCE / 2))
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
