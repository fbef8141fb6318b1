"""How much runs of the same case differ among each other: no model can be surer than that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridbench.model.held_out import WEIGHTY
from gridbench.model.observation import Observation, alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Sizes of the differences between the overhead of a run and the median of the other runs of
    its case, as shares of that; over cases with a weighty overhead."""

    cases: int
    runs: int
    median: float
    percentile_90: float


def repeated(observations: Sequence[Observation]) -> Repeated | None:
    """Of all cases that were run more than once; None if there are none."""
    found: list[float] = []
    cases = 0
    for several in alike(observations):
        ideal = several[0].ideal
        totals = np.array([one.measured.total for one in several])
        middle = float(np.median(totals))
        if len(several) < 2 or middle - ideal < WEIGHTY * middle:
            continue
        cases += 1
        for index, total in enumerate(totals):
            others = float(np.median(np.delete(totals, index))) - ideal
            found.append(abs(float(total) - ideal - others) / others)
    if not found:
        return None
    return Repeated(
        cases=cases,
        runs=len(found),
        median=float(np.median(found)),
        percentile_90=float(np.percentile(found, 90)),
    )
