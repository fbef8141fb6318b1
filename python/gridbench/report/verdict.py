"""Who won, by how much, and how sure that is: the first sentence about several runs."""

from __future__ import annotations

from collections.abc import Sequence

from gridbench.formats import counted
from gridbench.report.prose import counts
from gridbench.report.study import Study
from gridbench.run.ahead import ahead


def verdict(studies: Sequence[Study]) -> str:
    """One sentence on runs of the same work, see `gridbench.run.ahead`; empty for a single run."""
    if len(studies) < 2 and not any(study.rounds for study in studies):
        return ""
    if not all(counts(study) and study.end > 0 for study in studies):
        return "Nothing can be claimed: not all of these runs are complete and valid."
    if len({_work(study) for study in studies}) > 1:
        return "Nothing can be claimed: these runs differ in their tasks, workers or start."
    totals: dict[str, list[float]] = {}
    for study in studies:
        own = study.rounds.totals if study.rounds else (study.end,)
        totals.setdefault(study.run.engine, []).extend(own)
    return f"{ahead(totals)}{_left_out(studies)}"


def _left_out(studies: Sequence[Study]) -> str:
    """How many rounds are in no figure."""
    disturbed = sum(
        study.rounds.number - len(study.rounds.totals) for study in studies if study.rounds
    )
    if not disturbed:
        return ""
    return f" {counted(disturbed, 'further round')} that other programs disturbed {_do(disturbed)}."


def _do(count: int) -> str:
    return "does not count" if count == 1 else "do not count"


def _work(study: Study) -> tuple[object, ...]:
    run = study.run
    return run.ntasks, run.nnodes, run.cold, run.kind, round(study.summary.ideal, 6)
