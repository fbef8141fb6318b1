"""Tables of the report, predicted by the pipeline model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.analysis.transfer import MEGABYTE, block_span
from gridbench.formats import as_given
from gridbench.model.pipeline import PipelineCase, evaluate
from gridbench.model.profiles import SMALLEST_STEP, WHOLE_RUN_SLIDES, Profile, ninfg, symphony
from gridbench.published.figures import (
    BINARY,
    PredictedFigure,
    PredictedTable,
    Printed,
    Row,
    Variant,
    figure_in_text,
    megabytes,
    table,
    tasks_of,
)

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


def symphony_totals() -> PredictedTable:
    """The eight totals of 5.5.6-2."""
    profile = symphony()
    return PredictedTable(
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


def ninfg_totals() -> PredictedTable:
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
    return PredictedTable(
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


def totals(name: str, profile: Profile, size: float) -> tuple[PredictedFigure, ...]:
    """The totals of a table of scenario 6, with `size` bytes to each task."""
    predictions = []
    for row in table(name):
        measured = Printed(row["total_s"])
        predictions.append(
            PredictedFigure(
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


_SYMPHONY_START_UP = 5.6
"""Seconds, where a run's own is not known: 5.5.1-1 at 0 KB, and the text of 5.5.7."""


def symphony_without_data() -> PredictedTable:
    """The eight totals of 5.5.6-1."""
    return PredictedTable(
        "model-symphony-0kb",
        "Symphony: totals of 5.5.6-1 (100 s in n tasks, no data) by the same model",
        "Given are the start-up times, as above.",
        totals("5.5.6-1", symphony(), 0.0),
    )


def ninfg_without_data() -> PredictedTable:
    """The eight totals of 5.5.6-3."""
    return PredictedTable(
        "model-ninfg-0kb",
        "Ninf-G: totals of 5.5.6-3 (100 s in n tasks, no data) by the same model",
        "Given are the start-up times, as above.",
        totals("5.5.6-3", ninfg(), 0.0),
    )


def symphony_checks() -> PredictedTable:
    """Totals with data both ways, and starts with shared data."""
    profile = symphony()
    ready = profile.ready(_SYMPHONY_START_UP, CORES)
    return PredictedTable(
        "model-symphony-more",
        "Symphony: what else is published, by the same model",
        "Totals with data both ways (5.5.2); the report says that 1 MB made the manager throttle, "
        "which is not in this model, and by the simulator's bounds it was not short of memory. "
        "Starts of the last core with shared data (5.5.1-1).",
        (
            _both_ways("two_way_100kb", "estimate_100kb", _bytes("100 KB"), profile, ready),
            _both_ways("two_way_1mb", "estimate_1mb", _bytes("1 MB"), profile, ready),
            *_last_starts(profile, lambda _: ready),
        ),
        comparable=False,
    )


def ninfg_checks() -> PredictedTable:
    """Totals without start-up, starts with shared data, later starts, and returns."""
    profile = ninfg()
    return PredictedTable(
        "model-ninfg-more",
        "Ninf-G: what else is published, by the same model",
        "Totals without start-up (5.4.2); starts of the last core with shared data (5.5.1-1); mean "
        "Start - Queue of the last 100 tasks (5.5.4-4), and their return (5.5.2); time in which "
        "100 results come back (5.5.5-2); those of 0 KB and 10 MB are parameters: what "
        "the client itself does for a result, and for each of its bytes.",
        (
            *_without_start_up(profile),
            *_last_starts(profile, lambda row: profile.ready(float(row["start_up_s"]), CORES)),
            *_later_starts(profile),
            _later_return(profile),
            *_returns(profile),
        ),
        comparable=False,
    )


def _bytes(size: str) -> float:
    return megabytes(size, BINARY) * MEGABYTE


def _both_ways(
    key: str, estimate: str, size: float, profile: Profile, ready: Floats
) -> PredictedFigure:
    row = figure_in_text(key, profile.name)
    case = PipelineCase(np.full(400, 1.0), ready, bytes_in=size, bytes_out=size)
    return PredictedFigure(
        row["what"],
        row["unit"],
        Printed(row["value"]),
        float(figure_in_text(estimate, profile.name)["value"]),
        evaluate(case, profile.parameters).total,
    )


def _without_start_up(profile: Profile) -> Iterator[PredictedFigure]:
    for tasks, sleep in ((10, 10.0), (100, 1.0), (200, 0.5)):
        row = figure_in_text(f"processing_{tasks}", profile.name)
        workers = min(tasks, CORES)
        case = PipelineCase(np.full(tasks, sleep), np.zeros(workers), bytes_in=_bytes("10 KB"))
        total = evaluate(case, profile.parameters).total
        yield PredictedFigure(row["what"], row["unit"], Printed(row["value"]), None, total)


def _last_starts(profile: Profile, ready: Callable[[Row], Floats]) -> Iterator[PredictedFigure]:
    for row in table("5.5.1-1"):
        if row["system"] != profile.name:
            continue
        case = PipelineCase(np.full(CORES, 30.0), ready(row), bytes_shared=_bytes(row["size"]))
        start = float(evaluate(case, profile.parameters).calc_in.max())
        what = f"shared data {row['size']}: last start"
        yield PredictedFigure(what, "s", Printed(row["compute_start_s"]), None, start)


def _later_starts(profile: Profile) -> Iterator[PredictedFigure]:
    for row in table("5.5.4-4"):
        case = PipelineCase(np.full(2 * CORES, 30.0), np.zeros(CORES), bytes_in=_bytes(row["size"]))
        stamps = evaluate(case, profile.parameters)
        start = float((stamps.calc_in - stamps.submit)[CORES:].mean())
        what = f"task data {row['size']}: later Start - Queue"
        yield PredictedFigure(what, "s", Printed(row["start_minus_queue_s"]), None, start)


def _later_return(profile: Profile) -> PredictedFigure:
    row = figure_in_text("return_later", profile.name)
    case = PipelineCase(np.full(2 * CORES, 1.0), np.zeros(CORES))
    stamps = evaluate(case, profile.parameters)
    back = float((stamps.retrieve - stamps.calc_out)[CORES:].mean())
    return PredictedFigure(row["what"], row["unit"], Printed(row["value"]), None, back)


def _returns(profile: Profile) -> Iterator[PredictedFigure]:
    for row in table("5.5.5-2"):
        if row["size"] in ("0 KB", "10 MB"):
            continue  # They are parameters.
        case = PipelineCase(
            np.full(2 * CORES, 30.0), np.zeros(CORES), bytes_out=_bytes(row["size"])
        )
        span = block_span(evaluate(case, profile.parameters).retrieve, CORES)
        what = f"output {row['size']}: first to 100th Done"
        yield PredictedFigure(what, "s", Printed(row["done_span_s"]), None, span)
