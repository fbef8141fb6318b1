"""When the workers of a system are there, from the moment the client asks for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A scheduler that looks at its queue now and then, and starts some workers each time."""

    first: float
    """Seconds until the first worker, which is there before the others."""
    second: float
    """Seconds until the second."""
    step: float
    """Seconds from one wave of further workers to the next."""
    most_at_once: float = math.inf
    """Workers of a wave."""

    def ready(self, workers: int) -> Floats:
        """Seconds until each worker has started, shape (workers,)."""
        times = np.full(workers, self.first)
        if workers > 1:
            times[1] = self.second
            wave = np.floor(np.arange(workers - 2) / self.most_at_once) + 1
            times[2:] = self.second + self.step * wave
        return times


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch system that hands over all workers together, later the more there are."""

    constant: float
    per_worker: float

    def ready(self, workers: int) -> Floats:
        """Seconds until each worker has started, shape (workers,)."""
        return np.full(workers, self.constant + self.per_worker * workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneByOne:
    """Workers that come one after another."""

    constant: float
    per_worker: float

    def ready(self, workers: int) -> Floats:
        """Seconds until each worker has started, shape (workers,)."""
        return self.constant + self.per_worker * np.arange(1, workers + 1, dtype=np.float64)


StartUp = Waves | Batch | OneByOne
KINDS: dict[str, type[StartUp]] = {"waves": Waves, "batch": Batch, "one by one": OneByOne}
"""What they are called in files."""
