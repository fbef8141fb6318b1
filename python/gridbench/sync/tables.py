"""Tables of synchronised rounds."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from gridbench.formats import NOTHING, amount, counted, fixed, percent, processors, size, times
from gridbench.pages.table import Cell, Column, Table, Value, cell_of, range_of, table_of
from gridbench.statistics.interval import Interval
from gridbench.sync.cases import SyncCase, counts, phases_of_all
from gridbench.sync.figures import (
    FrequentStraggler,
    PhaseFigures,
    RoundFigures,
    figures_of,
    frequent_stragglers,
)
from gridbench.sync.record import STATUSES, HostUse, Round, Sample, TaskRun

T = TypeVar("T")
_HostRow = tuple[Round, HostUse]

NOT_COUNTED = "*"
"""Behind the workers of a case without any round that counts."""
_MOST_PHASES = 6
"""Phases of a case in one cell."""
_MOST_ROWS = 500
_MOST_TASKS = 200
_LINES = "lines"
"""The style of a cell with several lines."""


def cases_table(cases: Sequence[SyncCase]) -> Table:
    """A row for each case."""
    all_figures = [found for case in cases for found in case.all_figures]
    failed = any(found.ok < found.tasks for found in all_figures)
    columns: list[Column[SyncCase]] = [
        *_case_columns(cases, lambda case: case),
        Column("rounds", _rounds, from_width=135),
        Column("tasks ok", lambda case: sum(f.ok for f in case.all_figures), from_width=95),
        Column("not ok", _failed, condition=failed, from_width=95),
        Column("start skew", lambda case: case.skew(), "s"),
        Column("span", lambda case: case.span(), "s"),
        Column("overlap", _overlap),
        Column("task time", lambda case: case.interval(lambda f: f.median), "s", from_width=90),
        Column("rate", _rates, condition=any(case.phases for case in cases), words=True),
        Column(
            "stragglers",
            lambda case: sum(len(f.stragglers) for f in case.all_figures),
            condition=any(found.stragglers for found in all_figures),
            from_width=110,
        ),
        Column(
            "limited by",
            lambda case: Cell("\n".join(case.limited_by) or NOTHING, style=_LINES),
            condition=any(case.limited_by for case in cases),
            words=True,
            from_width=135,
        ),
    ]
    return table_of(
        columns, cases, style="left", row_style=lambda case: "" if case.counts else "uncounted"
    )


class _PhaseRate(NamedTuple):
    """A rate of a phase of a case, by the slowest task and as a sum."""

    phase: str
    case: SyncCase
    unit: str
    by_slowest: Callable[[PhaseFigures], float]
    summed: Callable[[PhaseFigures], float]

    def interval(self, of: Callable[[PhaseFigures], float]) -> Interval | None:
        return self.case.phase_interval(self.phase, of)


def phases_table(cases: Sequence[SyncCase]) -> Table:
    """A row for each rate of each phase of each case: both ways to add up, and latencies."""

    def latency(name: str) -> Callable[[_PhaseRate], Interval | None]:
        return lambda row: row.interval(lambda p: getattr(p.latency, name, math.nan))

    columns: list[Column[_PhaseRate]] = [
        Column("phase", lambda row: row.phase),
        *_case_columns(cases, lambda row: row.case),
        Column("slowest task", lambda row: row.interval(lambda p: p.seconds), "s"),
        Column("rate", lambda row: cell_of(row.interval(row.by_slowest), row.unit)),
        Column("sum of the tasks' own", lambda row: cell_of(row.interval(row.summed), row.unit)),
        Column("p50", latency("p50"), "s"),
        Column("p99, at most", latency("p99"), "s"),
        Column("longest", latency("max"), "s"),
    ]
    rows = [row for name in phases_of_all(cases) for case in cases for row in _of(case, name)]
    return table_of(columns, rows[:_MOST_ROWS])


def _of(case: SyncCase, phase: str) -> list[_PhaseRate]:
    """Bandwidth and operations per second, as far as the phase has them."""
    found = [
        _PhaseRate(phase, case, "bytes/s", lambda p: p.bandwidth, lambda p: p.bandwidth_summed),
        _PhaseRate(phase, case, "operations/s", lambda p: p.rate, lambda p: p.rate_summed),
    ]
    known = [one for one in found if one.interval(one.by_slowest)]
    return known or (found[:1] if phase in case.phases else [])


def _case_columns(cases: Sequence[SyncCase], case_of: Callable[[T], SyncCase]) -> list[Column[T]]:
    """What tells the cases apart."""

    def workers(row: T) -> str:
        case = case_of(row)
        return f"{case.workers:,}{'' if case.counts else NOT_COUNTED}"

    return [
        Column("workers", workers),
        Column(
            "parameter",
            lambda row: case_of(row).parameter,
            condition=any(case.parameter for case in cases),
            words=True,
        ),
        Column(
            "start",
            lambda row: case_of(row).start,
            condition=len({case.start for case in cases}) > 1,
        ),
    ]


def _rounds(case: SyncCase) -> str:
    """The number of rounds and, if not all count, of those that do."""
    count, of = sum(map(counts, case.rounds)), len(case.rounds)
    return f"{count} of {of}" if 0 < count < of else f"{of}"


def _failed(case: SyncCase) -> Cell:
    bad = sum(found.tasks - found.ok for found in case.all_figures)
    return Cell(f"{bad:,}", not_ok(case.rounds), "bad" if bad else "")


def not_ok(rounds: Iterable[Round]) -> str:
    """`2 failed, 1 lost`; empty if all ended well."""
    count = Counter(task.status for one in rounds for task in one.tasks if task.status != "ok")
    return ", ".join(f"{many:,} {STATUSES[status]}" for status, many in sorted(count.items()))


def _overlap(case: SyncCase) -> Cell:
    found = case.interval(lambda f: f.simultaneity)
    if found is None:
        return Cell(NOTHING)
    low, high = percent(found.low), percent(found.high)
    return Cell(percent(found.value), f"{low.removesuffix(' %')}–{high}" if low != high else "")


def _rates(case: SyncCase) -> Cell:
    """`write 1.20 GB/s (1.1–1.3)`, a line for each phase."""
    lines = []
    for name in case.phases[:_MOST_PHASES]:
        row = next(iter(_of(case, name)))
        if rate := row.interval(row.by_slowest):
            span = range_of(rate, row.unit, alone=False)
            lines.append(f"{name} {amount(rate.value, row.unit)}{f' ({span})' if span else ''}")
    more = len(case.phases) - _MOST_PHASES
    lines += [f"and {counted(more, 'phase')} more"] if more > 0 else []
    return Cell("\n".join(lines) or NOTHING, style=_LINES)


# ---- Single rounds


def rounds_table(rounds: Sequence[Round]) -> Table:
    """A row for each round."""
    columns: list[Column[tuple[Round, RoundFigures]]] = [
        Column("round", lambda row: row[0].named()),
        Column("agreed instant", lambda row: row[0].at),
        Column("prepared in", lambda row: row[0].prepared_in, "s"),
        Column("start skew", lambda row: row[1].skew, "s"),
        Column("span", lambda row: row[1].span, "s"),
        Column("overlap", lambda row: percent(row[1].simultaneity)),
        Column("tasks running, on average", lambda row: fixed(row[1].running, 1)),
        Column("tasks", lambda row: row[1].tasks),
        Column("machine", lambda row: str((row[0].load or {}).get("judgement", ""))),
    ]
    return table_of(columns, [(one, figures_of(one)) for one in rounds])


def hosts_table(rounds: Sequence[Round]) -> Table:
    """The counters of each host in each of these rounds."""

    def of(value: Callable[[Sample], Value], name: str, unit: str = "") -> Column[_HostRow]:
        return Column(name, lambda row: None if row[1].whole is None else value(row[1].whole), unit)

    def share(used: float, name: str) -> str | None:
        return f"{percent(used, 0)} ({name})" if name else None

    def watched(one: Sample) -> str:
        used = [f"{name} {processors(value)}" for name, value in one.watched.items()]
        return ", ".join(used) or NOTHING

    columns: list[Column[_HostRow]] = [
        Column("round", lambda row: row[0].named()),
        Column("host", lambda row: row[1].host),
        Column("processors", lambda row: row[1].cores),
        of(lambda s: processors(s.processors), "busy"),
        of(lambda s: fixed(s.waiting, 2), "waiting for a disk"),
        of(lambda s: share(s.disk_busy, s.disk), "busiest disk"),
        of(lambda s: s.disk_read, "read", "bytes/s"),
        of(lambda s: s.disk_written, "written", "bytes/s"),
        of(lambda s: s.network_in, "network in", "bytes/s"),
        of(lambda s: s.network_out, "network out", "bytes/s"),
        of(lambda s: share(s.link_used, s.link), "busiest link"),
        of(lambda s: float(s.dirty), "dirty", "bytes"),
        of(lambda s: size(s.available), "available"),
        Column("memory", lambda row: size(row[1].memory)),
        of(watched, "watched programs"),
    ]
    rows = [(one, use) for one in rounds for use in one.hosts]
    return table_of(columns, rows[:_MOST_ROWS])


class TaskTables(NamedTuple):
    """Tasks that failed, and stragglers."""

    failures: Table
    failed: int
    """Number of failures; the table may have fewer."""
    stragglers: Table
    late: int
    frequent: Table


class _TaskRow(NamedTuple):
    task: TaskRun
    round: Round
    median: float


def task_tables(cases: Sequence[SyncCase], files: Path | None) -> TaskTables:
    """The tables of tasks. `files`: the folder of results as seen from the page; None: without
    links."""
    failures, stragglers = [], []
    for case in cases:
        for one, found in zip(case.rounds, case.all_figures, strict=True):
            late = set(found.stragglers)
            rows = [_TaskRow(task, one, found.median) for task in one.tasks]
            failures += [row for row in rows if row.task.status != "ok"]
            stragglers += [row for row in rows if row.task.worker in late]
    first: list[Column[_TaskRow]] = [
        Column("worker", lambda row: f"worker {row.task.worker}"),
        Column("host", lambda row: row.task.host),
        Column("round", lambda row: row.round.named()),
    ]
    last: Column[_TaskRow] = Column("output", lambda row: _output(row.task, files))
    how: list[Column[_TaskRow]] = [
        Column("how it ended", lambda row: _how(row.task)),
        Column("why", lambda row: row.task.why),
    ]
    took: list[Column[_TaskRow]] = [
        Column("time", lambda row: row.task.seconds, "s"),
        Column(
            "times the median",
            lambda row: times((row.task.seconds or 0.0) / row.median) if row.median > 0 else None,
        ),
    ]
    often: list[Column[FrequentStraggler]] = [
        Column("", lambda r: "the host as a whole" if r.worker is None else f"worker {r.worker}"),
        Column("host", lambda r: r.host),
        Column("rounds in which it was a straggler", lambda r: f"{r.times} of {r.rounds}"),
    ]
    rounds = [one for case in cases for one in case.rounds]
    return TaskTables(
        table_of([*first, *how, last], failures[:_MOST_TASKS], style="left"),
        len(failures),
        table_of([*first, *took, last], stragglers[:_MOST_TASKS], style="left"),
        len(stragglers),
        table_of(often, frequent_stragglers(rounds), style="left"),
    )


def _how(task: TaskRun) -> str:
    word = STATUSES[task.status]
    if task.exit is None:
        return word
    if task.exit < 0:
        return f"{word}, signal {-task.exit}"
    return f"{word}, exit status {task.exit}"


def _output(task: TaskRun, files: Path | None) -> Cell:
    """A link to the output of a task. The path comes from a record and must stay in the folder."""
    if not task.output:
        return Cell(NOTHING)
    path = PurePosixPath(task.output)
    inside = not path.is_absolute() and ".." not in path.parts
    if files is None or not inside:
        return Cell(task.output)
    # The colon of a name must not be that of a scheme: `quote` writes it as %3A.
    return Cell(path.name, link=f"./{quote(os.fspath(files / path))}")
