"""The rows of an area as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from gridbench.bench.figures import Measured, Row, Target


def print_area(console: Console, title: str, rows: Sequence[Row]) -> None:
    """One table, and under it why values are missing."""
    table = Table(title=title, title_justify="left", show_lines=False)
    table.add_column("what")
    table.add_column("gridrpc: median (spread)", justify="right")
    table.add_column("peer: median (spread)", justify="right")
    table.add_column("limit", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("to reach", justify="right")
    table.add_column("reached", justify="center")
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    for problem in dict.fromkeys(problem for row in rows for problem in row.problems):
        console.print(f"not measured: {problem}", markup=False, highlight=False)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        _with_spread(row.ours, row),
        "-" if row.peer is None else _with_spread(row.peer, row),
        "-" if row.limit is None else _amount(row.limit.median, row),
        _ratio(row),
        "-" if row.target is None else _target(row.target, row),
        {True: "[green]yes[/]", False: "[red]no[/]", None: "-"}[row.reached],
    )


def _with_spread(measured: Measured, row: Row) -> str:
    values = measured.values
    if not values:
        return "not measured"
    median = _amount(measured.median, row)
    if len(values) == 1:
        return f"{median} (1 run)"
    return f"{median} ({min(values):,.{row.digits}f}-{max(values):,.{row.digits}f})"


def _amount(value: float, row: Row) -> str:
    if math.isnan(value):
        return "not measured"
    space = "" if row.unit.startswith("/") else " "
    return f"{value:,.{row.digits}f}{space}{row.unit}"


def _ratio(row: Row) -> str:
    ratios = ((row.ratio_to_peer, "peer"), (row.ratio_to_limit, "limit"))
    known = [f"{ratio:.3g} x {name}" for ratio, name in ratios if not math.isnan(ratio)]
    return "\n".join(known) or "-"


def _target(target: Target, row: Row) -> str:
    sign = ">=" if target.at_least else "<="
    if target.of_peer:
        return f"{sign} {target.bound:g} x peer"
    if target.of_limit:
        return f"{sign} {target.bound:.3g} x limit"
    return f"{sign} {target.bound:g} {row.unit}"
