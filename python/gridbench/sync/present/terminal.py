"""The cases as a table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from gridbench.pages.table import Cell
from gridbench.sync.cases import cases_of
from gridbench.sync.present.limiting import Limits, none_known
from gridbench.sync.present.notes import headline, notices
from gridbench.sync.present.rows import NOT_COUNTED, cases_table
from gridbench.sync.record import Round
from gridbench.tables import new_table

NO_COUNT = f"{NOT_COUNTED} No round of this case counts: its figures are of all rounds."
_LEFT = {"parameter", "start", "rate", "limited by"}


def print_table(console: Console, rounds: Sequence[Round], *, limits: Limits = none_known) -> None:
    """One row for each number of workers and parameter, and the outcome in sentences."""
    cases = cases_of(rounds)
    if cases:
        made = cases_table(cases, limits)
        table = new_table()
        for name in made.head:
            justify = "left" if name in _LEFT else "right"
            table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
        for style, first, cells in made.lines():
            table.add_row(*map(_text, [first, *cells]), style="dim" if style else "")
        console.print(table)
        if not all(case.counts for case in cases):
            _say(console, NO_COUNT)
    for line in [*headline(cases, limits), *notices(cases)]:
        _say(console, line)


def _text(cell: Cell) -> Text:
    text = Text(cell.text, style="red" if cell.style == "bad" else "")
    return text.append(f"\n{cell.note}", style="dim") if cell.note else text


def _say(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, markup=False, highlight=False)
