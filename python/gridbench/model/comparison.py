"""How far the model is from a run: what is compared, and how much of it counts.

Differences are logarithms of ratios, so that a tenth too long counts alike in runs of 0.1 s and of
100 s. What is less than a run can tell (`_FLOOR` and `_PART` of its total) does not count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gridbench.analysis.columns import Floats, Integers
from gridbench.model.observation import Observation

_FLOOR = 0.001
"""Seconds."""
_PART = 0.005
_SURE = 0.1
"""Standard error of the logarithm of a case's overhead from which on it counts clearly less."""
_WEIGHTS = (1.0, 0.4, 0.4, 0.3)
"""Of overhead, first calc-in, last worker's first calc-in, and extra time of tasks."""
QUANTITIES = len(_WEIGHTS)


class Yardstick:
    """Runs that models are held against."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        measured = [one.measured for one in observations]
        totals = np.array([one.total for one in measured])
        self._ideal = np.array([one.ideal for one in observations])
        self._floor = (_FLOOR + _PART * totals)[:, np.newaxis]
        overheads = np.array(
            [
                (one.total - run.ideal, one.first_calc_in, one.last_worker_calc_in, one.extra)
                for run, one in zip(observations, measured, strict=True)
            ]
        ).reshape(len(observations), QUANTITIES)
        self._measured = np.log(np.maximum(overheads, 0.0) + self._floor)
        # Those of a case whose runs differ among each other count less.
        doubts = [math.hypot(1, one.uncertainty / _SURE) for one in observations]
        self._weights = np.array(_WEIGHTS) / np.array(doubts)[:, np.newaxis]
        # What a run does not tell counts nothing.
        self._weights[np.isnan(self._measured)] = 0.0
        self._measured = np.nan_to_num(self._measured)

    def differences(self, runs: Integers, figures: Floats) -> Floats:
        """Weighted differences, shape (n, `QUANTITIES`); above 0 where the model takes longer.

        `runs` are the numbers of those that models are held against, shape (n,), and `figures`
        what the models say of them, as `pipeline.figures` gives it.
        """
        ours = figures.copy()
        ours[:, 0] -= self._ideal[runs]
        logarithms = np.log(np.maximum(ours, 0.0) + self._floor[runs])
        return np.asarray(self._weights[runs] * (logarithms - self._measured[runs]))
