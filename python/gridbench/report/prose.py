"""What the report says in words: who won, the summary of each run, and its caveats."""

from __future__ import annotations

from collections.abc import Sequence

from gridbench.analysis.clocks import Offset
from gridbench.formats import counted, duration, percent, rough
from gridbench.report.run_analysis import (
    BETWEEN_CLOCKS,
    RoundTotals,
    Study,
    counts,
    disturbed_only,
    interrupted,
    invalid_because,
    label,
    nothing_lost,
)
from gridbench.run.comparison import outcome_sentence
from gridbench.statistics.claims import is_provisional

_NEGLIGIBLE = 0.005
"""Parts below this share of the cost are not worth a sentence."""


def sentences(study: Study) -> list[str]:
    """The run in a few plain sentences."""
    summary, run = study.summary, study.run
    whole = summary.ok == run.ntasks
    tasks = counted(summary.ok, "task") if whole else f"{summary.ok:,} of {run.ntasks:,} tasks"
    tasks = " ".join(filter(None, [tasks, run.kind.told]))
    ran = f"{run.name}: {tasks} on {counted(run.nnodes, 'worker')}"
    if not study.end > 0:
        return [f"{ran}. No task came back with all its stamps, so there is nothing to measure."]
    middle = ""
    if study.rounds is not None and study.rounds.totals:
        middle = f" (the median of {counted(len(study.rounds.totals), 'round')})"
    found = [
        f"{ran} in {duration(study.end)}{middle}, counted from the moment "
        + ("the client requested its workers" if run.cold else "all workers had answered")
        + (
            f"; without any overhead it would have been {duration(summary.ideal)}, "
            f"an efficiency of {percent(summary.efficiency)}."
            if summary.took_their_time
            else f". Its tasks were to take {duration(summary.ideal)}, which they did not."
        )
    ]
    found.append(
        f"At most {counted(summary.most_running, 'task')} ran at once; the last worker began its "
        f"first task at {duration(summary.last_worker_calc_in)}."
    )
    # Of an incomplete run most would be workers whose tasks are not in the record.
    if whole and study.cost is not None and study.cost.cost > 0:
        parts = {n: v for n, v in study.cost.parts().items() if n != "sleep"}
        largest = sorted(parts, key=lambda name: -parts[name])[:2]
        named = [
            f"{label(name)} ({duration(parts[name])})"
            for name in largest
            if parts[name] > _NEGLIGIBLE * study.cost.cost and not _unsure(name, parts[name], study)
        ]
        found.append(
            f"Going remote and uneven work cost {duration(study.cost.cost)} per worker, "
            f"most of it {' and '.join(named)}."
        )
    if study.handling.count:
        figures = study.handling.figures()
        found.append(
            f"On a free worker a task cost {duration(figures['p50'])} in the median and "
            f"{duration(figures['p99'])} at the 99th percentile, beyond its own time."
        )
    harness = run.record.get("harness_seconds")
    if isinstance(harness, float):
        found.append(
            f"The benchmark's own part of that, with an engine that does nothing, is"
            f" {duration(harness)} for each task."
        )
    if study.clock_error:
        found.append(
            f"The clocks of its hosts are known to within {duration(study.clock_error)} of the "
            "client's. Start-up, dispatch, input and output can each be wrong by as much; the "
            "total and what a task cost in all cannot."
        )
    return found


def certain(name: str, value: float, study: Study) -> str:
    """The time of a phase, as far as the clocks of client and hosts are known."""
    return (
        f"below {duration(study.clock_error)}" if _unsure(name, value, study) else duration(value)
    )


def _unsure(name: str, value: float, study: Study) -> bool:
    """Whether a phase is shorter than its ends are known to."""
    return name in BETWEEN_CLOCKS and abs(value) < study.clock_error


def _notice(what: str, meaning: str) -> str:
    """One sentence, and what follows from it."""
    return f"{what} {meaning}".strip()


def notices(study: Study) -> list[str]:
    """What could mislead someone who only looks at the pictures."""
    summary, run = study.summary, study.run
    found = []
    if run.record.get("simulated") is True:
        found.append(
            _notice(
                "This run was simulated.",
                "No task ran: its stamps are those of a model, with the parameters in its record.",
            )
        )
    reasons = invalid_because(run)
    if reasons:
        found.append(
            _notice(f"The run does not count: {'; '.join(reasons)}.", "It is shown for inspection.")
        )
    if not summary.took_their_time:
        found.append(
            _notice(
                f"The tasks did not take the {duration(summary.ideal)} that they were to take.",
                "What the run took is the cost of handling them, and says nothing of efficiency.",
            )
        )
    if summary.failed:
        first = "; ".join(f"{message} ({count})" for message, count in study.failures[:3])
        found.append(
            _notice(
                f"{counted(summary.failed, 'task')} of {run.ntasks:,} failed: {first}",
                "Failed tasks count in none of the times.",
            )
        )
    if summary.missing or interrupted(run):
        found.append(
            _notice(
                f"The run is not complete: {study.tasks:,} of {run.ntasks:,} tasks are recorded.",
                "The total time and the efficiency are those of the recorded part; they cannot be "
                "compared with those of a complete run."
                + (
                    ""
                    if nothing_lost(run, summary)
                    else " Dispatch and the cost of going remote are not known: while lost tasks"
                    " ran, their workers would look free."
                ),
            )
        )
    negative = study.negative()
    if negative:
        named = ", ".join(f"{name} ({counted(count, 'task')})" for name, count in negative.items())
        found.append(
            _notice(
                f"Negative intervals: {named}.",
                "" if _moved(study) else "These tasks have stamps that cannot be.",
            )
        )
    if _moved(study):
        found.append(_clocks(study))
    step = study.resolution()
    if step:
        found.append(
            _notice(
                f"All stamps are multiples of {duration(step)}.",
                "Intervals shorter than this cannot be seen.",
            )
        )
    found += run.remarks
    return found


def _moved(study: Study) -> list[Offset]:
    """Hosts whose stamps were moved by more than their engine knows them to anyway."""
    return [
        offset for offset in study.offsets if abs(offset.best) > study.clock_error or offset.drift
    ]


def _clocks(study: Study) -> str:
    """Differences between clocks, and their correction."""
    moved = _moved(study)
    far = max(moved, key=lambda offset: abs(offset.best))
    which = "ahead of" if far.best > 0 else "behind"
    several = len(study.offsets) > 1
    drifting = [abs(offset.drift) for offset in moved if offset.drift]
    drift = (
        f" {counted(len(drifting), 'clock')} also drifted, by up to {rough(max(drifting))} in"
        " a second."
        if drifting
        else ""
    )
    return _notice(
        f"Clocks differ: that of {far.host or 'the host'} is {duration(abs(far.best))} {which} the"
        f" client's; stamps of {counted(len(moved), 'host')} of {len(study.offsets):,} were moved.",
        ("The least return time was taken to be the same for all hosts. " if several else "")
        + "All times and pictures on this page have stamps on the client's clock, which is known"
        f" to {duration(max(offset.margin for offset in moved))}"
        + (
            f", and between these hosts to {duration(max(offset.between for offset in moved))}"
            if several
            else ""
        )
        + f".{drift} The source holds the stamps as they were logged.",
    )


def verdict(studies: Sequence[Study]) -> str:
    """One sentence on runs of the same work, see `gridbench.run.comparison`; empty for a single run
    that counts."""
    if len(studies) < 2 and not any(s.rounds or disturbed_only(s) for s in studies):
        return ""
    unsound = [
        study.run.name
        for study in studies
        if not (study.end > 0 and (counts(study) or disturbed_only(study)))
    ]
    if unsound:
        names = " and ".join(dict.fromkeys(unsound))
        return f"Nothing can be claimed: not all runs of {names} are complete and valid."
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
    answer = outcome_sentence(totals, disturbed)
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
