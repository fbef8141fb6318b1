"""Which engine was ahead, by how much, and how sure that is: a sentence on repeated runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from gridbench.formats import counted, duration, percent, plain, spread
from gridbench.statistics.claims import ENOUGH
from gridbench.statistics.enough import ALIKE, FEWEST, apart, decided
from gridbench.statistics.medians import ratio_bounds


def ahead(totals: Mapping[str, Sequence[float]]) -> str:
    """One sentence on total times, seconds, of runs of the same work that count, by engine. Each
    engine has one at least; of a single run there is nothing to say.

    An engine has won if `gridbench.statistics.enough.decided` says so; of two runs, if the slower
    of them was faster than both of the next engine, and they are `apart`.
    """
    if len(totals) == 1:
        ((engine, own),) = totals.items()
        return f"{engine} ran {len(own)} times, in {spread(own)}." if len(own) > 1 else ""
    first, second, *others = sorted(totals, key=lambda name: statistics.median(totals[name]))
    told = _compared(first, totals[first], second, totals[second])
    return " ".join([told, *_beside(totals, first, others)])


def _beside(
    totals: Mapping[str, Sequence[float]], first: str, others: Sequence[str]
) -> Iterator[str]:
    """What the engines after the second took, without a claim."""
    if others:
        least = statistics.median(totals[first])
        taken = [statistics.median(totals[name]) for name in others]
        told = [
            f"{name} {duration(one)} ({plain(one / least)} times)"
            for name, one in zip(others, taken, strict=True)
        ]
        yield f"Behind them: {', '.join(told)}."


def _compared(first: str, fast: Sequence[float], second: str, slow: Sequence[float]) -> str:
    quick, behind = statistics.median(fast), statistics.median(slow)
    told = (
        f"{duration(quick)} against {duration(behind)} of {second}, {plain(behind / quick)} times"
    )
    if min(len(fast), len(slow)) < ENOUGH:
        return (
            f"{first} was fastest here, {told}, but nothing can be claimed from it: that takes"
            f" {ENOUGH} runs of each engine at least."
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
    return (
        f"Nothing can be claimed: {first} was first, {told} in the medians, but runs"
        f" scatter so much that {second} may be as good."
    )
