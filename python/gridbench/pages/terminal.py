"""Documents and tables in a terminal: tables as wide as it is, then the sentences."""

from __future__ import annotations

import rich.table
from rich.console import Console
from rich.text import Text as RichText

from gridbench.pages.document import Bullets, Definitions, Document, Paragraph, TableBlock
from gridbench.pages.table import Cell, Table
from gridbench.terminal import new_table, printable, say

_ROW_STYLES = {"": "", "advised": "bold"}
"""Of rows by their class; those of other classes are dimmed."""

_WORD = 10
"""Characters of a line that a column of words has at least."""


def print_document(console: Console, document: Document) -> None:
    """The tables of a document, and below them its sentences and caveats, where the eye rests when
    the command ends."""
    for _, block in document.blocks("terminal"):
        match block:
            case TableBlock():
                if block.table.rows:
                    notes = console.width >= block.notes_from
                    console.print(_table(block.table, console.width, block.title, notes=notes))
            case Paragraph():
                say(console, block.text)
            case Bullets():
                if block.title:
                    say(console, f"{block.title}:")
                for line in block.lines:
                    say(console, f"- {line}" if block.title else line)
            case Definitions():
                for term, text in block.terms:
                    say(console, f"{term}: {text}")
            case _:
                raise TypeError(f"a terminal has no {type(block).__name__}")
    for line in (*document.sentences, *document.notices):
        say(console, line)


def _table(made: Table, width: int, title: str, *, notes: bool) -> rich.table.Table:
    """The columns that there is room for. Numbers stay whole, with their units; if even that is
    too much, cells are folded and lose nothing."""
    stored = [n for n, name in enumerate(made.head) if width >= made.from_width.get(name, 0)]
    rows = [
        (style, [_text(cell, note=notes) for cell in (first, *cells)])
        for style, first, cells in made.lines()
    ]
    heads = [printable(name) for name in made.head]
    longest = {
        n: max((len(line) for _, texts in rows for line in texts[n].plain.splitlines()), default=0)
        for n in stored
    }
    words = [n for n in stored if n == 0 or made.head[n] in made.words]
    least = {n: max(map(len, [*heads[n].split(), "x" * longest[n]])) for n in stored}
    least |= {n: min(_WORD, least[n]) for n in words}
    room = width - 3 * len(stored)
    tight = sum(max(longest[n], len(heads[n])) for n in stored) > room >= sum(least.values())
    table = new_table(title)
    for n in stored:
        if n in words:
            table.add_column(heads[n], overflow="fold", min_width=least[n] if tight else None)
        else:
            head = heads[n].replace(" ", "\n") if tight else heads[n]
            table.add_column(head, overflow="fold", justify="right", no_wrap=tight)
    for style, texts in rows:
        table.add_row(*(texts[number] for number in stored), style=_ROW_STYLES.get(style, "dim"))
    return table


def _text(cell: Cell, *, note: bool) -> RichText:
    text = RichText(printable(cell.text), style="red" if cell.style == "bad" else "")
    if not note or not cell.note:
        return text
    return text.append("\n" + printable(cell.note).replace("; ", "\n"), style="dim")
