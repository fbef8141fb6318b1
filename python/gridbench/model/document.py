"""Models as documents: terms with intervals, and errors of what was held out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gridbench.formats import (
    NOTHING,
    amount,
    counted,
    digits,
    duration,
    percent,
    size,
    whole,
)
from gridbench.model.cost_model import TOTAL, CostEstimate, CostModel
from gridbench.model.fit import PipelineFit
from gridbench.model.held_out import WEIGHTY, HeldOutCase, HeldOutRuns, RepeatSpread
from gridbench.model.least_squares import TermEstimate
from gridbench.model.model import PipelineModel
from gridbench.pages.document import EVERYWHERE, Document, TableBlock
from gridbench.pages.table import Column, Table, table_of

_MB = 2**20
_WORST = 3
"""Cases named for each way of holding out."""


def term_value(value: float, unit: str) -> str:
    """The value of a term: a time, the time of a megabyte or of 10^9 operations, or a number."""
    if not unit:
        return digits(value)
    if unit == "s/flop":
        return f"{duration(value * 1e9)}/Gflop"
    return f"{duration(value * _MB)}/MB" if unit == "s/byte" else duration(value)


def _document(
    reported: str,
    sentences: Sequence[str],
    terms: Table,
    errors: TableBlock,
    notices: Sequence[str],
) -> Document:
    return Document(
        kind="gridbench model",
        title="gridbench model",
        heading=reported,
        sentences=sentences,
        notices=notices,
        summary=[TableBlock(reported, terms, media=EVERYWHERE), errors],
    )


# ---- A pipeline of stages


def pipeline_document(model: PipelineModel) -> Document:
    """All that is known of an engine's model."""
    fit = model.fit
    loose = [one.term.name for one in fit.estimates if not one.determined]
    return _document(
        model.told,
        [
            f"{fit.shape.describe()}. Fitted to {_runs(fit)}: {_ranges(model)}. Overheads"
            f" of these runs are {percent(math.expm1(fit.spread))} off, typically."
        ],
        estimates_table(fit.estimates),
        TableBlock(
            f"Errors of runs held out; overheads of at least {percent(WEIGHTY, 0)} of the total",
            _run_errors(model.held_out),
            media=EVERYWHERE,
        ),
        [
            *(
                [f"Not determined by these runs, but no larger: {', '.join(loose)}."]
                if loose
                else []
            ),
            *([_repeated(model.repeated)] if model.held_out and model.repeated else []),
            *map(_worst, model.held_out),
        ],
    )


def estimates_table(estimates: Sequence[TermEstimate]) -> Table:
    """The terms of an engine, with intervals."""

    def interval(one: TermEstimate) -> str:
        low, high = term_value(one.low, one.term.unit), term_value(one.high, one.term.unit)
        return f"{low} to {high}" if one.determined else f"below {high}"

    def rate(one: TermEstimate) -> str:
        known = one.determined and one.term.unit == "s/byte"
        return amount(1 / one.value, "bytes/s") if known else ""

    return table_of(
        [
            Column("term", lambda one: one.term.name, words=True),
            Column("what it is", lambda one: one.term.meaning, words=True),
            Column(
                "value",
                lambda one: term_value(one.value, one.term.unit) if one.determined else NOTHING,
            ),
            Column("95 % interval", interval),
            Column("as a rate", rate),
        ],
        estimates,
    )


def _runs(fit: PipelineFit) -> str:
    few = "" if fit.runs == fit.known else f", drawn from {fit.known:,} at random"
    return counted(fit.runs, "run") + few


def _ranges(model: PipelineModel) -> str:
    measured = model.ranges
    parts = [
        f"{measured.cores.describe(whole)} cores",
        f"{measured.tasks.describe(whole)} tasks",
        f"of {measured.sleep.describe(duration)}",
    ]
    for span, what in (
        (measured.bytes_in, "task data"),
        (measured.bytes_shared, "shared data"),
        (measured.bytes_out, "output"),
    ):
        parts.append(f"{span.describe(size)} of {what}" if span.high else f"no {what}")
    return ", ".join([*parts, " and ".join(measured.starts) + " start"])


def _run_errors(ways: Sequence[HeldOutRuns]) -> Table:
    def known(value: Callable[[HeldOutRuns], str]) -> Callable[[HeldOutRuns], str]:
        return lambda one: "" if one.refused else value(one)

    return table_of(
        [
            Column("held out", lambda one: one.what, words=True),
            Column("fitted", lambda one: f"{one.fitted}"),
            Column("held", lambda one: f"{len(one.cases)}"),
            Column("overhead: runs", known(lambda one: f"{len(one.weighty)}")),
            Column("median", known(lambda one: percent(one.overhead(50)))),
            Column("90th", known(lambda one: percent(one.overhead(90)))),
            Column("total: median", known(lambda one: percent(one.total(50)))),
            Column("total: 90th", known(lambda one: percent(one.total(90)))),
        ],
        ways,
    )


def _worst(one: HeldOutRuns) -> str:
    if one.refused:
        return f"{one.what}: not possible: {one.refused}"
    worst = sorted(one.weighty, key=lambda case: -abs(case.overhead_error))[:_WORST]
    return f"{one.what}: furthest off: " + ("; ".join(map(_case, worst)) or "none")


def _repeated(one: RepeatSpread) -> str:
    return (
        "Single runs differ from the median of the other runs of their case by"
        f" {percent(one.median)} (median) and {percent(one.percentile_90)} (90th):"
        f" {counted(one.runs, 'run')} of {counted(one.cases, 'case')}."
    )


def _case(case: HeldOutCase) -> str:
    return (
        f"{case.name} ({duration(case.measured)}, predicted {duration(case.predicted)},"
        f" ideal {duration(case.ideal)})"
    )


# ---- A sum of costs


def cost_document(model: CostModel) -> Document:
    """All that is known of a model of costs."""
    formula = model.formula
    ranges = ", ".join(
        f"{one.what}: {model.measured[one.name].describe(one.shown)}" for one in formula.parameters
    )
    missing = [_name(model, one) for one in model.estimates if one.value is None]
    uncounted = counted(model.uncounted, formula.noun)
    return _document(
        model.told,
        [
            f"Predicts the {formula.quantity}. Fitted to {counted(model.cases, formula.noun)},"
            f" {counted(model.repeats, 'measurement')}: {ranges}. These are"
            f" {percent(math.expm1(model.spread))} off (root mean square)."
        ],
        _costs_table(model),
        TableBlock(
            "Errors of what was held out: median, and largest",
            _cost_errors(model),
            media=EVERYWHERE,
        ),
        [
            *(
                [f"{uncounted} without a valid measurement: this model claims nothing."]
                if model.uncounted
                else []
            ),
            *(
                [f"The measurements cannot separate these from other costs: {', '.join(missing)}."]
                if missing
                else []
            ),
        ],
    )


def _costs_table(model: CostModel) -> Table:
    def value(one: CostEstimate) -> str:
        if one.value is None:
            return NOTHING
        sharing = next(part.sharing for part in model.formula.parts if part.name == one.part)
        # The most that were measured do not fill it.
        unfilled = not one.unit and one.value >= model.measured[sharing].high
        return term_value(one.value, one.unit) + (" or more" if unfilled else "")

    def interval(one: CostEstimate) -> str:
        if one.low is None or one.high is None:
            return NOTHING
        return f"{term_value(one.low, one.unit)} to {term_value(one.high, one.unit)}"

    return table_of(
        [
            Column("term", lambda one: _name(model, one), words=True),
            Column("what it is", lambda one: one.meaning, words=True),
            Column("value", value),
            Column("95 % interval", interval),
        ],
        model.estimates,
    )


def _name(model: CostModel, one: CostEstimate) -> str:
    return f"{one.part}.{one.name}" if len(model.formula.parts) > 1 else one.name


def _cost_errors(model: CostModel) -> Table:
    """A row for each way of holding cases out, with a column for each part."""
    names = [name for name in (TOTAL, *model.held_out) if name in model.held_out]
    names = list(dict.fromkeys(names))
    heads = names if len(names) > 1 else [model.quantity]
    rows: dict[str, list[str]] = {}
    for name in names:
        for one in model.held_out[name]:
            rows.setdefault(one.what, [one.what, str(len(one.errors))]).append(
                f"{percent(one.typical, 0)}, {percent(one.largest, 0)}"
            )
    head = ["held out", f"{model.formula.noun}s", *heads]
    return Table(head, list(rows.values()), words=frozenset({"held out"}))
