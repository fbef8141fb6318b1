"""Simulation of a scenario, and bounds that no policy can go below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gridbench.analysis.columns import Floats, Integers
from gridbench.errors import InputError
from gridbench.formats import whole
from gridbench.placement.record import PlacedCalls, PlacementTotals, ServerPolicy, totals_of
from gridbench.placement.scenario import MOST_CALLS, PlacementScenario, WorkloadKind
from gridrpc import _native

# ---- Planned calls


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


# ---- Simulation

CallWatch = Callable[[int], object]
"""Is called now and then with the number of calls that have ended, and may raise to stop."""

_MOST_SEARCHED = 2_000
"""Calls of a batch whose best assignment is searched for."""
_MOST_TRIALS = 3_000
"""Assignments that a search tries."""


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A run that was simulated."""

    scenario: PlacementScenario
    calls: PlacedCalls
    """In the order in which they began, without those that a client left out."""

    @property
    def totals(self) -> PlacementTotals:
        """Its figures."""
        return totals_of(self.scenario, self.calls)


@dataclass(frozen=True, slots=True)
class NetworkFigures:
    """Servers, clients and links as crates/pipeline has them."""

    servers: list[tuple[int, float, int, float, float]]
    clients: Integers
    links: list[tuple[float, float]]
    functions: list[tuple[float, float, float]]
    interval: float


def simulate(
    scenario: PlacementScenario,
    policy: ServerPolicy | Sequence[int],
    seed: int = 1,
    *,
    plan: PlannedCalls | None = None,
    watch: CallWatch | None = None,
) -> SimulatedRun:
    """Follow all calls of a scenario to their servers and back.

    `policy`: that of the clients, or the server of each call by number. `plan`: the calls, if they
    are not to be drawn from the seed. InputError for a workload without a call, or with too many.
    """
    plan = planned_calls(scenario, seed) if plan is None else plan
    assignment = (
        (policy, seed) if isinstance(policy, str) else np.ascontiguousarray(policy, dtype=np.int64)
    )
    found = _native.follow_calls(network_figures(scenario, seed), plan, assignment, watch)
    server = np.frombuffer(found[0], dtype=np.int64)
    started, computed, ended = (np.frombuffer(one, dtype=np.float64) for one in found[1:])
    made = server >= 0
    calls = PlacedCalls(
        plan.client[made], plan.function[made], server[made], plan.at[made], started[made],
        computed[made], ended[made],
    )  # fmt: skip
    return SimulatedRun(scenario, calls)


def network_figures(scenario: PlacementScenario, seed: int) -> NetworkFigures:
    """The network, with the times at which servers announce drawn from the seed."""
    servers = scenario.each_server()
    phases = np.random.default_rng([seed, 2]).random(len(servers)) * scenario.interval
    return NetworkFigures(
        servers=[
            (one.slots, one.call_speed, one.cores, one.announced, float(phase))
            for one, phase in zip(servers, phases, strict=True)
        ],
        clients=np.array(scenario.group_of_clients(), dtype=np.int64),
        links=[
            (link.bandwidth, link.latency)
            for group in scenario.clients
            for link in (one.link_to(group.name) for one in servers)
        ],
        functions=[
            (float(one.bytes_in), float(one.bytes_out), one.operations)
            for one in scenario.functions
        ],
        interval=scenario.interval,
    )


# ---- Bounds


def alone(scenario: PlacementScenario) -> Floats:
    """Seconds of a call that has servers and links for itself, shape (groups of clients,
    functions, servers)."""
    servers = scenario.each_server()
    found = np.empty((len(scenario.clients), len(scenario.functions), len(servers)))
    for group, clients in enumerate(scenario.clients):
        for number, one in enumerate(scenario.functions):
            for place, server in enumerate(servers):
                link = server.link_to(clients.name)
                transfers = (one.bytes_in + one.bytes_out) / link.bandwidth + 2 * link.latency
                found[group, number, place] = transfers + one.operations / server.call_speed
    return found


def mean_bound(scenario: PlacementScenario, calls: PlacedCalls) -> float:
    """A mean response time of these calls that no policy can go below: each call alone on the
    server that is best for it."""
    best = alone(scenario).min(axis=2)
    group = np.array(scenario.group_of_clients())
    return float(best[group[calls.client], calls.function].mean())


def total_bound(scenario: PlacementScenario, plan: PlannedCalls) -> float:
    """A total time of a batch that no policy can go below: of the slowest call alone on its best
    server, and of all operations shared out among all cores."""
    best = alone(scenario).min(axis=2)
    group = np.array(scenario.group_of_clients())
    operations = np.array([one.operations for one in scenario.functions])
    return max(
        float(best[group[plan.client], plan.function].max()),
        float(operations[plan.function].sum()) / scenario.capacity,
    )


@dataclass(frozen=True, slots=True)
class BestAssignment:
    """The assignment of a batch with the least total time that was found."""

    servers: Integers
    """Of each call, shape (calls,)."""
    total: float
    """Its total time when simulated, s."""


def best_assignment(
    scenario: PlacementScenario, plan: PlannedCalls, watch: Callable[[], object] | None = None
) -> BestAssignment | None:
    """Search for the assignment of a batch with the least total time; None if it has too many
    calls for that.

    Calls alike (the same function, called from the same group of clients) are exchangeable, so the
    search is over the number of calls of each kind on each server. It starts from a greedy
    assignment and moves calls between servers, fewer and fewer at a time, as long as the simulated
    total time falls.
    """
    if len(plan) > _MOST_SEARCHED:
        return None
    groups = np.array(scenario.group_of_clients())[plan.client]
    kinds, kind = np.unique(np.stack([groups, plan.function]), axis=1, return_inverse=True)
    kind = kind.reshape(-1)
    each, servers = alone(scenario), scenario.server_count
    trials = 0

    def total(counts: Integers) -> float:
        nonlocal trials
        trials += 1
        if watch is not None:
            watch()
        run = simulate(scenario, _spread(counts, kind).tolist(), plan=plan)
        return float(run.calls.ended.max())

    counts = _greedy(scenario, kinds, kind, each)
    best = total(counts)
    amount = max(1, int(counts.max()) // 4)
    while amount:
        improved = False
        for number in range(len(counts)):
            for source in range(servers):
                for target in range(servers):
                    if source == target or counts[number, source] < amount:
                        continue
                    if trials >= _MOST_TRIALS:
                        return BestAssignment(_spread(counts, kind), best)
                    counts[number, source] -= amount
                    counts[number, target] += amount
                    found = total(counts)
                    if found < best * (1 - 1e-9):
                        best, improved = found, True
                    else:
                        counts[number, source] += amount
                        counts[number, target] -= amount
        if not improved:
            amount //= 2
    return BestAssignment(_spread(counts, kind), best)


def _greedy(scenario: PlacementScenario, kinds: Integers, kind: Integers, each: Floats) -> Integers:
    """Numbers of calls, shape (kinds, servers): each call on the server where it would end first,
    if servers worked at an even rate."""
    servers = scenario.each_server()
    capacity = np.array([one.slots * one.call_speed for one in servers])
    operations = np.array([one.operations for one in scenario.functions])
    counts = np.zeros((kinds.shape[1], len(servers)), dtype=np.int64)
    busy = np.zeros(len(servers))
    for number in kind.tolist():
        group, function = kinds[:, number]
        place = int(np.argmin(busy + each[group, function]))
        counts[number, place] += 1
        busy[place] += operations[function] / capacity[place]
    return counts


def _spread(counts: Integers, kind: Integers) -> Integers:
    """The server of each call: those of a kind take turns in proportion to the counts."""
    found = np.empty(len(kind), dtype=np.int64)
    for number, row in enumerate(counts):
        share = np.concatenate([(np.arange(count) + 0.5) / count for count in row if count])
        servers = np.repeat(np.arange(len(row)), row)
        found[kind == number] = servers[np.argsort(share, kind="stable")]
    return found
