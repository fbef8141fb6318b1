"""The report of one scenario: its question, answered in words and pictures, and all its cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.formats import NOTHING, counted, duration, percent
from gridbench.jsonl_store import Header
from gridbench.pages import render as pages
from gridbench.pages.chart import Chart
from gridbench.pages.table import Table, facts
from gridbench.report.data import most_tasks, page_data
from gridbench.report.page import run_section
from gridbench.report.run_analysis import Study, study
from gridbench.report.source import load_runs
from gridbench.scenario.cases import MeasuredCase, cells_of, engines_of
from gridbench.scenario.present.answers import QUESTIONS, TITLES, answers
from gridbench.scenario.present.curves import Picture
from gridbench.scenario.present.notes import (
    COUNTS_HEAD,
    counts,
    left_out,
    measured_here,
    method,
    notices,
    tasks_of,
)
from gridbench.scenario.present.pictures import pictures_of
from gridbench.scenario.present.published import section as beside_published
from gridbench.scenario.present.verdict import tiles, verdict
from gridbench.scenario.results import CaseResult, read_results

STYLE = "scenario/present/scenario.css"
SCRIPTS = ("pages/curves.js", "scenario/present/scenario.js", "report/report.js")
_MOST_TASKS = 5_000
"""Tasks of a run that is shown task by task."""


def write_report(folder: Path, out: Path) -> None:
    """Write the page about the results in `folder`, completely or not at all.

    InputError if they cannot be read, or if `out` cannot be written.
    """
    header, results = read_results(folder)
    write_file(out, render(header, results))


def render(header: Header, results: Sequence[CaseResult]) -> str:
    """The whole page as HTML. The folders of the results are full paths."""
    scenario = int(header.options.get("scenario", 1))
    cells = cells_of(results)
    pictures = pictures_of(scenario, cells)
    studies = single_runs(cells)
    return pages.render(
        "scenario/present/scenario.html",
        f"gridbench scenario {scenario}: {TITLES[scenario]}",
        page_data(studies) | {"curve": {picture.id: picture.data() for picture in pictures}},
        styles=[STYLE],
        scripts=SCRIPTS,
        engines=engines_of(results),
        kind=f"gridbench scenario {scenario}",
        heading=TITLES[scenario],
        subheading=_subheading(header, results),
        navigation=[
            ("answer", "Answer"),
            *([("pictures", "Pictures")] if len(pictures) > 1 else []),
            ("published", "Published systems"),
            ("runs", "Single runs"),
            ("cases", "All cases"),
            ("method", "Method"),
        ],
        verdict=verdict(cells),
        tiles=tiles(cells),
        question=QUESTIONS[scenario],
        notices=notices(header, results, cells),
        answers=answers(scenario, cells, again=measured_here(header)),
        counts=Table(COUNTS_HEAD, counts(results)),
        charts=[chart(picture) for picture in pictures],
        published=beside_published(scenario, cells),
        cost=Chart("cost", "Cost of the single runs, per worker") if studies else None,
        runs=[run_section(one, number, most_tasks(studies)) for number, one in enumerate(studies)],
        cases=_cases(results),
        left_out=Table(["engine", "case", "status", "why"], left_out(results), style="left"),
        method=method(header),
        machine=_facts(header.machine),
        versions=_facts(header.options | header.versions),
    )


def chart(picture: Picture) -> Chart:
    """The picture on the page, with its numbers as a table."""
    return Chart(
        "curve",
        picture.title,
        name=picture.id,
        title=picture.title,
        about=picture.about,
        table=Table(["line", picture.x_title, picture.y_title, "interval"], picture.rows()),
    )


def single_runs(cells: Sequence[MeasuredCase]) -> list[Study]:
    """For each engine the case with the least and with the most data, of the most cores."""
    chosen: list[CaseResult] = []
    for engine in engines_of(cell.one for cell in cells):
        own = [
            cell
            for cell in cells
            if cell.one.engine == engine and cell.one.tasks <= _MOST_TASKS and cell.one.folder
        ]
        if not own:
            continue
        # Where cores are left without work, a picture of them shows little.
        own = [cell for cell in own if cell.one.tasks >= cell.one.cores] or own
        own.sort(key=lambda cell: (cell.one.cores, _data_of(cell.one), cell.one.tasks))
        most = [cell for cell in own if cell.one.cores == own[-1].one.cores]
        chosen += [cell.one for cell in {id(c): c for c in (*most[:1], *most[-1:])}.values()]
    studies = []
    for one in chosen:
        assert one.folder is not None
        try:
            (run,) = load_runs([one.folder])
        except InputError:  # the run's folder was removed; its figures are kept with the results
            continue
        studies.append(study(replace(run, name=f"{one.case}, {one.engine}")))
    return studies


def _data_of(one: CaseResult) -> int:
    return one.bytes_in + one.bytes_out + one.bytes_shared


def _cases(results: Sequence[CaseResult]) -> Table:
    rows, styles = [], []
    ordered = sorted(
        results,
        key=lambda r: (r.cores, r.tasks, r.sleep_s, _data_of(r), r.engine, r.round),
    )
    for result in ordered:
        styles.append(result.status)
        total, ideal = result.total_s, result.ideal_s
        known = total is not None and ideal is not None
        rows.append(
            [
                result.case,
                result.engine,
                result.status,
                duration(total) if total is not None else NOTHING,
                duration(ideal) if ideal is not None else NOTHING,
                duration(result.overhead_s) if result.overhead_s is not None else NOTHING,
                percent(ideal / total) if known and total else NOTHING,  # type: ignore[operator]
                *(_part(result, part) for part in ("start_up", "dispatch", "input", "output")),
            ]
        )
    head = ["case", "engine", "", "total", "ideal", "total less ideal", "efficiency"]
    head += ["start-up", "dispatch", "input", "return"]
    return Table(head, rows, styles)


def _part(result: CaseResult, name: str) -> str:
    value = result.figures.get(f"part_{name}")
    return NOTHING if value is None else duration(value)


def _subheading(header: Header, results: Sequence[CaseResult]) -> str:
    engines = ", ".join(engines_of(results))
    machine = header.machine
    parts = [
        engines,
        f"tasks {tasks_of(header).told}" if measured_here(header) else "",
        counted(len(results), "result"),
        f"on {machine['host']}" if machine.get("host") else "",
        str(machine.get("processor") or ""),
        f"{machine['cores']} processors" if machine.get("cores") else "",
        header.started[:10],
    ]
    return " · ".join(part for part in parts if part)


def _facts(known: dict[str, Any]) -> Table:
    return facts(
        [
            (name, value if isinstance(value, str) else json.dumps(value))
            for name, value in known.items()
        ]
    )
