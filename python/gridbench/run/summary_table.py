"""The numbers of one or several runs as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from gridbench.analysis.summary import PhaseStatistics, Summary
from gridbench.formats import NOTHING, duration, percent, plain, spread
from gridbench.terminal import new_table


@dataclass(frozen=True, slots=True)
class Shown:
    """An engine with the run that is shown of it, which is that of median time of its rounds."""

    engine: str
    summary: Summary
    totals: tuple[float, ...]
    """Total times of its rounds that count or, if none does, of disturbed ones; seconds."""
    counting: int
    """How many rounds count."""
    rounds: int
    """How many there were."""


def print_summaries(console: Console, shown: Sequence[Shown]) -> None:
    """One table, a column for each engine."""
    several = any(one.rounds > 1 for one in shown)
    table = new_table(
        "Summary of the rounds of median time" if several else "Summary",
        words=("",),
        numbers=(one.engine for one in shown),
    )
    clocks = any(one.summary.clock_error > 0 for one in shown)
    rows = [
        [*(_of_rounds(one) if several else []), *_rows(one.summary, clocks=clocks)] for one in shown
    ]
    for line in zip(*rows, strict=True):
        table.add_row(line[0][0], *[cell for _, cell in line])
    console.print(table)


def _of_rounds(shown: Shown) -> list[tuple[str, str]]:
    return [
        ("rounds that count", f"{shown.counting} of {shown.rounds}"),
        ("their total times", spread(shown.totals)),
    ]


def _rows(summary: Summary, *, clocks: bool) -> list[tuple[str, str]]:
    return [
        ("tasks", f"{summary.tasks:,}"),
        ("ok / failed / missing", f"{summary.ok:,} / {summary.failed:,} / {summary.missing:,}"),
        ("workers seen / nodes", f"{summary.workers_seen:,} / {summary.nodes:,}"),
        ("total time", duration(summary.total)),
        ("ideal time", duration(summary.ideal)),
        ("efficiency", percent(summary.efficiency) if summary.took_their_time else NOTHING),
        ("tasks per second", plain(summary.tasks_per_second)),
        ("first task computing after", duration(summary.first_calc_in)),
        ("last worker computing after", duration(summary.last_worker_calc_in)),
        ("most tasks computing at once", f"{summary.most_running:,}"),
        *([("clocks known within", duration(summary.clock_error))] if clocks else []),
        *_parts("first dispatch", summary.startup),
        *_parts("later dispatch", summary.dispatch),
        *_parts("return", summary.giving_back),
        *_parts("overhead per task", summary.overhead),
    ]


def _parts(name: str, part: PhaseStatistics) -> list[tuple[str, str]]:
    values = " / ".join(duration(value) for value in (part.p50, part.p90, part.p99))
    return [(f"{name}, p50/p90/p99", values)]
