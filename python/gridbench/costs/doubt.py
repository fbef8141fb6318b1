"""How far a prediction may be off: by errors of what was held out, and more outside of what was
measured."""

from __future__ import annotations

import math

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
