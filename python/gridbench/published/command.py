"""`gridbench published`: the published figures beside recomputed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.printing import print_json
from gridbench.published import (
    predicted as checks,
)
from gridbench.published import (
    predicted as predictions,
)
from gridbench.published import (
    recomputed as output_data,
)
from gridbench.published import (
    recomputed as shared_data,
)
from gridbench.published import (
    recomputed as start_up,
)
from gridbench.published import (
    recomputed as task_data,
)
from gridbench.published import (
    recomputed as text,
)
from gridbench.published import (
    recomputed as totals,
)
from gridbench.published.figures import PredictedTable, RecomputedTable
from gridbench.published.present import (
    VERDICTS,
    Cells,
    figure_cells,
    markdown,
    notes,
    parameter_cells,
    prediction_cells,
    summary,
)
from gridbench.terminal import new_console, new_table

TABLES: dict[str, Callable[[], RecomputedTable | PredictedTable]] = {
    "5.5.1-1": shared_data.table_5_5_1_1,
    "5.5.2-1": task_data.table_5_5_2_1,
    "5.5.3-1": start_up.table_5_5_3_1,
    "5.5.4-1": task_data.table_5_5_4_1,
    "5.5.4-2": task_data.table_5_5_4_2,
    "5.5.4-3": task_data.table_5_5_4_3,
    "5.5.4-4": task_data.table_5_5_4_4,
    "5.5.5-1": output_data.table_5_5_5_1,
    "5.5.5-2": output_data.table_5_5_5_2,
    "5.5.6-1": totals.table_5_5_6_1,
    "5.5.6-2": totals.table_5_5_6_2,
    "5.5.6-3": totals.table_5_5_6_3,
    "5.5.6-4": totals.table_5_5_6_4,
    "text": text.figures_in_text,
    "model-symphony": predictions.symphony_totals,
    "model-symphony-0kb": checks.symphony_without_data,
    "model-symphony-more": checks.symphony_checks,
    "model-ninfg": predictions.ninfg_totals,
    "model-ninfg-0kb": checks.ninfg_without_data,
    "model-ninfg-more": checks.ninfg_checks,
}


def chosen(names: Sequence[str]) -> list[RecomputedTable | PredictedTable]:
    """The tables of these names, worked out; a name also stands for all that continue it, so that
    `5.5.4` are four. Without names, all.

    Raises InputError for a name that is none.
    """
    for name in names:
        if not any(_meant(table, name) for table in TABLES):
            raise InputError(
                f"there is no table `{name}`",
                remedy="the tables are " + ", ".join(TABLES) + "; 5.5.4 or model stand for several",
            )
    return [
        make()
        for table, make in TABLES.items()
        if not names or any(_meant(table, name) for name in names)
    ]


def _meant(table: str, name: str) -> bool:
    return table == name or table.startswith((f"{name}-", f"{name}."))


_STYLES = {
    VERDICTS["agrees"]: "green",
    VERDICTS["agrees within the inputs"]: "green",
    VERDICTS["exception"]: "yellow",
    VERDICTS["differs"]: "red",
}


def print_table(console: Console, table: RecomputedTable | PredictedTable) -> None:
    """One table, with how it came about above and notes below."""
    console.print(Text(f"{table.name}  {table.title}", style="bold"))
    console.print(Text(table.how))
    if isinstance(table, PredictedTable):
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


def _differs(table: RecomputedTable | PredictedTable) -> bool:
    return isinstance(table, RecomputedTable) and any(
        figure.verdict == "differs" for figure in table.figures
    )
