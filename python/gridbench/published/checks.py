"""The same profiles held against all else that is published: nothing of it was fitted either."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.analysis.transfer import MEGABYTE, block_span
from gridbench.model.pipeline import PipelineCase, evaluate
from gridbench.model.profiles import Profile, ninfg, symphony
from gridbench.published.figures import Predicted, Prediction
from gridbench.published.predictions import CORES, totals
from gridbench.published.printed import (
    BINARY,
    Printed,
    Row,
    figure_in_text,
    megabytes,
    table,
)

_SYMPHONY_START_UP = 5.6
"""Seconds, where a run's own is not known: 5.5.1-1 at 0 KB, and the text of 5.5.7."""


def symphony_without_data() -> Predicted:
    """The eight totals of 5.5.6-1."""
    return Predicted(
        "model-symphony-0kb",
        "Symphony: totals of 5.5.6-1 (100 s in n tasks, no data) by the same model",
        "Given are the start-up times, as above.",
        totals("5.5.6-1", symphony(), 0.0),
    )


def ninfg_without_data() -> Predicted:
    """The eight totals of 5.5.6-3."""
    return Predicted(
        "model-ninfg-0kb",
        "Ninf-G: totals of 5.5.6-3 (100 s in n tasks, no data) by the same model",
        "Given are the start-up times, as above.",
        totals("5.5.6-3", ninfg(), 0.0),
    )


def symphony_checks() -> Predicted:
    """Totals with data both ways, and starts with shared data."""
    profile = symphony()
    ready = profile.ready(_SYMPHONY_START_UP, CORES)
    return Predicted(
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


def ninfg_checks() -> Predicted:
    """Totals without start-up, starts with shared data, later starts, and returns."""
    profile = ninfg()
    return Predicted(
        "model-ninfg-more",
        "Ninf-G: what else is published, by the same model",
        "Totals without start-up (5.4.2); starts of the last core with shared data (5.5.1-1); mean "
        "Start - Queue of the last 100 tasks (5.5.4-4), and their return (5.5.2); time in which "
        "100 results come back (5.5.5-2), of which those of 0 KB and 10 MB are parameters: what "
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


def _both_ways(key: str, estimate: str, size: float, profile: Profile, ready: Floats) -> Prediction:
    row = figure_in_text(key, profile.name)
    case = PipelineCase(np.full(400, 1.0), ready, bytes_in=size, bytes_out=size)
    return Prediction(
        row["what"],
        row["unit"],
        Printed(row["value"]),
        float(figure_in_text(estimate, profile.name)["value"]),
        evaluate(case, profile.parameters).total,
    )


def _without_start_up(profile: Profile) -> Iterator[Prediction]:
    for tasks, sleep in ((10, 10.0), (100, 1.0), (200, 0.5)):
        row = figure_in_text(f"processing_{tasks}", profile.name)
        workers = min(tasks, CORES)
        case = PipelineCase(np.full(tasks, sleep), np.zeros(workers), bytes_in=_bytes("10 KB"))
        total = evaluate(case, profile.parameters).total
        yield Prediction(row["what"], row["unit"], Printed(row["value"]), None, total)


def _last_starts(profile: Profile, ready: Callable[[Row], Floats]) -> Iterator[Prediction]:
    for row in table("5.5.1-1"):
        if row["system"] != profile.name:
            continue
        case = PipelineCase(np.full(CORES, 30.0), ready(row), bytes_shared=_bytes(row["size"]))
        start = float(evaluate(case, profile.parameters).calc_in.max())
        what = f"shared data {row['size']}: last start"
        yield Prediction(what, "s", Printed(row["compute_start_s"]), None, start)


def _later_starts(profile: Profile) -> Iterator[Prediction]:
    for row in table("5.5.4-4"):
        case = PipelineCase(np.full(2 * CORES, 30.0), np.zeros(CORES), bytes_in=_bytes(row["size"]))
        stamps = evaluate(case, profile.parameters)
        start = float((stamps.calc_in - stamps.submit)[CORES:].mean())
        what = f"task data {row['size']}: later Start - Queue"
        yield Prediction(what, "s", Printed(row["start_minus_queue_s"]), None, start)


def _later_return(profile: Profile) -> Prediction:
    row = figure_in_text("return_later", profile.name)
    case = PipelineCase(np.full(2 * CORES, 1.0), np.zeros(CORES))
    stamps = evaluate(case, profile.parameters)
    back = float((stamps.retrieve - stamps.calc_out)[CORES:].mean())
    return Prediction(row["what"], row["unit"], Printed(row["value"]), None, back)


def _returns(profile: Profile) -> Iterator[Prediction]:
    for row in table("5.5.5-2"):
        if row["size"] in ("0 KB", "10 MB"):
            continue  # They are parameters.
        case = PipelineCase(
            np.full(2 * CORES, 30.0), np.zeros(CORES), bytes_out=_bytes(row["size"])
        )
        span = block_span(evaluate(case, profile.parameters).retrieve, CORES)
        what = f"output {row['size']}: first to 100th Done"
        yield Prediction(what, "s", Printed(row["done_span_s"]), None, span)
