"""What came of really running splits of a work: the advised one beside others."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Literal

CLOSE = 1.05
"""Times the best that the advised split may take."""

Verdict = Literal["yes", "within the noise", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A split that was run. Times are in seconds."""

    tasks: int
    cores: int
    advised: bool = False
    expected: float
    """Total, by the model."""
    totals: tuple[float, ...]
    """Of each run, in the order of rounds; at least one."""

    @property
    def median(self) -> float:
        """Of the totals: this is what counts."""
        return statistics.median(self.totals)

    @property
    def smallest(self) -> float:
        """Of the totals."""
        return min(self.totals)

    @property
    def largest(self) -> float:
        """Of the totals."""
        return max(self.totals)

    @property
    def spread(self) -> float:
        """From the smallest to the largest, as share of the median."""
        return (self.largest - self.smallest) / self.median

    @property
    def difference(self) -> float:
        """Of what was measured to what was expected, as share of that."""
        return self.median / self.expected - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A split that was not run, or of which no run counts."""

    tasks: int
    cores: int
    advised: bool = False
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """All of them."""

    rounds: int
    seed: int
    """Of the order of the runs."""
    tried: tuple[Tried, ...]
    """By number of tasks, then of cores."""
    left_out: tuple[LeftOut, ...] = ()
    failed: tuple[str, ...] = ()
    """Runs that do not count, and why."""
    others: float = 0.0
    """The largest share of all processors that other programs used during a run."""

    @property
    def advised(self) -> Tried | None:
        """None: it could not be run."""
        return next((one for one in self.tried if one.advised), None)

    @property
    def best(self) -> Tried | None:
        """The one with the smallest median; of equals the advised one."""
        return min(self.tried, key=lambda one: (one.median, not one.advised), default=None)

    @property
    def ratio(self) -> float | None:
        """How many times as long as the best the advised one took: medians."""
        advised, best = self.advised, self.best
        return None if advised is None or best is None else advised.median / best.median

    @property
    def noise(self) -> float | None:
        """The larger spread of the two that the ratio is of; None if one was run only once."""
        advised, best = self.advised, self.best
        if advised is None or best is None or min(len(advised.totals), len(best.totals)) < 2:
            return None
        return max(advised.spread, best.spread)

    @property
    def close(self) -> Verdict | None:
        """Whether the advised split is within 5 % of the best. What is further off, though runs of
        the one were as short as runs of the other, cannot be told from it."""
        advised, best, ratio = self.advised, self.best, self.ratio
        if advised is None or best is None or ratio is None:
            return None
        if ratio <= CLOSE:
            return "yes"
        return "within the noise" if advised.smallest <= best.largest else "no"
