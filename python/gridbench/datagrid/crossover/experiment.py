"""The crossover of shared data as an `Experiment`: measurements on compute grids and data grids."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridbench.datagrid.crossover import result_kind
from gridbench.datagrid.crossover.answer import answer_of, keep
from gridbench.datagrid.crossover.options import CrossoverParameters
from gridbench.datagrid.crossover.record import FORM, PlannedSharing, SharingRecord, Side
from gridbench.datagrid.crossover.sides import ComputeSide, GridPlan, GridSide, plans_of
from gridbench.experiment import Bench, Experiment
from gridbench.formats import duration
from gridbench.process.leftovers import Leftovers
from gridbench.run.participants import find_participant
from gridbench.schema import record_of


class CrossoverExperiment(Experiment[PlannedSharing, SharingRecord]):
    """All sizes and numbers of readers, on all compute grids and data grids."""

    kind = result_kind
    form = FORM
    name = "crossover"

    def __init__(self, parameters: CrossoverParameters) -> None:
        """InputError for what cannot be meant."""
        parameters.check()
        for name in parameters.engines:
            find_participant(name)
        self.parameters = parameters
        self.seed = parameters.seed
        self._plans: Mapping[str, GridPlan] = {}
        self._sides: tuple[ComputeSide, GridSide] | None = None

    def record(self) -> dict[str, Any]:
        """How data grids have the data."""
        return record_of(self.parameters)

    def prepare(self, bench: Bench) -> None:
        """Build the data grids."""
        self._plans = plans_of(self.parameters, bench.console)

    def batches(
        self, bench: Bench, records: Sequence[SharingRecord]
    ) -> Iterator[Sequence[PlannedSharing]]:
        """See `planned`."""
        del bench, records
        yield self.planned()

    def planned(self) -> list[PlannedSharing]:
        """All measurements: each round in an order of its own, drawn from the seed, in which those
        of a data grid stand together, as its cluster is started for them."""
        found: list[PlannedSharing] = []
        for number in range(self.parameters.rounds):
            draw = random.Random(f"{self.seed} {number}")
            compute = self._all("compute grid", self.parameters.engines, number)
            draw.shuffle(compute)
            found += compute
            for name in self.parameters.data_grids:
                own = self._all("data grid", [name], number)
                draw.shuffle(own)
                found += own
        return found

    def _all(self, side: Side, engines: Iterable[str], number: int) -> list[PlannedSharing]:
        return [
            PlannedSharing(side=side, engine=engine, readers=readers, bytes=size, repeat=number)
            for engine in engines
            for readers in self.parameters.cores
            for size in self.parameters.sizes
        ]

    def run(self, case: PlannedSharing, bench: Bench) -> SharingRecord:
        """Measure on the side of the case."""
        compute, grid = self._open(bench)
        if case.side == "compute grid":
            grid.close()
            return compute.measure(case)
        return grid.measure(case)

    def _open(self, bench: Bench) -> tuple[ComputeSide, GridSide]:
        if self._sides is None:
            assert bench.steps is not None
            enter = bench.stack.enter_context
            leftovers = enter(Leftovers())
            folder = enter(tempfile.TemporaryDirectory(prefix="gridbench-crossover-"))
            compute = ComputeSide(
                Path(folder),
                leftovers=leftovers,
                limit=self.parameters.limit,
                stopped=lambda: bench.interrupt.came,
                glance=bench.steps.glance,
            )
            grid = GridSide(self.parameters, self._plans, bench.interrupt.check, bench.console)
            self._sides = compute, enter(grid)
        return self._sides

    def outcome(self, record: SharingRecord) -> str:
        """The time, or why there is none."""
        if record.status != "done":
            return f"{record.status}: {record.why}"
        if record.side == "compute grid":
            return duration(record.seconds)
        return f"{duration(record.seconds)}; reading takes {duration(record.reading)}"

    def finished(self, folder: Path) -> None:
        """Keep the models for `gridbench advise`."""
        header, found = FORM.read(folder)
        keep(header, answer_of(found))
