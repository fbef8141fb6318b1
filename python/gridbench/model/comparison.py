"""How far the model is from a run: what is compared, and how much of it counts.

Differences are logarithms of ratios, so that a tenth too long counts alike in runs of 0.1 s and of
100 s. What is less than a run can tell (`_FLOOR` and `_PART` of its total) does not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.model.observation import Measured, Observation, Place, Situation
from gridbench.model.pipeline import Stamps
from gridbench.model.terms import Shape, run

_FLOOR = 0.001
"""Seconds."""
_PART = 0.005
_SURE = 0.1
"""Standard error of the logarithm of a case's overhead from which on it counts clearly less."""
_WEIGHTS = (1.0, 0.4, 0.4, 0.3)
"""Of overhead, first calc-in, last worker's first calc-in, and extra time of tasks."""
QUANTITIES = len(_WEIGHTS)


def modelled(stamps: Stamps, situation: Situation) -> Measured:
    """What a run with these stamps would have measured."""
    firsts = np.full(situation.cores, math.inf)
    np.minimum.at(firsts, stamps.worker, stamps.calc_in)
    return Measured(
        total=stamps.total,
        first_calc_in=float(stamps.calc_in.min()),
        last_worker_calc_in=float(firsts[np.isfinite(firsts)].max()),
        extra=float(np.mean(stamps.calc_out - stamps.calc_in - situation.sleep)),
    )


def differences(observation: Observation, model: Measured) -> Floats:
    """Weighted differences, shape (`QUANTITIES`,); above 0 where the model takes longer."""
    measured, ideal = observation.measured, observation.ideal
    pairs = (
        (model.total - ideal, measured.total - ideal),
        (model.first_calc_in, measured.first_calc_in),
        (model.last_worker_calc_in, measured.last_worker_calc_in),
        (model.extra, measured.extra),
    )
    floor = _FLOOR + _PART * measured.total
    return np.array(
        [
            weight * math.log((max(ours, 0.0) + floor) / (max(theirs, 0.0) + floor))
            for weight, (ours, theirs) in zip(_WEIGHTS, pairs, strict=True)
        ]
    )


def compare(
    shape: Shape, values: Mapping[str, float], place: Place, observation: Observation
) -> Floats:
    """`differences` of an observation and the model with these values; those of a case whose runs
    differ among each other count less."""
    stamps = run(shape, values, place, observation.situation)
    counts = 1 / math.hypot(1, observation.uncertainty / _SURE)
    return counts * differences(observation, modelled(stamps, observation.situation))
