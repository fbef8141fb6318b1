"""Cases with many clients as an `Experiment`: how one is run."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment
from gridbench.formats import amount, counted, percent, size
from gridbench.linpack.client import ClientOrder
from gridbench.linpack.options import ClientsParameters
from gridbench.linpack.paper import call_seconds
from gridbench.linpack.record import (
    CLIENTS_FORM,
    ClientsCase,
    ClientsCell,
    CorePolicy,
    LinpackServer,
    PlannedClientsCase,
    ServedCall,
    ServerSample,
)
from gridbench.linpack.result_kind import CLIENTS
from gridbench.linpack.servers import (
    AuditLog,
    LinpackPrograms,
    PeerServer,
    ServerSampler,
    build_programs,
    memory_needed,
    peer_version,
    require_peer,
    with_enqueue,
)
from gridbench.machine.judgement import Watch
from gridbench.machine.processors import available_count
from gridbench.process.child import Child, Ended, ProcessTemplate
from gridbench.process.children import Leftovers
from gridbench.records import from_record
from gridbench.run.machine import available_memory
from gridbench.schema import record_of
from gridbench_testbed.services.gridrpc_server import GridrpcServer

_CLIENT = "gridbench.linpack.client"
_TIMEOUT = 300.0
"""Seconds after which a call without a result counts as lost."""
_CONNECT = 60.0
"""Seconds until all clients have to be connected, and more for each of them:"""
_CONNECT_EACH = 2.0
_START = 0.3
"""Seconds from the order to begin until the start."""
_ALONE = 2.0
"""Seconds in which one client calls without a pause, to know the time of a call."""
_FIRST_STEP = 1e-3
_SAMPLES_PER_STEP = 3 / 5
"""The paper sampled every 5 s, at steps of 3 s."""
_SHORTEST_SAMPLE = 0.5
"""Seconds: the kernel counts processor time in hundredths."""
_OVERHEAD, _OVERHEAD_EACH = 3.0, 0.03
"""Seconds that a case takes beside its duration, and more for each client."""
_EXIT = 0.5
"""Seconds in which the end of the server has to be noticed."""


_ServerKey = tuple[LinpackServer, CorePolicy]
_Server = GridrpcServer | PeerServer


class ServerLost(Exception):
    """The server ended during a case."""


class ClientsExperiment(Experiment[PlannedClientsCase, ClientsCase]):
    """Cases with all policies, orders and numbers of clients."""

    kind = CLIENTS
    form = CLIENTS_FORM
    name = "linpack-clients"

    def __init__(self, parameters: ClientsParameters) -> None:
        """InputError for an order that the paper does not have, with a scaled step, and for a
        server that is not installed."""
        self.parameters = parameters
        self.seed = parameters.seed
        if "scaled" in parameters.steps:
            for n in parameters.sizes:
                call_seconds(n)
        for server in parameters.servers:
            if server != "gridrpc":
                require_peer(server)
        self._programs: LinpackPrograms | None = None
        self._server: tuple[_ServerKey, _Server, ExitStack] | None = None
        self._step: dict[int, float] = {}

    def record(self) -> dict[str, Any]:
        """The parameters of all cases, and what solves."""
        library = "" if self._programs is None else self._programs.library
        peers = {one: peer_version(one) for one in self.parameters.servers if one != "gridrpc"}
        versions = {"servers": peers} if peers else {}
        return {**record_of(self.parameters), "solver": library, **versions}

    def prepare(self, bench: Bench) -> None:
        """Compile the module."""
        del bench
        self._programs = build_programs()

    def batches(
        self, bench: Bench, records: Sequence[ClientsCase]
    ) -> Iterator[Sequence[PlannedClientsCase]]:
        """All cases; a server serves all of its policy in a round. Scaled steps stay as they
        were."""
        bench.stack.callback(self._stop)
        scaled = [one for one in records if one.steps == "scaled" and one.calls]
        self._step = {one.n: one.step for one in scaled}
        own = self.parameters
        yield [
            PlannedClientsCase(
                server=server, policy=policy, n=n, clients=clients, steps=steps, repeat=repeat
            )
            for repeat in range(own.rounds)
            for server in own.servers
            for policy in own.policies
            for steps in own.steps
            for n in own.sizes
            for clients in own.clients
        ]

    def seconds(self, cases: Sequence[PlannedClientsCase]) -> float:
        """The expected time."""
        each = (_OVERHEAD + _OVERHEAD_EACH * one.clients for one in cases)
        return sum(each) + len(cases) * self.parameters.duration

    def run(self, case: PlannedClientsCase, bench: Bench) -> ClientsCase:
        """Run a case. If the server ends, once more with a new one."""
        try:
            return self._run(case, bench)
        except ServerLost as lost:
            assert bench.steps is not None
            bench.steps.say(f"{case.describe()}: {lost}; measuring it again with a new server")
        try:
            return replace(self._run(case, bench), restarts=1)
        except ServerLost as lost:
            return self._unmeasured(case, "failed", str(lost), restarts=1)

    def outcome(self, record: ClientsCase) -> str:
        """Calls, mean performance, and the load."""
        if record.status != "done":
            return f"{record.status}: {record.why}"
        parts = [counted(len(record.calls), "call")]
        cell = ClientsCell([record])
        if cell.performance is not None:
            parts.append(f"mean {amount(cell.performance.mean, 'flop/s')}")
        parts.append(f"processors {percent(cell.utilisation, 0)} busy")
        return ", ".join(parts)

    # ---- One case

    def _run(self, case: PlannedClientsCase, bench: Bench) -> ClientsCase:
        """ServerLost if the server ends, InputError if it does not start."""
        needed, available = case.clients * memory_needed(case.n), available_memory()
        if needed > available:
            why = (
                f"clients and server need {size(needed)} of memory together, and {size(available)}"
                " are available"
            )
            return self._unmeasured(case, "skipped", why)
        try:
            step = self._step_of(case, bench)
            watch = Watch(os.getpid())
            watch.begin()
            ran = self._drive(case, step, self.parameters.duration, bench)
        except ClientLost as lost:
            return self._unmeasured(case, "failed", str(lost))
        watch.end()
        watch.look_after()
        bad = [call for call in ran.calls if call.ending != "ok"]
        return ClientsCase(
            **asdict(case),
            at=ran.at,
            status="failed" if bad else "done",
            why=_describe(bad, len(ran.calls)),
            step=step,
            seconds=self.parameters.duration,
            cores=available_count(),
            clock_error=ran.clock_error,
            calls=ran.calls,
            samples=ran.samples,
            load=watch.record(),
        )

    def _unmeasured(
        self,
        case: PlannedClientsCase,
        status: Literal["failed", "skipped"],
        why: str,
        restarts: int = 0,
    ) -> ClientsCase:
        return ClientsCase(
            **asdict(case),
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            status=status,
            why=why,
            step=self.parameters.step,
            seconds=self.parameters.duration,
            cores=available_count(),
            restarts=restarts,
        )

    def _step_of(self, case: PlannedClientsCase, bench: Bench) -> float:
        """The step; a scaled one is measured when it is first needed, with one core for each call
        of gridrpc. All policies and servers have the same one, so that they can be compared."""
        own = self.parameters
        if case.steps == "paper":
            return own.step
        if case.n not in self._step:
            alone = replace(case, server="gridrpc", policy="one", clients=1)
            ran = self._drive(alone, _FIRST_STEP, _ALONE, bench, probability=1.0)
            times = [call.seconds for call in ran.calls if call.ending == "ok"]
            if not times:
                raise InputError(
                    f"with {alone.describe()} no call was answered: {ran.calls[0].why}"
                )
            ratio = call_seconds(case.n) / statistics.median(times)
            self._step[case.n] = own.step / ratio
        return self._step[case.n]

    def _drive(
        self,
        case: PlannedClientsCase,
        step: float,
        duration: float,
        bench: Bench,
        *,
        probability: float = 0.0,
    ) -> _Run:
        """Have clients call. ClientLost if one ends, ServerLost if the server does."""
        server = self._serving(case.server, case.policy)
        probability = probability or self.parameters.probability

        def glance() -> None:
            bench.interrupt.check()
            if bench.steps is not None:
                bench.steps.glance()
            if _has_ended(server):
                raise ServerLost("the server ended")

        with _with_server(server), _clients(case) as clients:
            for number, client in enumerate(clients):
                name = f"{self.seed}/{case.repeat}/{number}"
                order = ClientOrder(
                    client=number,
                    server=case.server,
                    address=server.socket if isinstance(server, GridrpcServer) else server.address,
                    step=step,
                    phase=step * random.Random(f"{name}/phase").random(),
                    probability=probability,
                    seed=name,
                    timeout=_TIMEOUT,
                )
                client.send(asdict(order))
            until = time.monotonic() + _CONNECT + _CONNECT_EACH * len(clients)
            for number, client in enumerate(clients):
                _answer(number, client, until, glance)
            audit = AuditLog(server) if isinstance(server, GridrpcServer) else None
            start = time.monotonic() + _START
            every = max(step / _SAMPLES_PER_STEP, _SHORTEST_SAMPLE)
            at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            with ServerSampler(server.pid, start, every) as sampler:
                for client in clients:
                    client.send({"start": start, "until": start + duration})
                until = start + duration + 2 * _TIMEOUT
                answers = [
                    _answer(number, client, until, glance)["calls"]
                    for number, client in enumerate(clients)
                ]
        every_call = [call for own in answers for call in own]
        traces = [call.pop("trace", "") for call in every_call]
        errors = [call.pop("clock_error", 0.0) for call in every_call]
        calls = [from_record(ServedCall, call) for call in every_call]
        accepted, error = audit.accepted(start, set(traces) - {""}) if audit else ({}, 0.0)
        found = [
            with_enqueue(call, accepted.get(trace))
            for call, trace in zip(calls, traces, strict=True)
        ]
        return _Run(at, max([error, *errors]), tuple(found), tuple(sampler.samples))

    # ---- The server

    def _serving(self, kind: LinpackServer, policy: CorePolicy) -> _Server:
        """The server with this policy; a new one, if another one runs, or if it has ended.
        InputError if it does not start."""
        if self._server is not None:
            before, server, _ = self._server
            if before == (kind, policy) and not _has_ended(server):
                return server
            self._stop()
        with ExitStack() as stack:
            try:
                server = self._new_server(kind, policy)
            except (RuntimeError, TimeoutError) as error:
                raise InputError(f"the server does not start: {error}") from None
            stack.enter_context(server)
            self._server = (kind, policy), server, stack.pop_all()
        return server

    def _new_server(self, kind: LinpackServer, policy: CorePolicy) -> _Server:
        assert self._programs is not None
        cores = available_count()
        if kind == "gridrpc":
            return GridrpcServer(
                [self._programs.module], cores, cores="all" if policy == "all" else 1
            )
        workers, threads = (1, cores) if policy == "all" else (cores, 1)
        return PeerServer(kind, workers, threads)

    def _stop(self) -> None:
        if self._server is not None:
            self._server[2].close()
            self._server = None


def _describe(bad: Sequence[ServedCall], calls: int) -> str:
    """Why a case failed: `2 of 30 calls failed: the worker was lost`; empty if no call is bad."""
    if not bad:
        return ""
    return f"{len(bad):,} of {counted(calls, 'call')} failed: {bad[0].why or bad[0].ending}"


def _has_ended(server: _Server) -> bool:
    """Whether the process of the server has ended."""
    try:
        server.check()
    except RuntimeError:
        return True
    return False


@contextmanager
def _with_server(server: _Server) -> Iterator[None]:
    """ServerLost if the server has ended when this ends: that is why clients could not call it."""
    try:
        yield
    except ClientLost:
        time.sleep(_EXIT)  # clients may see its end first
        if not _has_ended(server):
            raise
    if _has_ended(server):
        raise ServerLost("the server ended")


# ---- The clients


class ClientLost(Exception):
    """A client ended, or could not connect."""


@dataclass(frozen=True, slots=True)
class _Run:
    at: str
    clock_error: float
    calls: tuple[ServedCall, ...]
    samples: tuple[ServerSample, ...]


@contextmanager
def _clients(case: PlannedClientsCase) -> Iterator[list[Child]]:
    """While active, so many processes of clients, copies of one that has made the matrix."""
    with ProcessTemplate(_CLIENT, str(case.n)) as template, Leftovers() as leftovers:
        clients: list[Child] = []
        try:
            for _ in range(case.clients):
                clients.append(template.child())
            yield clients
        finally:
            for client in clients:
                client.close()
            leftovers.end()


def _answer(number: int, client: Child, until: float, glance: Callable[[], object]) -> Any:
    """The next message of a client. ClientLost if there is none."""
    try:
        found = client.receive(until, glance)
    except Ended:
        said = client.last_lines(1)
        why = ": ".join([client.ending(), *said])
        raise ClientLost(f"client {number} {why}") from None
    except TimeoutError:
        raise ClientLost(f"client {number} did not answer") from None
    if "error" in found:
        raise ClientLost(f"client {number}: {found['error']}")
    return found
