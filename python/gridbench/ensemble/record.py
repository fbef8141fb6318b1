"""Records of `gridbench ensemble`: one line of ensemble.jsonl for each run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from gridbench.ensemble.layouts import GrainName, LayoutName
from gridbench.jsonl_store import PlannedCase, ResultsForm

OURS = "gridrpc"
"""The engine that has its workers from batch systems; all others are gridbench's drivers."""
RequestKind = Literal["together", "one by one"]


class Sample(NamedTuple):
    """A sample run; times are seconds after the first call."""

    host: str
    """Where it ran; empty: the engine does not tell."""
    submitted: float
    """When the client began the call."""
    started: float
    """When the forecast started, on its node."""
    computed: float
    """When the forecast ended."""
    ended: float
    """When the client had the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEnsembleRun(PlannedCase):
    """An ensemble on some processors."""

    engine: str
    layout: LayoutName
    shares: str
    """Clusters with their processors, such as `ume 50 + presto3 150`."""
    processors: int
    """Of all clusters."""
    samples: int
    """Of all processors."""
    grain: GrainName
    request: RequestKind
    """Whether each cluster got one request for all workers, or one for each."""
    ahead: int
    """Calls that wait for each processor, beside the one that it runs."""
    repeat: int
    """From 0."""

    def describe(self) -> str:
        """In words."""
        parts = [
            "" if self.engine == OURS else self.engine,
            self.shares,
            self.grain,
            f"{self.samples:,} samples",
            "" if self.request == "together" else "one by one",
            f"{self.ahead} ahead" if self.ahead else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleRun(PlannedEnsembleRun):
    """The outcome."""

    at: str
    """ISO 8601."""
    status: Literal["done", "failed", "skipped"]
    why: str = ""
    """Of one that is not done."""
    start: float = 0.0
    """Seconds from the request until all workers were ready."""
    memory: int = 0
    """Bytes of all processes of the run: client, agents, workers and batch systems."""
    processor_time: float = 0.0
    """Seconds that all processes of the run computed from the first call to the last result; 0 in
    results of versions that did not measure it."""
    client_time: float = 0.0
    """The client's part of them."""
    wrong: int = 0
    """Results that were not those of their samples."""
    runs: tuple[tuple[Any, ...], ...] = ()
    """As `Sample`."""
    load: dict[str, Any] | None = None
    """Load by other programs."""

    @property
    def rows(self) -> list[Sample]:
        """The samples."""
        return [Sample(*one) for one in self.runs]

    @property
    def run_time(self) -> float:
        """T_r: mean seconds of a sample on its node."""
        return _mean([one.computed - one.started for one in self.rows])

    @property
    def call_time(self) -> float:
        """T_c: mean seconds of a call at the client."""
        return _mean([one.ended - one.submitted for one in self.rows])

    @property
    def transfer_time(self) -> float:
        """T_rec: mean seconds from the end of a sample until the client had its result."""
        return _mean([one.ended - one.computed for one in self.rows])

    @property
    def elapsed(self) -> float:
        """T_e: seconds from the first call to the last result."""
        return max(one.ended for one in self.rows)

    @property
    def call_efficiency(self) -> float:
        """T_r / T_c."""
        return self.run_time / self.call_time

    @property
    def efficiency(self) -> float:
        """Samples of a processor times T_r, divided by T_e: 5 T_r / T_e in the paper."""
        return self.samples / self.processors * self.run_time / self.elapsed


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)


FORM: ResultsForm[EnsembleRun] = ResultsForm(
    kind="ensemble",
    of="results of an ensemble",
    noun="run",
    record=EnsembleRun,
    file="ensemble.jsonl",
    command="gridbench ensemble",
)
