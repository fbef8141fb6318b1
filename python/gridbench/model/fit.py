"""Finding an engine's terms from runs, and how well the runs determine them.

Searches for each shape begin on some of the runs, at the guesses and elsewhere (least_squares.py).
The best continue with all runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.model.kind import SearchWatch
from gridbench.model.least_squares import SearchCount, SearchEnd, TermEstimate, TermSearch
from gridbench.model.observation import EnginePlace, Observation
from gridbench.model.terms import Movement, Shape, relevant, terms_of

_MOST_TRIED = 60
"""Runs on which a search begins, for each shape."""
_MOST_TASKS = 40_000
"""Of all runs that a search continues with."""
_NEAR = 1.5
"""Times the cost of the best shape, up to which another may still be better on all runs."""
MORE_STARTS = 6
"""Searches besides the one from the guesses, for such shapes."""
_SMALL = 300
"""Tasks of a run that takes no long to evaluate."""
_GOING_ON = 2
"""Of these searches on few runs, so many are gone on with on all."""
_SPARE = 3
"""Runs that there must be beyond the number of terms."""


@dataclass(frozen=True, slots=True)
class PipelineFit:
    """The terms of an engine in a place."""

    place: EnginePlace
    shape: Shape
    estimates: tuple[TermEstimate, ...]
    runs: int
    """That it was fitted to."""
    known: int
    """Number of runs from which these were drawn."""
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
    count = SearchCount(1, watch)
    problems = [TermSearch(one, place, some, count) for one in shapes]
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
    problems: Sequence[TermSearch], count: SearchCount, more_starts: int, begin: Mapping[str, float]
) -> tuple[list[tuple[Shape, float]], list[tuple[TermSearch, SearchEnd]]]:
    """Shapes that the runs tell apart, with the costs of a search from the beginning, the best
    first; and where some of the searches have ended, to continue from there."""
    count.more(len(problems))
    firsts: list[tuple[TermSearch, SearchEnd]] = []
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
