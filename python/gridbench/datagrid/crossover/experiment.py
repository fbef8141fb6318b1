"""The crossover of shared data as an `Experiment`: measurements on compute grids and data grids."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Console

from gridbench.analysis.columns import seconds, succeeded, text
from gridbench.datagrid.cluster import DataGridCluster
from gridbench.datagrid.crossover.answer import answer_of, keep
from gridbench.datagrid.crossover.options import CrossoverParameters
from gridbench.datagrid.crossover.record import FORM, PlannedSharing, SharingRecord, Side
from gridbench.datagrid.crossover.result_kind import CROSSOVER
from gridbench.datagrid.engine import DataGridEngine, find_engine
from gridbench.datagrid.options import DataGridParameters
from gridbench.datagrid.plan import (
    DataGridOrder,
    DataGridWork,
    WarmUpLimits,
    check_machine,
    check_members,
    need_of,
    plan_of,
)
from gridbench.datagrid.record import DataGridCase
from gridbench.datagrid.session import DataGridSession, open_session
from gridbench.datagrid.workload import DataGridWorkload, TaskParameters
from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment
from gridbench.formats import duration
from gridbench.machine.judgement import DISTURBED, judged
from gridbench.machine.load import Load
from gridbench.process.children import Leftovers
from gridbench.process.interrupt import Stopped
from gridbench.quantities import KB
from gridbench.run.client import EngineFacts
from gridbench.run.feasibility import check_memory, check_workers
from gridbench.run.load import load_run
from gridbench.run.machine import available_memory
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import ScenarioCase, TaskTimes, setup_of, write_workload
from gridbench.scenario.run_case import CaseOrder, CaseOutcome, run_case
from gridbench.schema import record_of
from gridbench.terminal import say


class CrossoverExperiment(Experiment[PlannedSharing, SharingRecord]):
    """All sizes and numbers of readers, on all compute grids and data grids."""

    kind = CROSSOVER
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


# ---- The two sides

# ---- Through a compute grid

_SCENARIO = 0
"""Of the cases: they are of none of the six."""
_HELD, _LONGER, _MOST_TIMES = 0.5, 2.5, 3
"""Seconds that tasks sleep, so that a worker does not take a second one; times the span in which
they began, if that was not enough; how often that is tried."""
_WITH_TASKS = "argument of each task"
"""What an engine says of shared data that it sends with each task."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """When the tasks of a run had the data."""

    seconds: float
    """From handing it over to the last calc-in."""
    span: float
    """From the first calc-in to the last."""
    workers: int
    """That had a task."""


class ComputeSide:
    """Runs engines, each measurement in a process of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        leftovers: Leftovers,
        limit: float,
        stopped: Callable[[], bool],
        glance: Callable[[], None],
    ) -> None:
        """`folder`: for runs, which are removed once they are read; `limit`: seconds
        that one may take; `glance` is called some times each second."""
        self._folder = folder
        self._leftovers = leftovers
        self._limit = limit
        self._stopped = stopped
        self._glance = glance
        self._known: dict[tuple[str, int], EngineFacts] = {}

    def measure(self, wanted: PlannedSharing) -> SharingRecord:
        """Measure; with a status that is not `done` if it could not be done. Raises Stopped if the
        user wants an end."""
        case = ScenarioCase(
            scenario=_SCENARIO,
            cores=wanted.readers,
            tasks=wanted.readers,
            sleep=_HELD,
            bytes_shared=wanted.bytes,
        )
        try:
            facts = self._facts(wanted)
            setup = setup_of(case)
            check_workers(setup)
            check_memory(setup, {wanted.engine: facts})
        except InputError as error:
            return wanted.left_out("skipped", error.what)
        return self._repeated(wanted, case, facts)

    def _facts(self, wanted: PlannedSharing) -> EngineFacts:
        """What the engine says of itself; asking one that lives elsewhere takes seconds."""
        key = wanted.engine, wanted.readers
        if key not in self._known:
            self._known[key] = find_participant(wanted.engine).facts(wanted.readers, warm=True)
        return self._known[key]

    def _repeated(
        self, wanted: PlannedSharing, case: ScenarioCase, facts: EngineFacts
    ) -> SharingRecord:
        """Run it until each worker has had one task."""
        held = _HELD
        for _ in range(_MOST_TIMES):
            place = self._folder / "run"
            try:
                outcome = self._run(wanted.engine, case, held, facts, place)
                if self._stopped():
                    raise Stopped
                why = outcome.ended_for or _why_not(outcome)
                if why:
                    return wanted.left_out("failed", why, _load(outcome))
                record, found = read_delivery(place)
            finally:
                shutil.rmtree(place, ignore_errors=True)
            if found.workers == wanted.readers:
                return wanted.done(
                    seconds=found.seconds,
                    reading=found.seconds,
                    workers=found.workers,
                    with_each_task=_sends_with_tasks(record),
                    version=str(facts.description["version"]),
                    load=_load(outcome),
                )
            held = max(held, found.span) * _LONGER
        return wanted.left_out(
            "failed",
            f"only {found.workers} of {wanted.readers} workers had a task, though each task was"
            f" held for {duration(held / _LONGER)}",
            _load(outcome),
        )

    def _run(
        self, engine: str, case: ScenarioCase, held: float, facts: EngineFacts, place: Path
    ) -> CaseOutcome:
        setup = write_workload(case, TaskTimes(scale=held / _HELD), place)
        (place / "result").mkdir()
        order = CaseOrder(
            engine=engine,
            setup=setup,
            folder=place / "result",
            time_scale=held / _HELD,
            warm=True,
            check=False,
            start_timeout=self._limit,
            facts=facts,
        )
        return run_case(
            order,
            leftovers=self._leftovers,
            limit=self._limit + held,
            stopped=self._stopped,
            glance=self._glance,
        )


def read_delivery(place: Path) -> tuple[dict[str, Any], Delivery]:
    """The record of the run in a folder, and when its tasks had the data. InputError if it cannot
    be read."""
    record, table = load_run(place / "result")
    calc_in = seconds(table, "calc_in")[succeeded(table)]
    workers = {
        f"{host} {worker}"
        for host, worker in zip(
            text(table, "host").to_pylist(), text(table, "worker").to_pylist(), strict=True
        )
    }
    last = float(np.max(calc_in))
    return record, Delivery(last, last - float(np.min(calc_in)), len(workers))


def _why_not(outcome: CaseOutcome) -> str:
    """Why a run does not serve; a disturbed one does, and is marked."""
    answer = outcome.answer
    disturbed = answer.load is not None and judged(answer.load) == "disturbed"
    if answer.status == "done" or (answer.status == "invalid" and disturbed):
        return ""
    return answer.reason or answer.status


def _load(outcome: CaseOutcome) -> dict[str, Any]:
    load: Load | None = outcome.answer.load
    if load is None:
        return {"judgement": DISTURBED if outcome.disturbed else "not known"}
    return {"judgement": judged(load), "others": load.others}


def _sends_with_tasks(record: dict[str, Any]) -> bool:
    return bool(record["engine"]["configuration"].get("shared_data") == _WITH_TASKS)


# ---- From a data grid

_BACKUPS = 1


def parameters_of(readers: int, size: int, requested: CrossoverParameters) -> TaskParameters:
    """Tasks on as many clients; each reads all data once, and does nothing else."""
    return TaskParameters(
        nnodes=readers,
        mnodes=requested.members,
        ntasks=readers,
        nrepeats=1,
        nobjects=0,
        object_size=requested.object_size / KB,
        shared_data_size=size // requested.object_size,
    )


def sharing_of(
    wanted: PlannedSharing, requested: CrossoverParameters, case: DataGridCase
) -> SharingRecord:
    """What a case says of the data's way to its readers."""
    wrong = case.missing + case.wrong + sum(case.errors.values())
    if case.status == "failed" or case.loading is None or wrong:
        lost = f"{wrong} of its reads went wrong" if wrong else "it did not come to its end"
        return wanted.left_out("failed", case.why or lost, case.load)
    reading = max(case.tasks.ended)
    return wanted.done(
        title=case.title,
        version=case.version,
        seconds=case.loading.seconds + reading,
        reading=reading,
        object_size=requested.object_size,
        members=len(case.members),
        processes=case.processes,
        load=case.load,
    )


@dataclass(frozen=True, slots=True)
class GridPlan:
    """All cases of a data grid."""

    engine: DataGridEngine
    work: DataGridWork
    cases: Mapping[TaskParameters, DataGridOrder]


def plans_of(requested: CrossoverParameters, console: Console) -> dict[str, GridPlan]:
    """What is planned on each data grid, by the names that the user gave; what has to be built for
    them is built. InputError for one that cannot be used."""
    engines = {name: find_engine(name) for name in requested.data_grids}
    for engine in engines.values():
        engine.ensure(lambda line: say(console, line))
    return {name: _plan_of(requested, engine) for name, engine in engines.items()}


class GridSide:
    """Measures on data grids; while active, a cluster runs as long as the same data grid is in
    use."""

    def __init__(
        self,
        requested: CrossoverParameters,
        plans: Mapping[str, GridPlan],
        check: Callable[[], None],
        console: Console,
    ) -> None:
        """`plans`: of all data grids, see `plans_of`; `check` is called now and then, and raises
        Stopped when the user wants an end."""
        self._asked = requested
        self._plans = plans
        self._check = check
        self._console = console
        self._stack = ExitStack()
        self._opened = ""  # the data grid that a session is open for
        self._session: DataGridSession | None = None
        self._cluster: DataGridCluster | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def measure(self, wanted: PlannedSharing) -> SharingRecord:
        """Measure; with a status that is not `done` if it could not be done. InputError if the
        cluster does not start, Stopped if the user wants an end."""
        planned = self._plans[wanted.engine]
        one = planned.cases[parameters_of(wanted.readers, wanted.bytes, self._asked)]
        manifest, memory = planned.engine.manifest, planned.work.memory_of(one.members)
        try:
            if one.members:
                check_members(one, manifest, planned.work.parameters.backups, memory)
            check_machine(
                one, manifest, planned.work.parameters.backups, memory, planned.work.available
            )
        except InputError as error:
            return wanted.left_out("skipped", error.what)
        session = self._open(wanted.engine)
        if self._cluster is None:
            self._cluster = self._stack.enter_context(session.cluster(one))
        # Twice: the compute grid's workers have been there for a while, too.
        case = session.measure(replace(one, repeat=wanted.repeat), self._cluster, loads=2)
        found = sharing_of(wanted, self._asked, case)
        if found.status != "done":
            self.close()
        return found

    def _open(self, name: str) -> DataGridSession:
        """A session for a data grid: the one that is open, or a new one."""
        if self._session is None or self._opened != name:
            self.close()
            session = open_session(self._plans[name].work, self._check, self._console)
            self._session = self._stack.enter_context(session)
            self._opened = name
        return self._session

    def close(self) -> None:
        """End the cluster and the session, if they are there: what is measured next is then not
        disturbed by them, and they not by it. `measure` opens them again."""
        self._stack.close()
        self._session = self._cluster = None


def _plan_of(requested: CrossoverParameters, engine: DataGridEngine) -> GridPlan:
    """InputError if the data grid cannot have any."""
    parameters = [
        parameters_of(n, size, requested) for n in requested.cores for size in requested.sizes
    ]
    whole = DataGridWork(
        engines=(engine,),
        workloads=tuple(DataGridWorkload(parameters=one, label="shared") for one in parameters),
        warm_up=WarmUpLimits.of(requested.warm),
        available=available_memory(),
        parameters=DataGridParameters(backups=_BACKUPS),
    )
    cases = {one.workload.parameters: one for one in plan_of(whole).wanted}
    memory = _member_memory(whole, engine, cases.values())
    whole = replace(whole, parameters=replace(whole.parameters, member_memory=memory))
    return GridPlan(engine, whole, cases)


def _member_memory(
    whole: DataGridWork, engine: DataGridEngine, cases: Iterable[DataGridOrder]
) -> int | None:
    """Bytes of each member: enough for the largest data that the machine has room for, as no case
    is to be slow for want of memory; None: as everywhere."""
    most = 0
    for one in cases:
        needed = need_of(one, engine.manifest, whole.parameters.backups).member
        try:
            check_machine(one, engine.manifest, whole.parameters.backups, needed, whole.available)
        except InputError:
            continue
        most = max(most, needed, whole.memory_of(one.members) if one.members else 0)
    return most or None
