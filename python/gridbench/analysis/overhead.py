"""The overhead per task and its distribution.

Two overheads, as they answer different questions:

- **round trip**: retrieve - submit - sleep, all that the client waits beyond the task itself,
  also while the task stands in a queue because all workers are busy;
- **handling**: the same without queue and start-up (see `breakdown`): what one task costs on
  a worker that is free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridbench.analysis.breakdown import TaskPhases
from gridbench.analysis.columns import Floats

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Sorted values, seconds, without those not known."""

    values: Floats

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self.values)

    def percentile(self, percent: float) -> float:
        """The smallest value with at least `percent` % of the values at or below it; NaN if none.

        Always a measured value: nothing is interpolated.
        """
        if self.count == 0:
            return float("nan")
        return float(np.percentile(self.values, percent, method="inverted_cdf"))

    def figures(self) -> dict[str, float]:
        """min, p50, p90, p99, max and mean, seconds."""
        nothing = float("nan")
        return {
            "min": float(self.values[0]) if self.count else nothing,
            **{f"p{percent}": self.percentile(percent) for percent in PERCENTILES},
            "max": float(self.values[-1]) if self.count else nothing,
            "mean": float(self.values.mean()) if self.count else nothing,
        }

    def curve(self, points: int) -> tuple[Floats, Floats]:
        """Value and share of the tasks at or below it (0 to 1), at most about `points` of them.

        The tails are kept in full detail, as there the interesting values are few.
        """
        share = np.arange(1, self.count + 1) / self.count
        if self.count <= points:
            return self.values, share
        tail = points // 4
        middle = np.linspace(tail, self.count - 1 - tail, points - 2 * tail).round()
        keep = np.unique(
            np.concatenate([np.arange(tail), middle, np.arange(self.count - tail, self.count)])
        ).astype(np.int64)
        return self.values[keep], share[keep]


def round_trip(phases: TaskPhases) -> Distribution:
    """Overhead as the client sees it."""
    return _distribution(phases.total() - phases.sleep)


def handling(phases: TaskPhases) -> Distribution:
    """Overhead without queue and start-up."""
    # The first task of a worker on a cold start keeps its output and extra, but its dispatch is
    # inside the start-up: it would look too cheap, so it is left out.
    values = phases.handling()
    return _distribution(np.where(phases.start_up != 0, np.nan, values))


def _distribution(values: Floats) -> Distribution:
    return Distribution(np.sort(values[np.isfinite(values)]))
