"""Runs in the terminal: which engine was ahead, and a table of their figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from gridbench.formats import NOTHING, counted, duration, percent, plain, spread
from gridbench.provisional import busy_in, in_order, provisional
from gridbench.statistics.claims import ALIKE, ENOUGH, FEWEST, apart, decided
from gridbench.statistics.interval import ratio_bounds
from gridbench.terminal import new_table

if TYPE_CHECKING:
    from gridbench.analysis.summary import PhaseStatistics, Summary

Totals = Mapping[str, Sequence[float]]
"""Total times of runs of the same work, seconds, by engine."""


def ahead(totals: Totals, disturbed: Totals | None = None) -> str:
    """One sentence on runs that count (`totals`), and on those that only other programs keep from
    counting (`disturbed`). Each engine has one or the other; of a single run that counts there is
    nothing to say.

    An engine has won if `gridbench.statistics.claims.decided` says so; of two runs, if the slower
    of them was faster than both of the next engine, and they are `apart`. Anything less is a
    provisional answer. Where an engine has disturbed runs alone, that compares all runs of all
    engines.
    """
    disturbed = disturbed or {}
    if not all(totals.get(engine) for engine in totals.keys() | disturbed.keys()):
        return _of_busy_machine(totals, disturbed)
    if len(totals) == 1:
        ((engine, own),) = totals.items()
        return f"{engine} ran {len(own)} times, in {spread(own)}." if len(own) > 1 else ""
    first, second, *others = sorted(totals, key=lambda name: statistics.median(totals[name]))
    claim = _claimed(first, totals[first], second, totals[second])
    if claim:
        return " ".join([claim, *_beside(totals, first, others)])
    few = min(map(len, totals.values())) < ENOUGH
    why = (
        f"a claim takes {ENOUGH} undisturbed rounds of each engine"
        if few
        else f"rounds scatter so much that {second} may be as fast"
    )
    return provisional(in_order(_medians(totals)), why)


def _of_busy_machine(totals: Totals, disturbed: Totals) -> str:
    """What all runs indicate if no run of an engine counts."""
    runs = {
        engine: [*totals.get(engine, ()), *disturbed.get(engine, ())]
        for engine in {**totals, **disturbed}
    }
    return provisional(
        in_order(_medians(runs)),
        busy_in(sum(map(len, disturbed.values())), sum(map(len, runs.values())), "round"),
    )


def _medians(totals: Totals) -> dict[str, float]:
    return {engine: statistics.median(own) for engine, own in totals.items()}


def _beside(totals: Totals, first: str, others: Sequence[str]) -> Iterator[str]:
    """What the engines after the second took, without a claim."""
    if others:
        least = statistics.median(totals[first])
        taken = [statistics.median(totals[name]) for name in others]
        told = [
            f"{name} {duration(one)} ({plain(one / least)} times)"
            for name, one in zip(others, taken, strict=True)
        ]
        yield f"Behind them: {', '.join(told)}."


def _claimed(first: str, fast: Sequence[float], second: str, slow: Sequence[float]) -> str:
    """The claim that can be made; empty if there is none."""
    if min(len(fast), len(slow)) < ENOUGH:
        return ""
    quick, behind = statistics.median(fast), statistics.median(slow)
    told = (
        f"{duration(quick)} against {duration(behind)} of {second}, {plain(behind / quick)} times"
    )
    decision = decided(fast, slow)
    won = decision == "first" or ((len(fast) < FEWEST or len(slow) < FEWEST) and apart(fast, slow))
    if won and max(fast) < min(slow):
        return (
            f"{first} won, {told} in the medians; its slowest run of {len(fast)} was faster than"
            f" the fastest of {len(slow)}."
        )
    bounds = ratio_bounds(slow, fast)
    if decision == "first" and bounds is not None:
        return (
            f"{first} won, {told} in the medians of {len(fast)} and {len(slow)} runs; the ratio is"
            f" above {plain(bounds[0])} with 95 % confidence."
        )
    if decision == "alike":
        return (
            f"No engine won: {first} and {second} are as fast as each other within"
            f" {percent(ALIKE - 1, 0)}, {duration(quick)} and {duration(behind)} in the medians of"
            f" {len(fast)} and {counted(len(slow), 'run')}."
        )
    return ""


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
