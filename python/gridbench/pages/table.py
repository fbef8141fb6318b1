"""A table as every page shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LINE = 36
"""Characters of a cell that stay on one line."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with more than a text."""

    text: str
    note: str = ""
    """Smaller, below the text."""
    style: str = ""
    """A class of the style sheet."""
    link: str = ""
    """Where the text leads to: a URL."""

    @property
    def classes(self) -> str:
        """Its own, and whether it is too long for one line."""
        return " ".join(filter(None, [self.style, "long" if len(self.text) > _LINE else ""]))


@dataclass(frozen=True, slots=True)
class Table:
    """Head and rows; the first cell of each row names it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    styles: Sequence[str] = ()
    """A class for each row; none for all if empty."""
    style: str = ""
    """A class of the table."""

    def lines(self) -> Iterator[tuple[str, Cell, list[Cell]]]:
        """For each row its class, the cell that names it, and the others."""
        styles = self.styles or [""] * len(self.rows)
        for style, row in zip(styles, self.rows, strict=True):
            name, *cells = (cell if isinstance(cell, Cell) else Cell(cell) for cell in row)
            yield style, name, cells


def facts(pairs: Sequence[tuple[str, str]]) -> Table:
    """Names with their values, without a head."""
    return Table(["", ""], pairs, style="facts")
