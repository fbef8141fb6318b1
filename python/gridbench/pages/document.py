"""What a benchmark says about its results: one document, rendered as HTML, Markdown and in a
terminal.

A document opens with the answer. Sentences, caveats and tables follow in sections of blocks; each
block names the media that show it. Pages explain and draw; Markdown and the terminal have the
sentences and the tables.

    Document(
        kind="gridbench linpack",
        title="gridbench linpack: remote solving",
        heading="Remote solving on 4 servers",
        sentences=["lab is fastest up to n = 2,000.", "Beyond it the network no longer matters."],
        summary=[curve.chart(), TableBlock("All cases", cases_table(found), media=EVERYWHERE)],
        sections=[Section("method", "How to read this", [Definitions([("rate", "Of the ...")])])],
        header=header,
    )
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gridbench.atomic_write import write_file
from gridbench.formats import counted, size
from gridbench.jsonl_store import Header
from gridbench.pages.chart import Chart
from gridbench.pages.table import Cell, Table, facts

Medium = Literal["page", "markdown", "terminal"]
PAGE: frozenset[Medium] = frozenset({"page"})
WRITTEN: frozenset[Medium] = frozenset({"page", "markdown"})
EVERYWHERE: frozenset[Medium] = frozenset({"page", "markdown", "terminal"})


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph that explains."""

    text: str
    media: frozenset[Medium] = PAGE


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences, one below the other."""

    lines: Sequence[str]
    title: str = ""
    media: frozenset[Medium] = PAGE


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table with its title. Nothing is shown of one without rows but `otherwise`."""

    title: str
    table: Table
    about: str = ""
    """On the page, above it."""
    folded: bool = False
    """On the page, behind its title."""
    otherwise: str = ""
    """Instead of a table without rows, on the page."""
    notes_from: int = 0
    """Characters of a line that a terminal needs to show the notes of cells."""
    media: frozenset[Medium] = WRITTEN


@dataclass(frozen=True, slots=True)
class ChartChoice:
    """Charts; the reader chooses one. Choices with the same label change together."""

    label: str
    charts: Sequence[tuple[str, Chart]]
    """With the names to choose by."""
    chosen: int = 0
    media: frozenset[Medium] = PAGE


@dataclass(frozen=True, slots=True)
class StaticChart:
    """A chart as SVG, for pages without a script, for paper and for Markdown."""

    svg: str
    caption: str
    file: str = ""
    """Its file beside the Markdown; empty: pages only."""
    media: frozenset[Medium] = PAGE


@dataclass(frozen=True, slots=True)
class Definitions:
    """Terms with what they mean."""

    terms: Sequence[tuple[str, str]]
    media: frozenset[Medium] = PAGE


def definitions(text: str) -> Definitions:
    """Lines of `term = meaning` that begin at the left margin; further lines of a meaning are
    indented."""
    items = re.split(r"\n(?=\S)", textwrap.dedent(text).strip())
    pairs = (" ".join(item.split()).partition(" = ") for item in items)
    return Definitions([(term, meaning) for term, _, meaning in pairs])


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Blocks beside each other where there is room."""

    blocks: Sequence[Block]
    media: frozenset[Medium] = PAGE


Block = (
    Paragraph | Bullets | TableBlock | Chart | StaticChart | ChartChoice | Definitions | SideBySide
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the document with a heading."""

    id: str
    """The place that links lead to."""
    title: str
    blocks: Sequence[Block]
    short: str = ""
    """The title among the links of a page."""
    folded: bool = False
    """On the page, behind its title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Results as a reader wants them: the answer first."""

    kind: str
    """The command."""
    title: str
    """Of the window."""
    heading: str
    subheading: str = ""
    sentences: Sequence[str]
    """The answer, and further results."""
    notices: Sequence[str] = ()
    """Limits of the answer."""
    summary: Sequence[Block] = ()
    """On the first screen; its first chart, or choice of charts, stands above the sentences."""
    sections: Sequence[Section] = ()
    header: Header | None = None
    """Whose machine, options and versions end the last section."""
    styles: Sequence[str] = ()

    def blocks(self, medium: Medium) -> Iterator[tuple[Section | None, Block]]:
        """All blocks that a medium shows, each with its section; None: the summary."""
        parts = [(None, self.summary), *((one, one.blocks) for one in self.sections)]
        for section, blocks in parts:
            for block in blocks:
                if medium in media_of(block):
                    yield section, block

    @property
    def charts(self) -> Iterator[Chart]:
        """All charts."""
        for _, block in self.blocks("page"):
            yield from _charts(block)


def media_of(block: Block) -> frozenset[Medium]:
    """The media that show a block."""
    return PAGE if isinstance(block, Chart) else block.media


def _charts(block: Block) -> Iterator[Chart]:
    match block:
        case Chart():
            yield block
        case ChartChoice():
            yield from (chart for _, chart in block.charts)
        case SideBySide():
            for one in block.blocks:
                yield from _charts(one)
        case _:
            pass


def write_page(document: Document, out: Path) -> None:
    """Write a document as an HTML page, completely or not at all. InputError if `out` cannot be
    written."""
    from gridbench.pages.render import page

    write_file(out, page(document))


def subheading(header: Header, *parts: str) -> str:
    """What was measured, on which processors and when, in a line. Empty parts are left out."""
    machine = header.machine
    cores = machine.get("cores")
    known = [
        *parts,
        str(machine.get("processor") or ""),
        counted(cores, "processor") if isinstance(cores, int) else "",
        header.started[: len("2031-05-04")],
    ]
    return " · ".join(filter(None, known))


def circumstances(header: Header) -> SideBySide:
    """Machine, options and versions of results."""
    options = header.options | {"seed of the order": header.seed}
    return SideBySide(
        [
            TableBlock("Machine", _facts(header.machine)),
            TableBlock("Options", _facts(options)),
            TableBlock("Versions", _facts(header.versions)),
        ]
    )


def _facts(known: Mapping[str, Any]) -> Table:
    return facts([(name.replace("_", " "), _shown(name, value)) for name, value in known.items()])


def _shown(name: str, value: Any) -> str:
    if name == "memory" and isinstance(value, int):
        return size(value)
    return value if isinstance(value, str) else json.dumps(value, default=os.fspath)


# ---- Markdown

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
