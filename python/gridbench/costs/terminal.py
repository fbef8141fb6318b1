"""A model of costs in a terminal: its terms with intervals, and how wrong it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.costs.model import TOTAL, CostModel, Estimate
from gridbench.formats import NOTHING, counted, digits, duration, percent
from gridbench.terminal import new_table

_MB = 2**20


def print_model(console: Console, model: CostModel) -> None:
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
    console.print(_terms(model))
    if missing := [_name(model, one) for one in model.estimates if one.value is None]:
        console.print(
            Text(f"Not told apart from the others by what was measured: {', '.join(missing)}.")
        )
    if model.held_out:
        console.print(_errors(model))
    console.print()


def amount(value: float, unit: str) -> str:
    """A term's value: a time, the time of a megabyte, or a number."""
    if not unit:
        return digits(value)
    return f"{duration(value * _MB)}/MB" if unit == "s/byte" else duration(value)


def _terms(model: CostModel) -> Table:
    table = new_table(words=("term", "what it is"), numbers=("value", "95 % interval"))
    for one in model.estimates:
        table.add_row(_name(model, one), one.meaning, _value(model, one), _interval(one))
    return table


def _value(model: CostModel, one: Estimate) -> str:
    if one.value is None:
        return NOTHING
    sharing = next(part.sharing for part in model.formula.parts if part.name == one.part)
    # The most that were measured do not fill it.
    unfilled = not one.unit and one.value >= model.measured[sharing].high
    return amount(one.value, one.unit) + (" or more" if unfilled else "")


def _interval(one: Estimate) -> str:
    if one.low is None or one.high is None:
        return NOTHING
    return f"{amount(one.low, one.unit)} to {amount(one.high, one.unit)}"


def _name(model: CostModel, one: Estimate) -> str:
    return f"{one.part}.{one.name}" if len(model.formula.parts) > 1 else one.name


def _errors(model: CostModel) -> Table:
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
