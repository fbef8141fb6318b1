"""Held-out validation: how wrong a model is about measurements that it was not fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gridbench.errors import InputError
from gridbench.formats import percent, size
from gridbench.model.fit import PipelineFit, fit
from gridbench.model.kind import Fitting, nobody
from gridbench.model.observation import Observation, alike
from gridbench.model.terms import Shape, run

EACH = "each case in turn"
"""A way of holding cases out."""

C = TypeVar("C")
M = TypeVar("M")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutErrors:
    """The errors of one way of holding cases out."""

    what: str
    errors: tuple[float, ...]
    """Predicted less measured, as a share of the measured."""

    @property
    def typical(self) -> float:
        """The median of their sizes."""
        return float(np.median(np.abs(self.errors)))

    @property
    def largest(self) -> float:
        """Of their sizes."""
        return float(np.abs(self.errors).max())


def models_without(
    cases: Sequence[C], parts: Sequence[Sequence[C]], fit: Callable[[Sequence[C]], M | None]
) -> list[tuple[C, M]]:
    """Each case of the parts, with the model that is fitted to all cases but those of its part;
    empty if too few are left for one of them."""
    found: list[tuple[C, M]] = []
    for part in parts:
        model = fit([case for case in cases if case not in part])
        if model is None:
            return []
        found += [(case, model) for case in part]
    return found


WAYS = 3
"""Of holding runs out."""
SHARE = 0.3
"""Of all runs, drawn with a seed."""
WEIGHTY = 0.2
"""Share of the total from which on an overhead is worth predicting: below, it is mostly noise."""


@dataclass(frozen=True, slots=True)
class HeldOutCase:
    """A run that was held out; seconds."""

    name: str
    measured: float
    predicted: float
    ideal: float

    @property
    def weighty(self) -> bool:
        """Its overhead is a good part of it."""
        return self.measured - self.ideal >= WEIGHTY * self.measured

    @property
    def overhead_error(self) -> float:
        """Of the overhead, as a share of the measured."""
        return (self.predicted - self.measured) / (self.measured - self.ideal)

    @property
    def total_error(self) -> float:
        """Of the total, as a share of the measured."""
        return (self.predicted - self.measured) / self.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRuns:
    """One way of holding runs out."""

    name: str
    """"random", "cores" (all of the largest number) or "size" (all of the largest data)."""
    what: str
    """In words."""
    fitted: int
    """Runs that the model was fitted to."""
    cases: tuple[HeldOutCase, ...] = ()
    refused: str = ""
    """Why it could not be done."""

    @property
    def weighty(self) -> tuple[HeldOutCase, ...]:
        """Cases by whose overhead it is judged."""
        return tuple(case for case in self.cases if case.weighty)

    def overhead(self, percentile: float) -> float:
        """Percentile of the sizes of errors of the overhead, over weighty cases; NaN: none."""
        return _percentile([abs(case.overhead_error) for case in self.weighty], percentile)

    def total(self, percentile: float) -> float:
        """The same of the total, over all cases."""
        return _percentile([abs(case.total_error) for case in self.cases], percentile)

    @property
    def spread(self) -> float:
        """Robust standard deviation of the logarithm of predicted by measured overhead; 0: none."""
        ratios = [
            math.log((case.predicted - case.ideal) / (case.measured - case.ideal))
            for case in self.weighty
            if case.predicted > case.ideal
        ]
        return float(np.median(np.abs(ratios)) / 0.6745) if ratios else 0.0


def held_out(
    observations: Sequence[Observation],
    *,
    shape: Shape | None = None,
    fitting: Fitting = nobody,
) -> tuple[HeldOutRuns, ...]:
    """All three ways; each fits a model of its own to the other runs, its shape included if none
    is given."""
    chosen = np.random.default_rng(1).random(len(observations)) < SHARE
    drawn = {one.name for one, out in zip(observations, chosen, strict=True) if out}
    most_cores = max(one.situation.cores for one in observations)
    largest = max(map(_largest, observations))
    ways: tuple[tuple[str, str, Callable[[Observation], bool]], ...] = (
        ("random", f"a random {percent(SHARE, 0)}", lambda one: one.name in drawn),
        ("cores", f"all of {most_cores:,} cores", lambda one: one.situation.cores == most_cores),
        ("size", f"all with {size(largest)}", lambda one: _largest(one) == largest),
    )
    found = []
    for name, what, out in ways:
        held = [one for one in observations if out(one)]
        rest = [one for one in observations if not out(one)]
        try:
            if not held:
                raise InputError("no run was drawn")
            watch = fitting(f"all but {what}")
            model = fit(rest, shape=shape, watch=watch)
        except InputError as error:
            found.append(HeldOutRuns(name=name, what=what, fitted=len(rest), refused=error.what))
        else:
            cases = judge(model, held)
            found.append(HeldOutRuns(name=name, what=what, fitted=len(rest), cases=cases))
    return tuple(found)


def judge(found: PipelineFit, observations: Sequence[Observation]) -> tuple[HeldOutCase, ...]:
    """Measured and predicted totals of all observations."""
    return tuple(
        HeldOutCase(
            one.name,
            one.measured.total,
            run(found.shape, found.values, found.place, one.situation).total,
            one.ideal,
        )
        for one in observations
    )


def _largest(observation: Observation) -> float:
    situation = observation.situation
    return max(situation.bytes_in, situation.bytes_shared, situation.bytes_out)


def _percentile(values: Sequence[float], percentile: float) -> float:
    return float(np.percentile(values, percentile)) if values else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatSpread:
    """Sizes of the differences between the overhead of a run and the median of the other runs of
    its case, as shares of that; over cases with a weighty overhead."""

    cases: int
    runs: int
    median: float
    percentile_90: float


def repeated(observations: Sequence[Observation]) -> RepeatSpread | None:
    """Of all cases that were run more than once; None if there are none."""
    found: list[float] = []
    cases = 0
    for several in alike(observations):
        ideal = several[0].ideal
        totals = np.array([one.measured.total for one in several])
        middle = float(np.median(totals))
        if len(several) < 2 or middle - ideal < WEIGHTY * middle:
            continue
        cases += 1
        for index, total in enumerate(totals):
            others = float(np.median(np.delete(totals, index))) - ideal
            found.append(abs(float(total) - ideal - others) / others)
    if not found:
        return None
    return RepeatSpread(
        cases=cases,
        runs=len(found),
        median=float(np.median(found)),
        percentile_90=float(np.percentile(found, 90)),
    )
