"""The weather ensemble as an `Experiment`."""

from __future__ import annotations

import os
import random
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode

from gridbench.bench.programs import new_folder, run_compiler
from gridbench.engines.environments import environment, launch_of
from gridbench.engines.registry import find_engine
from gridbench.ensemble.farm import FarmOrder
from gridbench.ensemble.layouts import (
    GRAINS,
    INPUT,
    Division,
    EnsembleCluster,
    Shares,
    cluster_of,
    told_shares,
)
from gridbench.ensemble.options import SETTINGS, BatchKind, EnsembleParameters, LinkKind
from gridbench.ensemble.record import FORM, OURS, EnsembleRun, PlannedEnsembleRun, RequestKind
from gridbench.ensemble.result_kind import ENSEMBLE
from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment
from gridbench.formats import duration, percent
from gridbench.machine.judgement import Watch
from gridbench.process.child import Child, Ended
from gridbench.process.children import Leftovers, descendants_of, processor_time
from gridbench.process.memory import footprint
from gridbench.schema import record_of
from gridbench_testbed.batch import BatchSystem
from gridbench_testbed.batch.gridengine import GridEngine
from gridbench_testbed.batch.slurm import Slurm
from gridbench_testbed.links.network import FASTEST, Network

# ---- The clusters

_GRID_ENGINE = ("venus", "amata")
_OF_A_NODE = 50
"""Workers of a node, and so of an agent, at most."""
_PAYLOAD = 0.956
"""Share of a link's rate that TCP has for data, with packets of 1,500 bytes."""
_SHORTEST = 0.2e-3
"""Seconds of a delay that is made: a network of this machine has the rest by itself."""
_HEARTBEAT = 60.0
"""Seconds: a slow link is busy for long with what is before a sign of life."""


@dataclass(frozen=True, slots=True)
class _RunningCluster:
    cluster: EnsembleCluster
    network: Network
    system: BatchSystem | None


class EnsembleClusters:
    """The clusters with as many processors as runs need at most, while active."""

    def __init__(
        self,
        processors: Mapping[str, int],
        *,
        batch: BatchKind,
        links: LinkKind,
        time_scale: float,
    ) -> None:
        """`processors`: of each cluster, by name. InputError if a batch system is missing."""
        self._processors = processors
        self._systems = {name: _system_of(name, batch) for name in processors}
        self._factor = time_scale if links == "scaled" else 1.0
        self._stack = ExitStack()
        self._running: dict[str, _RunningCluster] = {}
        for system in filter(None, self._systems.values()):
            if why := system.why_not():
                raise InputError(
                    f"clusters need a batch system: {why}",
                    remedy="install it, or give --batch-systems none",
                )

    @property
    def versions(self) -> dict[str, str]:
        """What starts the workers of each cluster."""
        return {
            name: f"{type(one.system).__name__} {one.system.version}" if one.system else "none"
            for name, one in self._running.items()
        }

    def servers(self, shares: Shares, request: RequestKind, start_timeout: float) -> list[str]:
        """The workers of a run, as URLs of servers."""
        return [
            url for name, count in shares for url in self._urls(name, count, request, start_timeout)
        ]

    def namespaces(self, shares: Shares) -> list[str]:
        """The namespace of each processor, dealt to the clusters in turn."""
        left = dict(shares)
        found = []
        while any(left.values()):
            for name in [name for name, count in left.items() if count]:
                left[name] -= 1
                found.append(str(self._running[name].network.namespaces[0]))
        return found

    def check(self) -> None:
        """RuntimeError when a batch system has ended."""
        for one in self._running.values():
            if one.system is not None:
                one.system.check()

    def network(self, name: str) -> Network:
        """The link of a cluster."""
        return self._running[name].network

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for name, count in self._processors.items():
                cluster, system = cluster_of(name), self._systems[name]
                rate = min(8 * cluster.throughput / _PAYLOAD / self._factor, FASTEST)
                delay = cluster.delay * self._factor
                network = Network(1, rate, delay if delay >= _SHORTEST else 0.0)
                stack.enter_context(network)
                try:
                    running = _started(system, count, network.namespaces[0])
                except (RuntimeError, TimeoutError) as error:
                    raise InputError(
                        f"the batch system of {name} does not start: {error}"
                    ) from None
                if running is not None:
                    stack.enter_context(running)
                self._running[name] = _RunningCluster(cluster, network, running)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.clear()
        self._stack.close()

    def _urls(
        self, name: str, count: int, request: RequestKind, start_timeout: float
    ) -> Iterator[str]:
        one = self._running[name]
        keys: dict[str, object] = {
            "addresses": one.network.client_address,
            "start_timeout": start_timeout,
            "heartbeat": _HEARTBEAT,
            "output": "kept",
        }
        if one.system is None:
            namespace = shlex.quote(str(one.network.namespaces[0]))
            launcher, keys["prefix"] = "local", f"nsenter --net={namespace}"
        else:
            launcher = "slurm" if isinstance(one.system, Slurm) else "gridengine"
            keys |= {"prefix": shlex.join(one.system.prefix), "request": "array"}
        for number, (nodes, workers) in enumerate(_nodes(count, request)):
            own = dict(keys, workers=workers)
            if one.system is not None:
                own["nodes"] = nodes
                if launcher == "gridengine" and workers > 1:
                    own["parallel_environment"] = "mp"
            # Agents without a batch system are started by the client, one for each server.
            for node in range(1 if one.system is not None else nodes):
                place = f"{name}-{number + 1}" if one.system else f"{name}-{number + 1}-{node + 1}"
                yield f"{launcher}://{place}?{urlencode(own, quote_via=quote, safe='/')}"


def _nodes(count: int, request: RequestKind) -> list[tuple[int, int]]:
    """Requests for nodes, each with their number and the workers of each."""
    if request == "one by one":
        return [(1, 1)] * count
    full, rest = divmod(count, _OF_A_NODE)
    return [
        (nodes, workers) for nodes, workers in ((full, _OF_A_NODE), (1, rest)) if nodes * workers
    ]


def _system_of(name: str, batch: BatchKind) -> type[BatchSystem] | None:
    if batch == "none":
        return None
    is_grid_engine = batch == "gridengine" or (batch == "both" and name in _GRID_ENGINE)
    return GridEngine if is_grid_engine else Slurm


def _started(
    system: type[BatchSystem] | None, processors: int, namespace: Path
) -> BatchSystem | None:
    if system is None:
        return None
    if system is GridEngine:
        return GridEngine(slots=processors, namespace=namespace)
    each = min(processors, _OF_A_NODE)
    return Slurm(nodes=-(-processors // each), processors=each, namespace=namespace)


# ---- The experiment

_CLIENT = "gridbench.ensemble.farm"
_START = 180.0
"""Seconds until all workers have to be ready."""
_EXIT = 30.0
"""Seconds that a client may take to end its workers."""


class FarmFailed(Exception):
    """A client ended, or could not run its samples."""


class EnsembleExperiment(Experiment[PlannedEnsembleRun, EnsembleRun]):
    """All layouts, grains and engines."""

    kind = ENSEMBLE
    form = FORM
    name = "ensemble"

    def __init__(self, parameters: EnsembleParameters) -> None:
        """InputError for what cannot be measured here."""
        parameters.check()
        self.parameters = parameters
        self.seed = parameters.seed
        self._divisions = {
            (layout, told_shares(one.shares)): one
            for layout in parameters.layouts
            for one in parameters.divisions(layout)
        }
        for engine in parameters.engines:
            if engine != OURS:
                find_engine(engine)
        self._module: Path | None = parameters.module
        self._clusters: EnsembleClusters | None = None

    def record(self) -> dict[str, Any]:
        """The options that all runs share."""
        return record_of(self.parameters)

    def prepare(self, bench: Bench) -> None:
        """Compile the module."""
        del bench
        if self._module is None:
            folder, source = new_folder(), files("gridbench.ensemble") / "samples.idl"
            gridrpc = Path(sys.prefix) / "bin" / "gridrpc"
            run_compiler([gridrpc, "compile", source, "-o", folder])
            self._module = folder / "ensemble_samples.so"

    def batches(
        self, bench: Bench, records: Sequence[EnsembleRun]
    ) -> Iterator[Sequence[PlannedEnsembleRun]]:
        """All runs in one batch: each round in an order of its own, drawn from the seed."""
        del bench, records
        own, found = self.parameters, list[PlannedEnsembleRun]()
        for repeat in range(own.rounds):
            cases = [
                PlannedEnsembleRun(
                    engine=engine,
                    layout=layout,
                    shares=shares,
                    processors=one.processors,
                    samples=one.processors * one.samples,
                    grain=grain,
                    request=request,
                    ahead=ahead,
                    repeat=repeat,
                )
                for (layout, shares), one in self._divisions.items()
                for grain in own.grains
                for engine in own.engines
                for ahead in own.ahead
                for request in (own.requests if engine == OURS else own.requests[:1])
            ]
            random.Random(f"{self.seed} {repeat}").shuffle(cases)
            found += cases
        yield found

    def group(self, case: PlannedEnsembleRun) -> str:
        """The engine: if it is not installed, none of its runs can be made."""
        return case.engine

    def seconds(self, cases: Sequence[PlannedEnsembleRun]) -> float | None:
        """The time that the samples take."""
        if self.parameters.model == "compute":
            return None
        scale = self.parameters.time_scale
        return sum(
            GRAINS[one.grain].seconds * scale * one.samples / one.processors for one in cases
        )

    def run(self, case: PlannedEnsembleRun, bench: Bench) -> EnsembleRun:
        """Start the workers with a new client, and run all samples."""
        clusters = self._open(bench)

        def glance() -> None:
            bench.interrupt.check()
            clusters.check()
            if bench.steps is not None:
                bench.steps.glance()

        watch = Watch(os.getpid())
        watch.begin()
        try:
            found = self._drive(case, clusters, glance)
        except (FarmFailed, RuntimeError) as error:
            watch.end()
            return case.recorded_as(
                EnsembleRun, status="failed", why=str(error), load=watch.record()
            )
        watch.end()
        wrong = found["wrong"]
        return case.recorded_as(
            EnsembleRun,
            **found,
            status="failed" if wrong else "done",
            why=f"{wrong:,} results are wrong" if wrong else "",
            load=watch.record(),
        )

    def outcome(self, record: EnsembleRun) -> str:
        """Efficiency, or why there is none."""
        if record.status != "done":
            return f"{record.status}: {record.why}"
        call = "" if record.ahead else f"T_r/T_c {percent(record.call_efficiency)}, "
        return f"{call}efficiency {percent(record.efficiency)}, started in {duration(record.start)}"

    def _open(self, bench: Bench) -> EnsembleClusters:
        if self._clusters is None:
            most: dict[str, int] = {}
            for division in self._divisions.values():
                for name, count in division.shares:
                    most[name] = max(most.get(name, 0), count)
            own = self.parameters
            clusters = EnsembleClusters(
                most, batch=own.batch, links=own.links, time_scale=own.time_scale
            )
            self._clusters = bench.stack.enter_context(clusters)
        return self._clusters

    def _drive(
        self, case: PlannedEnsembleRun, clusters: EnsembleClusters, glance: Callable[[], object]
    ) -> dict[str, Any]:
        """Start, memory and samples of a run. FarmFailed if the client cannot make them."""
        division = self._divisions[case.layout, case.shares]
        order = self._order(case, division, clusters)
        with _client(case.engine) as client:
            client.send(asdict(order))
            began = _answer(client, time.monotonic() + _START, glance)
            processes = [*descendants_of(os.getpid())]
            memory, before = footprint(processes), processor_time(processes)
            client.send({"begin": True})
            runs = _answer(client, time.monotonic() + self.parameters.limit, glance)
            computed = processor_time(processes) - before
            client.send({"end": True})
            client.wait(_EXIT)
        return {**runs, **began, "memory": memory, "processor_time": computed}

    def _order(
        self, case: PlannedEnsembleRun, division: Division, clusters: EnsembleClusters
    ) -> FarmOrder:
        grain, own = GRAINS[case.grain], self.parameters
        shares: Shares = division.shares
        is_ours = case.engine == OURS
        settings = "" if own.module is None else str(own.module.with_name(SETTINGS))
        return FarmOrder(
            engine="" if is_ours else case.engine,
            driver="" if is_ours else find_engine(case.engine).value,
            servers=clusters.servers(shares, case.request, _START) if is_ours else (),
            namespaces=() if is_ours else clusters.namespaces(shares),
            module=str(self._module),
            settings=settings,
            processors=case.processors,
            calls=case.processors * (1 + case.ahead),
            samples=case.samples,
            seconds=grain.seconds * own.time_scale,
            input=INPUT,
            output=grain.output,
            frames=grain.frames,
            patience=_START,
            seed=self.seed + case.repeat,
        )


@contextmanager
def _client(engine: str) -> Iterator[Child]:
    """While active, a client in the Python of its engine."""
    launch = None if engine == OURS or environment(engine) is None else launch_of(engine)
    with Leftovers() as leftovers:
        client = Child(_CLIENT, launch=launch)
        try:
            yield client
        finally:
            if not client.wait(0.0):
                client.ask_to_end(signal.SIGTERM)
            client.end(leftovers, patience=_EXIT)


def _answer(client: Child, until: float, glance: Callable[[], object]) -> Any:
    """The next message of a client. FarmFailed if there is none."""
    try:
        found = client.receive(until, glance)
    except Ended:
        raise FarmFailed(": ".join([client.ending(), *client.last_lines(1)])) from None
    except TimeoutError:
        raise FarmFailed("the client has not answered in time") from None
    if "error" in found:
        raise FarmFailed(str(found["error"]))
    return found
