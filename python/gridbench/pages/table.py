"""Tables: a list of columns makes one, and terminal, Markdown and HTML render it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gridbench.formats import NOTHING, amount, interval
from gridbench.statistics.interval import Interval

T = TypeVar("T")

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
    words: frozenset[str] = frozenset()
    """Columns of words, which terminals wrap and align to the left, by their heads."""
    from_width: Mapping[str, int] = field(default_factory=dict)
    """Characters of a line that a terminal needs to show a column, by its head."""

    def lines(self) -> Iterator[tuple[str, Cell, list[Cell]]]:
        """For each row its class, the cell that names it, and the others."""
        styles = self.styles or [""] * len(self.rows)
        for style, row in zip(styles, self.rows, strict=True):
            name, *cells = (cell if isinstance(cell, Cell) else Cell(cell) for cell in row)
            yield style, name, cells


Value = str | Cell | Interval | float | None


@dataclass(frozen=True)
class Column(Generic[T]):
    """A quantity of all rows of a table."""

    name: str
    """The head."""
    value: Callable[[T], Value]
    """Of a row. An interval is shown as its value, with the range as a note."""
    unit: str = ""
    """Of numbers; of whole numbers without one, thousands are separated."""
    condition: bool = True
    """Whether the table has the column."""
    words: bool = False
    """Terminals wrap its cells and align them to the left."""
    from_width: int = 0
    """Characters of a line that a terminal needs to show it."""


def table_of(
    columns: Iterable[Column[T]],
    rows: Iterable[T],
    *,
    style: str = "",
    row_style: Callable[[T], str] | None = None,
) -> Table:
    """The table of these rows, with the columns whose condition holds."""
    shown, items = [one for one in columns if one.condition], list(rows)
    return Table(
        [one.name for one in shown],
        [[cell_of(one.value(item), one.unit) for one in shown] for item in items],
        [row_style(item) for item in items] if row_style else (),
        style,
        frozenset(one.name for one in shown if one.words),
        {one.name: one.from_width for one in shown if one.from_width},
    )


def cell_of(value: Value, unit: str = "") -> Cell:
    """The cell of a value: `1.20 ms`, with the note `1.10–1.30 ms` if it is an interval; a dash if
    it is not known."""
    match value:
        case Cell():
            return value
        case str():
            return Cell(value)
        case Interval():
            return Cell(amount(value.value, unit), range_of(value, unit))
        case None:
            return Cell(NOTHING)
        case int() if not unit:
            return Cell(f"{value:,}")
        case _:
            return Cell(amount(value, unit) if math.isfinite(value) else NOTHING)


def range_of(value: Interval, unit: str, *, alone: bool = True) -> str:
    """`251–290 µs`, in the unit that the value is shown in; without it unless the range stands
    `alone`. Empty if there is no range."""
    if value.low >= value.high or not math.isfinite(value.low + value.high):
        return ""
    return interval(value.low, value.high, unit, around=value.value, alone=alone)


def facts(pairs: Sequence[tuple[str, str]]) -> Table:
    """Names with their values, without a head."""
    return Table(["", ""], pairs, style="facts")
