"""The rows of an area as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from benchmarks.figures import Row, Target
from gridbench.formats import as_given, fixed, plain, unit_shown
from gridbench.pages.markdown import escaped, table_lines
from gridbench.pages.table import Table as PageTable
from gridbench.statistics.series import Series
from gridbench.terminal import new_table

_WIDE = 120
"""Characters that a table of all columns takes."""
_BREAK = "\n"
"""Between two ratios in a cell."""
_STYLES = {"yes": "green", "no": "red"}
_COLUMNS = (
    "what",
    "ours: median (spread)",
    "peer: median (spread)",
    "limit",
    "ratio (spread)",
    "target",
    "reached",
)


def print_area(console: Console, title: str, rows: Sequence[Row]) -> None:
    """One table, or a paragraph for each row where that is too wide; under it why values are
    missing."""
    columns, lines = _used(rows)
    if console.width < _WIDE:
        _print_paragraphs(console, title, columns, lines)
    else:
        console.print(_table(title, columns, lines))
    for problem in problems_of(rows):
        console.print(f"not measured: {problem}")


def _table(title: str, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    table = new_table(title)
    for name in columns:
        justify: Literal["left", "center", "right"] = "right"
        if name == "what":
            justify = "left"
        elif name == "reached":
            justify = "center"
        table.add_column(name, justify=justify)
    for line in lines:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in line))
    return table


def _print_paragraphs(
    console: Console, title: str, columns: Sequence[str], lines: Sequence[Sequence[str]]
) -> None:
    console.print(Text(title, style="bold"))
    for what, *cells in lines:
        console.print(Text(f"- {what}"))
        told = [
            f"{name.partition(':')[0].removesuffix(' (spread)')} {' and '.join(cell.split(_BREAK))}"
            for name, cell in zip(columns[1:], cells, strict=True)
            if cell != "-"
        ]
        console.print(Padding(Text("; ".join(told)), (0, 0, 0, 2)))
    console.print()


def markdown_of(title: str, rows: Sequence[Row]) -> str:
    """The same as Markdown, with its own heading."""
    columns, found = _used(rows)
    lines = [f"## {title}", "", *table_lines(PageTable(columns, found))]
    lines += ["", *(f"- not measured: {escaped(problem)}" for problem in problems_of(rows)), ""]
    return "\n".join(lines).rstrip() + "\n"


def _used(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Names of the columns in which there is anything, and their cells, row by row."""
    lines = [_cells(row) for row in rows]
    used = [n for n in range(len(_COLUMNS)) if n < 2 or any(line[n] != "-" for line in lines)]
    return [_COLUMNS[n] for n in used], [[line[n] for n in used] for line in lines]


def problems_of(rows: Sequence[Row]) -> list[str]:
    """Why values are missing, each once."""
    return list(dict.fromkeys(problem for row in rows for problem in row.problems))


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        _with_spread(row.ours, row),
        "-" if row.peer is None else _with_spread(row.peer, row),
        "-" if row.limit is None else _amount(row.limit.median, row),
        _ratio(row),
        "-" if row.target is None else _target(row.target, row),
        {True: "yes", False: "no", None: "-"}[row.reached],
    )


def _with_spread(measured: Series, row: Row) -> str:
    values = measured.values
    if not values:
        return "did not end" if measured.at_limit else "not measured"
    median = _amount(measured.median, row)
    if len(values) == 1:
        return f"{median} (1 run)"
    return f"{median} ({fixed(min(values), row.digits)}-{fixed(max(values), row.digits)})"


def _amount(value: float, row: Row) -> str:
    if math.isnan(value):
        return "not measured"
    space = "" if row.unit.startswith(("/", "x")) else " "
    return f"{fixed(value, row.digits)}{space}{unit_shown(row.unit)}"


def _ratio(row: Row) -> str:
    medians = {"peer": row.ratio_to_peer, "limit": row.ratio_to_limit}
    lines = []
    for name, median in medians.items():
        if not math.isnan(median):
            ratios = row.ratios.get(name, [])
            spread = f" ({plain(min(ratios))}-{plain(max(ratios))})" if len(ratios) > 1 else ""
            sure = "" if name != "peer" or row.claimed else ", not claimed"
            lines.append(f"{plain(median)}× {name}{spread}{sure}")
    return _BREAK.join(lines) or "-"


def _target(target: Target, row: Row) -> str:
    sign = ">=" if target.at_least else "<="
    if target.of_peer:
        return f"{sign} {as_given(target.bound, '')}× peer"
    if target.of_limit:
        return f"{sign} {plain(target.bound)}× limit"
    return f"{sign} {as_given(target.bound, unit_shown(row.unit))}"
