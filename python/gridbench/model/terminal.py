"""Models in a terminal: terms with intervals, and errors of what was held out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.formats import (
    NOTHING,
    amount,
    bit_rate,
    counted,
    digits,
    duration,
    percent,
    size,
    whole,
)
from gridbench.model.cost_model import TOTAL, CostEstimate, CostModel
from gridbench.model.fit import PipelineFit, TermEstimate
from gridbench.model.held_out import WEIGHTY, HeldOutCase, HeldOutRuns, RepeatSpread
from gridbench.model.model import PipelineModel
from gridbench.model.observation import EnginePlace
from gridbench.model.spans import Span
from gridbench.terminal import new_table

_MB = 2**20
_WORST = 3
"""Cases named for each way of holding out."""


def print_model(console: Console, model: PipelineModel) -> None:
    """All of it."""
    fit = model.fit
    console.print(Text(place_told(fit.place), style="bold"))
    console.print(
        Text(
            f"{fit.shape.told()}. Fitted to {_runs(fit)}: {_ranges(model)}. Overheads"
            f" of these runs are {percent(math.expm1(fit.spread))} off, typically."
        )
    )
    console.print(_terms(fit.estimates))
    if loose := [one.term.name for one in fit.estimates if not one.determined]:
        console.print(
            Text(f"Not determined by these runs, except that they are no larger: {_list(loose)}.")
        )
    if model.held_out:
        console.print(_errors(model.held_out))
        if model.repeated:
            console.print(Text(_repeated(model.repeated)))
        for one in model.held_out:
            console.print(Text(_worst(one)))
    console.print()


def _runs(fit: PipelineFit) -> str:
    few = "" if fit.runs == fit.known else f", drawn from {fit.known:,} at random"
    return counted(fit.runs, "run") + few


def place_told(place: EnginePlace) -> str:
    """Engine, version, machine and links in one line."""
    if place.transport == "network":
        return f"{place.engine}: the system that made these task logs, on a network"
    where = f"{place.engine} {place.version} on {place.host}, {place.processors} processors"
    if place.transport == "one host":
        return f"{where}, client and workers on one host"
    rate = f" of {bit_rate(place.link_rate)}" if place.link_rate else ""
    return f"{where}, {counted(place.nodes, 'node')} behind links{rate}"


def term_value(value: float, unit: str) -> str:
    """A term's value: a time, or the time of a megabyte."""
    return f"{duration(value * _MB)}/MB" if unit == "s/byte" else duration(value)


def _terms(estimates: Sequence[TermEstimate]) -> Table:
    table = new_table(words=("term", "what it is"), numbers=("value", "95 % interval", "as a rate"))
    for one in estimates:
        unit = one.term.unit
        interval = f"{term_value(one.low, unit)} to {term_value(one.high, unit)}"
        rate = amount(1 / one.value, "bytes/s") if unit == "s/byte" else ""
        table.add_row(
            one.term.name,
            one.term.meaning,
            term_value(one.value, unit) if one.determined else NOTHING,
            interval if one.determined else f"below {term_value(one.high, unit)}",
            rate if one.determined else "",
        )
    return table


def _errors(ways: Sequence[HeldOutRuns]) -> Table:
    table = new_table(
        f"Errors of runs held out; overheads of at least {percent(WEIGHTY, 0)} of the total",
        words=("held out",),
        numbers=("fitted", "held", "overhead: runs", "median", "90th", "total: median", "90th"),
    )
    for one in ways:
        if one.refused:
            table.add_row(one.what, f"{one.fitted}", "0", "", "", "", "", "")
            continue
        table.add_row(
            one.what,
            f"{one.fitted}",
            f"{len(one.cases)}",
            f"{len(one.weighty)}",
            percent(one.overhead(50)),
            percent(one.overhead(90)),
            percent(one.total(50)),
            percent(one.total(90)),
        )
    return table


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


def _ranges(model: PipelineModel) -> str:
    measured = model.measured
    parts = [
        f"{_span(measured.cores, whole)} cores",
        f"{_span(measured.tasks, whole)} tasks",
        f"of {_span(measured.sleep, duration)}",
    ]
    for span, what in (
        (measured.bytes_in, "task data"),
        (measured.bytes_shared, "shared data"),
        (measured.bytes_out, "output"),
    ):
        parts.append(f"{_span(span, size)} of {what}" if span.high else f"no {what}")
    return ", ".join([*parts, " and ".join(measured.starts) + " start"])


def _span(span: Span, shown: Callable[[float], str]) -> str:
    if span.low == span.high:
        return shown(span.low)
    return f"{shown(span.low)} to {shown(span.high)}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


_MB_COST = 2**20


def print_cost_model(console: Console, model: CostModel) -> None:
    """All of it."""
    formula = model.formula
    console.print(Text(model.told, style="bold"))
    ranges = ", ".join(
        f"{one.what}: {model.measured[one.name].told(one.shown)}" for one in formula.parameters
    )
    console.print(
        Text(
            f"Predicts the {formula.quantity}. Fitted to {counted(model.cases, formula.noun)},"
            f" {counted(model.repeats, 'measurement')}: {ranges}. These are"
            f" {percent(math.expm1(model.spread))} off (root mean square)."
        )
    )
    if model.uncounted:
        console.print(
            Text(
                f"{counted(model.uncounted, formula.noun)} without a valid measurement: nothing"
                " can be claimed from this model."
            )
        )
    console.print(_cost_terms(model))
    if missing := [_name(model, one) for one in model.estimates if one.value is None]:
        console.print(
            Text(f"Not told apart from the others by what was measured: {', '.join(missing)}.")
        )
    if model.held_out:
        console.print(_cost_errors(model))
    console.print()


def cost_amount(value: float, unit: str) -> str:
    """A term's value: a time, the time of a megabyte, or a number."""
    if not unit:
        return digits(value)
    return f"{duration(value * _MB_COST)}/MB" if unit == "s/byte" else duration(value)


def _cost_terms(model: CostModel) -> Table:
    table = new_table(words=("term", "what it is"), numbers=("value", "95 % interval"))
    for one in model.estimates:
        table.add_row(_name(model, one), one.meaning, _value(model, one), _interval(one))
    return table


def _value(model: CostModel, one: CostEstimate) -> str:
    if one.value is None:
        return NOTHING
    sharing = next(part.sharing for part in model.formula.parts if part.name == one.part)
    # The most that were measured do not fill it.
    unfilled = not one.unit and one.value >= model.measured[sharing].high
    return cost_amount(one.value, one.unit) + (" or more" if unfilled else "")


def _interval(one: CostEstimate) -> str:
    if one.low is None or one.high is None:
        return NOTHING
    return f"{cost_amount(one.low, one.unit)} to {cost_amount(one.high, one.unit)}"


def _name(model: CostModel, one: CostEstimate) -> str:
    return f"{one.part}.{one.name}" if len(model.formula.parts) > 1 else one.name


def _cost_errors(model: CostModel) -> Table:
    rows: dict[str, list[str]] = {}
    names: Sequence[str] = [TOTAL, *(name for name in model.held_out if name != TOTAL)]
    heads = names if len(names) > 1 else [model.quantity]
    table = new_table(
        "Errors of what was held out: median, and largest",
        words=("held out",),
        numbers=(f"{model.formula.noun}s", *heads),
    )
    for name in names:
        for one in model.held_out[name]:
            rows.setdefault(one.what, [str(len(one.errors))]).append(
                f"{percent(one.typical, 0)}, {percent(one.largest, 0)}"
            )
    for what, cells in rows.items():
        table.add_row(what, *cells)
    return table
