"""The results as tables in a terminal, made for 100 columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.formats import amount, either_side
from gridbench.micro.present.families import Family, families, side_by_side
from gridbench.micro.present.matrix import Row, RowKind, matrix
from gridbench.micro.present.notes import (
    behind,
    headline,
    incomplete,
    targets,
    undecided,
    unproven,
)
from gridbench.micro.present.wording import (
    compared_values,
    label,
    measured,
    reached,
    titled,
    to_reach,
)
from gridbench.micro.record import Claim, FigureEntry, Lead, MicroFigure, Results
from gridbench.terminal import new_table

_NAMES = 20
_CELL = 18
"""Columns that names and values take."""
_STYLES: dict[RowKind, str] = {
    "ours": "bold cyan",
    "peer": "",
    "limit": "dim",
    "named": "dim",
    "against peer": "bold cyan",
    "against limit": "bold cyan",
}
_CLAIMS: dict[Claim | None, str] = {
    "faster": "green",
    "slower": "red",
    "no difference": "",
    None: "",
}


def print_tables(console: Console, results: Results) -> None:
    """A table for each kind of workload, then who is ahead, then what of the targets is reached."""
    for family in families(results):
        if family.figures:
            _print_family(console, family)
    for sentence in filter(None, [incomplete(results), *headline(results)]):
        console.print(sentence)
    _list(console, "A peer is ahead", behind(results))
    _list(console, "Provisional: a difference that these runs do not prove", unproven(results))
    _list(console, "No difference", undecided(results))
    if known := targets(results):
        _print_targets(console, results, known)


def _print_family(console: Console, family: Family) -> None:
    most = max(1, (console.width - _NAMES) // (_CELL + 2))
    for figures in side_by_side(family.figures, most):
        rows, notes = matrix(figures, _value)
        # Rich makes titles as wide as the table, and would break long ones.
        console.print(Text(family.title, style="bold"))
        table = new_table()
        table.add_column("", width=_NAMES, overflow="fold")
        for figure in figures:
            table.add_column(titled(figure.title), justify="right", overflow="fold")
        for row, following in zip_longest(rows, rows[1:]):
            _add(table, row)
            if following and following.kind == "named":
                table.add_section()
        console.print(table)
        for line in notes.lines():
            console.print(line)
        console.print()


def _add(table: Table, row: Row) -> None:
    claims = row.claims or (None,) * len(row.cells)
    cells = [
        Text(cell, style=_CLAIMS[claim]) for cell, claim in zip(row.cells, claims, strict=True)
    ]
    name = f"limit: {label(row.name)}" if row.kind == "limit" else row.name
    table.add_row(Text(name), *cells, style=_STYLES[row.kind])


def _value(figure: MicroFigure, entry: FigureEntry) -> str:
    median = entry.median or 0.0
    return f"{amount(median, figure.unit)} {either_side(median, entry.low, entry.high)}".rstrip()


def _print_targets(console: Console, results: Results, known: Sequence[Lead]) -> None:
    console.print()
    console.print(Text("Targets", style="bold"))
    table = new_table()
    table.add_column("what")
    table.add_column("target")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("reached", justify="center")
    for lead in known:
        told = "\n".join([measured(results, lead), *compared_values(results, lead)])
        style = "green" if lead.reached else "red"
        who = "\n".join(filter(None, [lead.what, lead.engine, lead.why]))
        cells = (who, to_reach(results, lead), told)
        table.add_row(*map(Text, cells), Text(reached(lead), style=style))
    console.print(table)


def _list(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print()
        console.print(Text(title, style="bold"))
        for line in lines:
            console.print(f"- {line}")
