"""Who won, by how much, and how sure that is: the first sentence about several runs."""

from __future__ import annotations

from collections.abc import Sequence

from gridbench.formats import counted
from gridbench.provisional import is_provisional
from gridbench.report.run_analysis import RoundTotals, Study, counts, disturbed_only
from gridbench.run.present import ahead


def verdict(studies: Sequence[Study]) -> str:
    """One sentence on runs of the same work, see `gridbench.run.present`; empty for a single run
    that counts."""
    if len(studies) < 2 and not any(s.rounds or disturbed_only(s) for s in studies):
        return ""
    sound = [study for study in studies if counts(study) or disturbed_only(study)]
    if len(sound) < len(studies) or not all(study.end > 0 for study in studies):
        return "Nothing can be claimed: not all of these runs are complete and valid."
    if len({_work(study) for study in studies}) > 1:
        return "Nothing can be compared: these runs differ in their tasks, workers or start."
    totals: dict[str, list[float]] = {study.run.engine: [] for study in studies}
    disturbed: dict[str, list[float]] = {study.run.engine: [] for study in studies}
    for study in studies:
        alone = (study.end,)
        rounds = study.rounds or (
            RoundTotals(alone, 1) if counts(study) else RoundTotals((), 1, disturbed=alone)
        )
        totals[study.run.engine] += rounds.totals
        disturbed[study.run.engine] += rounds.disturbed
    answer = ahead(totals, disturbed)
    return answer if is_provisional(answer) else f"{answer}{_left_out(studies)}"


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
