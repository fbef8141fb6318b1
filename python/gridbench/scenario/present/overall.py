"""One page on all scenarios that were run: each question with its answer, and engines compared."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

from gridbench.formats import NOTHING
from gridbench.record_file import Header
from gridbench.report.document import document
from gridbench.report.files import asset, write_page
from gridbench.report.text import details, escape, table
from gridbench.scenario.cells import Cell, cells_of, engines_of
from gridbench.scenario.present.answers import QUESTIONS, TITLES, answers
from gridbench.scenario.present.curves import Picture
from gridbench.scenario.present.notes import counts, notices
from gridbench.scenario.present.page import PACKAGE, notice, show, told
from gridbench.scenario.present.pictures import pictures_of
from gridbench.scenario.present.published import comparisons
from gridbench.scenario.present.published import section as beside_published
from gridbench.scenario.results import REPORT, CaseResult, read_results


@dataclass(frozen=True, slots=True)
class _Part:
    """One folder of results."""

    folder: Path
    header: Header
    results: list[CaseResult]
    cells: list[Cell]
    picture: Picture | None
    """The first that can be drawn."""

    @property
    def scenario(self) -> int:
        return int(self.header.options.get("scenario", 1))


def write_overall(folders: Sequence[Path], out: Path) -> None:
    """Write the page about several folders of results, completely or not at all.

    InputError if one cannot be read, or if `out` cannot be written.
    """
    parts = [_part(folder, number) for number, folder in enumerate(folders)]
    parts.sort(key=lambda part: part.scenario)
    write_page(out, _render(parts, out.parent))


def _part(folder: Path, number: int) -> _Part:
    header, results = read_results(folder)
    cells = cells_of(results)
    pictures = pictures_of(int(header.options.get("scenario", 1)), cells)
    # Two folders can be of the same scenario.
    first = replace(pictures[0], id=f"{pictures[0].id}-{number}") if pictures else None
    return _Part(folder, header, results, cells, first)


def _render(parts: Sequence[_Part], base: Path) -> str:
    results = [result for part in parts for result in part.results]
    minded: list[str] = []
    for part in parts:
        minded += [
            f"Scenario {part.scenario}: {line}"
            for line in notices(part.header, part.results, part.cells)
        ]
    body = Template(asset("overall.html", PACKAGE)).substitute(
        subheading=escape(", ".join(engines_of(results))),
        navigation="".join(
            f'<a href="#part-{n}">{part.scenario}. {escape(TITLES[part.scenario])}</a>'
            for n, part in enumerate(parts)
        ),
        notices=notice(_shortened(minded)),
        counts=table(["engine", "done", "invalid", "skipped", "failed"], counts(results)),
        scenarios="".join(_section(part, n, base) for n, part in enumerate(parts)),
        engines=_compared([cell for part in parts for cell in part.cells]),
    )
    curve = {part.picture.id: part.picture.data() for part in parts if part.picture}
    return document(
        "gridbench scenarios",
        body,
        {"runs": [], "curve": curve},
        css=asset("scenario.css", PACKAGE),
        scripts=[asset("curves.js"), asset("scenario.js", PACKAGE), asset("report.js")],
    )


def _section(part: _Part, number: int, base: Path) -> str:
    link = os.path.relpath(part.folder / REPORT, base)
    picture = "" if part.picture is None else show(part.picture)
    published = ""
    if comparisons(part.scenario, part.cells):
        published = details(
            "Beside the published systems", beside_published(part.scenario, part.cells)
        )
    return (
        f'<section id="part-{number}"><h2>{part.scenario}. {escape(TITLES[part.scenario])}</h2>'
        f"<p>{escape(QUESTIONS[part.scenario])}</p>"
        f'<div class="prose">{told(answers(part.scenario, part.cells))}</div>{picture}{published}'
        f'<p><a href="{escape(link)}">All of scenario {part.scenario}</a></p></section>'
    )


def _shortened(lines: Sequence[str]) -> list[str]:
    """What holds for several scenarios is said once."""
    said: dict[str, list[str]] = {}
    for line in lines:
        name, _, rest = line.partition(": ")
        said.setdefault(rest, []).append(name.removeprefix("Scenario "))
    return [
        f"{'Scenario' if len(names) == 1 else 'Scenarios'} {', '.join(names)}: {rest}"
        for rest, names in said.items()
    ]


def _compared(cells: Sequence[Cell]) -> str:
    engines = engines_of(cell.one for cell in cells)
    if len(engines) < 2:
        return "<p>One engine only was measured.</p>"
    overheads: dict[str, dict[tuple[object, ...], float]] = {name: {} for name in engines}
    for cell in cells:
        one = cell.one
        if cell.counts and cell.overhead().value > 0:
            key = (one.scenario, one.case, one.transport, one.nodes, one.link_rate, one.start)
            overheads[one.engine][key] = cell.overhead().value
    rows = [
        [name, *(_ratio(overheads[name], overheads[other]) for other in engines)]
        for name in engines
    ]
    return table(["", *(f"against {name}" for name in engines)], rows)


def _ratio(mine: dict[tuple[object, ...], float], others: dict[tuple[object, ...], float]) -> str:
    if mine is others:
        return NOTHING
    ratios = [mine[key] / others[key] for key in mine.keys() & others.keys()]
    if not ratios:
        return NOTHING
    return f"{statistics.median(ratios):.3g} ({len(ratios)} cases)"
