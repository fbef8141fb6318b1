"""A model in a terminal: its terms with intervals, and how wrong it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.costs.spans import Span
from gridbench.formats import NOTHING, amount, bit_rate, counted, duration, percent, size, whole
from gridbench.model.fit import Estimate, Fit
from gridbench.model.held_out import WEIGHTY, HeldOut, HeldOutCase
from gridbench.model.model import Model
from gridbench.model.observation import Place
from gridbench.model.repeated import Repeated
from gridbench.terminal import new_table

_MB = 2**20
_WORST = 3
"""Cases named for each way of holding out."""


def print_model(console: Console, model: Model) -> None:
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


def _runs(fit: Fit) -> str:
    few = "" if fit.runs == fit.known else f", drawn from {fit.known:,} at random"
    return counted(fit.runs, "run") + few


def place_told(place: Place) -> str:
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


def _terms(estimates: Sequence[Estimate]) -> Table:
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


def _errors(ways: Sequence[HeldOut]) -> Table:
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


def _worst(one: HeldOut) -> str:
    if one.refused:
        return f"{one.what}: not possible: {one.refused}"
    worst = sorted(one.weighty, key=lambda case: -abs(case.overhead_error))[:_WORST]
    return f"{one.what}: furthest off: " + ("; ".join(map(_case, worst)) or "none")


def _repeated(one: Repeated) -> str:
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


def _ranges(model: Model) -> str:
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
