"""Synchronised rounds, as `gridbench.model.kind.ModelKind`.

A round of n workers has three parts, each measured by itself:

    hold = start + worker n                      until all tasks are started, and held
    skew = apart [n > 1] + worker (n - 1)        from the first instruction of the first to the last
    work = task max(1, n / filled) + exit n      from there until all have ended
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.jsonl_store import Header
from gridbench.model.cost_model import CostSubject
from gridbench.model.formula import Cost, Formula, FormulaPart, MeasuredCase
from gridbench.model.kind import FittedModel, ModelParameter, ModelSubjects
from gridbench.model.saved import cost_models
from gridbench.model.saved import cost_record as to_record
from gridbench.sync.cases import SyncCase, cases_of
from gridbench.sync.record import FORM, HOLD_POINTS, Round
from gridbench.sync.tasks import BUILT_INS

__all__ = ["from_record", "name", "parameters", "read", "to_record"]

name = "synchronised rounds"
parameters = (ModelParameter("workers", "workers"),)
_DIVIDES = "--total"
"""The option of built-in tasks with which workers divide a total."""
FORMULA = Formula(
    quantity="time of a round: its tasks are started and held, let go, and end",
    noun="case",
    parameters=parameters,
    parts=(
        FormulaPart(
            name="hold",
            what="until all tasks are started and held",
            costs=(
                Cost("worker", "starting and holding a task", "s", lambda cases: cases["workers"]),
                Cost(
                    "start",
                    "the same, however many there are",
                    "s",
                    lambda cases: np.ones(len(cases["workers"])),
                ),
            ),
        ),
        FormulaPart(
            name="skew",
            what="from the first instruction of the first task to that of the last",
            costs=(
                Cost(
                    "worker",
                    "each worker but the first begins so much later",
                    "s",
                    lambda cases: cases["workers"] - 1,
                ),
                Cost(
                    "apart",
                    "any two do not begin at the same time",
                    "s",
                    lambda cases: (cases["workers"] > 1).astype(np.float64),
                ),
            ),
        ),
        FormulaPart(
            name="work",
            what="until all tasks have ended",
            costs=(
                Cost(
                    "task",
                    "a task by itself",
                    "s",
                    lambda cases: np.ones(len(cases["workers"])),
                    crowded=True,
                ),
                Cost("exit", "the end of a task", "s", lambda cases: cases["workers"]),
            ),
            sharing="workers",
            filled="workers that use all there is; more of them share it",
        ),
    ),
)


def read(folders: Sequence[Path]) -> ModelSubjects:
    """The cases of each task, parameter and way to start. InputError for a folder that cannot be
    used."""
    left_out: Counter[str] = Counter()
    found: dict[tuple[str, str], dict[int, list[SyncCase]]] = {}
    for folder in folders:
        header, rounds = FORM.read(folder)
        done = [one for one in rounds if one.status == "done"]
        cases = cases_of(done)
        where = _where(done, header)
        failed = len(cases_of(rounds)) - len(cases)
        left_out["a task of each of its rounds did not end well"] += failed
        if _divides(header):
            left_out["its workers divide a total, so that with more each does less"] += len(cases)
            continue
        for case in cases:
            subject = (str(header.options.get("task", "")), f"{_describe(case, header)}, {where}")
            found.setdefault(subject, {}).setdefault(case.workers, []).append(case)
    return ModelSubjects(
        subjects=[
            CostSubject(
                formula=FORMULA,
                name=task,
                told=reported,
                points=tuple(_point(cases) for cases in by_workers.values()),
                uncounted=sum(
                    not any(case.counts for case in cases) for cases in by_workers.values()
                ),
            )
            for (task, reported), by_workers in found.items()
        ],
        noun=FORMULA.noun,
        left_out=+left_out,
        remedy="run rounds whose tasks all end well, and do as much each however many there are",
    )


def from_record(record: Any) -> Sequence[FittedModel]:
    """The models in what `cost_record` gives. RecordError if it is something else."""
    return cost_models(FORMULA, record)


def _point(cases: Sequence[SyncCase]) -> MeasuredCase:
    """A case, perhaps of several folders; with rounds that do not count only if none does."""
    counting = [case for case in cases if case.counts] or list(cases)
    return MeasuredCase(
        {"workers": cases[0].workers},
        tuple(
            {"hold": one.prepared_in, "skew": figures.skew, "work": figures.span - figures.skew}
            for case in counting
            for one, figures in zip(case.counting, case.figures, strict=True)
        ),
    )


def _divides(header: Header) -> bool:
    """Whether it is a built-in task that divides its work."""
    words = map(str, header.options.get("arguments") or ())
    return header.options.get("task") in BUILT_INS and any(
        word == _DIVIDES or word.startswith(f"{_DIVIDES}=") for word in words
    )


def _describe(case: SyncCase, header: Header) -> str:
    task, words = header.options.get("task", ""), header.options.get("arguments") or []
    if task not in BUILT_INS or not words:
        words = [task, *words]
    parameter = f"parameter {case.parameter}" if case.parameter else ""
    parts = [shlex.join(map(str, words)), parameter, HOLD_POINTS[case.start]]
    return ", ".join(part for part in parts if part)


def _where(rounds: Sequence[Round], header: Header) -> str:
    hosts = {task.host for one in rounds for task in one.tasks}
    if len(hosts) > 1:
        return f"on {len(hosts)} hosts"
    return f"on {next(iter(hosts), header.machine.get('host', 'this machine'))}"
