"""What scenarios tell, as Markdown: answers, and the published figures beside those measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gridbench.pages.markdown import escaped, table_lines
from gridbench.pages.table import Table
from gridbench.scenario.present.answers import QUESTIONS, TITLES, answers
from gridbench.scenario.present.notes import COUNTS_HEAD, counts, measured_here, notices
from gridbench.scenario.present.parts import Part, parts_of
from gridbench.scenario.present.published import section


def markdown(folders: Sequence[Path]) -> str:
    """A section for each part of the folders. InputError if one cannot be read."""
    return "\n".join(line for part in parts_of(folders) for line in _lines(part)).rstrip() + "\n"


def _lines(part: Part) -> Iterator[str]:
    scenario, results, cells = part.scenario, part.results, part.cells
    yield from (
        f"## Scenario {escaped(part.name)}: {TITLES[scenario]}",
        "",
        QUESTIONS[scenario],
        "",
    )
    for engine, sentences in answers(scenario, cells, again=measured_here(part.header)):
        yield from (f"{escaped(engine)}:", "")
        yield from (f"- {escaped(sentence)}" for sentence in sentences)
        yield ""
    yield from (*table_lines(Table(COUNTS_HEAD, counts(results))), "")
    told = notices(part.header, results, cells, part.groups)
    yield from (f"- {escaped(line)}" for line in told)
    yield ""
    beside = section(scenario, cells)
    for title, about, table in beside.comparisons:
        yield from (f"### {escaped(title)}", "", escaped(about), "", *table_lines(table), "")
    if beside.comparisons:
        yield from (escaped(beside.about), "")
