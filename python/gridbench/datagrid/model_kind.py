"""Tasks on data grids, as `gridbench.model.kind.ModelKind`.

A task of k operations on objects of S bytes, with n clients that process tasks at the same time:

    t = start + k (operation + byte S) max(1, n / filled)

Up to `filled` clients, each gets what one alone gets; more of them share what there is, as do the
readers of the crossover (crossover/models.py). t is the time of the case over the tasks that a
client processes in it one after the other, so that n k / t is the throughput. The median task would
not do: where clients wait for a processor, most short tasks do not, and few wait for long.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.datagrid.cases import RepeatedCase, repeats_of
from gridbench.datagrid.figures import operations_of_task
from gridbench.datagrid.record import FORM, DataGridCase
from gridbench.datagrid.workload import label_shown
from gridbench.formats import counted
from gridbench.jsonl_store import Header
from gridbench.model.cost_model import CostSubject
from gridbench.model.formula import Cost, Formula, FormulaPart, MeasuredCase
from gridbench.model.kind import FittedModel, ModelParameter, ModelSubjects
from gridbench.model.saved import cost_models
from gridbench.model.saved import cost_record as to_record
from gridbench.quantities import KB

__all__ = ["from_record", "name", "parameters", "read", "to_record"]

name = "data-grid tasks"
parameters = (
    ModelParameter("clients", "clients"),
    ModelParameter("size", "size of an object", "bytes"),
    ModelParameter("operations", "operations of a task"),
)
_TASK = "task"
FORMULA = Formula(
    quantity="time of a task while all clients process tasks",
    noun="case",
    parameters=parameters,
    parts=(
        FormulaPart(
            name=_TASK,
            what="a task",
            costs=(
                Cost(
                    "operation",
                    "an operation, whatever its object",
                    "s",
                    lambda cases: cases["operations"],
                    crowded=True,
                ),
                Cost(
                    "byte",
                    "each byte of its object",
                    "s/byte",
                    lambda cases: cases["operations"] * cases["size"],
                    crowded=True,
                ),
                Cost(
                    "start",
                    "a task, whatever it does",
                    "s",
                    lambda cases: np.ones(len(cases["operations"])),
                ),
            ),
            sharing="clients",
            filled="clients that use all there is; more of them share it",
        ),
    ),
)


def read(folders: Sequence[Path]) -> ModelSubjects:
    """The cases of each data grid, operation and number of members. InputError for a folder that
    cannot be used."""
    left_out: Counter[str] = Counter()
    reported: dict[tuple[str, str], list[tuple[Mapping[str, float], RepeatedCase]]] = {}
    for folder in folders:
        header, cases = FORM.read(folder)
        for group in repeats_of(cases):
            if why := _why_not(group):
                left_out[why] += 1
                continue
            subject = (group.case.engine, _describe(group.case, header))
            reported.setdefault(subject, []).append((_values(group.case), group))
    subjects = []
    for (engine, what), groups in reported.items():
        together: dict[tuple[float, ...], list[tuple[Mapping[str, float], RepeatedCase]]] = {}
        for values, group in groups:
            together.setdefault(tuple(values.values()), []).append((values, group))
        subjects.append(
            CostSubject(
                formula=FORMULA,
                name=engine,
                told=what,
                points=tuple(_point(alike) for alike in together.values()),
                uncounted=sum(
                    not any(group.counts for _, group in alike) for alike in together.values()
                ),
            )
        )
    return ModelSubjects(
        subjects=subjects,
        noun=FORMULA.noun,
        left_out=left_out,
        remedy="measure closed loops of tasks that neither compute nor sleep, without killing"
        " members",
    )


def from_record(record: Any) -> Sequence[FittedModel]:
    """The models in what `cost_record` gives. RecordError if it is something else."""
    return cost_models(FORMULA, record)


def _why_not(group: RepeatedCase) -> str:
    """Why a case cannot serve; empty: it can."""
    case = group.case
    if not group.measured:
        return "it did not come to its end"
    if case.loop == "open":
        return "its rate was given, by an open loop"
    if case.kill:
        return "members were killed"
    if case.parameters.get("ProcessTime") or case.parameters.get("SleepTime"):
        return "its tasks compute or sleep as well"
    if not operations_of_task(case) or not _times(group):
        return "it has no time"
    return ""


def _values(case: DataGridCase) -> dict[str, float]:
    return {
        "clients": _busy(case),
        "size": case.parameters["ObjectSize"] * KB,
        "operations": operations_of_task(case),
    }


def _busy(case: DataGridCase) -> int:
    """Clients that have a task."""
    return min(case.clients, int(case.parameters["NTasks"]))


def _times(group: RepeatedCase) -> list[float]:
    """Seconds of each repeat that counts, for each task of a client."""
    each = math.ceil(group.case.parameters["NTasks"] / _busy(group.case))
    return [case.seconds / each for case, _ in group.counting if case.seconds > 0]


def _point(alike: Sequence[tuple[Mapping[str, float], RepeatedCase]]) -> MeasuredCase:
    """The same case, perhaps of several scenarios; those that do not count only if none does."""
    counting = [group for _, group in alike if group.counts] or [group for _, group in alike]
    times = [time for group in counting for time in _times(group)]
    return MeasuredCase(alike[0][0], tuple({_TASK: time} for time in times))


def _describe(case: DataGridCase, header: Header) -> str:
    members = case.member_count
    parts = [
        f"{case.title} {case.version}".strip(),
        _operations(case),
        counted(members, "member") if members else "",
        counted(case.backups, "backup") if members else "",
        "atomic updates" if case.updates == "atomic" else "",
        f"on {case.placed.replace('this machine', str(header.machine.get('host', '')))}",
    ]
    return ", ".join(part for part in parts if part)


def _operations(case: DataGridCase) -> str:
    """What operations there are, in which proportion: `read`, or `2 reads and 1 update`."""
    if case.mix is not None:
        return label_shown(case.label)
    own = case.parameters
    each = {
        word: int(own.get("NRepeats", 1) * own.get(f"{kind}DataSize", 0))
        for kind, word in (("Read", "read"), ("Update", "update"), ("Write", "insert"))
    }
    each["read"] += int(own.get("SharedDataSize", 0))
    found = {word: count for word, count in each.items() if count}
    if len(found) == 1:
        return next(iter(found))
    common = math.gcd(*found.values())
    return " and ".join(counted(count // common, word) for word, count in found.items())
