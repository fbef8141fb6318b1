"""`gridbench published`: the published figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.atomic_write import write_file
from gridbench.printing import print_json
from gridbench.published.catalogue import chosen
from gridbench.published.cells import (
    VERDICTS,
    Cells,
    figure_cells,
    notes,
    parameter_cells,
    prediction_cells,
    summary,
)
from gridbench.published.figures import Predicted, Reproduced
from gridbench.published.markdown import markdown
from gridbench.terminal import new_console, new_table

_STYLES = {
    VERDICTS["agrees"]: "green",
    VERDICTS["agrees within the inputs"]: "green",
    VERDICTS["exception"]: "yellow",
    VERDICTS["differs"]: "red",
}


def print_table(console: Console, table: Reproduced | Predicted) -> None:
    """One table, with how it came about above and notes below."""
    console.print(Text(f"{table.name}  {table.title}", style="bold"))
    console.print(Text(table.how))
    if isinstance(table, Predicted):
        console.print(_rich(prediction_cells(table)))
        if table.parameters:
            console.print(_rich(parameter_cells(table)))
    else:
        console.print(_rich(figure_cells(table)))
    for note in notes(table):
        console.print(Text(note))
    console.print()


def _rich(cells: Cells) -> Table:
    table = new_table(words=cells.head[: cells.texts], numbers=cells.head[cells.texts :])
    for row in cells.rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return table


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRequest:
    """What the user asked for."""

    tables: Sequence[str] = ()
    """Names, or beginnings of names; none: all."""
    as_json: bool = False
    out: Path | None = None
    """A page to write in addition."""


def show_published(request: PublishedRequest) -> int:
    """Print the tables. Returns the exit status: 1 if a figure differs that should not."""
    tables = chosen(request.tables)
    if request.out:
        write_file(request.out, markdown(tables))
        if not request.as_json:
            click.echo(f"page: {request.out}")
    if request.as_json:
        print_json({"tables": [table.to_dict() for table in tables]})
    elif not request.out:
        console = new_console()
        for table in tables:
            print_table(console, table)
        if told := summary(tables):
            console.print(told)
    return 1 if any(map(_differs, tables)) else 0


def _differs(table: Reproduced | Predicted) -> bool:
    return isinstance(table, Reproduced) and any(
        figure.verdict == "differs" for figure in table.figures
    )
