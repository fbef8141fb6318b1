"""The totals of scenario 6 beside what the pipeline model says, given the runs' start-up times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gridbench.analysis.transfer import MEGABYTE
from gridbench.formats import as_given
from gridbench.model.pipeline import PipelineCase, evaluate
from gridbench.model.profiles import SMALLEST_STEP, WHOLE_RUN_SLIDES, Profile, ninfg, symphony
from gridbench.published.figures import Predicted, Prediction, Variant
from gridbench.published.printed import Printed, Row, table, tasks_of

CORES = 100
_GIVEN = (
    "Given are the start-up time of each run and the parameters below. None of them is fitted to "
    "these totals, though the totals were known when the model was made."
)
_SYMPHONY = (
    "All tasks go to the management node, one after the other, while service instances start. It "
    "sends to one free instance after the other, while the client sends on and others compute. "
    "What counts for a total is the client's rate over a whole run; with others that the sources "
    "give, the errors are those below the table. "
)
_NINFG = (
    "A task leaves the client when a worker is free for it. All transfers under way share the link "
    "evenly, while other workers compute. The client takes one result after the other, and then "
    "first submits that worker's next task. Starting and returning a task takes longer when 100 do "
    "so at once: what concentrates is taken for time of the link and of the client. "
)


def symphony_totals() -> Predicted:
    """The eight totals of 5.5.6-2."""
    profile = symphony()
    return Predicted(
        "model-symphony",
        "Symphony: totals of 5.5.6-2 (100 s in n tasks, 1 MB each) by the pipeline model",
        _SYMPHONY + _GIVEN,
        totals("5.5.6-2", profile, MEGABYTE),
        parameters=profile.given,
        variants=tuple(
            _variant(f"{rate.name}: {as_given(rate.value, rate.unit)}", "5.5.6-2", symphony(rate))
            for rate in (WHOLE_RUN_SLIDES, SMALLEST_STEP)
        ),
    )


def ninfg_totals() -> Predicted:
    """The eight totals of 5.5.6-4."""
    profile = ninfg()
    known = profile.parameters
    in_turn = replace(known, to_workers=replace(known.to_workers, sharing="in turn"))
    constant = replace(
        known,
        to_workers=replace(known.to_workers, per_message=0.0),
        start_latency=0.15,
        return_latency=0.25,
        retrieve_cost=0.0,
    )
    return Predicted(
        "model-ninfg",
        "Ninf-G: totals of 5.5.6-4 (100 s in n tasks, 1 MB each) by the pipeline model",
        _NINFG + _GIVEN,
        totals("5.5.6-4", profile, MEGABYTE),
        parameters=profile.given,
        variants=(
            _variant(
                "transfers one after the other", "5.5.6-4", replace(profile, parameters=in_turn)
            ),
            _variant(
                "every task: 0.15 s to start, 0.25 s to return, however many at once",
                "5.5.6-4",
                replace(profile, parameters=constant),
            ),
        ),
    )


def totals(name: str, profile: Profile, size: float) -> tuple[Prediction, ...]:
    """The totals of a table of scenario 6, with `size` bytes to each task."""
    predictions = []
    for row in table(name):
        measured = Printed(row["total_s"])
        predictions.append(
            Prediction(
                row=tasks_of(row),
                unit="s",
                measured=measured,
                theirs=float(row["predicted_s"]) if "predicted_s" in row else None,
                ours=evaluate(_divided(row, profile, size), profile.parameters).total,
            )
        )
    return tuple(predictions)


def _divided(row: Row, profile: Profile, size: float) -> PipelineCase:
    tasks = int(row["tasks"])
    ready = profile.ready(float(row["start_up_s"]), min(tasks, CORES))
    return PipelineCase(np.full(tasks, float(row["sleep_s"])), ready, bytes_in=size)


def _variant(what: str, name: str, profile: Profile) -> Variant:
    predictions = totals(name, profile, MEGABYTE)
    return Variant(what, float(np.mean([abs(one.error) for one in predictions])))
