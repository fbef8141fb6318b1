"""The cases of scenarios with what each is expected to need, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from gridbench.formats import about, size
from gridbench.scenario.plan import Item, Judge, Limits
from gridbench.tables import new_table


def print_listing(
    console: Console, scenario: int, items: Sequence[Item], judge: Judge, limits: Limits
) -> None:
    """One row per case and engine, in the order of the grid, with the time that is expected and the
    data to move, and sums of those that would run."""
    table = new_table(f"Scenario {scenario}")
    table.add_column("case", overflow="fold")
    table.add_column("engine", no_wrap=True)
    for name in ("time", "memory", "data"):
        table.add_column(name, justify="right", no_wrap=True)
    seconds, moved, left_out = 0.0, 0, 0
    for item in items:
        need = judge.need(item)
        left = None if limits.whole is None else limits.whole - seconds
        why = judge.why_not(item, need, left)
        if why:
            left_out += 1
        else:
            seconds += need.seconds
            moved += need.bytes_moved
        table.add_row(
            item.case.told(),
            item.engine,
            about(need.seconds),
            size(need.memory),
            size(need.bytes_moved),
        )
        if why:
            table.add_row(f"  skipped: {why}")
    console.print(table)
    skipped = f", {left_out} of them skipped" if left_out else ""
    console.print(
        f"scenario {scenario}: {len(items)} cases{skipped}; about {about(seconds)},"
        f" {size(moved)} to move",
        soft_wrap=True,
    )
