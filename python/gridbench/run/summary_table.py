"""The numbers of one or several runs as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console

from gridbench.analysis.summary import Distribution, Summary
from gridbench.formats import duration, percent
from gridbench.tables import new_table


def print_summaries(console: Console, summaries: Sequence[tuple[str, Summary]]) -> None:
    """One table, a column for each engine."""
    table = new_table("Summary")
    table.add_column("")
    for name, _ in summaries:
        table.add_column(name, justify="right", overflow="fold")
    clocks = any(summary.clock_error > 0 for _, summary in summaries)
    rows = [_rows(summary, clocks=clocks) for _, summary in summaries]
    for line in zip(*rows, strict=True):
        table.add_row(line[0][0], *[cell for _, cell in line])
    console.print(table)


def _rows(summary: Summary, *, clocks: bool) -> list[tuple[str, str]]:
    return [
        ("tasks", f"{summary.tasks:,}"),
        ("ok / failed / missing", f"{summary.ok:,} / {summary.failed:,} / {summary.missing:,}"),
        ("workers seen / nodes", f"{summary.workers_seen:,} / {summary.nodes:,}"),
        ("total time", duration(summary.total)),
        ("ideal time", duration(summary.ideal)),
        ("efficiency", percent(summary.efficiency)),
        ("tasks per second", "-" if math.isnan(x := summary.tasks_per_second) else f"{x:,.1f}"),
        ("first task computing after", duration(summary.first_calc_in)),
        ("last worker computing after", duration(summary.last_worker_calc_in)),
        ("most tasks computing at once", f"{summary.most_running:,}"),
        *([("clocks known within", duration(summary.clock_error))] if clocks else []),
        *_parts("first dispatch", summary.startup),
        *_parts("later dispatch", summary.dispatch),
        *_parts("return", summary.giving_back),
        *_parts("overhead per task", summary.overhead),
    ]


def _parts(name: str, part: Distribution) -> list[tuple[str, str]]:
    values = " / ".join(duration(value) for value in (part.p50, part.p90, part.p99))
    return [(f"{name}, p50/p90/p99", values)]
