"""A run of the model of which more is written down, and that can be watched."""

from __future__ import annotations

import math
from collections.abc import Callable

from gridbench.model.pipeline import Case, Parameters, Run

Watch = Callable[[int], None]
"""Is told how many tasks have come back, many times a second; may raise to end the run."""


class ObservedRun(Run):
    """Notes when each task's data started on its way to its worker, and counts what came back."""

    def __init__(self, case: Case, parameters: Parameters) -> None:
        self.sent = [math.nan] * len(case.sleep)
        self.done = 0
        super().__init__(case, parameters)

    def send(self, task: int) -> None:
        """See `Run`."""
        self.sent[task] = self.clock.now
        super().send(task)

    def retrieved(self, task: int) -> None:
        """See `Run`."""
        self.done += 1
        super().retrieved(task)

    def follow(self, watch: Watch | None = None) -> None:
        """Go on until nothing is left to happen."""
        self.clock.run(None if watch is None else lambda: watch(self.done))
