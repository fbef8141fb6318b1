"""Calls of a run, and the records of `gridbench placement`, one line of placement.jsonl each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from gridbench.analysis.columns import Floats, Integers
from gridbench.formats import percent, plain
from gridbench.jsonl_store import PlannedCase, ResultsForm
from gridbench.placement.scenario import PlacementScenario, WorkloadKind

ServerPolicy = Literal[
    "least-time", "least-load", "two-choices", "round-robin", "random", "data-locality"
]
POLICIES: dict[ServerPolicy, str] = {
    "least-time": "the least predicted time",
    "least-load": "the least load",
    "two-choices": "of two drawn at random, the least predicted time",
    "round-robin": "one after the other",
    "random": "any, with the same probability",
    "data-locality": "the server with most of the arguments",
}
"""How a client chooses the server of a call: the policies of crates/placement."""


class PlacedCall(NamedTuple):
    """A call that ended; times are seconds after the start of the run."""

    client: int
    """By number, from 0, as `PlacementScenario.group_of_clients` counts."""
    function: int
    """By number."""
    server: int
    """By number, as `PlacementScenario.each_server` counts."""
    submitted: float
    """When the client began it."""
    started: float
    """When the function started on the server."""
    computed: float
    """When the function ended."""
    ended: float
    """When the client had the results."""


@dataclass(frozen=True, slots=True)
class PlacedCalls:
    """All calls of a run as columns of shape (calls,); see `PlacedCall`."""

    client: Integers
    function: Integers
    server: Integers
    submitted: Floats
    started: Floats
    computed: Floats
    ended: Floats

    @classmethod
    def of(cls, calls: Iterable[PlacedCall]) -> PlacedCalls:
        """The columns of such calls."""
        columns = [list(column) for column in zip(*calls, strict=True)] or [[]] * 7
        client, function, server = (np.array(one, dtype=np.int64) for one in columns[:3])
        times = [np.array(one, dtype=np.float64) for one in columns[3:]]
        return cls(client, function, server, *times)

    def __len__(self) -> int:
        return len(self.client)

    def rows(self) -> list[PlacedCall]:
        """The calls one by one."""
        columns = (self.client, self.function, self.server, self.submitted, self.started)
        lists = [column.tolist() for column in (*columns, self.computed, self.ended)]
        return [PlacedCall(*row) for row in zip(*lists, strict=True)]

    @property
    def response(self) -> Floats:
        """Seconds from submit to end, shape (calls,)."""
        return self.ended - self.submitted


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementTotals:
    """Figures of a run; seconds."""

    calls: int
    mean: float
    """Of the response times, as all three."""
    median: float
    p95: float
    total: float
    """From the first submit to the last end."""
    utilisation: tuple[float, ...]
    """Of each server: share of its cores that computed, over the total time."""
    shares: tuple[float, ...]
    """Of each server: share of the calls."""


def totals_of(scenario: PlacementScenario, calls: PlacedCalls) -> PlacementTotals:
    """The figures of a run with at least one call."""
    servers = scenario.each_server()
    response = calls.response
    total = float(calls.ended.max() - calls.submitted.min())
    busy = np.bincount(calls.server, calls.computed - calls.started, minlength=len(servers))
    count = np.bincount(calls.server, minlength=len(servers))
    utilisation = [
        float(seconds) / (server.slots * total) if total > 0 else 0.0
        for seconds, server in zip(busy, servers, strict=True)
    ]
    return PlacementTotals(
        calls=len(calls),
        mean=float(response.mean()),
        median=float(np.median(response)),
        p95=float(np.quantile(response, 0.95)),
        total=total,
        utilisation=tuple(utilisation),
        shares=tuple((count / len(calls)).tolist()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPlacementCase(PlannedCase):
    """A simulation of a scenario by a policy."""

    workload: WorkloadKind
    offered: float | None
    """Load of an open workload, by capacity; None: the workload has none that is given."""
    interval: float
    """Between two announcements of a server, s; 0: all loads are always known."""
    servers: int
    clients: int
    policy: ServerPolicy
    seed: int
    """Of the calls: the same seed gives all policies the same ones."""

    def describe(self) -> str:
        """In words."""
        return f"{self.setting}, {self.policy}, seed {self.seed}"

    @property
    def setting(self) -> str:
        """All but policy and seed, in words."""
        load = "" if self.offered is None else f" at {percent(self.offered, 0)}"
        return (
            f"{self.workload}{load}, {self.servers:,} servers, {self.clients:,} clients,"
            f" interval {plain(self.interval)} s"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementCase(PlannedPlacementCase):
    """The outcome."""

    at: str
    """ISO 8601."""
    status: Literal["done", "failed", "skipped"]
    why: str = ""
    """Of one that is not done."""
    totals: PlacementTotals | None = None
    bound: float | None = None
    """A bound of the mean response time, or for a batch of the total time, that no policy can go
    below, s; with `best` it was reached."""
    best: bool = False
    """Whether `bound` is that of the best assignment found."""
    seconds: float = 0.0
    """That it took."""
    load: dict[str, Any] | None = None
    """Nothing: other programs do not change simulated times."""


FORM: ResultsForm[PlacementCase] = ResultsForm(
    kind="placement",
    of="placement of calls on servers",
    noun="case",
    record=PlacementCase,
    file="placement.jsonl",
    command="gridbench placement simulate",
)


# ---- Real runs

RealPolicy = Literal[ServerPolicy, "best assignment"]
BEST: Literal["best assignment"] = "best assignment"
"""Calls go to the servers that a search has found for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRealRun(PlannedCase):
    """A policy in a round."""

    policy: RealPolicy
    repeat: int
    """From 0."""

    def describe(self) -> str:
        """In words."""
        return f"{self.policy}, round {self.repeat + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealRun(PlannedRealRun):
    """The outcome. Clients make all calls twice: first with nothing known of the servers."""

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


REAL_FORM: ResultsForm[RealRun] = ResultsForm(
    kind="placement run",
    of="real placement of calls",
    noun="run",
    record=RealRun,
    file="placement-run.jsonl",
    command="gridbench placement run",
)
