"""Who won, by how much, and how sure that is: the first sentence about several runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gridbench.formats import duration
from gridbench.report.prose import counts
from gridbench.report.study import Study
from gridbench.statistics.claims import ENOUGH


def verdict(studies: Sequence[Study]) -> str:
    """One sentence on runs of the same work; empty for a single run.

    An engine is said to have won if its slowest run was faster than the fastest of the next one,
    and there are two of each at least.
    """
    if len(studies) < 2:
        return ""
    if not all(counts(study) and study.end > 0 for study in studies):
        return "Nothing can be claimed: not all of these runs are complete and valid."
    if len({_work(study) for study in studies}) > 1:
        return "Nothing can be claimed: these runs differ in their tasks, workers or start."
    totals: dict[str, list[float]] = {}
    for study in studies:
        totals.setdefault(study.run.engine, []).append(study.end)
    if len(totals) == 1:
        ((engine, own),) = totals.items()
        return f"{engine} ran {len(own)} times, in {duration(min(own))} to {duration(max(own))}."
    first, second = sorted(totals, key=lambda engine: statistics.median(totals[engine]))[:2]
    return _compared(first, totals[first], second, totals[second])


def _compared(first: str, fast: Sequence[float], second: str, slow: Sequence[float]) -> str:
    ahead, behind = statistics.median(fast), statistics.median(slow)
    told = f"{duration(ahead)} against {duration(behind)} of {second}, {behind / ahead:.3g} times"
    if min(len(fast), len(slow)) < ENOUGH:
        return (
            f"{first} was fastest here, {told}, but nothing can be claimed from it: that takes"
            f" {ENOUGH} runs of each engine at least."
        )
    if max(fast) < min(slow):
        return (
            f"{first} won, {told} in the medians; its slowest run of {len(fast)} was faster than"
            f" the fastest of {len(slow)}."
        )
    return f"Nothing can be claimed: {first} was first, {told} in the medians, but runs overlap."


def _work(study: Study) -> tuple[object, ...]:
    run = study.run
    return run.ntasks, run.nnodes, run.cold, run.kind, round(study.summary.ideal, 6)
