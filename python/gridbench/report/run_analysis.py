"""All that is computed of one run for its report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gridbench.analysis.breakdown import (
    Distribution,
    JobCost,
    TaskPhases,
    handling,
    input_begin,
    job_cost,
    job_end,
    round_trip,
    task_phases,
)
from gridbench.analysis.clocks import Offset, corrected, errors, offsets, one_clock, resolution
from gridbench.analysis.columns import Booleans, Floats, seconds, succeeded, text
from gridbench.analysis.critical_path import Step, critical_path
from gridbench.analysis.lanes import Lanes, assign_lanes
from gridbench.analysis.summary import Concurrency, Summary, running_over_time, summarise
from gridbench.machine.judgement import DISTURBED
from gridbench.report.source import HostRow, Run, host_rows, load_runs, section
from gridbench.statistics.interval import index_of_median

_COARSE = 1e-3
"""Seconds: a resolution that can be seen."""
BETWEEN_CLOCKS = frozenset({"start_up", "dispatch", "input", "output"})
"""Phases that begin on one host's clock and end on another's."""


@dataclass(frozen=True, slots=True)
class RoundTotals:
    """Several runs of the same, one after the other."""

    totals: tuple[float, ...]
    """Total times of those that count, seconds."""
    number: int
    """How many there are."""
    disturbed: tuple[float, ...] = ()
    """Total times of those that only other programs keep from counting, seconds."""


@dataclass(frozen=True, slots=True)
class Study:
    """A run and its analysis. Times in seconds, NaN where nothing is known.

    Failed tasks are drawn where they have stamps, but count in none of the times.
    """

    run: Run
    """With stamps of hosts on the client's clock, as far as that is known: all that follows is of
    these."""
    logged: pa.Table
    """The timeline as it was recorded."""
    summary: Summary
    ok: Booleans
    lanes: Lanes
    """Of all rows, failed ones too."""
    input_begin: Floats
    end: float
    concurrency: Concurrency
    hosts: tuple[HostRow, ...]
    """Where its workers were."""
    clock_error: float
    """Stamps of hosts may be so far off the client's clock, seconds; 0 if that is not known."""
    one_clock: bool
    """Client and workers have read the same."""
    offsets: tuple[Offset, ...]
    """How far the hosts' clocks are ahead of the client's, as far as the stamps tell."""
    phases: TaskPhases
    """Of the tasks that succeeded, like all that follows."""
    cost: JobCost | None
    """None, and phases NaN, if tasks are lost: their time would look like dispatch."""
    path: tuple[Step, ...]
    """What the last result waited for; nothing if not all that workers did is known."""
    round_trip: Distribution
    handling: Distribution
    rounds: RoundTotals | None = None
    """The rounds of its engine that it stands for; None: it was run once."""

    @property
    def tasks(self) -> int:
        """Rows of the timeline."""
        return int(self.run.table.num_rows)

    @property
    def failures(self) -> list[tuple[str, int]]:
        """What the failed tasks say, and how many say so, most frequent first."""
        messages = text(self.run.table, "status").filter(pa.array(~self.ok))
        counts = pc.value_counts(messages).to_pylist()
        pairs = [(entry["values"], entry["counts"]) for entry in counts]
        return sorted(pairs, key=lambda pair: -pair[1])

    def negative(self) -> dict[str, int]:
        """Number of tasks per interval that is negative as recorded, for those intervals that are.

        What the clocks are not known to is not counted: nobody can tell that it is negative.
        """
        unsure = np.nan_to_num(errors(self.logged))
        intervals = (
            ("submit", "calc_in", unsure),
            ("calc_in", "calc_out", np.zeros_like(unsure)),
            ("calc_out", "retrieve", unsure),
        )
        found = {}
        for first, second, margin in intervals:
            length = seconds(self.logged, second) - seconds(self.logged, first)
            count = int(np.sum(length < -margin))
            if count:
                found[f"{label(first)} to {label(second)}"] = count
        return found

    def resolution(self) -> float:
        """1 or 0.001 if all stamps as recorded are whole seconds or milliseconds, else 0."""
        step = resolution(self.logged)
        return step if step >= _COARSE else 0.0


def label(column: str) -> str:
    """A stamp's or phase's name as prose has it."""
    return {
        "calc_in": "calc-in",
        "calc_out": "calc-out",
        "start_up": "start-up",
        "extra": "extra in task",
        "idle_end": "idle at the end",
        "never_used": "never used",
    }.get(column, column)


def interrupted(run: Run) -> bool:
    """Whether the run's record says that it did not come to its end. Logs do not say."""
    return str(run.record.get("status", "complete")) != "complete"


def nothing_lost(run: Run, summary: Summary) -> bool:
    """Whether all that workers did is recorded; of an interrupted run, all that had ended is."""
    return not (summary.failed or (summary.missing and not interrupted(run)))


def _path(run: Run, lanes: Lanes) -> list[Step]:
    most = section(run.record, "data").get("most_outstanding_tasks")
    bound = most if isinstance(most, int) else None
    return critical_path(run.table, lanes, cold=run.cold, most_outstanding=bound)


def study(run: Run) -> Study:
    """Analyse one run."""
    logged = run.table
    same = one_clock(run.record, logged)
    known = [] if same else offsets(logged)
    run = replace(run, table=corrected(logged, known))
    ok = succeeded(run.table)
    lanes = assign_lanes(run.table)
    done = run.table if ok.all() else run.table.filter(pa.array(ok))
    done_lanes = lanes if ok.all() else assign_lanes(done)
    phases = task_phases(done, done_lanes, cold=run.cold)
    trip = round_trip(phases)
    summary = summarise(run.table, run.ntasks, run.nnodes, run.kind.processors)
    whole = nothing_lost(run, summary)
    if not whole:
        unknown = np.full(done.num_rows, np.nan)
        phases = replace(phases, queue=unknown, dispatch=unknown, input=unknown)
    return Study(
        run=run,
        logged=logged,
        summary=summary,
        ok=ok,
        lanes=lanes,
        input_begin=input_begin(run.table, lanes, cold=run.cold),
        end=job_end(done),
        concurrency=running_over_time(run.table),
        hosts=tuple(host_rows(run.record, run.table)),
        clock_error=summary.clock_error if summary.clock_error > 0 else 0.0,
        one_clock=summary.clock_error == 0 or same,
        offsets=tuple(known),
        phases=phases,
        cost=job_cost(done, done_lanes, run.nnodes, cold=run.cold) if whole else None,
        path=tuple(_path(run, lanes)) if whole else (),
        round_trip=trip,
        handling=handling(phases),
    )


def counts(study: Study) -> bool:
    """Whether a run is complete, without failures, and valid."""
    return not (_incomplete(study) or invalid_because(study.run))


def disturbed_only(study: Study) -> bool:
    """Whether a run does not count for the sole reason that other programs used the machine."""
    disturbed = section(study.run.record, "load").get("judgement") == DISTURBED
    return disturbed and len(invalid_because(study.run)) == 1 and not _incomplete(study)


def _incomplete(study: Study) -> bool:
    summary = study.summary
    return bool(summary.failed or summary.missing or interrupted(study.run))


def invalid_because(run: Run) -> list[str]:
    """Why a run does not count, in the words of its record; empty if it does."""
    reasons = run.record.get("invalid_because")
    return [str(reason) for reason in reasons] if isinstance(reasons, list) else []


def studies_of(sources: Iterable[Path]) -> list[Study]:
    """The runs that a report on the sources shows. InputError as for `load_runs`."""
    return together([study(run) for run in load_runs(sources)])


def together(studies: Iterable[Study]) -> list[Study]:
    """The rounds of each engine in the same results as one study: that of median time of those that
    count. Where a round has not ended well it is that round: an engine that loses a task in one
    round of five has not done its work. Other runs are as they were."""
    groups: dict[object, list[Study]] = {}
    for number, one in enumerate(studies):
        groups.setdefault(one.run.repeated or number, []).append(one)
    return [_shown(group) for group in groups.values()]


def _shown(group: list[Study]) -> Study:
    if group[0].run.repeated is None:
        return group[0]
    good = [one for one in group if counts(one)]
    busy = [one for one in group if disturbed_only(one)]
    bad = [one for one in group if not counts(one) and not disturbed_only(one)]
    middle = good or busy
    shown = bad[0] if bad else middle[index_of_median([one.end for one in middle])]
    totals, disturbed = (tuple(one.end for one in own) for own in (good, busy))
    return replace(shown, rounds=RoundTotals(totals, len(group), disturbed=disturbed))
