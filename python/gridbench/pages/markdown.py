"""Documents and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from gridbench.pages.document import (
    Bullets,
    Definitions,
    Document,
    Paragraph,
    Section,
    StaticChart,
    TableBlock,
)
from gridbench.pages.table import Cell, Table

_SIGNS = frozenset("\\`*_[]<>|&#~")


def markdown(document: Document) -> str:
    """A document: its sentences, caveats and tables."""
    return "\n".join(_lines(document)).rstrip() + "\n"


def markdown_page(document: Document) -> str:
    """The same as a page of its own, with the heading."""
    return f"# {escaped(document.heading)}\n\n{markdown(document)}"


def _lines(document: Document) -> Iterator[str]:
    for sentence in document.sentences:
        yield from (escaped(sentence), "")
    yield from (f"- {escaped(line)}" for line in document.notices)
    last: Section | None = None
    for section, block in document.blocks("markdown"):
        if isinstance(block, TableBlock) and not block.table.rows:
            continue
        if section is not None and section is not last:
            yield from ("", f"## {escaped(section.title)}")
        last = section
        yield ""
        match block:
            case Paragraph():
                yield escaped(block.text)
            case Bullets():
                yield from ([f"{escaped(block.title)}:", ""] if block.title else [])
                yield from (f"- {escaped(line)}" for line in block.lines)
            case TableBlock():
                yield from ([f"{escaped(block.title)}:", ""] if block.title else [])
                yield from table_lines(block.table)
            case StaticChart():
                yield f"![{escaped(block.caption)}]({block.file})"
            case Definitions():
                yield from (f"- {escaped(term)}: {escaped(text)}" for term, text in block.terms)
            case _:
                raise TypeError(f"Markdown has no {type(block).__name__}")


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in " ".join(text.split()))


def table_lines(made: Table) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(map(escaped, made.head))} |"
    sides = ("---" if not n or name in made.words else "---:" for n, name in enumerate(made.head))
    yield f"|{'|'.join(sides)}|"
    for _, name, cells in made.lines():
        yield f"| {' | '.join(map(_cell, [name, *cells]))} |"


def _cell(cell: Cell) -> str:
    lines = "<br>".join(escaped(line) for line in cell.text.split("\n"))
    return f"{lines} ({escaped(cell.note)})" if cell.note else lines
