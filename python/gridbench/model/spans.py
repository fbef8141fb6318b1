"""The measured range of a parameter, and how unsure a prediction outside of it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_SLACK = 1.05
"""How far beyond the measured a value may be and still count as measured."""
UNKNOWN = 10.0
"""Times beyond what was measured that counts at most."""


@dataclass(frozen=True, slots=True)
class Span:
    """From the smallest to the largest value that was measured."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether `value` lies in it, or next to it."""
        return self.low / _SLACK <= value <= self.high * _SLACK

    def factor(self, value: float) -> float:
        """How many times `value` is beyond the nearer end; 1 within."""
        if self.holds(value):
            return 1.0
        over = value / self.high if self.high else float("inf")
        under = self.low / value if value else float("inf")
        return max(over, under)

    def distance(self, value: float) -> float:
        """The logarithm of that, `UNKNOWN` at most."""
        return math.log(min(self.factor(value), UNKNOWN))

    def outside(self, what: str, value: float, shown: Callable[[float], str]) -> str:
        """That `value` is beyond it, as a sentence without a full stop."""
        if self.high == 0:
            return f"no run had {what}, and this has {shown(value)}"
        return (
            f"{what}: {shown(value)} is outside what was measured, {shown(self.low)} to"
            f" {shown(self.high)}"
        )

    def told(self, shown: Callable[[float], str]) -> str:
        """`1 KB to 10 MB`."""
        if self.low == self.high:
            return shown(self.low)
        return f"{shown(self.low)} to {shown(self.high)}"


def span_of(values: Iterable[float]) -> Span:
    """Of all of them; at least one."""
    known = list(values)
    return Span(min(known), max(known))


LEAST_ERROR = 0.02
"""As logarithm of a ratio: no model of a machine is surer of the next run."""
BEYOND = 0.25
"""Standard deviation of the logarithm of what is predicted, for each factor of e beyond what was
measured. With ten times as many cores the interval is from a 2.6th to 2.6 times."""
_REACH = 1.645
"""Standard deviations to either side in a 90 % interval of a normal distribution."""
_MOST = 10.0
"""Of such logarithms: what is that unsure is not known at all."""


def widening(deviation: float) -> float:
    """The factor from a prediction to either end of its 90 % interval, by the standard deviation of
    its logarithm."""
    return math.exp(min(_MOST, _REACH * deviation))
