"""Which engine was ahead, of runs of the same work."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gridbench.formats import counted, duration, percent, plain, spread
from gridbench.statistics.claims import (
    ALIKE,
    ENOUGH,
    FEWEST,
    apart,
    busy_in,
    decided,
    in_order,
    provisional,
)
from gridbench.statistics.interval import index_of_median, ratio_bounds

if TYPE_CHECKING:
    from gridbench.run.runner import EngineRun

Totals = Mapping[str, Sequence[float]]
"""Total times of runs of the same work, seconds, by engine."""


def outcome_sentence(totals: Totals, disturbed: Totals | None = None) -> str:
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
        reported = [
            f"{name} {duration(one)} ({plain(one / least)} times)"
            for name, one in zip(others, taken, strict=True)
        ]
        yield f"Behind them: {', '.join(reported)}."


def _claimed(first: str, fast: Sequence[float], second: str, slow: Sequence[float]) -> str:
    """The claim that can be made; empty if there is none."""
    if min(len(fast), len(slow)) < ENOUGH:
        return ""
    quick, behind = statistics.median(fast), statistics.median(slow)
    reported = (
        f"{duration(quick)} against {duration(behind)} of {second}, {plain(behind / quick)} times"
    )
    decision = decided(fast, slow)
    won = decision == "first" or ((len(fast) < FEWEST or len(slow) < FEWEST) and apart(fast, slow))
    if won and max(fast) < min(slow):
        return (
            f"{first} won, {reported} in the medians; its slowest run of {len(fast)} was faster"
            f" than the fastest of {len(slow)}."
        )
    bounds = ratio_bounds(slow, fast)
    if decision == "first" and bounds is not None:
        return (
            f"{first} won, {reported} in the medians of {len(fast)} and {len(slow)} runs; the ratio"
            f" is above {plain(bounds[0])} with 95 % confidence."
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


def median_run(runs: Sequence[EngineRun], engine: str) -> EngineRun:
    """The run of median time of an engine: of those that count or, if none does, of those that only
    other programs made invalid; the first one without either."""
    own = [one for one in runs if one.engine == engine]
    valid = [one for one in own if one.record["valid"]]
    valid = valid or [one for one in own if one.only_disturbed]
    return valid[index_of_median([one.total for one in valid])] if valid else own[0]
