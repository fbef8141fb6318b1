"""What scenarios tell, as Markdown: answers, and the published figures beside those measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gridbench.pages.markdown import escaped, table_lines
from gridbench.pages.table import Table
from gridbench.scenario.cells import cells_of
from gridbench.scenario.present.answers import QUESTIONS, TITLES, answers
from gridbench.scenario.present.notes import COUNTS_HEAD, counts, measured_here, notices
from gridbench.scenario.present.published import section
from gridbench.scenario.results import read_results


def markdown(folders: Sequence[Path]) -> str:
    """A section for each folder of results. InputError if one cannot be read."""
    return "\n".join(line for folder in folders for line in _lines(folder)).rstrip() + "\n"


def _lines(folder: Path) -> Iterator[str]:
    header, results = read_results(folder)
    scenario = int(header.options.get("scenario", 1))
    cells = cells_of(results)
    yield from (f"## Scenario {scenario}: {TITLES[scenario]}", "", QUESTIONS[scenario], "")
    for engine, sentences in answers(scenario, cells, again=measured_here(header)):
        yield from (f"{escaped(engine)}:", "")
        yield from (f"- {escaped(sentence)}" for sentence in sentences)
        yield ""
    yield from (*table_lines(Table(COUNTS_HEAD, counts(results))), "")
    yield from (f"- {escaped(line)}" for line in notices(header, results, cells))
    yield ""
    beside = section(scenario, cells)
    for title, about, table in beside.comparisons:
        yield from (f"### {escaped(title)}", "", escaped(about), "", *table_lines(table), "")
    if beside.comparisons:
        yield from (escaped(beside.about), "")
