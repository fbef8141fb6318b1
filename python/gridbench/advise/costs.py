"""What advice needs to know of an engine or a system, whether it was measured or described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from gridbench.analysis.columns import Floats
from gridbench.model.model import TotalPrediction
from gridbench.model.observation import Situation


class Costs(Protocol):
    """A fitted `Model`, or a system's `Profiled`."""

    @property
    def name(self) -> str:
        """Of the engine or system."""

    @property
    def linked(self) -> bool:
        """Whether the workers are behind links."""

    @property
    def values(self) -> Mapping[str, float]:
        """What costs time, by name: `start.` and so on, see `gridbench.model.terms`."""

    def totals(
        self, situations: Sequence[Situation], changed: Mapping[str, float] | None = None
    ) -> Floats:
        """Seconds that each takes, with some of the values changed, shape (situations,)."""

    def predict(self, situation: Situation) -> TotalPrediction:
        """The same of one, with an interval."""

    def unsure(self, situation: Situation) -> float:
        """Standard deviation of the logarithm of the overhead of a run."""

    def outside(self, situation: Situation) -> tuple[str, ...]:
        """In which ways it is unlike all that was measured, as sentences without a full stop."""
