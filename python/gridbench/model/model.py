"""An engine's model: its terms, how they were found, how wrong it is, and what it predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.model.fit import MORE_STARTS, PipelineFit, fit
from gridbench.model.held_out import HeldOutRuns, RepeatSpread, held_out, repeated
from gridbench.model.kind import BEYOND, LEAST_ERROR, CaseEstimate, Fitting, Span, nobody, widening
from gridbench.model.observation import Observation, Range, Situation, range_of, together
from gridbench.model.pipeline import figures
from gridbench.model.terms import Shape, case_of, parameters_of, run

if TYPE_CHECKING:
    from gridbench.pages.document import Document

DISTURBED = math.log(2) / 1.645
"""If other programs disturbed all runs: so much does the overhead of others deviate, as logarithm
of a ratio, that 9 of 10 lie within a factor of 2."""
_UP = 1.35
"""By what terms are multiplied, and divided, for derivatives."""
_LEAST_OVERHEAD = 1e-9
"""Seconds."""


@dataclass(frozen=True, slots=True)
class TotalPrediction:
    """What a situation is expected to take; seconds."""

    total: float
    low: float
    """Of the 90 % interval; so too `high`."""
    high: float
    ideal: float
    extrapolated: tuple[str, ...]
    """In which ways it is unlike all that was measured; none: it is within."""

    @property
    def overhead(self) -> float:
        """Total less ideal."""
        return self.total - self.ideal


@dataclass(frozen=True, slots=True)
class PipelineModel:
    """What is known of an engine in a place."""

    fit: PipelineFit
    ranges: Range
    held_out: tuple[HeldOutRuns, ...] = ()
    repeated: RepeatSpread | None = None
    """None: no case was run more than once."""
    disturbed: int = 0
    """So many of the runs that it is fitted to were disturbed by other programs, as the user
    accepted; what it predicts then claims nothing."""
    made: str = ""
    """When the last of these runs was, ISO 8601 in minutes; empty: unknown."""

    @property
    def name(self) -> str:
        """Of the engine."""
        return self.fit.place.engine

    @property
    def told(self) -> str:
        """Engine, machine and links."""
        return self.fit.place.describe()

    @property
    def quantity(self) -> str:
        """The predicted quantity."""
        return "total time"

    @property
    def measured(self) -> Mapping[str, Span]:
        """The measured spans, by the names of the parameters of a case."""
        known = self.ranges
        return {
            "cores": known.cores,
            "tasks": known.tasks,
            "sleep": known.sleep,
            "input": known.bytes_in,
            "shared": known.bytes_shared,
            "output": known.bytes_out,
        }

    def expect(self, case: Mapping[str, float]) -> CaseEstimate:
        """The total of tasks of one length, with a cold start if any run had one."""
        found = self.predict(
            Situation(
                cores=int(case["cores"]),
                sleep=np.full(int(case["tasks"]), case["sleep"]),
                bytes_in=case["input"],
                bytes_shared=case["shared"],
                bytes_out=case["output"],
                warm="cold" not in self.ranges.starts,
            )
        )
        return CaseEstimate(
            total=found.total,
            low=found.low,
            high=found.high,
            parts={"ideal": found.ideal, "overhead": found.overhead},
            outside=found.extrapolated,
        )

    def document(self) -> Document:
        """All that is known of it."""
        from gridbench.model.document import pipeline_document

        return pipeline_document(self)

    @property
    def linked(self) -> bool:
        """Whether the workers are behind links, or on a network."""
        return self.fit.place.transport != "one host"

    @property
    def values(self) -> Mapping[str, float]:
        """Of its terms, by name."""
        return self.fit.values

    def outside(self, situation: Situation) -> tuple[str, ...]:
        """In which ways a situation is unlike all that was measured."""
        return self.ranges.outside(situation)

    def total(self, situation: Situation, changed: Mapping[str, float] | None = None) -> float:
        """Seconds that it takes, with some terms changed if wanted."""
        values = self.fit.values | dict(changed or {})
        return run(self.fit.shape, values, self.fit.place, situation).total

    def totals(
        self, situations: Sequence[Situation], changed: Mapping[str, float] | None = None
    ) -> Floats:
        """The same of several, shape (situations,)."""
        fit, values = self.fit, self.fit.values | dict(changed or {})
        jobs = [
            (case_of(fit.place, one), parameters_of(fit.shape, values, fit.place, one))
            for one in situations
        ]
        return figures(jobs)[:, 0]

    def predict(self, situation: Situation) -> TotalPrediction:
        """Total with interval, from how wrong the model was and how unsure its terms are.

        Outside of what was measured, the interval is wider, by so much for each factor of distance.
        It is wider, too, if other programs disturbed the runs: what they took can be missing, or
        there as well, when the work is done.
        """
        total, ideal = self.total(situation), situation.ideal
        overhead = max(total - ideal, _LEAST_OVERHEAD)
        factor = widening(self.unsure(situation))
        return TotalPrediction(
            total=total,
            low=ideal + overhead / factor,
            high=ideal * (1 + self.disturbed_share) + overhead * factor,
            ideal=ideal,
            extrapolated=self.ranges.outside(situation),
        )

    def unsure(self, situation: Situation) -> float:
        """Standard deviation of the logarithm of the overhead of a run."""
        beyond = BEYOND * self.ranges.beyond(situation)
        disturbed = DISTURBED * self.disturbed_share
        return math.hypot(self._error(), self._of_terms(situation), beyond, disturbed)

    @property
    def disturbed_share(self) -> float:
        """Of the runs that it is fitted to."""
        return min(1.0, self.disturbed / max(1, self.fit.runs))

    def _error(self) -> float:
        """Standard deviation of overheads of runs it was not fitted to, as logarithm of a ratio;
        else of those it was."""
        known = [one.spread for one in self.held_out if one.name == "random" and one.spread]
        return max(LEAST_ERROR, *known) if known else max(LEAST_ERROR, self.fit.spread)

    def slopes(self, situation: Situation) -> Floats:
        """Of the logarithm of the overhead over those of the terms, shape (terms,).

        From steps to both sides that are not small: in a long run a task may change its worker
        with any change of a cost, and a difference over a small step would be that of one task.
        """
        fit, place = self.fit, self.fit.place
        names = [one.term.name for one in fit.estimates if one.term.touches(situation)]
        changed = [{}, *({n: fit.values[n] * by} for by in (_UP, 1 / _UP) for n in names)]
        case = case_of(place, situation)
        totals = figures(
            [
                (case, parameters_of(fit.shape, fit.values | one, place, situation))
                for one in changed
            ]
        )[:, 0]
        overhead = max(float(totals[0]) - situation.ideal, _LEAST_OVERHEAD)
        above, below = totals[1:].reshape(2, len(names))
        moved = dict(zip(names, (above - below) / overhead / (2 * math.log(_UP)), strict=True))
        return np.array([moved.get(one.term.name, 0.0) for one in fit.estimates])

    def _of_terms(self, situation: Situation) -> float:
        """The same for what comes from the terms; those that go together are taken together."""
        slopes = self.slopes(situation)
        return math.sqrt(max(0.0, float(slopes @ self.fit.covariance @ slopes)))


def without(model: PipelineModel, situation: Situation, names: Sequence[str]) -> float:
    """Seconds that it would take if these terms cost nothing."""
    return model.total(situation, dict.fromkeys(names, 0.0))


def model_of(
    observations: Sequence[Observation],
    *,
    test: bool,
    shape: Shape | None = None,
    fitting: Fitting = nobody,
    few: bool = False,
    starts: int = MORE_STARTS,
    begin: Mapping[str, float] | None = None,
) -> PipelineModel:
    """The model of one engine in one place; `shape`: how it works, if that is known. `few`,
    `starts` and `begin`: see `fit`.

    InputError if there are too few runs.
    """
    cases = together(observations)
    watch = fitting("all runs")
    found = fit(cases, shape=shape, watch=watch, few=few, starts=starts, begin=begin)
    errors = held_out(cases, shape=shape, fitting=fitting) if test else ()
    return PipelineModel(
        fit=found,
        ranges=range_of([one.situation for one in cases]),
        held_out=errors,
        repeated=repeated(observations),
    )
