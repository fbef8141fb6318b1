"""An engine's model: its terms, how they were found, how wrong it is, and what it predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gridbench.model.fit import Fit
from gridbench.model.held_out import HeldOut
from gridbench.model.observation import Situation
from gridbench.model.ranges import Range
from gridbench.model.repeated import Repeated
from gridbench.model.terms import run

_STEP = 0.03
"""Of a term's logarithm, for derivatives."""
_REACH = 1.645
"""Standard deviations to either side in a 90 % interval of a normal distribution."""
_LEAST_ERROR = 0.02
"""Of the overhead, as logarithm of a ratio: no model of a machine is surer of the next run."""


@dataclass(frozen=True, slots=True)
class Prediction:
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
class Model:
    """What is known of an engine in a place."""

    fit: Fit
    measured: Range
    held_out: tuple[HeldOut, ...] = ()
    repeated: Repeated | None = None
    """None: no case was run more than once."""
    disturbed: int = 0
    """So many of the runs that it is fitted to were disturbed by other programs, as the user
    accepted; what it predicts then claims nothing."""

    def total(self, situation: Situation, changed: Mapping[str, float] | None = None) -> float:
        """Seconds that it takes, with some terms changed if wanted."""
        values = self.fit.values | dict(changed or {})
        return run(self.fit.shape, values, self.fit.place, situation).total

    def predict(self, situation: Situation) -> Prediction:
        """Total with interval, from how wrong the model was and how unsure its terms are.

        The interval has no part for being outside of what was measured: that is said in words.
        """
        total, ideal = self.total(situation), situation.ideal
        overhead = max(total - ideal, 1e-9)
        factor = math.exp(_REACH * math.hypot(self._error(), self._unsure(situation, overhead)))
        return Prediction(
            total=total,
            low=ideal + overhead / factor,
            high=ideal + overhead * factor,
            ideal=ideal,
            extrapolated=self.measured.outside(situation),
        )

    def _error(self) -> float:
        """Standard deviation of overheads of runs it was not fitted to, as logarithm of a ratio;
        else of those it was."""
        known = [one.spread for one in self.held_out if one.name == "random" and one.spread]
        return max(_LEAST_ERROR, *known) if known else max(_LEAST_ERROR, self.fit.spread)

    def _unsure(self, situation: Situation, overhead: float) -> float:
        """The same for what comes from the terms; those that go together are taken together."""
        values, slopes = self.fit.values, []
        for one in self.fit.estimates:
            slope = 0.0
            if one.term.touches(situation):
                moved = self.total(
                    situation, {one.term.name: values[one.term.name] * math.exp(_STEP)}
                )
                slope = (moved - situation.ideal - overhead) / overhead / _STEP
            slopes.append(slope)
        slope_of = np.array(slopes)
        return math.sqrt(max(0.0, float(slope_of @ self.fit.covariance @ slope_of)))


def without(model: Model, situation: Situation, names: Sequence[str]) -> float:
    """Seconds that it would take if these terms cost nothing."""
    return model.total(situation, dict.fromkeys(names, 0.0))
