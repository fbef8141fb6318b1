"""One page on all scenarios that were run: each question with its answer, and engines compared."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridbench.formats import NOTHING
from gridbench.pages import render as pages
from gridbench.pages.files import write_page
from gridbench.pages.table import Table
from gridbench.record_file import Header
from gridbench.scenario.cells import Cell, cells_of, engines_of
from gridbench.scenario.present.answers import QUESTIONS, TITLES, answers
from gridbench.scenario.present.curves import Picture
from gridbench.scenario.present.notes import COUNTS_HEAD, counts, measured_here, notices
from gridbench.scenario.present.page import SCRIPTS, STYLE, chart
from gridbench.scenario.present.pictures import pictures_of
from gridbench.scenario.present.published import section as beside_published
from gridbench.scenario.present.verdict import Overheads, overheads, ratios_of, tiles, verdict
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
    cells = [cell for part in parts for cell in part.cells]
    return pages.render(
        "scenario/present/overall.html",
        "gridbench scenarios",
        {
            "runs": [],
            "curve": {part.picture.id: part.picture.data() for part in parts if part.picture},
        },
        styles=[STYLE],
        scripts=SCRIPTS,
        engines=engines_of(results),
        kind="gridbench scenarios",
        heading="What the scenarios say",
        subheading=", ".join(engines_of(results)),
        navigation=[
            *((f"part-{n}", f"{p.scenario}. {TITLES[p.scenario]}") for n, p in enumerate(parts)),
            ("engines", "Engines"),
        ],
        verdict=verdict(cells),
        tiles=tiles(cells),
        notices=_shortened(minded),
        counts=Table(COUNTS_HEAD, counts(results)),
        parts=[_section(part, n, base) for n, part in enumerate(parts)],
        engines_compared=_compared(cells),
    )


def _section(part: _Part, number: int, base: Path) -> dict[str, Any]:
    """What the template shows of one scenario."""
    published = beside_published(part.scenario, part.cells)
    return {
        "place": f"part-{number}",
        "number": part.scenario,
        "title": TITLES[part.scenario],
        "question": QUESTIONS[part.scenario],
        "answers": answers(part.scenario, part.cells, again=measured_here(part.header)),
        "chart": part.picture and chart(part.picture),
        "published": published if published.comparisons else None,
        "link": os.path.relpath(part.folder / REPORT, base),
    }


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


def _compared(cells: Sequence[Cell]) -> Table | None:
    engines = engines_of(cell.one for cell in cells)
    if len(engines) < 2:
        return None
    found = overheads(cells)
    rows = [[name, *(_ratio(found[name], found[other]) for other in engines)] for name in engines]
    return Table(["", *(f"against {name}" for name in engines)], rows)


def _ratio(mine: Overheads, others: Overheads) -> str:
    if mine is others:
        return NOTHING
    ratios = ratios_of(mine, others)
    if not ratios:
        return NOTHING
    return f"{statistics.median(ratios):.3g} ({len(ratios)} cases)"
