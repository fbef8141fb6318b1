"""What pages show, in a terminal: as much of a table as there is room for, and sentences."""

from __future__ import annotations

from collections.abc import Mapping

import rich.table
from rich.text import Text

from gridbench.pages.table import Cell, Table
from gridbench.terminal import new_table, printable


def fitted(
    made: Table, width: int, *, wide: Mapping[str, int], words: Mapping[str, int], notes: bool
) -> rich.table.Table:
    """The table in a terminal of so many columns, with the notes of its cells if they are wanted.

    `wide`: how many columns a terminal has from which on a column of the table is shown; `words`:
    those that hold words and are folded, each with the least characters of a line.
    """
    kept = [n for n, name in enumerate(made.head) if width >= wide.get(name, 0)]
    table = new_table()
    for number in kept:
        name = made.head[number]
        if name in words:
            table.add_column(name, overflow="fold", min_width=words[name])
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
