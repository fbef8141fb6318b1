"""The page: its sections and tables. The pictures are drawn in the browser, by assets/report.js."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridbench.analysis.critical_path import by_kind
from gridbench.atomic_write import write_file
from gridbench.formats import NOTHING, counted, duration, percent, plain, size, spread
from gridbench.pages import render as pages
from gridbench.pages.chart import Chart
from gridbench.pages.table import Table, facts
from gridbench.report.data import most_tasks, page_data
from gridbench.report.prose import certain, notices, sentences
from gridbench.report.run_analysis import Study, label, studies_of
from gridbench.report.source import Run, grid_hosts, section
from gridbench.report.verdict import verdict
from gridbench.run.recorder import TIMELINE

_FIRST = 5
"""Figures that stand above the others."""


def write_report(sources: Sequence[Path], out: Path) -> None:
    """Write one self-contained HTML page about `sources` (run folders or task logs) to `out`.

    The page appears under its name when it is complete, or not at all. Raises InputError for a
    source that cannot be read, and if `out` cannot be written.
    """
    write_file(out, render(studies_of(sources)))


def render(studies: Sequence[Study]) -> str:
    """The whole page as HTML."""
    many = len(studies) > 1
    figures = figures_table(studies)
    return pages.render(
        "report/page.html",
        "gridbench report: " + ", ".join(study.run.name for study in studies),
        page_data(studies),
        scripts=["report/report.js"],
        engines=[study.run.engine for study in studies],
        kind="gridbench report",
        heading=_heading(studies),
        subheading=_subheading(studies),
        navigation=[
            ("summary", "Summary"),
            *([("running", "Running")] if many else []),
            ("cost", "Cost"),
            ("overhead", "Overhead"),
            *((f"run-{number}", study.run.name) for number, study in enumerate(studies)),
            ("terms", "Terms"),
        ],
        notices=[
            replace(one, what=f"{study.run.name}: {one.what}") if many else one
            for study in studies
            for one in notices(study)
        ],
        verdict=verdict(studies),
        own_time=own_time(studies),
        told=[_told(study) for study in studies],
        first=[] if many else [(str(name), str(value)) for name, value in figures.rows[:_FIRST]],
        figures=Table(figures.head, figures.rows[:_FIRST]) if many else None,
        more=Table(figures.head, figures.rows[_FIRST:]),
        charts={
            "totals": Chart(
                "totals",
                "Total time of each engine",
                about="Bars are medians, ticks single rounds; pale bars are provisional.",
            ),
            "running": Chart(
                "running",
                "Tasks running over time",
                title="" if many else "Tasks running over time",
                about=""
                if many
                else "Tasks between calc-in and calc-out. The dotted line is the number of workers"
                " asked for.",
            ),
            "cost": Chart("cost", "Cost of the job, per worker", table=cost_table(studies)),
            "phases": Chart("phases", "Phases of a task, mean", table=_phases_table(studies)),
            "overhead": Chart("overhead", "Overhead per task"),
        },
        overheads=_overhead_table(studies),
        runs=[
            run_section(study, number, most_tasks(studies)) for number, study in enumerate(studies)
        ],
    )


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


def _told(study: Study) -> tuple[str, str]:
    """The name of a run, and what follows it in the sentences about it."""
    name = study.run.name
    return name, " ".join(sentences(study)).removeprefix(name)


def figures_table(studies: Sequence[Study]) -> Table:
    """The figures of the runs, a column for each; the most important ones first."""
    return Table(["", *(study.run.name for study in studies)], list(_figure_rows(studies)))


def _figure_rows(studies: Sequence[Study]) -> Iterator[list[str]]:
    def row(name: str, cell: Callable[[Study], str]) -> list[str]:
        return [name, *(cell(study) for study in studies)]

    if any(study.rounds for study in studies):
        yield row("Total times of rounds", lambda s: spread(_totals(s)))
        yield row("Rounds that count", _rounds)
    yield row("Total time", lambda s: duration(s.summary.total))
    yield row("Ideal time", lambda s: duration(s.summary.ideal))
    yield row(
        "Efficiency",
        lambda s: percent(s.summary.efficiency) if s.summary.took_their_time else NOTHING,
    )
    yield row(
        "Cost per worker",
        lambda s: duration(s.cost.cost) if s.cost else NOTHING,
    )
    yield row("Handling, median", lambda s: duration(s.handling.percentile(50)))
    yield row("First task computes at", lambda s: duration(s.summary.first_calc_in))
    yield row("Last worker begins at", lambda s: duration(s.summary.last_worker_calc_in))
    yield row("Handling, 99th percentile", lambda s: duration(s.handling.percentile(99)))
    yield row("Tasks per second", lambda s: plain(s.summary.tasks_per_second))
    yield row("Tasks at once, most", lambda s: f"{s.summary.most_running:,}")
    yield row("Tasks at once, mean", lambda s: plain(s.concurrency.mean(s.end)))
    yield row("Tasks asked for", lambda s: f"{s.run.ntasks:,}")
    yield row("Tasks succeeded", lambda s: f"{s.summary.ok:,}")
    yield row("Tasks failed", lambda s: f"{s.summary.failed:,}")
    yield row("Workers asked for", lambda s: f"{s.run.nnodes:,}")
    yield row("Workers that ran a task", lambda s: f"{s.summary.workers_seen:,}")
    yield row("Start", lambda s: "cold" if s.run.cold else "warm")
    if any(grid_hosts(study.run.record) for study in studies):
        yield row("Hosts of workers", lambda s: f"{len(s.hosts):,}" if s.hosts else NOTHING)
    if any(study.clock_error for study in studies):
        yield row("Clocks known within", lambda s: _clocks(s.clock_error, same=s.one_clock))
    yield row("Task data", lambda s: size(s.summary.bytes_in))
    yield row("Output data", lambda s: size(s.summary.bytes_out))


def _totals(study: Study) -> tuple[float, ...]:
    rounds = study.rounds
    return rounds.totals or rounds.disturbed if rounds else (study.end,)


def _rounds(study: Study) -> str:
    return f"{len(study.rounds.totals)} of {study.rounds.number}" if study.rounds else NOTHING


def own_time(studies: Sequence[Study]) -> str:
    """The name of what the tasks did by themselves, if it is the same in all runs."""
    names = {study.run.kind.own_time for study in studies}
    return names.pop() if len(names) == 1 else "computing"


def _part(name: str, studies: Sequence[Study]) -> str:
    return own_time(studies) if name == "sleep" else label(name)


def cost_table(studies: Sequence[Study]) -> Table:
    """The seconds of a worker, by what it did with them, a column for each run."""
    parts = [study.cost.parts() if study.cost else {} for study in studies]
    names = next((list(found) for found in parts if found), [])
    rows = [
        [
            _part(name, studies),
            *(
                certain(name, found.get(name, float("nan")), study)
                for found, study in zip(parts, studies, strict=True)
            ),
        ]
        for name in names
    ]
    totals = [duration(s.cost.total) if s.cost else NOTHING for s in studies]
    return Table(
        ["seconds per worker", *(s.run.name for s in studies)],
        [*rows, ["total = measured time", *totals]],
    )


def _phases_table(studies: Sequence[Study]) -> Table:
    means = [study.phases.means() for study in studies]
    rows = [
        [
            _part(name, studies),
            *(certain(name, m[name], s) for m, s in zip(means, studies, strict=True)),
        ]
        for name in means[0]
    ]
    totals = [duration(sum(found.values())) for found in means]
    return Table(
        ["mean per task", *(study.run.name for study in studies)],
        [*rows, ["total = submit to retrieve", *totals]],
    )


def _overhead_table(studies: Sequence[Study]) -> Table:
    rows = []
    for study in studies:
        for name, of in (("handling", study.handling), ("round trip", study.round_trip)):
            figures = [duration(value) for value in of.figures().values()]
            rows.append([f"{study.run.name}: {name}", f"{of.count:,}", *figures])
    head = ["", "tasks", "min", "p50", "p90", "p99", "max", "mean"]
    return Table(head, rows)


@dataclass(frozen=True, slots=True)
class RunSection:
    """One run by itself, as assets/run.html shows it."""

    number: int
    """Its place in the page's data."""
    name: str
    brief: str
    hosts: Table | None
    """Where the workers were; None if that was the client's machine."""
    record: Table
    stamps: Chart
    waited: Table | None
    """What the last result waited for; None if that is not known."""
    gantt: Chart
    tasks: str
    part: str
    """Which tasks the page carries, if these are not all."""
    path: str


def run_section(study: Study, number: int, most: int) -> RunSection:
    """One run by itself: what was run, stamps, Gantt chart, tasks, of which the page carries `most`
    at most."""
    return RunSection(
        number=number,
        name=study.run.name,
        brief=_brief(study.run),
        hosts=_hosts(study),
        record=facts([(name, value) for name, value in _flat(study.run.record)]),
        stamps=Chart("stamps", "The stamps of each task", run=number),
        waited=_waited(study),
        gantt=Chart("gantt", "What each worker did, over time", run=number),
        tasks=counted(study.tasks, "task"),
        part=_part_carried(study, most),
        path=str(study.run.path),
    )


def _part_carried(study: Study, most: int) -> str:
    if study.tasks <= most:
        return ""
    path = study.run.path
    return (
        f"Pictures and tables of single tasks are of {most:,} of the {study.tasks:,} tasks: those"
        " on the end of the critical path, those that took longest from submit to retrieve, and an"
        " even sample of the others, so that workers look idle where a task is not drawn. All"
        f" else is of all tasks, which are in {path / TIMELINE if path.is_dir() else path}."
    )


def _waited(study: Study) -> Table | None:
    parts = by_kind(study.path)
    if not parts:
        return None
    counts = Counter(step.kind for step in study.path)
    rows = [
        [_WAITED[kind], f"{counts[kind]:,}", duration(length), percent(length / study.end)]
        for kind, length in parts.items()
    ]
    whole = ["total", "", duration(sum(parts.values())), percent(1.0)]
    return Table(["the last result waited for", "times", "time", "share"], [*rows, whole])


def _hosts(study: Study) -> Table | None:
    if not grid_hosts(study.run.record):
        return None
    rows = [
        [
            host.name,
            host.server or NOTHING,
            NOTHING if host.workers is None else f"{host.workers:,}",
            f"{host.used:,}",
            f"{host.tasks:,}",
            host.transport or NOTHING,
            _clocks(host.clock_error, same=host.clock_error == 0),
        ]
        for host in study.hosts
    ]
    head = ["host", "server", "workers", "that ran a task", "tasks", "transport"]
    return Table([*head, "clock known within"], rows)


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
