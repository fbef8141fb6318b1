"""The cases as a table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import rich.table
from rich.console import Console
from rich.text import Text

from gridbench.datagrid.cases import repeats_of
from gridbench.datagrid.present.notes import headline, notices
from gridbench.datagrid.present.rows import cases_table, marks_told
from gridbench.datagrid.record import Case
from gridbench.pages.table import Cell, Table
from gridbench.tables import new_table, printable

_RANGES = 170
"""Columns from which on a terminal has room for the ranges."""
_FROM = {
    "repeats": 145,
    "with start-up": 135,
    "data rate": 125,
    "how": 115,
    "scenario": 105,
    "members": 95,
    "p50": 90,
    "task time": 85,
}
"""The same of what is left out first."""
_WORDS = {"engine": 10, "operation": 6, "how": 14, "data": 6}
"""Columns of words, with the characters of a line that each has at least."""


def print_table(console: Console, cases: Sequence[Case]) -> None:
    """One row for each case, and the outcome in sentences."""
    groups = repeats_of(cases)
    if groups:
        console.print(_table(cases_table(groups), console))
        if told := marks_told(groups):
            _say(console, told)
    for line in [*headline(groups), *notices(groups)]:
        _say(console, line)


def _table(made: Table, console: Console) -> rich.table.Table:
    """As much of it as there is room for."""
    kept = [n for n, name in enumerate(made.head) if console.width >= _FROM.get(name, 0)]
    notes = console.width >= _RANGES
    table = new_table()
    for number in kept:
        name = made.head[number]
        if name in _WORDS:
            table.add_column(name, overflow="fold", min_width=_WORDS[name])
        else:
            # Numbers stay whole, with their units.
            table.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
    for style, first, cells in made.lines():
        texts = [_text(cell, note=notes) for cell in (first, *cells)]
        table.add_row(*(texts[number] for number in kept), style="dim" if style else "")
    return table


def _text(cell: Cell, *, note: bool) -> Text:
    text = Text(printable(cell.text), style="red" if cell.style == "bad" else "")
    return text.append(f"\n{printable(cell.note)}", style="dim") if note and cell.note else text


def _say(console: Console, line: str) -> None:
    console.print(printable(line), soft_wrap=True, markup=False, highlight=False)
