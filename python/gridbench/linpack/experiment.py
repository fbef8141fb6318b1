"""Remote Linpack with one client as an `Experiment`."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

from gridbench.experiment import Bench, Experiment
from gridbench.formats import amount, size
from gridbench.linpack import result_kind
from gridbench.linpack.options import LinpackParameters
from gridbench.linpack.record import (
    BIG_ENDIAN,
    FORM,
    LOCAL,
    LinpackCase,
    PlannedLinpackCase,
    operations,
    wrong_solution,
)
from gridbench.linpack.servers import (
    ClientFailed,
    LinpackPrograms,
    LinpackServers,
    SolveOrder,
    build_programs,
    memory_needed,
    run_client,
)
from gridbench.machine.judgement import Watch
from gridbench.run.machine import available_memory, usable_processors
from gridbench.schema import record_of

_LEAST = 0.2
"""Seconds that a client solves at least."""
_LEAST_SLOWED = 0.5
"""The same of a slowed client, which stands still for some time now and then."""


class LinpackExperiment(Experiment[PlannedLinpackCase, LinpackCase]):
    """All sizes, clients, speeds and paths."""

    kind = result_kind
    form = FORM
    name = "linpack"

    def __init__(self, parameters: LinpackParameters) -> None:
        """InputError for what cannot be measured here."""
        parameters.check()
        self._links = parameters.links()
        self.parameters = parameters
        self.seed = parameters.seed
        self._programs: LinpackPrograms | None = None
        self._servers: LinpackServers | None = None

    def record(self) -> dict[str, Any]:
        """The options that all cases share, and the solver."""
        return {**record_of(self.parameters), "solver": self._built.library}

    @property
    def _built(self) -> LinpackPrograms:
        if self._programs is None:
            self._programs = build_programs()
        return self._programs

    def prepare(self, bench: Bench) -> None:
        """Compile the programs."""
        del bench
        _ = self._built

    def batches(
        self, bench: Bench, records: Sequence[LinpackCase]
    ) -> Iterator[Sequence[PlannedLinpackCase]]:
        """All cases in one batch: each round in an order of its own, drawn from the seed."""
        del bench, records
        own, found = self.parameters, list[PlannedLinpackCase]()
        for repeat in range(own.rounds):
            cases = [
                PlannedLinpackCase(client=client, path=path, n=n, speed=speed, repeat=repeat)
                for client in own.languages
                for path in (LOCAL, *own.paths)
                if client == "Python" or not path.endswith(BIG_ENDIAN)
                for n in own.sizes
                for speed in (1.0, *own.speeds)
            ]
            random.Random(f"{self.seed} {repeat}").shuffle(cases)
            found += cases
        yield found

    def group(self, case: PlannedLinpackCase) -> str:
        """The path: without a server behind it, none of its cases can be run."""
        return case.path

    def run(self, case: PlannedLinpackCase, bench: Bench) -> LinpackCase:
        """Have the client solve its systems. A server that is gone is started again."""
        needed, available = memory_needed(case.n), available_memory()
        if needed > available:
            return case.record(
                status="skipped",
                why=f"client and server need {size(needed)} of memory together, and"
                f" {size(available)} are available",
            )
        servers = self._open(bench)
        slowed = case.speed < 1
        wanted = SolveOrder(
            calls=1 if slowed else self.parameters.calls,
            seconds=_LEAST_SLOWED if slowed else _LEAST,
            limit=self.parameters.limit,
        )

        def glance() -> None:
            bench.interrupt.check()
            if bench.steps is not None:
                bench.steps.glance()

        variables = servers.variables(case.path)
        watch = Watch(os.getpid())
        watch.begin()
        try:
            solves, limit = run_client(case, servers, variables, wanted, glance)
        except ClientFailed as error:
            watch.end()
            return case.record(status="failed", why=str(error), load=watch.record())
        watch.end()
        why = wrong_solution(solves)
        return case.record(
            status="failed" if why else "done",
            why=why,
            solves=tuple(solves),
            limit=limit,
            load=watch.record(),
        )

    def outcome(self, record: LinpackCase) -> str:
        """The performance, or why there is none."""
        if record.status != "done":
            return f"{record.status}: {record.why}"
        return f"{amount(operations(record.n) / record.seconds, 'flop/s')}"

    def _open(self, bench: Bench) -> LinpackServers:
        if self._servers is None:
            workers, threads = usable_processors(), self.parameters.threads
            self._servers = LinpackServers(self._built, self._links, workers, threads)
            bench.stack.callback(self._servers.close)
        return self._servers
