"""The crossover as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gridbench.datagrid.crossover.answer import answer_of
from gridbench.datagrid.crossover.present.notes import examples, headline, notices
from gridbench.datagrid.crossover.present.rows import (
    crossings_table,
    models_table,
    readers_table,
    times_table,
)
from gridbench.datagrid.crossover.record import Sharing
from gridbench.pages.markdown import escaped, table_lines


def markdown(found: Sequence[Sharing]) -> str:
    """The outcome in sentences, and the tables."""
    return "\n".join(_lines(found)).rstrip() + "\n"


def _lines(found: Sequence[Sharing]) -> Iterator[str]:
    answer = answer_of(found)
    for line in [*headline(answer, found), *examples(answer)]:
        yield from (escaped(line), "")
    yield from (f"- {escaped(line)}" for line in notices(answer, found))
    for title, made in (
        ("The sizes at which the data grid is faster", crossings_table(answer)),
        ("The numbers of readers for which it is", readers_table(answer)),
        ("Until the last reader has the data", times_table(answer)),
        ("What is predicted from", models_table(answer)),
    ):
        if made.rows:
            yield from ("", f"{title}:", "", *table_lines(made))
