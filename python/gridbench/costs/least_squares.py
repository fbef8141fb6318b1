"""Costs that fit measured times best, none of them below 0.

Errors are relative, as times of small and of large cases differ by orders of magnitude and scatter
alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import optimize

from gridbench.analysis.columns import Floats

_STEPS = 60
"""Places tried, on a logarithmic scale, for how many fill what they share."""


def least_squares(columns: Sequence[Floats], values: Floats) -> list[float]:
    """Coefficients, none below 0, for the least sum of squares of relative errors."""
    matrix = np.stack(columns, axis=1) / values[:, None]
    # Bytes and seconds are many powers of ten apart.
    scale = np.linalg.norm(matrix, axis=0)
    found, _ = optimize.nnls(matrix / scale, np.ones(len(values)))
    return [float(one) for one in found / scale]


def crowded_least_squares(
    columns: Callable[[Floats], Sequence[Floats]], sharing: Floats, values: Floats
) -> tuple[list[float], float, float]:
    """Coefficients; the sum of the squares of relative errors; and how many fill what they share:
    with fewer each gets what one alone gets, and with more each waits `sharing` over that number
    times as long.

    `columns` makes the columns of how many times as long each case waits; `sharing` is how many
    there are in each.
    """
    best: tuple[float, list[float], float] = (math.inf, [], 1.0)
    for filled in np.geomspace(1.0, float(sharing.max()), _STEPS):
        made = columns(np.maximum(1.0, sharing / filled))
        found = least_squares(made, values)
        errors = np.stack(made, axis=1) @ np.array(found) / values - 1
        best = min(best, (float(errors @ errors), found, float(filled)))
    return best[1], best[0], best[2]
