"""Text and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from gridbench.pages.table import Cell, Table

_SIGNS = frozenset("\\`*_[]<>|&#~")


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in " ".join(text.split()))


def table_lines(made: Table) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(map(escaped, made.head))} |"
    yield f"|---|{'---:|' * (len(made.head) - 1)}"
    for _, name, cells in made.lines():
        yield f"| {' | '.join(map(_cell, [name, *cells]))} |"


def _cell(cell: Cell) -> str:
    lines = "<br>".join(escaped(line) for line in cell.text.split("\n"))
    return f"{lines} ({escaped(cell.note)})" if cell.note else lines
