"""The figures of one run that its scenario's report and the model are made from."""

from __future__ import annotations

import math
from pathlib import Path

from gridbench.analysis.breakdown import job_cost
from gridbench.analysis.clocks import clock_margin, one_clock
from gridbench.analysis.lanes import assign_lanes
from gridbench.analysis.stages import stage_times
from gridbench.analysis.summary import Summary
from gridbench.run.load import load_run

_FEWEST_STAMPED = 0.9  # share of the tasks that must have all stamps


def figures_of(folder: Path) -> dict[str, float]:
    """All figures of the run in `folder` that are known; times in seconds.

    `part_...` share out the total, as `gridbench.analysis.breakdown.JobCost`; the others are those
    of `gridbench.analysis.stages.StageTimes`, and `clock_margin`.
    """
    record, table = load_run(folder)
    setup = record["setup"]
    cold = record["start"] == "cold"
    lanes = assign_lanes(table)
    figures: dict[str, float] = {}
    cost = job_cost(table, lanes, setup["NNodes"], cold=cold)
    if cost is not None:
        figures |= {f"part_{name}": value for name, value in cost.parts().items()}
    figures |= stage_times(table, setup["NNodes"]).figures()
    figures["clock_margin"] = clock_margin(table, same=one_clock(record, table))
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def why_invalid(folder: Path, summary: Summary) -> str:
    """Why a run that went well still does not count; empty if it does.

    Too few tasks with all stamps; or clocks that are less certain than what is to be seen.
    """
    record, table = load_run(folder)
    stamped = int(assign_lanes(table).lane.__ge__(0).sum())
    if stamped < _FEWEST_STAMPED * summary.tasks:
        return f"too few samples: {stamped:,} of {summary.tasks:,} tasks have all their stamps"
    margin = clock_margin(table, same=one_clock(record, table))
    effect = summary.total - summary.ideal
    if margin > abs(effect):
        return (
            f"clock: stamps are certain to {margin:.3g} s, and what the run cost beside its tasks"
            f" is {effect:.3g} s"
        )
    return ""
