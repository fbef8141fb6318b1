"""The rows of an area as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from benchmarks.figures import Row
from gridbench.formats import as_given, fixed, plain, unit_shown
from gridbench.pages.document import escaped, table_lines
from gridbench.pages.table import Column, table_of
from gridbench.pages.table import Table as PageTable
from gridbench.statistics.series import Series
from gridbench.terminal import new_table

_WIDE = 120
"""Characters that a table of all columns takes."""
_BREAK = "\n"
"""Between two ratios in a cell."""
_STYLES = {"yes": "green", "no": "red"}


def print_area(console: Console, title: str, rows: Sequence[Row]) -> None:
    """Print the rows as a table, or as paragraphs where that is too wide, and why values are
    missing."""
    made = table_of(_columns(rows), rows)
    if console.width < _WIDE:
        _print_paragraphs(console, title, made)
    else:
        console.print(_table(title, made))
    for problem in problems_of(rows):
        console.print(f"not measured: {problem}")


def _table(title: str, made: PageTable) -> Table:
    table = new_table(title)
    for name in made.head:
        justify: Literal["left", "center", "right"] = "right"
        if name == "what":
            justify = "left"
        elif name == "reached":
            justify = "center"
        table.add_column(name, justify=justify)
    for _, what, cells in made.lines():
        texts = [cell.text for cell in (what, *cells)]
        table.add_row(*(Text(text, style=_STYLES.get(text, "")) for text in texts))
    return table


def _print_paragraphs(console: Console, title: str, made: PageTable) -> None:
    console.print(Text(title, style="bold"))
    for _, what, cells in made.lines():
        console.print(Text(f"- {what.text}"))
        names = [name.partition(":")[0].removesuffix(" (spread)") for name in made.head[1:]]
        reported = [
            f"{name} {cell.text.replace(_BREAK, ' and ')}"
            for name, cell in zip(names, cells, strict=True)
            if cell.text != "-"
        ]
        console.print(Padding(Text("; ".join(reported)), (0, 0, 0, 2)))
    console.print()


def markdown_of(title: str, rows: Sequence[Row]) -> str:
    """The same as Markdown, with its own heading."""
    lines = [f"## {title}", "", *table_lines(table_of(_columns(rows), rows))]
    lines += ["", *(f"- not measured: {escaped(problem)}" for problem in problems_of(rows)), ""]
    return "\n".join(lines).rstrip() + "\n"


def problems_of(rows: Sequence[Row]) -> list[str]:
    """Why values are missing, each once."""
    return list(dict.fromkeys(problem for row in rows for problem in row.problems))


def _columns(rows: Sequence[Row]) -> list[Column[Row]]:
    """The first two columns, and those of the others that have a value."""
    first, second, *others = (
        Column[Row]("what", lambda row: row.what),
        Column[Row]("ours: median (spread)", lambda row: _with_spread(row.ours, row)),
        Column[Row]("peer: median (spread)", lambda row: _with_spread(row.peer, row)),
        Column[Row](
            "limit", lambda row: "-" if row.limit is None else _amount(row.limit.median, row)
        ),
        Column[Row]("ratio (spread)", _ratio),
        Column[Row]("target", _target),
        Column[Row]("reached", lambda row: {True: "yes", False: "no", None: "-"}[row.reached]),
    )
    return [first, second, *(one for one in others if any(one.value(row) != "-" for row in rows))]


def _with_spread(measured: Series | None, row: Row) -> str:
    if measured is None:
        return "-"
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


def _target(row: Row) -> str:
    target = row.target
    if target is None:
        return "-"
    sign = ">=" if target.at_least else "<="
    if target.of_peer:
        return f"{sign} {as_given(target.bound, '')}× peer"
    if target.of_limit:
        return f"{sign} {plain(target.bound)}× limit"
    return f"{sign} {as_given(target.bound, unit_shown(row.unit))}"
