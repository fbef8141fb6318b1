"""Real runs of all policies as an `Experiment`, each beside its simulation."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from gridbench.bench.programs import new_folder, run_compiler
from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment
from gridbench.formats import counted, duration
from gridbench.machine.judgement import Watch
from gridbench.placement.options import RealPlacementParameters
from gridbench.placement.real_client import PlacementOrder
from gridbench.placement.record import (
    BEST,
    REAL_FORM,
    PlacedCall,
    PlannedRealRun,
    RealPolicy,
    RealRun,
)
from gridbench.placement.result_kind import REAL
from gridbench.placement.scenario import PlacementScenario
from gridbench.placement.simulation import best_assignment, planned_calls, simulate
from gridbench.process.child import Child, Ended
from gridbench.process.children import Leftovers
from gridbench_testbed.links.network import Network, require_links
from gridbench_testbed.services.gridrpc_server import (
    DirectoryTable,
    GridrpcDirectory,
    GridrpcServer,
)

_CLIENT = "gridbench.placement.real_client"
_CONNECT = 60.0
"""Seconds until all clients have to be connected."""
_START = 0.3
"""Seconds from the order to begin until the start."""
_SETTLE = 2.5
"""Seconds between the two times, beside an interval of announcements."""
_PATIENCE, _LEAST_PATIENCE = 20.0, 60.0
"""How many times as long as simulated the calls may take, and seconds in any case."""
_OVERHEAD = 4.0
"""Seconds that a run takes beside its calls, about."""


class PlacementClientLost(Exception):
    """A client ended, or could not make its calls."""


@dataclass(frozen=True, slots=True)
class SimulatedTimes:
    """Total times of both passes, s."""

    first: float
    second: float


class RealPlacement(Experiment[PlannedRealRun, RealRun]):
    """All policies in all rounds."""

    kind = REAL
    form = REAL_FORM
    name = "placement-run"

    def __init__(self, parameters: RealPlacementParameters) -> None:
        """InputError for a scenario that can only be simulated."""
        self.parameters = parameters
        self.seed = parameters.seed
        self.scenario = parameters.base()
        check_real(self.scenario)
        self._plan = planned_calls(self.scenario, self.seed)
        self._assignment: list[int] = []
        self._simulated: dict[RealPolicy, SimulatedTimes] = {}
        self._servers: PlacementServers | None = None

    def record(self) -> dict[str, Any]:
        """The scenario."""
        names = [one.name for one in self.scenario.each_server()]
        return {**self.scenario.described(), "server_names": names}

    def prepare(self, bench: Bench) -> None:
        """Search for the best assignment, and simulate all policies."""
        del bench
        found = best_assignment(self.scenario, self._plan)
        if found is None:
            raise InputError(
                f"no best assignment can be searched for {len(self._plan):,} calls",
                remedy="lower `calls` of the scenario's workload",
            )
        self._assignment, best = found.servers.tolist(), found.total
        for policy in self.parameters.policies:
            self._simulated[policy], servers = self._simulate(policy)
            # The search ends at a local minimum, which a policy may be below.
            total = simulate(self.scenario, servers, self.seed, plan=self._plan).totals.total
            if total < best:
                self._assignment, best = servers, total
        self._simulated[BEST], _ = self._simulate(BEST)

    def batches(
        self, bench: Bench, records: Sequence[RealRun]
    ) -> Iterator[Sequence[PlannedRealRun]]:
        """All policies of a round one after the other, in an order drawn from the seed."""
        del bench, records
        found = list[PlannedRealRun]()
        for repeat in range(self.parameters.rounds):
            cases = [
                PlannedRealRun(policy=policy, repeat=repeat)
                for policy in self.parameters.all_policies
            ]
            random.Random(f"{self.seed} {repeat}").shuffle(cases)
            found += cases
        yield found

    def seconds(self, cases: Sequence[PlannedRealRun]) -> float:
        """The expected time."""
        pause = _OVERHEAD + self.scenario.interval + _SETTLE
        each = (self._simulated[one.policy] for one in cases)
        return sum(one.first + one.second + pause for one in each)

    def run(self, case: PlannedRealRun, bench: Bench) -> RealRun:
        """Run a policy with new clients."""
        servers = self._open(bench)
        simulated = self._simulated[case.policy]

        def glance() -> None:
            bench.interrupt.check()
            servers.check()
            if bench.steps is not None:
                bench.steps.glance()

        watch = Watch(os.getpid())
        watch.begin()
        try:
            first, second = self._drive(case, servers, simulated, glance)
        except (PlacementClientLost, RuntimeError) as error:
            watch.end()
            return case.recorded_as(RealRun, status="failed", why=str(error), load=watch.record())
        watch.end()
        return case.recorded_as(
            RealRun,
            status="done",
            first=_total(first),
            total=_total(second),
            simulated_first=simulated.first,
            simulated=simulated.second,
            calls=tuple(second),
            load=watch.record(),
        )

    def outcome(self, record: RealRun) -> str:
        """The total time, or why there is none."""
        if record.status != "done":
            return f"{record.status}: {record.why}"
        return f"{duration(record.total)}, simulated {duration(record.simulated)}"

    # ---- The simulation

    def _simulate(self, policy: RealPolicy) -> tuple[SimulatedTimes, list[int]]:
        """Total times of both passes, and the servers of the second, in which a client knows what
        it has learned in the first."""
        given = self._assignment if policy == BEST else policy
        first = simulate(self.scenario, given, self.seed, plan=self._plan).totals.total
        one = self._plan
        later = first + self.scenario.interval + _SETTLE + _START
        both = replace(
            one,
            at=np.concatenate([one.at, one.at + later]),
            client=np.tile(one.client, 2),
            function=np.tile(one.function, 2),
        )
        twice = given if isinstance(given, str) else [*given, *given]
        calls = simulate(self.scenario, twice, self.seed, plan=both).calls
        second = calls.submitted >= later
        total = float(calls.ended[second].max() - calls.submitted[second].min())
        return SimulatedTimes(first, total), calls.server[second].tolist()

    # ---- The real run

    def _open(self, bench: Bench) -> PlacementServers:
        """The servers; new ones if one has ended."""
        if self._servers is not None:
            try:
                self._servers.check()
            except RuntimeError:
                self._servers.__exit__()
                self._servers = None
        if self._servers is None:
            self._servers = bench.stack.enter_context(PlacementServers(self.scenario))
        return self._servers

    def _drive(
        self,
        case: PlannedRealRun,
        servers: PlacementServers,
        simulated: SimulatedTimes,
        glance: Callable[[], object],
    ) -> tuple[list[PlacedCall], list[PlacedCall]]:
        """The calls of both passes. PlacementClientLost if a client ends."""
        count = self.scenario.client_count
        orders = [self._order(case, client, servers) for client in range(count)]
        with _clients(orders) as clients:
            until = time.monotonic() + _CONNECT
            for number, client in enumerate(clients):
                _answer(number, client, until, glance)
            found = []
            for expected in (simulated.first, simulated.second):
                start = time.monotonic() + _START
                for client in clients:
                    client.send({"start": start})
                until = start + max(_PATIENCE * expected, _LEAST_PATIENCE)
                found.append(
                    [
                        PlacedCall(number, function, servers.addresses[address], *stamps)
                        for number, client in enumerate(clients)
                        for function, address, *stamps in _answer(number, client, until, glance)[
                            "calls"
                        ]
                    ]
                )
                _wait(self.scenario.interval + _SETTLE, glance)
        first, second = found
        return first, second

    def _order(
        self, case: PlannedRealRun, client: int, servers: PlacementServers
    ) -> PlacementOrder:
        addresses = {number: address for address, number in servers.addresses.items()}
        own = np.flatnonzero(self._plan.client == client).tolist()
        is_given = case.policy == BEST
        return PlacementOrder(
            directory=servers.directory,
            policy="" if is_given else case.policy,
            assignment=[addresses[self._assignment[one]] for one in own] if is_given else [],
            functions=[
                (function_of(number), one.bytes_in, one.bytes_out)
                for number, one in enumerate(self.scenario.functions)
            ],
            calls=self._plan.of_client(client),
            seed=self.seed,
        )


def _total(calls: Sequence[PlacedCall]) -> float:
    """Seconds from the first submit to the last end."""
    return max(one.ended for one in calls) - min(one.submitted for one in calls)


def _wait(seconds: float, glance: Callable[[], object]) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        glance()
        time.sleep(0.1)


@contextmanager
def _clients(orders: Sequence[PlacementOrder]) -> Iterator[list[Child]]:
    """While active, a process of a client for each order."""
    with Leftovers() as leftovers:
        clients: list[Child] = []
        try:
            for order in orders:
                clients.append(Child(_CLIENT))
                clients[-1].send(asdict(order))
            yield clients
        finally:
            for client in clients:
                client.close()
            leftovers.end()


def _answer(number: int, client: Child, until: float, glance: Callable[[], object]) -> Any:
    """The next message of a client. PlacementClientLost if there is none."""
    try:
        found = client.receive(until, glance)
    except Ended:
        why = ": ".join([client.ending(), *client.last_lines(1)])
        raise PlacementClientLost(f"client {number} {why}") from None
    except TimeoutError:
        raise PlacementClientLost(f"client {number} did not answer") from None
    if "error" in found:
        raise PlacementClientLost(f"client {number}: {found['error']}")
    return found


# ---- The servers

MODULE = "placement"
SHORTEST_INTERVAL = 0.1
"""Seconds between two announcements of a server."""
_MOST_WORKERS = 256
_SPEED = "GRIDBENCH_PLACEMENT_SPEED"
_HEAD = f"""\
Module {MODULE};

Globals {{
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* As long as a server of this speed computes. */
static void work(double operations)
{{
    double seconds = operations / atof(getenv("{_SPEED}"));
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long nanoseconds = until.tv_nsec + (long)(fmod(seconds, 1.0) * 1e9);
    until.tv_sec += (time_t)seconds + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}}
}}
"""
_FUNCTION = """
Define {name}(IN long n, IN uint8 data[n], IN long m, OUT uint8 result[m])
    "Waits as long as a server of its speed computes."
    CalcOrder {operations!r}
{{
    memcpy(result, data, n < m ? n : m);
    work({operations!r});
}}
"""


def function_of(number: int) -> str:
    """The module's name for a function of the scenario."""
    return f"{MODULE}/function{number}"


def check_real(scenario: PlacementScenario) -> None:
    """InputError for a scenario that can only be simulated, or without the right to make links."""
    require_links()
    workers = sum(one.slots for one in scenario.each_server())
    if len(scenario.clients) > 1 or any(one.links for one in scenario.servers):
        raise InputError(
            "the clients of a real run are on one machine, and share its link to each server",
            remedy="give one group of clients, and servers without `links`",
        )
    if workers > _MOST_WORKERS:
        raise InputError(
            f"the servers have {counted(workers, 'core')}, and a real run {_MOST_WORKERS} at most",
            remedy="lower `count` or `cores`",
        )
    if scenario.interval < SHORTEST_INTERVAL:
        raise InputError(
            f"servers announce themselves every {SHORTEST_INTERVAL} s at most",
            remedy="set `interval` of the scenario, or simulate it",
        )


class PlacementServers:
    """Servers of the speeds and links of a scenario that announce themselves, while active.

    A function takes as long as its operations at the speed of its server. It sleeps meanwhile, so
    any number of servers fit on a machine; data, links and calls are real.
    """

    def __init__(self, scenario: PlacementScenario) -> None:
        check_real(scenario)
        self._scenario = scenario
        self._stack = ExitStack()
        self._servers: list[GridrpcServer] = []
        self.addresses: dict[str, int] = {}
        """Where clients connect, and the number of the server."""
        self._directory: GridrpcDirectory | None = None

    @property
    def directory(self) -> str:
        """URL of the directory, for clients."""
        assert self._directory is not None
        return self._directory.client_url

    def check(self) -> None:
        """RuntimeError when a server or the directory has ended."""
        assert self._directory is not None
        for one in (self._directory, *self._servers):
            one.check()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            try:
                self._start(stack)
            except (RuntimeError, TimeoutError) as error:
                raise InputError(f"the servers do not start: {error}") from None
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        folder = new_folder()
        interface = folder / f"{MODULE}.idl"
        functions = [
            _FUNCTION.format(name=f"function{number}", operations=one.operations)
            for number, one in enumerate(self._scenario.functions)
        ]
        interface.write_text("".join([_HEAD, *functions]), encoding="utf-8")
        run_compiler([Path(sys.prefix) / "bin" / "gridrpc", "compile", interface, "-o", folder])
        servers = self._scenario.each_server()
        links = [
            stack.enter_context(Network(1, one.link.rate, one.link.latency)) for one in servers
        ]
        addresses = [one.client_address for one in links]
        self._directory = stack.enter_context(GridrpcDirectory(addresses))
        for number, (one, link) in enumerate(zip(servers, links, strict=True)):
            server = GridrpcServer(
                [folder / f"{MODULE}.so"],
                one.slots,
                tls=True,
                address=link.node_addresses[0],
                namespace=link.namespaces[0],
                name=one.name,
                authority=self._directory.authority,
                announced=DirectoryTable(
                    directory=self._directory.url(link.client_address),
                    interval=self._scenario.interval,
                    speed=one.announced,
                ),
                variables={_SPEED: repr(one.call_speed)},
            )
            self._servers.append(stack.enter_context(server))
            self.addresses[server.http] = number
        self._directory.wait_for(len(servers))
