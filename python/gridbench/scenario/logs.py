"""Logs of old runs, and single run folders, as the cases of a scenario."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.analysis.clocks import one_clock
from gridbench.analysis.columns import seconds
from gridbench.analysis.summary import summarise
from gridbench.errors import InputError
from gridbench.formats import rounded
from gridbench.jsonl_store import Header
from gridbench.report.source import Run, load_runs, section
from gridbench.scenario.figures import figures_of, measured, why_invalid
from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.results import CaseResult

_LOG = "log"
"""What stands for the engine of a log, which does not name it."""
_WAIT = 0.5
"""Seconds between waves of workers of Symphony, whose scheduler starts them at such intervals."""


def results_of_runs(sources: Sequence[Path], scenario: int) -> tuple[Header, list[CaseResult]]:
    """Logs and run folders as results of a scenario.

    Two runs of the same case become its rounds. One that lacks tasks has no result. Raises
    InputError for what cannot be read, and for a run of which no task came back.
    """
    with warnings.catch_warnings():
        # What a log lacks is said in the report of the log itself.
        warnings.simplefilter("ignore", UserWarning)
        runs = load_runs(sources)
    results: list[CaseResult] = []
    for run in runs:
        result = _result(run, scenario)
        before = [one for one in results if one.identity[:3] == result.identity[:3]]
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
        # Times that were really slept differ in the last digits.
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
        engine=str(section(run.record, "engine").get("name") or _LOG),
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


def _in_waves(run: Run) -> bool:
    """Whether its workers may have been started in waves: a log does not say by what."""
    name = section(run.record, "engine").get("name")
    return name is None or (run.record.get("simulated") is True and "symphony" in str(name))


def _reason(record: dict[str, Any]) -> str:
    """Why a run does not count, in the words of its record; empty if that says nothing."""
    if record.get("valid", True):
        return ""
    reasons = record.get("invalid_because")
    if isinstance(reasons, list) and reasons:
        return str(reasons[0])
    return "the run's record says that it is not valid"
