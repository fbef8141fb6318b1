"""The figures of one run that its scenario's report and the model are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gridbench.analysis.breakdown import job_cost
from gridbench.analysis.clocks import clock_margin, corrected, hosts_margin, offsets, one_clock
from gridbench.analysis.lanes import assign_lanes
from gridbench.analysis.summary import Summary
from gridbench.analysis.transfer import stage_times
from gridbench.formats import amount
from gridbench.run.load import load_run
from gridbench.run.recorder import complete
from gridbench.scenario.run_case import CaseAnswer
from gridbench.workload.workload import Setup


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run that has ended, with what is needed to look at it."""

    table: pa.Table
    """With stamps on the client's clock, as far as that is known."""
    cores: int
    cold: bool
    step: float
    """Seconds within which differences between stamps of one clock are certain."""
    margin: float
    """The same of differences between stamps of client and workers."""
    between: float
    """The same of each end of a difference between two workers."""


def measured_in(folder: Path) -> MeasuredRun:
    """The run in a folder of `gridbench run`. InputError if it cannot be read."""
    record, table = load_run(folder)
    same = one_clock(record, table)
    return measured(
        table, record["setup"]["NNodes"], cold=record.get("start") != "warm", same_clock=same
    )


def measured(table: pa.Table, cores: int, *, cold: bool, same_clock: bool) -> MeasuredRun:
    """A run from its timeline; `same_clock`: client and workers were on one machine."""
    moved = table if same_clock else corrected(table, offsets(table))
    return MeasuredRun(
        moved,
        cores,
        cold,
        clock_margin(table, same=True),
        clock_margin(table, same=same_clock),
        hosts_margin(table, same=same_clock),
    )


def figures_of(run: MeasuredRun, *, wait: float = 0.0) -> dict[str, float]:
    """All figures of the run that are known; times in seconds.

    `part_...` share out the total, as `gridbench.analysis.breakdown.JobCost`; the others are those
    of `gridbench.analysis.transfer.StageTimes`, and `clock_step`, `clock_margin` and
    `clock_between`: within how much differences are certain between stamps of the client alone,
    of client and workers, and at each end between workers. `wait` is that of `stage_times`.
    """
    figures: dict[str, float] = {}
    cost = job_cost(run.table, assign_lanes(run.table), run.cores, cold=run.cold)
    if cost is not None:
        figures |= {f"part_{name}": value for name, value in cost.parts().items()}
    figures |= stage_times(run.table, run.cores, wait=wait).figures()
    figures |= {
        "clock_step": run.step, "clock_margin": run.margin, "clock_between": run.between
    }  # fmt: skip
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def why_invalid(run: MeasuredRun, summary: Summary) -> str:
    """Why a run that went well still does not count; empty if it does.

    Tasks that lack stamps, were it one; or stamps less exact than what is to be seen. Clocks of
    workers that are off do not touch the total: they show in the intervals of what depends on them.
    """
    stamped = int((assign_lanes(run.table).lane >= 0).sum())
    if stamped < summary.tasks:
        return f"incomplete: {stamped:,} of {summary.tasks:,} tasks have all their stamps"
    effect = summary.total - summary.ideal
    if run.step > abs(effect):
        return (
            f"clock: stamps are certain to {amount(run.step, 's')}, and what the run cost beside"
            f" its tasks is {amount(effect, 's')}"
        )
    return ""


def analysed(answer: CaseAnswer, folder: Path, record: dict[str, Any], setup: Setup) -> CaseAnswer:
    """The answer of a run in `folder` that went well, with its total and its figures, once its
    record is complete; invalid if they do not count. InputError if that cannot be written."""
    summary = complete(folder, record, setup)
    run = measured_in(folder)
    reason = answer.reason or why_invalid(run, summary)
    harness = record["harness_seconds"]
    return replace(
        answer,
        status="invalid" if reason else "done",
        reason=reason,
        total_s=summary.total,
        ideal_s=summary.ideal,
        returned=summary.ok,
        # What the benchmark itself cost for each task, in seconds.
        figures=figures_of(run) | ({} if harness is None else {"harness": harness}),
    )
