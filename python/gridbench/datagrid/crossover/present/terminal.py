"""The crossover as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import rich.table
from rich.console import Console
from rich.text import Text

from gridbench.datagrid.crossover.answer import Answer
from gridbench.datagrid.crossover.present.notes import examples, headline, notices
from gridbench.datagrid.crossover.present.rows import crossings_table, times_table
from gridbench.datagrid.crossover.record import Sharing
from gridbench.pages.table import Cell, Table
from gridbench.terminal import new_table, printable, say

CROSSINGS = "At these sizes the data grid is faster"


def print_table(console: Console, answer: Answer, found: Sequence[Sharing]) -> None:
    """The times, the sizes from which on the data grid is faster, and both in sentences."""
    if answer.curves:
        made = times_table(answer)
        rows = [[Cell(cell.text) for cell in (first, *cells)] for _, first, cells in made.lines()]
        console.print(_table("Until the last reader has the data", Table(made.head, rows)))
    if answer.pairs:
        console.print(_table(CROSSINGS, crossings_table(answer)))
    for line in [*headline(answer, found), *examples(answer), *notices(answer, found)]:
        say(console, line)


def _table(title: str, made: Table) -> rich.table.Table:
    heads = [printable(name) for name in made.head]
    words = 2 if made.style == "crossings" else 1
    table = new_table(title, words=heads[:words], numbers=heads[words:])
    for _, first, cells in made.lines():
        table.add_row(*map(_text, (first, *cells)))
    return table


def _text(cell: Cell) -> Text:
    text = Text(printable(cell.text))
    notes = printable(cell.note).replace("; ", "\n")
    return text.append(f"\n{notes}", style="dim") if notes else text
