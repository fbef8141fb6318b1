"""The cases that the page shows task by task: of each case the run in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gridbench.datagrid.cases import RepeatedCase
from gridbench.datagrid.figures import CaseFigures
from gridbench.datagrid.present.cells import OUTCOMES
from gridbench.datagrid.present.pictures import tails
from gridbench.datagrid.record import COUNTED, DataGridCase
from gridbench.formats import amount, counted, percent, processors, rounded, scale, size
from gridbench.pages.downsample import evenly

_MOST_CASES = 40
_MOST_TASKS = 20_000
"""Tasks of all cases that are shown."""
_MOST_CLIENTS = 100
_MOST_OF_CASE = 4_000
"""Tasks of a case: of more, the first ones of each client are shown."""
_MOST_WINDOWS = 1_500
_MOST_ERRORS = 3


def shown_cases(groups: Sequence[RepeatedCase]) -> list[RepeatedCase]:
    """Of all cases that have tasks, as many as find room, evenly picked; those in which a member
    was killed are among them."""
    having = [group for group in groups if group.measured and group.shown[0].tasks.id]
    killed = [group for group in having if group.case.kill][: _MOST_CASES // 2]
    others = [group for group in having if not group.case.kill]
    room = _MOST_CASES - len(killed)
    kept = evenly(others, room) if len(others) > room > 1 else others[:room]
    chosen = {id(group) for group in (*killed, *kept)}
    return [group for group in having if id(group) in chosen]


def details(groups: Sequence[RepeatedCase]) -> list[dict[str, Any]]:
    """What the page's script needs of each."""
    most = min(_MOST_OF_CASE, _MOST_TASKS // max(1, len(groups)))
    return [_detail(group, most) for group in groups]


def _detail(group: RepeatedCase, most: int) -> dict[str, Any]:
    case, found = group.shown
    unit = scale(max(case.tasks.ended, default=1.0), "s")
    kills = [(one.index, one.killed_at) for one in case.members if one.killed_at is not None]
    return {
        "name": case.name,
        "engine": case.engine,
        "about": _about(case, found),
        "unit": unit.suffix,
        "tasks": _tasks(case, unit.factor, most),
        "kills": [{"member": index, "at": round(at * unit.factor, 4)} for index, at in kills],
        "windows": _windows(case, unit.factor),
        "latencies": tails(
            (
                f"{one.operation}{', ' + COUNTED[one.counted] if case.loop == 'open' else ''}",
                "",
                "dot" if one.counted == "intended" else "",
                one,
            )
            for one in group.latencies
        ),
    }


def _about(case: DataGridCase, found: CaseFigures) -> str:
    """What a reader has to know of the run."""
    p = case.parameters
    told = [
        f"{case.title} {case.version}; {counted(int(p.get('NTasks', 0)), 'task')},"
        f" {counted(found.operations, 'operation')} in {amount(case.seconds, 's')}"
        f" by {counted(int(p.get('NNodes', 0)), 'client')} in"
        f" {case.processes} client process{'' if case.processes == 1 else 'es'}, {case.placed}."
    ]
    if case.cluster_in:
        told.append(f"All members worked together after {amount(case.cluster_in, 's')}.")
    if case.clients_in:
        told.append(f"Clients were connected after {amount(case.clients_in, 's')}.")
    if (load := case.loading) is not None:
        told.append(
            f"{counted(load.objects, 'object')} ({size(load.bytes)}) were stored in"
            f" {amount(load.seconds, 's')}."
        )
    if (warm := case.warm_up) is not None:
        steady = "steady" if warm.steady else "not steady"
        told.append(f"Warm-up {amount(warm.seconds, 's')}, {steady} at its end.")
    if case.seconds > 0 and case.client_cpu > 0:
        told.append(
            f"Client processes used {processors(case.client_cpu / case.seconds)} processors, and"
            f" collected garbage for {percent(case.client_gc / case.seconds)} of the time."
        )
    if case.conflicts:
        told.append(f"Atomic updates were tried again {case.conflicts:,} times.")
    outcome = found.correctness.outcome
    checked = outcome != "not checked"
    told.append(f"The data are {OUTCOMES[outcome]}." if checked else "The data were not checked.")
    if found.steadiness.steady is None and not case.kill:
        told.append("It was too short to judge whether throughput was steady.")
    if found.verdict == "invalid":
        told.append(f"Not valid: {'; '.join(found.reasons)}.")
    frequent = sorted(case.errors.items(), key=lambda error: -error[1])[:_MOST_ERRORS]
    told += [f"{times:,} × {text}." for text, times in frequent]
    return " ".join(told)


def _tasks(case: DataGridCase, factor: float, most: int) -> dict[str, Any]:
    """One column for each property, by client and time."""
    tasks = case.tasks
    clients = sorted(set(tasks.client))
    kept = set(evenly(clients, _MOST_CLIENTS))
    each = max(1, most // max(1, len(kept)))
    count: dict[int, int] = {}
    order = sorted(range(len(tasks.id)), key=lambda at: (tasks.client[at], tasks.began[at]))
    drawn = []
    for at in order:
        client = tasks.client[at]
        if client in kept and count.get(client, 0) < each:
            count[client] = count.get(client, 0) + 1
            drawn.append(at)
    return {
        "all": len(tasks.id),
        "clients": len(clients),
        "id": [tasks.id[at] for at in drawn],
        "client": [tasks.client[at] for at in drawn],
        "began": [round(tasks.began[at] * factor, 5) for at in drawn],
        "ended": [round(tasks.ended[at] * factor, 5) for at in drawn],
        "why": [" ".join(tasks.why[at].split())[:120] for at in drawn],
    }


def _windows(case: DataGridCase, factor: float) -> dict[str, Any]:
    """Operations and errors per second over time; of very many windows, several are one."""
    made, failed = case.windows.operations, case.windows.errors
    several = max(1, -(-len(made) // _MOST_WINDOWS))
    length = case.windows.length * several
    sums = [sum(made[at : at + several]) / length for at in range(0, len(made), several)]
    errors = [sum(failed[at : at + several]) / length for at in range(0, len(made), several)]
    return {
        "length": length,
        "x": [round(n * length * factor, 5) for n in range(len(sums))],
        "operations": [rounded(value, 5) for value in sums],
        "errors": [rounded(value, 5) for value in errors] if any(errors) else [],
    }
