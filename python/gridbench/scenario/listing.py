"""The cases of scenarios with what each is expected to need, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from gridbench.formats import about, size
from gridbench.scenario.plan import Item, Judge, Limits


def print_listing(
    console: Console, scenario: int, items: Sequence[Item], judge: Judge, limits: Limits
) -> None:
    """One row per case and engine, in the order of the grid, and sums of those that would run."""
    table = Table(title=f"Scenario {scenario}", title_justify="left")
    for name in ("case", "engine"):
        table.add_column(name, overflow="fold")
    for name in ("expected time", "memory", "data to move"):
        table.add_column(name, justify="right")
    table.add_column("", overflow="fold")
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
            f"skipped: {why}" if why else "",
        )
    console.print(table)
    skipped = f", {left_out} of them skipped" if left_out else ""
    console.print(
        f"scenario {scenario}: {len(items)} cases{skipped}; about {about(seconds)},"
        f" {size(moved)} to move",
        soft_wrap=True,
    )
