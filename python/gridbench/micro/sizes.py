"""How much is measured: the numbers behind a full run and a quick one."""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.bench.session import Limits
from gridbench.workload.body import SPIN


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """The numbers that decide how long a run takes."""

    name: str
    """Results measured with other sizes are not mixed; this tells them apart."""
    rounds: int
    """How often gridrpc and the process pool are measured, where that is quick."""
    peer_rounds: int = 3
    """The same of other engines."""
    budget: float
    """Seconds that one quantity may take, about."""
    workers: int = 2
    arrays: tuple[int, ...] = (10_000, 1_000_000, 10_000_000, 100_000_000)
    """Bytes."""
    chunks: tuple[int, ...] = (10, 100, 1000)
    order: int = 1000
    """Equations to solve."""
    longest_grain: float = 1.0
    """Seconds of a task up to which the shortest effective one is looked for."""
    clients: int = 4
    readers: int = 16
    """Workers that share data."""
    shared: int = 100_000_000
    """Bytes that they share."""
    crews: tuple[int, ...] = (2, 16, 100)
    """Numbers of workers that are brought up from nothing."""
    body: str = SPIN
    """What the tasks of `work` do: see `gridbench.workload.body`."""
    body_seconds: float = 0.01
    """For how long, if it takes a time."""
    short_tasks: tuple[int, float] = (1000, 0.1)
    """Number and seconds of tasks that sleep, for the largest crew."""
    null_tasks: int = 10_000
    calls: int = 1_000_000
    """Calls in one go."""
    calls_seconds: float = 60.0
    """Seconds into which an engine's calls in one go have to fit."""
    start_limit: float = 150.0
    """Seconds after which bringing up workers is given up."""
    item_limit: float = 120.0
    """Seconds after which any other measurement is given up."""
    each: float = 28.0
    """Seconds that one session of a peer may take in all its rounds together; it always has as many
    as a claim takes."""
    longest: float = 300.0
    """Seconds of bringing up workers beyond which it is not measured with an engine."""
    thorough: bool = True
    """Whether twins are measured in all workloads, and starting also with NumPy loaded before."""

    @property
    def limits(self) -> Limits:
        """Those of a session."""
        return Limits(start=self.start_limit, item=self.item_limit, budget=self.budget)


FULL = Sizes(name="full", rounds=5, budget=0.5)
QUICK = Sizes(
    name="quick",
    rounds=2,
    budget=0.15,
    peer_rounds=1,
    null_tasks=5_000,
    calls_seconds=5.0,
    start_limit=60.0,
    item_limit=60.0,
    each=6.0,
    longest=16.0,
    thorough=False,
)
