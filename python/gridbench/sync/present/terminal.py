"""The cases as a table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import rich.table
from rich.console import Console
from rich.text import Text

from gridbench.pages.table import Cell, Table
from gridbench.sync.cases import cases_of
from gridbench.sync.limited import limits as limits_of
from gridbench.sync.present.limiting import Limits, remembered
from gridbench.sync.present.notes import headline, notices
from gridbench.sync.present.rows import NOT_COUNTED, cases_table
from gridbench.sync.record import Round
from gridbench.tables import new_table, printable

NO_COUNT = f"{NOT_COUNTED} No round of this case counts: its figures are of all rounds."
_RANGES = 160
"""Columns from which on a terminal has room for the ranges."""
_FROM = {"rounds": 135, "limited by": 135, "stragglers": 110, "tasks ok": 95, "not ok": 95}
"""The same of what is told in sentences too."""
_WORDS = {"parameter", "rate", "limited by"}


def print_table(console: Console, rounds: Sequence[Round], *, limits: Limits = limits_of) -> None:
    """One row for each number of workers and parameter, and the outcome in sentences."""
    cases = cases_of(rounds)
    limits = remembered(limits)
    if cases:
        console.print(_table(cases_table(cases, limits, ranges=console.width >= _RANGES), console))
        if not all(case.counts for case in cases):
            _say(console, NO_COUNT)
    for line in [*headline(cases, limits), *notices(cases)]:
        _say(console, line)


def _table(made: Table, console: Console) -> rich.table.Table:
    """As much of it as there is room for; what is left out is told in sentences."""
    kept = [n for n, name in enumerate(made.head) if console.width >= _FROM.get(name, 0)]
    table = new_table()
    for number in kept:
        name = made.head[number]
        if name in _WORDS:
            table.add_column(name, overflow="fold")
        else:
            # Numbers stay whole, with their units.
            table.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
    for style, first, cells in made.lines():
        texts = [_text(cell, note=console.width >= _RANGES) for cell in (first, *cells)]
        table.add_row(*(texts[number] for number in kept), style="dim" if style else "")
    return table


def _text(cell: Cell, *, note: bool) -> Text:
    text = Text(printable(cell.text), style="red" if cell.style == "bad" else "")
    return text.append(f"\n{printable(cell.note)}", style="dim") if note and cell.note else text


def _say(console: Console, line: str) -> None:
    console.print(printable(line), soft_wrap=True, markup=False, highlight=False)
