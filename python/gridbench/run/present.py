"""Runs in the terminal: which engine was ahead, and a table of their figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from gridbench.formats import NOTHING, counted, duration, percent, plain, spread
from gridbench.provisional import answer_record, busy_in, in_order, provisional
from gridbench.statistics.claims import ALIKE, ENOUGH, FEWEST, apart, decided
from gridbench.statistics.interval import index_of_median, ratio_bounds
from gridbench.terminal import new_table

if TYPE_CHECKING:
    from gridbench.analysis.summary import PhaseStatistics, Summary
    from gridbench.run.runner import EngineRun

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


def counting(records: Sequence[EngineRun], engine: str) -> list[float]:
    """Total times of the valid runs of an engine, seconds."""
    return [one.total for one in records if one.engine == engine and one.record["valid"]]


def disturbed_only(records: Sequence[EngineRun], engine: str) -> list[float]:
    """Total times of the runs of an engine that only other programs made invalid, seconds."""
    return [one.total for one in records if one.engine == engine and one.only_disturbed]


def answer_of(runs: Sequence[EngineRun]) -> str:
    """Who was ahead; empty for a single run that counts, or that did not end well."""
    engines = dict.fromkeys(one.engine for one in runs)
    totals = {engine: counting(runs, engine) for engine in engines}
    busy = {engine: disturbed_only(runs, engine) for engine in engines}
    neither = [engine for engine in engines if not totals[engine] and not busy[engine]]
    if not runs or (neither and len(totals) == 1):
        return ""
    if neither:
        return f"Nothing can be claimed: no run of {' or '.join(neither)} ended well."
    return ahead(totals, busy)


def median_run(runs: Sequence[EngineRun], engine: str) -> EngineRun:
    """The run of median time of an engine: of those that count or, if none does, of those that only
    other programs made invalid; the first one without either."""
    own = [one for one in runs if one.engine == engine]
    valid = [one for one in own if one.record["valid"]]
    valid = valid or [one for one in own if one.only_disturbed]
    return valid[index_of_median([one.total for one in valid])] if valid else own[0]


def name_of(run: EngineRun, runs: Sequence[EngineRun]) -> str:
    """The engine, with the round if there are several."""
    several = sum(one.engine == run.engine for one in runs) > 1
    return f"{run.engine}, round {run.round}" if several else run.engine


def document(folder: Path, runs: Sequence[EngineRun], answer: str) -> dict[str, object]:
    """What `--json` prints: who was ahead, and the run.json of each run by the name of its folder,
    the engine and the number of a further round."""
    names = [one.engine if one.round in (None, 1) else f"{one.engine}-{one.round}" for one in runs]
    records = {name: one.record for name, one in zip(names, runs, strict=True)}
    return {"results": folder, **answer_record(answer), "runs": records}


def print_summaries(
    console: Console, runs: Sequence[EngineRun], summaries: Mapping[Path, Summary]
) -> None:
    """One table, with a column for the median run of each engine."""
    engines = dict.fromkeys(one.engine for one in runs)
    shown = [median_run(runs, engine) for engine in engines]
    shown = [one for one in shown if one.folder in summaries]
    if not shown:
        return
    several = len(runs) > len(engines)
    table = new_table(
        "Summary of the rounds of median time" if several else "Summary",
        words=("",),
        numbers=(one.engine for one in shown),
    )
    clocks = any(summaries[one.folder].clock_error > 0 for one in shown)
    columns = [
        [
            *(_rounds_of(one.engine, runs) if several else []),
            *_rows(summaries[one.folder], clocks=clocks),
        ]
        for one in shown
    ]
    for line in zip(*columns, strict=True):
        table.add_row(line[0][0], *[cell for _, cell in line])
    console.print(table)


def _rounds_of(engine: str, runs: Sequence[EngineRun]) -> list[tuple[str, str]]:
    totals = counting(runs, engine)
    rounds = sum(one.engine == engine for one in runs)
    return [
        ("rounds that count", f"{len(totals)} of {rounds}"),
        ("their total times", spread(totals or disturbed_only(runs, engine))),
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
