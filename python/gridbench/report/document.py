"""Runs as a `Document`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gridbench.analysis.critical_path import by_kind
from gridbench.analysis.summary import PhaseStatistics
from gridbench.formats import NOTHING, counted, duration, percent, plain, size, spread
from gridbench.pages.document import (
    EVERYWHERE,
    PAGE,
    Block,
    Document,
    Medium,
    Paragraph,
    Section,
    SideBySide,
    TableBlock,
    definitions,
)
from gridbench.pages.table import Column, Table, facts, table_of
from gridbench.report.charts import (
    cost_chart,
    gantt_chart,
    most_tasks,
    overhead_chart,
    phases_chart,
    running_chart,
    shown_tasks,
    stamps_choice,
    tasks_table,
    totals_chart,
    totals_of,
)
from gridbench.report.prose import certain, notices, sentences, verdict
from gridbench.report.run_analysis import Study, label
from gridbench.report.source import HostRow, Run, grid_hosts, section
from gridbench.run.recorder import TIMELINE

_FIRST = 5
"""Figures that stand above the others."""
_LISTED_TASKS = 50
_MARKDOWN: frozenset[Medium] = frozenset({"markdown"})
_NOT_PAGE: frozenset[Medium] = EVERYWHERE - PAGE
_TERMS = """
submit, queued, calc-in, calc-out, retrieve = The timestamps of a task, in seconds from t = 0: the
    client submits it; the engine queues or sends it, if the engine reports that; it starts and ends
    computing; the client has its result.
cold, warm = Cold: t = 0 is when the client requests its workers. Warm: it is when all have
    answered.
start-up = On a cold start, a worker's wait until its first task computes. Starting the process,
    connecting, shared data and the first task's own data are all in it; the stamps cannot tell them
    apart.
submission = A free worker waited because the client had not yet submitted the task.
queue = A submitted task waited because its worker was busy with others.
dispatch = From task submitted and worker free until the task computes. The transfer of its data is
    inside, unless the engine stamps when it sends.
input = The part of dispatch after the engine's own stamp: sending, receiving and unpacking the
    task's data.
extra in task = calc-out less calc-in less {own}: reading the input, writing the output{waking}.
output = From calc-out to retrieve; for the job only as far as the worker does nothing else.
idle at the end, never used = A worker has no more tasks while others still work; a requested worker
    ran no task.
clocks known within = Calc-in and calc-out come from the clocks of the workers' hosts and are
    converted to the client's clock. This is their possible error; shorter times are shown as below
    it.
percentile = The smallest measured value that is not exceeded by that share of the tasks; nothing is
    interpolated.
"""
_WAITED = {
    "start-up": "start-up: its worker to start and to get its first task",
    "submission": "submission: the client to submit it",
    "room": "room: the client to take results before it sends one more task",
    "dispatch": "dispatch: its way to a worker that was free",
    "between tasks": "between tasks: its worker to turn from one task to the next",
    "task": "tasks: itself and those before it to compute",
    "output": "output: results to come back",
}
"""By kind of step of the critical path."""


def document_of(studies: Sequence[Study]) -> Document:
    """Runs as a document: the outcome, their figures, and where the time went."""
    many = len(studies) > 1
    figures, own = figures_table(studies), own_time(studies)
    waking = ", waking up late" if own == "sleep" else ""
    running = running_chart(studies, title="" if many else "Tasks running over time")
    most = most_tasks(studies)
    return Document(
        kind="gridbench report",
        title="gridbench report: " + ", ".join(study.run.name for study in studies),
        heading=_heading(studies),
        subheading=_subheading(studies),
        sentences=_sentences(studies),
        notices=[
            f"{study.run.name}: {line}" if many else line
            for study in studies
            for line in notices(study)
        ],
        summary=[
            totals_chart(studies) if many else running,
            TableBlock("", Table(figures.head, figures.rows[:_FIRST]), media=PAGE),
            TableBlock(
                "More figures", Table(figures.head, figures.rows[_FIRST:]), folded=True, media=PAGE
            ),
            TableBlock("", figures, media=_NOT_PAGE),
        ],
        sections=[
            *([_running_section(running)] if many else []),
            Section(
                "cost",
                "The cost of going remote",
                [
                    Paragraph(
                        f"Everything but the {own} itself, in two views. For the job: what the"
                        " workers' time went into, from t = 0 to the last result, shared evenly"
                        f" over the workers; together with the {own} the parts add up to the"
                        " measured time. For a task: what it waited for between submit and"
                        " retrieve, in the mean; its time in the queue while all workers were busy"
                        " is no cost to the job."
                    ),
                    SideBySide(
                        [
                            cost_chart(studies, "Of the job, per worker", cost_table(studies)),
                            phases_chart(studies, "Of a task, mean", phases_table(studies)),
                        ]
                    ),
                    TableBlock("Of the job, per worker", cost_table(studies), media=_MARKDOWN),
                ],
                short="Cost",
            ),
            Section(
                "overhead",
                "Overhead per task",
                [
                    Paragraph(
                        "Share of the tasks with at most this overhead. Handling (solid) is what a"
                        f" task cost beyond its {own} on a worker that was free; round trip"
                        " (dotted) also counts start-up and the time in the queue."
                    ),
                    overhead_chart(studies),
                    TableBlock("", _overhead_table(studies), media=PAGE),
                ],
                short="Overhead",
            ),
            *(run_section(study, number, most) for number, study in enumerate(studies, 1)),
            Section("terms", "Terms", [definitions(_TERMS.format(own=own, waking=waking))]),
        ],
    )


def _sentences(studies: Sequence[Study]) -> list[str]:
    """The answer first: of several runs or rounds the verdict, else the first sentence."""
    answer = verdict(studies)
    if answer:
        return [answer, *(" ".join(sentences(study)) for study in studies)]
    first, *others = (sentence for study in studies for sentence in sentences(study))
    return [first, *([" ".join(others)] if others else [])]


def _running_section(running: Block) -> Section:
    return Section(
        "running",
        "Tasks running over time",
        [
            Paragraph(
                "Tasks between calc-in and calc-out. The dotted line is the number of requested"
                " workers."
            ),
            running,
        ],
        short="Running",
    )


def _heading(studies: Sequence[Study]) -> str:
    if len(studies) == 1:
        return studies[0].run.name
    engines = all(study.rounds for study in studies)
    return f"{len(studies)} {'engines' if engines else 'runs'} compared"


def _subheading(studies: Sequence[Study]) -> str:
    run = studies[0].run
    same = all((s.run.ntasks, s.run.nnodes) == (run.ntasks, run.nnodes) for s in studies)
    if not same:
        return ", ".join(study.run.name for study in studies)
    start = {"cold start" if study.run.cold else "warm start" for study in studies}
    kinds = {study.run.kind.told for study in studies}
    tasks = [counted(run.ntasks, "task"), *(kinds if len(kinds) == 1 else ())]
    machine = section(run.record, "machine")
    parts = [
        " ".join(filter(None, tasks)),
        counted(run.nnodes, "worker"),
        *sorted(start),
        f"client on {machine['host']}" if machine.get("host") else "",
        counted(machine["cores"], "processor") if isinstance(machine.get("cores"), int) else "",
        str(run.record.get("started") or "")[: len("2001-02-03")],
    ]
    return " · ".join(filter(None, parts))


def figures_table(studies: Sequence[Study]) -> Table:
    """The figures of the runs, a column for each; the most important ones first."""
    rounds = any(study.rounds for study in studies)
    hosts = any(grid_hosts(study.run.record) for study in studies)
    clocks = any(study.clock_error for study in studies)
    missing = any(study.summary.missing for study in studies)
    figures: list[Column[Study]] = [
        Column("Total times of rounds", lambda s: spread(totals_of(s)), condition=rounds),
        Column("Rounds that count", _rounds, condition=rounds),
        Column("Total time", lambda s: duration(s.summary.total)),
        Column("Ideal time", lambda s: duration(s.summary.ideal)),
        Column(
            "Efficiency",
            lambda s: percent(s.summary.efficiency) if s.summary.took_their_time else NOTHING,
        ),
        Column("Cost per worker", lambda s: duration(s.cost.cost) if s.cost else NOTHING),
        Column("Handling, median", lambda s: duration(s.handling.percentile(50))),
        Column("First task computes at", lambda s: duration(s.summary.first_calc_in)),
        Column("Last worker begins at", lambda s: duration(s.summary.last_worker_calc_in)),
        Column("Handling, 99th percentile", lambda s: duration(s.handling.percentile(99))),
        Column("Tasks per second", lambda s: plain(s.summary.tasks_per_second)),
        Column("Tasks at once, most", lambda s: s.summary.most_running),
        Column("Tasks at once, mean", lambda s: plain(s.concurrency.mean(s.end))),
        Column("Tasks", lambda s: s.run.ntasks),
        Column("Tasks succeeded", lambda s: s.summary.ok),
        Column("Tasks failed", lambda s: s.summary.failed),
        Column("Tasks missing", lambda s: s.summary.missing, condition=missing),
        Column("Workers requested", lambda s: s.run.nnodes),
        Column("Workers that ran a task", lambda s: s.summary.workers_seen),
        Column("Start", lambda s: "cold" if s.run.cold else "warm"),
        Column("Hosts of workers", lambda s: len(s.hosts) or None, condition=hosts),
        Column(
            "Clocks known within",
            lambda s: _clocks(s.clock_error, same=s.one_clock),
            condition=clocks,
        ),
        Column("First dispatch, p50 / p99", lambda s: _percentiles(s.summary.startup)),
        Column("Later dispatch, p50 / p99", lambda s: _percentiles(s.summary.dispatch)),
        Column("Return, p50 / p99", lambda s: _percentiles(s.summary.giving_back)),
        Column("Overhead per task, p50 / p99", lambda s: _percentiles(s.summary.overhead)),
        Column("Task data", lambda s: size(s.summary.bytes_in)),
        Column("Output data", lambda s: size(s.summary.bytes_out)),
    ]
    by_run = table_of(figures, studies)
    return Table(
        ["", *(study.run.name for study in studies)],
        list(zip(by_run.head, *by_run.rows, strict=True)),
    )


def _percentiles(phase: PhaseStatistics) -> str:
    return f"{duration(phase.p50)} / {duration(phase.p99)}"


def _rounds(study: Study) -> str:
    return f"{len(study.rounds.totals)} of {study.rounds.number}" if study.rounds else NOTHING


def own_time(studies: Sequence[Study]) -> str:
    """The name of what the tasks did by themselves, if it is the same in all runs."""
    names = {study.run.kind.own_time for study in studies}
    return names.pop() if len(names) == 1 else "computing"


def cost_table(studies: Sequence[Study]) -> Table:
    """The seconds of a worker, by what it did with them, a column for each run."""
    parts = [study.cost.parts() if study.cost else {} for study in studies]
    totals = [study.cost.total if study.cost else math.nan for study in studies]
    return _parts_table(studies, "seconds per worker", parts, "total = measured time", totals)


def phases_table(studies: Sequence[Study]) -> Table:
    """The mean phases of a task, a column for each run."""
    means = [study.phases.means() for study in studies]
    totals = [sum(own.values()) for own in means]
    return _parts_table(studies, "mean per task", means, "total = submit to retrieve", totals)


def _parts_table(
    studies: Sequence[Study],
    head: str,
    parts: Sequence[Mapping[str, float]],
    whole: str,
    totals: Sequence[float],
) -> Table:
    names = next((list(own) for own in parts if own), [])
    rows = [
        [
            own_time(studies) if name == "sleep" else label(name),
            *(
                certain(name, own.get(name, math.nan), study)
                for own, study in zip(parts, studies, strict=True)
            ),
        ]
        for name in names
    ]
    return Table(
        [head, *(study.run.name for study in studies)], [*rows, [whole, *map(duration, totals)]]
    )


def _overhead_table(studies: Sequence[Study]) -> Table:
    rows = []
    for study in studies:
        for name, of in (("handling", study.handling), ("round trip", study.round_trip)):
            figures = [duration(value) for value in of.figures().values()]
            rows.append([f"{study.run.name}: {name}", f"{of.count:,}", *figures])
    head = ["", "tasks", "min", "p50", "p90", "p99", "max", "mean"]
    return Table(head, rows)


def run_section(study: Study, number: int, most: int) -> Section:
    """One run by itself: what was run, stamps, Gantt chart, and at most `most` of its tasks.
    `number`: its place on the page, from 1."""
    rows = shown_tasks(study, most)
    blocks: list[Block] = [
        Paragraph(_brief(study.run)),
        TableBlock("Where the workers were", _hosts(study), media=PAGE),
        TableBlock(
            "What was run: set-up, engine, machine, versions",
            facts(list(_flat(study.run.record))),
            folded=True,
            media=PAGE,
        ),
        *([Paragraph(_part_shown(study, most))] if study.tasks > most else []),
        stamps_choice(study, number, rows),
        gantt_chart(study, number, rows),
        TableBlock(
            "What the last result waited for",
            _waited(study),
            about="Followed back from the last result to the start: shortening anything else leaves"
            " the total time as it is. The Gantt chart marks it.",
            media=PAGE,
        ),
        TableBlock(
            f"Tasks: {min(len(rows), _LISTED_TASKS):,} of {study.tasks:,} rows",
            tasks_table(study, rows[:_LISTED_TASKS]),
            folded=True,
            media=PAGE,
        ),
        Paragraph(f"Read from {study.run.path}"),
    ]
    title = f"{study.run.name}: task stamps, Gantt chart and record"
    return Section(f"run-{number}", title, blocks, short=study.run.name, folded=True)


def _part_shown(study: Study, most: int) -> str:
    path = study.run.path
    return (
        f"Pictures and tables of single tasks are of {most:,} of the {study.tasks:,} tasks: those"
        " on the end of the critical path, those that took longest from submit to retrieve, and an"
        " even sample of the others, so that workers look idle where a task is not drawn. All"
        f" else is of all tasks, which are in {path / TIMELINE if path.is_dir() else path}."
    )


def _waited(study: Study) -> Table:
    parts = by_kind(study.path)
    if not parts:
        return Table((), ())
    counts = Counter(step.kind for step in study.path)
    rows = [
        [_WAITED[kind], f"{counts[kind]:,}", duration(length), percent(length / study.end)]
        for kind, length in parts.items()
    ]
    whole = ["total", "", duration(sum(parts.values())), percent(1.0)]
    return Table(["the last result waited for", "times", "time", "share"], [*rows, whole])


def _hosts(study: Study) -> Table:
    """Nothing if the workers were on the client's machine."""
    columns: list[Column[HostRow]] = [
        Column("host", lambda host: host.name),
        Column("server", lambda host: host.server or None),
        Column("workers", lambda host: host.workers),
        Column("that ran a task", lambda host: host.used),
        Column("tasks", lambda host: host.tasks),
        Column("transport", lambda host: host.transport or None),
        Column(
            "clock known within",
            lambda host: _clocks(host.clock_error, same=host.clock_error == 0),
        ),
    ]
    return table_of(columns, study.hosts if grid_hosts(study.run.record) else ())


def _clocks(error: float, *, same: bool) -> str:
    if same:
        return "one clock"
    return duration(error) if error else NOTHING


def _brief(run: Run) -> str:
    """Engine, work and machine in one line, as far as the record tells."""
    engine, setup = section(run.record, "engine"), section(run.record, "setup")
    machine, versions = section(run.record, "machine"), section(run.record, "versions")
    hosts = grid_hosts(run.record)
    parts = [
        f"{engine.get('name', '')} {engine.get('version', '')}".strip(),
        f"{counted(run.ntasks, 'task')} on {counted(run.nnodes, 'worker')}",
        "cold start" if run.cold else "warm start",
        f"times from {setup['InputFile']}" if setup.get("InputFile") else "",
        f"{'client ' if hosts else ''}on {machine['host']}" if machine.get("host") else "",
        str(machine.get("processor") or ""),
        f"{machine['cores']} cores" if machine.get("cores") else "",
        f"Python {versions['python']}" if versions.get("python") else "",
    ]
    return " · ".join(part for part in parts if part)


def _flat(record: Any, prefix: str = "") -> Iterable[tuple[str, str]]:
    """Nested dicts as dotted names. A stored summary is left out: the report has its own."""
    for name, value in record.items():
        if not prefix and name == "summary":
            continue
        full = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{full}.")
        elif isinstance(value, str):
            yield full, value
        else:
            yield full, json.dumps(value)
