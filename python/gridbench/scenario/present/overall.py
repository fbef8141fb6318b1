"""One page on all scenarios that were run: each question with its answer, and engines compared."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.formats import NOTHING, plain
from gridbench.pages import render as pages
from gridbench.pages.table import Table
from gridbench.results_folder import REPORT
from gridbench.scenario.cases import MeasuredCase, engines_of
from gridbench.scenario.present.answers import QUESTIONS, TITLES, answers
from gridbench.scenario.present.curves import Picture
from gridbench.scenario.present.notes import COUNTS_HEAD, counts, measured_here, notices
from gridbench.scenario.present.page import SCRIPTS, STYLE, chart
from gridbench.scenario.present.parts import Part, parts_of
from gridbench.scenario.present.pictures import pictures_of
from gridbench.scenario.present.published import section as beside_published
from gridbench.scenario.present.verdict import Overheads, overheads, ratios_of, tiles, verdict


def write_overall(folders: Sequence[Path], out: Path) -> None:
    """Write the page about several folders of results, completely or not at all.

    InputError if one cannot be read, or if `out` cannot be written.
    """
    parts = sorted(parts_of(folders), key=lambda part: part.scenario)
    write_file(out, _render(parts, out.parent))


def _render(parts: Sequence[Part], base: Path) -> str:
    results = [result for part in parts for result in part.results]
    cells = [cell for part in parts for cell in part.cells]
    pictures = [_picture(part, number) for number, part in enumerate(parts)]
    return pages.render(
        "scenario/present/overall.html",
        "gridbench scenarios",
        {
            "runs": [],
            "curve": {picture.id: picture.data() for picture in pictures if picture},
        },
        styles=[STYLE],
        scripts=SCRIPTS,
        engines=engines_of(results),
        kind="gridbench scenarios",
        heading="What the scenarios say",
        subheading=", ".join(engines_of(results)),
        navigation=[
            *((f"part-{number}", _title(part)) for number, part in enumerate(parts)),
            ("engines", "Engines"),
        ],
        verdict=verdict(cells),
        tiles=tiles(cells),
        notices=_shortened(
            (part.name, line)
            for part in parts
            for line in notices(part.header, part.results, part.cells, part.groups)
        ),
        counts=Table(COUNTS_HEAD, counts(results)),
        parts=[
            _section(part, number, picture, base)
            for number, (part, picture) in enumerate(zip(parts, pictures, strict=True))
        ],
        engines_compared=_compared(cells),
    )


def _title(part: Part) -> str:
    """`4. Delay by input data`, with where it lies if there are others of the scenario."""
    where = part.name.removeprefix(str(part.scenario))
    return f"{part.scenario}. {TITLES[part.scenario]}{where}"


def _picture(part: Part, number: int) -> Picture | None:
    """The first that can be drawn."""
    pictures = pictures_of(part.scenario, part.cells)
    # Two parts can be of the same scenario.
    return replace(pictures[0], id=f"{pictures[0].id}-{number}") if pictures else None


def _section(part: Part, number: int, picture: Picture | None, base: Path) -> dict[str, Any]:
    """What the template shows of one part."""
    published = beside_published(part.scenario, part.cells)
    several = len(part.folders) > 1
    return {
        "place": f"part-{number}",
        "title": _title(part),
        "question": QUESTIONS[part.scenario],
        "answers": answers(part.scenario, part.cells, again=measured_here(part.header)),
        "chart": picture and chart(picture),
        "published": published if published.comparisons else None,
        "links": [
            (
                f"All of scenario {part.scenario}"
                + (f": {', '.join(folder.engines)}" if several else ""),
                os.path.relpath(folder.path / REPORT, base),
            )
            for folder in part.folders
        ],
    }


def _shortened(lines: Iterable[tuple[str, str]]) -> list[str]:
    """What holds for several parts is said once. `lines`: names of parts, and what is said."""
    said: dict[str, list[str]] = {}
    for name, line in lines:
        said.setdefault(line, []).append(name)
    return [
        f"{'Scenario' if len(names) == 1 else 'Scenarios'} {', '.join(names)}: {line}"
        for line, names in said.items()
    ]


def _compared(cells: Sequence[MeasuredCase]) -> Table | None:
    engines = engines_of(cell.one for cell in cells)
    if len(engines) < 2:
        return None
    found = overheads(cells) or overheads(cells, disturbed=True)
    own = [found.get(name, {}) for name in engines]
    rows = [
        [name, *(NOTHING if other is mine else _ratio(mine, other) for other in own)]
        for name, mine in zip(engines, own, strict=True)
    ]
    return Table(["", *(f"against {name}" for name in engines)], rows)


def _ratio(mine: Overheads, others: Overheads) -> str:
    ratios = ratios_of(mine, others)
    if not ratios:
        return NOTHING
    return f"{plain(statistics.median(ratios))} ({len(ratios)} cases)"
