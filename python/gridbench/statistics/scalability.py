"""Gunther's universal scalability law: what n workers do together, of a rate measured with some.

    rate(n) = n * alone / (1 + contention * (n - 1) + coherence * n * (n - 1))

N. J. Gunther: Guerrilla Capacity Planning, Springer 2007, chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

ENOUGH = 4
"""Numbers of workers that a fit takes: it has three parameters."""


@dataclass(frozen=True, slots=True)
class Scalability:
    """The law with its parameters."""

    alone: float
    """Rate of a single worker."""
    contention: float
    """Share of the work that only one worker at a time can do; 0: none."""
    coherence: float
    """What each pair of workers costs, as a share of the work of one; 0: nothing."""
    error: float
    """The largest difference to what was measured, relative to that."""

    def rate(self, workers: float) -> float:
        """Of so many workers together."""
        others = workers - 1
        return workers * self.alone / (
            1 + self.contention * others + self.coherence * workers * others
        )  # fmt: skip

    @property
    def most(self) -> float:
        """With how many workers the rate is largest; infinite: more always do more."""
        if self.contention >= 1:
            return 1.0
        return math.sqrt((1 - self.contention) / self.coherence) if self.coherence else math.inf


def fitted(rates: Mapping[int, float]) -> Scalability | None:
    """The law that is nearest to rates by numbers of workers, in relative errors; None if there
    are fewer than `ENOUGH`, or the rates do not follow it at all."""
    from scipy.optimize import nnls

    if len(rates) < ENOUGH or not all(0 < rate < math.inf for rate in rates.values()):
        return None
    workers = np.array(list(rates), dtype=np.float64)
    # Workers over rate is linear in what is looked for, none of which is below 0.
    taken = workers / np.array(list(rates.values()))
    terms = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)], axis=1)
    found, _ = nnls(terms / taken[:, None], np.ones_like(taken))
    if not found[0] > 0:
        return None
    alone, contention, coherence = (1 / found[0], found[1] / found[0], found[2] / found[0])
    law = Scalability(float(alone), float(contention), float(coherence), 0.0)
    error = max(abs(law.rate(count) / rate - 1) for count, rate in rates.items())
    return Scalability(law.alone, law.contention, law.coherence, error)
