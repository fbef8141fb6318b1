"""The tables in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.published.cells import (
    VERDICTS,
    Cells,
    figure_cells,
    notes,
    parameter_cells,
    prediction_cells,
)
from gridbench.published.figures import Predicted, Reproduced
from gridbench.terminal import new_table

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
