"""The process that runs one case on one engine, and analyses the run.

    python -m gridbench.scenario.child DESCRIPTOR

Each case has a new process, without the memory that others have left, and without the libraries of
the analysis, which an engine that forks would copy. The order is one message, the answer another.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict

import numpy as np
from rich.console import Console

from gridbench.engines.names import DEFAULT_ENGINE
from gridbench.engines.registry import find_engine, load_engine
from gridbench.engines.servers import limited
from gridbench.errors import InputError
from gridbench.machine.load import Load
from gridbench.process.inside import LineChannel, serve
from gridbench.process.interrupt import Interrupt
from gridbench.program import without_pandas
from gridbench.records import from_record
from gridbench.run.feasibility import check_workers
from gridbench.run.machine import machine_facts, versions
from gridbench.run.participants import Participant, find_participant
from gridbench.run.recorder import complete_run
from gridbench.run.runner import EngineRun, run_engine
from gridbench.scenario.run_case import CaseAnswer, CaseOrder
from gridbench.workload.workload import Setup, Workload, read_workload


def prepare(engine: str) -> None:
    """What all processes of an engine's cases have in common, for a template that is copied for
    them: import the driver, and read the facts about the machine."""
    np.random.default_rng()
    machine_facts()
    versions()
    with suppress(InputError):
        point = find_engine(engine)
        # Drivers of other systems may start threads when they are imported.
        if point.module == find_engine(DEFAULT_ENGINE).module:
            load_engine(point)


def carry_out(order: CaseOrder) -> CaseAnswer:
    """Run the case, complete its record, and analyse it."""
    workload = read_workload(order.setup, order.time_scale, order.body)
    with ExitStack() as stack:
        participant = find_participant(order.engine)
        if order.servers is None:
            check_workers(workload.setup)  # which raises the limit of open files
        else:
            servers = limited(order.servers, workload.setup.nnodes)
            participant.use_servers(stack.enter_context(servers))
        return _measure(order, workload, participant)


def _measure(order: CaseOrder, workload: Workload, participant: Participant) -> CaseAnswer:
    if order.namespaces:
        participant.use_namespaces(order.namespaces)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, Interrupt() as interrupt:
        verdict = run_engine(
            participant,
            order.facts,
            workload,
            warm=order.warm,
            check=order.check,
            start_timeout=order.start_timeout,
            folder=order.folder,
            interrupt=interrupt,
            console=Console(file=nowhere),
            # The process that waits for the answer belongs to gridbench too.
            family=os.getppid(),
            began=order.began,
        )
    return _answer(verdict, workload.setup, order, interrupted=interrupt.came)


def _answer(verdict: EngineRun, setup: Setup, order: CaseOrder, *, interrupted: bool) -> CaseAnswer:
    seen = verdict.record["load"]
    load = seen["judged"] and from_record(Load, seen["judged"])
    if verdict.exit_status == 0 and not interrupted:
        answer = CaseAnswer(
            status="invalid" if verdict.disturbed else "done",
            reason=seen["told"] if verdict.disturbed else "",
            load=load,
        )
        if not order.analysed:
            return answer
        from gridbench.scenario.figures import analysed

        return analysed(answer, verdict.folder, verdict.record, setup)
    try:
        summary = complete_run(verdict.folder, verdict.record, setup)
    except InputError:
        if interrupted or not verdict.messages:
            raise
        return CaseAnswer(status="failed", reason=_one_line(verdict.messages[0]), load=load)
    if interrupted:
        return CaseAnswer(status="interrupted", returned=summary.ok, load=load)
    why = _one_line(verdict.messages[0])
    return CaseAnswer(status="failed", reason=why, returned=summary.ok, load=load)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main(descriptor: str) -> None:
    """Carry out the order; one message for bad input."""
    without_pandas()
    lines = LineChannel(serve(descriptor))
    try:
        answer = carry_out(from_record(CaseOrder, lines.receive()))
    except InputError as error:
        answer = CaseAnswer(status="failed", reason=_one_line(str(error)))
    lines.send(asdict(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
