"""The cases of scenarios with what each is expected to need, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from gridbench.formats import about, size
from gridbench.scenario.needs import Need
from gridbench.scenario.plan import Judge, ScenarioItem, TimeLimits
from gridbench.terminal import new_table, say


def print_listing(
    console: Console, scenario: int, items: Sequence[ScenarioItem], judge: Judge, limits: TimeLimits
) -> None:
    """One row per case and engine, in the order of the grid, with the time that is expected and the
    data to move, and sums of those that would run."""
    table = new_table(f"Scenario {scenario}")
    table.add_column("case", overflow="fold")
    table.add_column("engine", no_wrap=True)
    for name in ("time", "memory", "data"):
        table.add_column(name, justify="right", no_wrap=True)
    needs = _needs(items, judge, limits)
    for item, need, why in needs:
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
    run = [need for _, need, why in needs if not why]
    seconds, moved = sum(need.seconds for need in run), sum(need.bytes_moved for need in run)
    skipped = f", {len(items) - len(run)} of them skipped" if len(run) < len(items) else ""
    say(
        console,
        f"scenario {scenario}: {len(items)} cases{skipped}; about {about(seconds)},"
        f" {size(moved)} to move",
    )


def listing_record(
    scenario: int, items: Sequence[ScenarioItem], judge: Judge, limits: TimeLimits
) -> dict[str, object]:
    """The same for JSON: seconds and bytes."""
    cases = [
        {
            "case": item.case.told(),
            "engine": item.engine,
            "seconds": need.seconds,
            "memory": need.memory,
            "bytes_moved": need.bytes_moved,
            "skipped": why,
        }
        for item, need, why in _needs(items, judge, limits)
    ]
    return {"scenario": scenario, "cases": cases}


def _needs(
    items: Sequence[ScenarioItem], judge: Judge, limits: TimeLimits
) -> list[tuple[ScenarioItem, Need, str]]:
    """Each with what it needs, and why it would be skipped, if it would."""
    found = []
    seconds = 0.0
    for item in items:
        need = judge.need(item)
        left = None if limits.whole is None else limits.whole - seconds
        why = judge.why_not(item, need, left)
        if not why:
            seconds += need.seconds
        found.append((item, need, why))
    return found
