"""What the timeline of a run says, for the answer to who has ordered it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gridbench.run.recorder import complete
from gridbench.scenario.figures import figures_of, measured_in, why_invalid
from gridbench.scenario.messages import Answer
from gridbench.workload.workload import Setup


def analysed(answer: Answer, folder: Path, record: dict[str, Any], setup: Setup) -> Answer:
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
