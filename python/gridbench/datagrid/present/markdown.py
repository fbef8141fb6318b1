"""The cases as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gridbench.datagrid.cases import repeats_of
from gridbench.datagrid.comparisons import compared_loops, sweeps_of
from gridbench.datagrid.present.notes import clients_part, headline, notices
from gridbench.datagrid.present.rows import (
    cases_table,
    correctness_table,
    kills_table,
    loops_table,
    marks_told,
    memory_table,
)
from gridbench.datagrid.present.scenario_tables import fits_table
from gridbench.datagrid.record import DataGridCase
from gridbench.pages.markdown import escaped, table_lines


def markdown(cases: Sequence[DataGridCase]) -> str:
    """The outcome in sentences, and the tables."""
    return "\n".join(_lines(cases)).rstrip() + "\n"


def _lines(cases: Sequence[DataGridCase]) -> Iterator[str]:
    groups = repeats_of(cases)
    for line in headline(groups):
        yield from (escaped(line), "")
    yield from (f"- {escaped(line)}" for line in notices(groups))
    if not groups:
        return
    yield ""
    yield from table_lines(cases_table(groups))
    for told in filter(None, (marks_told(groups), clients_part(groups))):
        yield from ("", escaped(told))
    for title, made in (
        ("Time over object size", fits_table(sweeps_of(groups, "ObjectSize"))),
        ("Closed and open loop", loops_table(compared_loops(groups))),
        ("After members were killed", kills_table(groups)),
        ("Memory and balance", memory_table(groups)),
        ("Are the data right?", correctness_table(groups)),
    ):
        if made.rows:
            yield from ("", f"## {title}", "")
            yield from table_lines(made)
