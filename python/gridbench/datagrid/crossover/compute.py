"""Shared data through a compute grid: a run of the compute-grid benchmark, and when the last task
had the data."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.analysis.columns import seconds, succeeded, text
from gridbench.datagrid.crossover.record import PlannedSharing, Sharing
from gridbench.errors import InputError
from gridbench.formats import duration
from gridbench.machine.load import Load
from gridbench.machine.rule import judged
from gridbench.machine.words import DISTURBED
from gridbench.process.interrupt import Stopped
from gridbench.process.leftovers import Leftovers
from gridbench.run.client import EngineFacts
from gridbench.run.feasibility import check_memory, check_workers
from gridbench.run.load import load_run
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.messages import CaseOrder
from gridbench.scenario.one import CaseOutcome, run_case
from gridbench.scenario.workloads import Times, setup_of, write_workload

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
        """`folder`: for runs, each of which is removed when it has been looked at; `limit`: seconds
        that one may take; `glance` is called some times each second."""
        self._folder = folder
        self._leftovers = leftovers
        self._limit = limit
        self._stopped = stopped
        self._glance = glance
        self._known: dict[tuple[str, int], EngineFacts] = {}

    def measure(self, wanted: PlannedSharing) -> Sharing:
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

    def _repeated(self, wanted: PlannedSharing, case: ScenarioCase, facts: EngineFacts) -> Sharing:
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
        setup = write_workload(case, Times(scale=held / _HELD), place)
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
