"""The report of one scenario: its question, answered in words and pictures, and all its cases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import NOTHING, duration, percent
from gridbench.record_file import Header
from gridbench.report.data import page_data
from gridbench.report.document import document
from gridbench.report.files import asset, write_page
from gridbench.report.page import run_section
from gridbench.report.source import load_runs
from gridbench.report.study import Study, study
from gridbench.report.text import details, escape, table
from gridbench.scenario.cells import Cell, cells_of, engines_of
from gridbench.scenario.present.answers import QUESTIONS, TITLES, answers
from gridbench.scenario.present.curves import Picture
from gridbench.scenario.present.notes import counts, left_out, method, notices
from gridbench.scenario.present.pictures import pictures_of
from gridbench.scenario.present.published import section as beside_published
from gridbench.scenario.results import CaseResult, read_results

PACKAGE = "gridbench.scenario.present"
_MOST_TASKS = 5_000
"""Tasks of a run that is shown task by task."""


def write_report(folder: Path, out: Path) -> None:
    """Write the page about the results in `folder`, completely or not at all.

    InputError if they cannot be read, or if `out` cannot be written.
    """
    header, results = read_results(folder)
    write_page(out, render(header, results))


def render(header: Header, results: Sequence[CaseResult]) -> str:
    """The whole page as HTML. The folders of the results are full paths."""
    scenario = int(header.options.get("scenario", 1))
    cells = cells_of(results)
    pictures = pictures_of(scenario, cells)
    studies = single_runs(cells)
    body = Template(asset("scenario.html", PACKAGE)).substitute(
        number=scenario,
        title=escape(TITLES[scenario]),
        subheading=escape(_subheading(header, results)),
        question=escape(QUESTIONS[scenario]),
        notices=notice(notices(header, results, cells)),
        answers=told(answers(scenario, cells)),
        counts=table(["engine", "done", "invalid", "skipped", "failed"], counts(results)),
        pictures="".join(map(show, pictures)) or "<p>No case was measured.</p>",
        published=beside_published(scenario, cells),
        runs_about=_runs_about(studies),
        runs_cost='<figure data-chart="cost"></figure>' if studies else "",
        runs="".join(run_section(one, number) for number, one in enumerate(studies)),
        cases=_cases(results),
        left_out=_left_out(results),
        method="".join(f"<p>{escape(sentence)}</p>" for sentence in method(header)),
        machine=_facts(header.machine),
        versions=_facts(header.options | header.versions),
    )
    return document(
        f"gridbench scenario {scenario}: {TITLES[scenario]}",
        body,
        page_data(studies) | {"curve": {picture.id: picture.data() for picture in pictures}},
        css=asset("scenario.css", PACKAGE),
        scripts=[asset("curves.js"), asset("scenario.js", PACKAGE), asset("report.js")],
    )


def notice(lines: Sequence[str]) -> str:
    """What the reader has to mind, as HTML."""
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<aside class="notice" role="note"><h3>Mind</h3><ul>{items}</ul></aside>'


def told(found: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Sentences for each engine, as HTML."""
    return "".join(
        f"<h3>{escape(engine)}</h3><ul>"
        + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
        + "</ul>"
        for engine, sentences in found
    )


def show(picture: Picture) -> str:
    """Where the script draws the picture, with its numbers as a table."""
    return (
        f"<h3>{escape(picture.title)}</h3><p>{escape(picture.about)}</p>"
        f'<figure data-chart="curve" data-name="{escape(picture.id)}"'
        f' aria-label="{escape(picture.title)}"></figure>'
        + details(
            "As a table",
            table(["line", picture.x_title, picture.y_title, "interval"], picture.rows()),
        )
    )


def single_runs(cells: Sequence[Cell]) -> list[Study]:
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


def _runs_about(studies: Sequence[Study]) -> str:
    if not studies:
        return "<p>No run is there to be shown task by task.</p>"
    return (
        "<p>For each engine the case with the least and the one with the most data, on the most"
        " cores. What the time of their workers went into, besides the tasks themselves; each by"
        " itself follows below. <code>gridbench report</code> with the folder of any other run"
        " shows that one in the same way.</p>"
    )


def _cases(results: Sequence[CaseResult]) -> str:
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
    whole = table(head, rows, styles=styles)
    return (
        "<p>The four last columns are parts of the cost, per worker: see Single runs.</p>"
        + details(f"{len(rows)} results as a table", whole)
    )


def _part(result: CaseResult, name: str) -> str:
    value = result.figures.get(f"part_{name}")
    return NOTHING if value is None else duration(value)


def _left_out(results: Sequence[CaseResult]) -> str:
    rows = left_out(results)
    if not rows:
        return "<p>Every case was measured, and counts.</p>"
    head = ["engine", "case", "status", "why"]
    listed = f'<div class="left">{table(head, rows)}</div>'
    return listed if len(rows) <= 12 else details(f"{len(rows)} cases as a table", listed)


def _subheading(header: Header, results: Sequence[CaseResult]) -> str:
    engines = ", ".join(engines_of(results))
    machine = header.machine
    parts = [
        engines,
        f"{len(results)} results",
        f"on {machine['host']}" if machine.get("host") else "",
        str(machine.get("processor") or ""),
        f"{machine['cores']} processors" if machine.get("cores") else "",
        header.started[:10],
    ]
    return " · ".join(part for part in parts if part)


def _facts(facts: dict[str, Any]) -> str:
    rows = [
        [name, value if isinstance(value, str) else json.dumps(value)]
        for name, value in facts.items()
    ]
    return table(["", ""], rows)
