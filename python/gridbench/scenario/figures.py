"""Figures of runs for the report of a scenario and for models, of logs and single runs as well."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.breakdown import job_cost
from gridbench.analysis.clocks import clock_margin, corrected, hosts_margin, offsets, one_clock
from gridbench.analysis.columns import seconds
from gridbench.analysis.lanes import assign_lanes
from gridbench.analysis.summary import Summary, summarise
from gridbench.analysis.transfer import stage_times
from gridbench.errors import InputError
from gridbench.formats import amount, rounded
from gridbench.jsonl_store import Header
from gridbench.run.load import load_run
from gridbench.run.recorder import complete_run
from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.results import CaseResult
from gridbench.scenario.run_case import CaseAnswer
from gridbench.workload.workload import Setup

if TYPE_CHECKING:
    from gridbench.report.source import Run


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A completed run with the uncertainty of its stamps."""

    table: pa.Table
    """With stamps on the client's clock, as far as offsets are known."""
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
    """All known figures of the run; times in seconds.

    `part_...` are shares of the total (`JobCost` in analysis/breakdown.py). `clock_step`,
    `clock_margin` and `clock_between` are the uncertainty of differences between stamps of the
    client alone, of client and workers, and at each end between workers. The others are those of
    `StageTimes` (analysis/transfer.py); `wait` is that of `stage_times`.
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
    """Why a completed run does not count; empty if it does.

    A task lacks stamps, or the stamps are less exact than the cost to be measured. Wrong clocks of
    workers do not change the total; they widen the intervals of figures that depend on them.
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
    """The answer with total and figures of the run in `folder`, whose record it completes; invalid
    if the run does not count. InputError if the record cannot be written."""
    summary = complete_run(folder, record, setup)
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
        # The cost of the benchmark itself for each task, in seconds.
        figures=figures_of(run) | ({} if harness is None else {"harness": harness}),
    )


# ---- Logs of old runs, and single run folders, as the cases of a scenario

_LOG = "log"
"""The engine of a log, which does not name it."""
_WAIT = 0.5
"""Seconds between the waves in which Symphony's scheduler starts workers."""


def results_of_runs(sources: Sequence[Path], scenario: int) -> tuple[Header, list[CaseResult]]:
    """Logs and run folders as results of a scenario.

    Two runs of the same case become its rounds. A run without some of its tasks has no result.
    InputError for a file that cannot be read, and for a run without any result.
    """
    from gridbench.report.source import load_runs

    with warnings.catch_warnings():
        # The report of the log itself says what it lacks.
        warnings.simplefilter("ignore", UserWarning)
        runs = load_runs(sources)
    results: list[CaseResult] = []
    for run in runs:
        result = _result(run, scenario)
        before = [one for one in results if one.key_without("round") == result.key_without("round")]
        results.append(replace(result, round=len(before)))
    header = Header(
        machine={"host": "several, see the runs"},
        versions={},
        options={"scenario": scenario, "from": "logs and single runs"},
        started="",
        seed=0,
    )
    return header, results


def _result(run: Run, scenario: int) -> CaseResult:
    summary = summarise(run.table, run.ntasks, run.nnodes, run.kind.processors)
    if not math.isfinite(summary.total):
        raise InputError(
            "no task came back, so there is nothing to measure",
            file=run.path,
            remedy="leave it out",
        )
    of_run = measured(
        run.table, run.nnodes, cold=run.cold, same_clock=one_clock(run.record, run.table)
    )
    slept = seconds(run.table, "sleep")
    sleep = float(np.nanmean(slept)) if np.isfinite(slept).any() else 0.0
    first = run.table.slice(0, 1).to_pylist()[0]
    case = ScenarioCase(
        scenario=scenario,
        cores=run.nnodes,
        tasks=run.ntasks,
        # Measured times differ in the last digits.
        sleep=rounded(sleep),
        bytes_in=first["bytes_in"],
        bytes_shared=first["bytes_shared"],
        bytes_out=first["bytes_out"],
    )
    lost = summary.missing + summary.failed
    reason = _reason(run.record) or why_invalid(of_run, summary)
    if lost:
        reason = f"incomplete: {summary.ok:,} of {run.ntasks:,} tasks are in {run.path.name}"
    scale = run.record.get("time_scale")
    return CaseResult(
        scenario=scenario,
        case=case.key,
        engine=str(_engine(run) or _LOG),
        cores=case.cores,
        tasks=case.tasks,
        sleep_s=case.sleep,
        time_scale=scale if isinstance(scale, float) else 1.0,
        bytes_in=case.bytes_in,
        bytes_shared=case.bytes_shared,
        bytes_out=case.bytes_out,
        start="cold" if run.cold else "warm",
        status="failed" if lost else "invalid" if reason else "done",
        reason=reason,
        total_s=None if lost else summary.total,
        ideal_s=summary.ideal,
        figures={} if lost else figures_of(of_run, wait=_WAIT if _in_waves(run) else 0.0),
        folder=run.path,
    )


def _engine(run: Run) -> object:
    from gridbench.report.source import section

    return section(run.record, "engine").get("name")


def _in_waves(run: Run) -> bool:
    """Whether its workers may have started in waves: a log does not name its engine."""
    name = _engine(run)
    return name is None or (run.record.get("simulated") is True and "symphony" in str(name))


def _reason(record: dict[str, Any]) -> str:
    """Why a run does not count, by its record; empty if it does."""
    if record.get("valid", True):
        return ""
    reasons = record.get("invalid_because")
    if isinstance(reasons, list) and reasons:
        return str(reasons[0])
    return "the run's record says that it is not valid"
