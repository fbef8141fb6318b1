"""The same data from a data grid: cases of the data-grid benchmark whose tasks only read shared
objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from rich.console import Console

from gridbench.datagrid.cluster import Cluster
from gridbench.datagrid.crossover.options import CrossoverParameters
from gridbench.datagrid.crossover.record import PlannedSharing, Sharing
from gridbench.datagrid.engines.engine import Engine, find_engine
from gridbench.datagrid.memory import check_machine, check_members, need_of
from gridbench.datagrid.options import DataGridParameters
from gridbench.datagrid.parameters import BYTES_PER_KB, Parameters
from gridbench.datagrid.plan import PlannedCase, plan_of
from gridbench.datagrid.record import DataGridCase
from gridbench.datagrid.session import DataGridSession, open_session
from gridbench.datagrid.work import DataGridWork, WarmUpLimits
from gridbench.datagrid.workload import Workload
from gridbench.errors import InputError
from gridbench.run.machine import available_memory
from gridbench.terminal import say

_BACKUPS = 1


def parameters_of(readers: int, size: int, asked: CrossoverParameters) -> Parameters:
    """Tasks on as many clients, each of which reads all of the data once, and does nothing else."""
    return Parameters(
        nnodes=readers,
        mnodes=asked.members,
        ntasks=readers,
        nrepeats=1,
        nobjects=0,
        object_size=asked.object_size / BYTES_PER_KB,
        shared_data_size=size // asked.object_size,
    )


def sharing_of(wanted: PlannedSharing, asked: CrossoverParameters, case: DataGridCase) -> Sharing:
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
        object_size=asked.object_size,
        members=len(case.members),
        processes=case.processes,
        load=case.load,
    )


@dataclass(frozen=True, slots=True)
class GridPlan:
    """All cases of a data grid."""

    engine: Engine
    work: DataGridWork
    cases: Mapping[Parameters, PlannedCase]


def plans_of(asked: CrossoverParameters, console: Console) -> dict[str, GridPlan]:
    """What is planned on each data grid, by the names that the user gave; what has to be built for
    them is built. InputError for one that cannot be used."""
    engines = {name: find_engine(name) for name in asked.data_grids}
    for engine in engines.values():
        engine.ensure(lambda line: say(console, line))
    return {name: _plan_of(asked, engine) for name, engine in engines.items()}


class GridSide:
    """Measures on data grids; while active, a cluster runs as long as the same data grid is asked
    for."""

    def __init__(
        self,
        asked: CrossoverParameters,
        plans: Mapping[str, GridPlan],
        check: Callable[[], None],
        console: Console,
    ) -> None:
        """`plans`: of all data grids, see `plans_of`; `check` is called now and then, and raises
        Stopped when the user wants an end."""
        self._asked = asked
        self._plans = plans
        self._check = check
        self._console = console
        self._stack = ExitStack()
        self._opened = ""  # the data grid that a session is open for
        self._session: DataGridSession | None = None
        self._cluster: Cluster | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def measure(self, wanted: PlannedSharing) -> Sharing:
        """Measure; with a status that is not `done` if it could not be done. InputError if the
        cluster does not start, Stopped if the user wants an end."""
        planned = self._plans[wanted.engine]
        one = planned.cases[parameters_of(wanted.readers, wanted.bytes, self._asked)]
        described, memory = planned.engine.described, planned.work.memory_of(one.members)
        try:
            if one.members:
                check_members(one, described, planned.work.parameters.backups, memory)
            check_machine(
                one, described, planned.work.parameters.backups, memory, planned.work.available
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


def _plan_of(asked: CrossoverParameters, engine: Engine) -> GridPlan:
    """InputError if the data grid cannot have any."""
    parameters = [parameters_of(n, size, asked) for n in asked.cores for size in asked.sizes]
    whole = DataGridWork(
        engines=(engine,),
        workloads=tuple(Workload(parameters=one, label="shared") for one in parameters),
        warm_up=WarmUpLimits.of(asked.warm),
        available=available_memory(),
        parameters=DataGridParameters(backups=_BACKUPS),
    )
    cases = {one.workload.parameters: one for one in plan_of(whole).wanted}
    memory = _member_memory(whole, engine, cases.values())
    whole = replace(whole, parameters=replace(whole.parameters, member_memory=memory))
    return GridPlan(engine, whole, cases)


def _member_memory(whole: DataGridWork, engine: Engine, cases: Iterable[PlannedCase]) -> int | None:
    """Bytes of each member: enough for the largest data that the machine has room for, as no case
    is to be slow for want of memory; None: as everywhere."""
    most = 0
    for one in cases:
        needed = need_of(one, engine.described, whole.parameters.backups).member
        try:
            check_machine(one, engine.described, whole.parameters.backups, needed, whole.available)
        except InputError:
            continue
        most = max(most, needed, whole.memory_of(one.members) if one.members else 0)
    return most or None
