"""Calls that clients make in a run: drawn from a seed, the same for all policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Floats, Integers
from gridbench.errors import InputError
from gridbench.formats import whole
from gridbench.placement.scenario import MOST_CALLS, PlacementScenario, WorkloadKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCalls:
    """Calls by time; all columns have the shape (calls,)."""

    at: Floats
    """Seconds after the start, ascending."""
    client: Integers
    function: Integers
    skips_busy: bool = False
    """A client leaves out a call while its last one has not ended."""

    def __len__(self) -> int:
        return len(self.at)

    def of_client(self, client: int) -> list[tuple[float, int]]:
        """Time and function of the calls of a client."""
        own = self.client == client
        return list(zip(self.at[own].tolist(), self.function[own].tolist(), strict=True))


def planned_calls(scenario: PlacementScenario, seed: int) -> PlannedCalls:
    """The calls of a run. InputError if there are too many, or none.

    The paper's workload, `steps`, has the calls that a client makes unless it waits for another
    one.
    """
    expected = _expected(scenario)
    if expected > MOST_CALLS:
        raise InputError(
            f"the workload has about {whole(expected)} calls, and {MOST_CALLS:,} can be simulated",
            remedy="give a shorter --duration, a lower --load, or fewer --clients",
        )
    draw = np.random.default_rng([seed, 0])
    at, client = _TIMES[scenario.workload.kind](scenario, draw)
    if not len(at):
        raise InputError(
            "the workload has no call",
            remedy="give a longer --duration, a higher --load, or more --clients",
        )
    order = np.argsort(at, kind="stable")
    weights = np.array([one.weight for one in scenario.functions])
    drawn = np.random.default_rng([seed, 1]).random(len(at))
    function = np.searchsorted(np.cumsum(weights / weights.sum()), drawn, side="right")
    return PlannedCalls(
        at=np.ascontiguousarray(at[order], dtype=np.float64),
        client=np.ascontiguousarray(client[order], dtype=np.int64),
        # Rounding may leave the sum below a number that was drawn.
        function=np.minimum(function, len(weights) - 1).astype(np.int64),
        skips_busy=scenario.workload.kind == "steps",
    )


def _expected(scenario: PlacementScenario) -> float:
    own = scenario.workload
    match own.kind:
        case "batch":
            return own.calls
        case "steps":
            return scenario.client_count * own.probability * own.duration / own.step
        case "poisson" | "bursts":
            return scenario.rate * own.duration


_Times = tuple[Floats, Integers]


def _poisson(scenario: PlacementScenario, draw: np.random.Generator) -> _Times:
    count = draw.poisson(_expected(scenario))
    at = draw.random(count) * scenario.workload.duration
    return at, draw.integers(scenario.client_count, size=count)


def _bursts(scenario: PlacementScenario, draw: np.random.Generator) -> _Times:
    own = scenario.workload
    count = draw.poisson(_expected(scenario) / own.burst)
    at = draw.random(count) * own.duration
    client = draw.integers(scenario.client_count, size=count)
    return np.repeat(at, own.burst), np.repeat(client, own.burst)


def _steps(scenario: PlacementScenario, draw: np.random.Generator) -> _Times:
    own, clients = scenario.workload, scenario.client_count
    phase = draw.random(clients) * own.step
    steps = int(np.ceil(own.duration / own.step))
    calls = draw.random((clients, steps)) < own.probability
    client, step = np.nonzero(calls)
    at = phase[client] + step * own.step
    early = at < own.duration
    return at[early], client[early]


def _batch(scenario: PlacementScenario, draw: np.random.Generator) -> _Times:
    del draw
    count = scenario.workload.calls
    return np.zeros(count), np.arange(count) % scenario.client_count


_TIMES: dict[WorkloadKind, Callable[[PlacementScenario, np.random.Generator], _Times]] = {
    "poisson": _poisson,
    "bursts": _bursts,
    "steps": _steps,
    "batch": _batch,
}
