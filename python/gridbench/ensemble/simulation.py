"""Simulation of a run: processors, links in turn, and the processors of this machine.

    client -> link -> sample -> this machine's work for the call -> link -> client

All clusters of a run share this machine, whose work for a call is measured in the run itself.
Results take their link one after the other, and a processor gets its next call when the client has
the result of the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from typing import Literal

from gridbench.ensemble.layouts import GRAINS, INPUT, cluster_of, shares_of
from gridbench.ensemble.record import EnsembleRun

_Event = Literal["submitted", "started", "computed", "sent", "ended"]


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """Processors behind a link."""

    processors: int
    throughput: float
    """Bytes per second in each direction."""
    delay: float
    """Seconds, one way."""


@dataclass(frozen=True, slots=True)
class SimulatedFarm:
    """What a farm does, and where."""

    clusters: tuple[SimulatedCluster, ...]
    samples: int
    calls: int
    """Under way at a time."""
    run_time: float
    """Seconds of a sample."""
    input: int
    """Bytes of a sample."""
    output: int
    """Bytes of its result."""
    work: float
    """Seconds that this machine works for a sample with all its processors: client, agents and
    workers."""


def farm_of(run: EnsembleRun, scaled_links: float, cores: int) -> SimulatedFarm:
    """The farm of a run. `scaled_links`: the factor of times on the links; `cores`: of this
    machine."""
    return SimulatedFarm(
        clusters=tuple(
            SimulatedCluster(
                count,
                cluster_of(name).throughput / scaled_links,
                cluster_of(name).delay * scaled_links,
            )
            for name, count in shares_of(run.shares)
        ),
        samples=run.samples,
        calls=run.processors * (1 + run.ahead),
        run_time=run.run_time,
        input=INPUT,
        output=GRAINS[run.grain].output,
        work=run.processor_time / run.samples / cores,
    )


class _Simulation:
    """The state of a farm, and its events."""

    def __init__(self, farm: SimulatedFarm) -> None:
        self._farm = farm
        self._idle = [one.processors for one in farm.clusters]
        self._links_in = [0.0] * len(farm.clusters)
        """When each link to a cluster is free."""
        self._links_out = [0.0] * len(farm.clusters)
        self._machine = 0.0
        """When this machine is free."""
        self._begun = self._ended = self._number = 0
        self._waiting = 0
        """Calls without a processor."""
        self._events: list[tuple[float, int, _Event, int]] = []

    def elapsed(self) -> float:
        """Seconds from the first call to the last result."""
        farm, now = self._farm, 0.0
        for _ in range(min(farm.calls, farm.samples)):
            self._begin(now)
        while self._ended < farm.samples:
            now, _, event, cluster = heappop(self._events)
            self._follow(now, event, cluster)
        return now

    def _at(self, time: float, event: _Event, cluster: int) -> None:
        self._number += 1
        heappush(self._events, (time, self._number, event, cluster))

    def _works(self, now: float) -> float:
        """Half of the machine's work for a call; when it is done."""
        self._machine = max(now, self._machine) + self._farm.work / 2
        return self._machine

    def _begin(self, now: float) -> None:
        self._begun += 1
        self._at(self._works(now), "submitted", -1)

    def _follow(self, now: float, event: _Event, cluster: int) -> None:
        farm = self._farm
        if event == "submitted":
            self._waiting += 1
            self._send(now)
            return
        one = farm.clusters[cluster]
        if event == "started":
            self._at(now + farm.run_time, "computed", cluster)
        elif event == "computed":
            self._at(self._works(now), "sent", cluster)
        elif event == "sent":
            begin = max(now, self._links_out[cluster])
            self._links_out[cluster] = begin + farm.output / one.throughput
            self._at(self._links_out[cluster] + one.delay, "ended", cluster)
        else:
            self._ended += 1
            self._idle[cluster] += 1
            self._send(now)
            if self._begun < farm.samples:
                self._begin(now)

    def _send(self, now: float) -> None:
        """Give a waiting call to the cluster with the largest share of idle processors."""
        farm = self._farm
        if not self._waiting or not any(self._idle):
            return
        self._waiting -= 1
        cluster = max(
            range(len(self._idle)),
            key=lambda one: self._idle[one] / farm.clusters[one].processors,
        )
        self._idle[cluster] -= 1
        one = farm.clusters[cluster]
        begin = max(now, self._links_in[cluster])
        self._links_in[cluster] = begin + farm.input / one.throughput
        self._at(self._links_in[cluster] + one.delay, "started", cluster)


@cache
def simulated_elapsed(farm: SimulatedFarm) -> float:
    """Seconds from the first call to the last result."""
    return _Simulation(farm).elapsed()


@cache
def shortest_elapsed(farm: SimulatedFarm) -> float:
    """Seconds that no distribution of samples can be below: all clusters together cannot deliver
    all results in less, even if nothing but samples and results takes time."""
    low, high = (
        farm.run_time,
        farm.run_time * (farm.samples + 1)
        + sum(farm.samples * farm.output / one.throughput for one in farm.clusters),
    )
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        if sum(_delivered(farm, one, middle) for one in farm.clusters) >= farm.samples:
            high = middle
        else:
            low = middle
    return low


def _delivered(farm: SimulatedFarm, cluster: SimulatedCluster, elapsed: float) -> float:
    """Results that a cluster can deliver in so many seconds: after the end of each round the link
    has only the rest of the time for what is not there yet."""
    rounds = int(elapsed / farm.run_time)
    transfer = farm.output / cluster.throughput
    least = float(cluster.processors * rounds)
    for number in range(rounds):
        left = elapsed - (number + 1) * farm.run_time
        least = min(least, cluster.processors * number + left / transfer)
    return least
