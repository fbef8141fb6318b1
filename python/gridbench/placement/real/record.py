"""Record of a real run, one line of placement-run.jsonl."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gridbench.jsonl_store import PlannedCase, ResultsForm
from gridbench.placement.record import ServerPolicy

RealPolicy = Literal[ServerPolicy, "best assignment"]
BEST: Literal["best assignment"] = "best assignment"
"""Calls go to the servers that a search has found for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRealRun(PlannedCase):
    """A policy in a round."""

    policy: RealPolicy
    repeat: int
    """From 0."""

    def told(self) -> str:
        """In words."""
        return f"{self.policy}, round {self.repeat + 1}"

    def record(self, **found: Any) -> RealRun:
        """Its record, with what was found."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        return RealRun(**{**asdict(self), "at": at, **found})


@dataclass(frozen=True, slots=True, kw_only=True)
class RealRun(PlannedRealRun):
    """What came of it. Clients make all calls twice: first with nothing known of the servers."""

    at: str
    """ISO 8601."""
    status: Literal["done", "failed", "skipped"]
    why: str = ""
    """Of one that is not done."""
    first: float = 0.0
    """Seconds from the first submit to the last result, when servers were not known yet."""
    total: float = 0.0
    """The same of the second time."""
    simulated_first: float = 0.0
    simulated: float = 0.0
    """The same two of a simulation."""
    calls: tuple[tuple[float, ...], ...] = ()
    """Of the second time, as `PlacedCall`."""
    load: dict[str, Any] | None = None
    """Load by other programs."""

    @property
    def error(self) -> float:
        """Relative error of the simulated total time."""
        return self.simulated / self.total - 1


FORM: ResultsForm[RealRun] = ResultsForm(
    kind="placement run",
    of="real placement of calls",
    noun="run",
    record=RealRun,
    file="placement-run.jsonl",
    command="gridbench placement run",
)
