"""Figures as cells of tables."""

from __future__ import annotations

import math

from gridbench.datagrid.cases import RepeatedCase
from gridbench.datagrid.figures import Correctness
from gridbench.formats import NOTHING, amount, interval
from gridbench.pages.table import Cell
from gridbench.statistics.interval import Interval

NOT_COUNTED = "*"
"""Behind the name of a case of which no repeat is valid."""
TOO_SHORT = "†"
"""The same of one that counts, but was too short to judge whether throughput was steady."""
OUTCOMES = {
    "right": "right",
    "wrong": "WRONG",
    "lost": "incomplete",
    "not checked": "not checked",
}


def measured_cell(found: Interval | None, unit: str) -> Cell:
    """A figure, with its range as a note."""
    if found is None:
        return Cell(NOTHING)
    return Cell(amount(found.value, unit), between(found, unit))


def between(found: Interval, unit: str) -> str:
    """`251–290 µs`, in the unit of the value; empty if there is no range."""
    if found.low >= found.high or not math.isfinite(found.low + found.high):
        return ""
    return interval(found.low, found.high, unit, around=found.value, alone=True)


def number_cell(value: float | None, unit: str) -> Cell:
    """A figure without a range."""
    return Cell(NOTHING if value is None or not math.isfinite(value) else amount(value, unit))


def mark_of(group: RepeatedCase) -> str:
    """What stands behind its name, or its figure, if a reader has to know something of it."""
    if not group.counts:
        return NOT_COUNTED
    return TOO_SHORT if group.too_short else ""


def engine_cell(group: RepeatedCase) -> Cell:
    """The product, with a mark if no repeat is valid, or if they were too short to judge."""
    return Cell(f"{group.case.title}{mark_of(group)}")


def data_cell(group: RepeatedCase) -> Cell:
    """Whether the data were right in all repeats."""
    worst = worst_of(group)
    style = "bad" if worst.outcome in ("wrong", "lost") else ""
    return Cell(OUTCOMES[worst.outcome], style=style)


def worst_of(group: RepeatedCase) -> Correctness:
    """The worst outcome of the repeats that came to an end."""
    order = ("wrong", "lost", "not checked", "right")
    pairs = zip(group.cases, group.all_figures, strict=True)
    found = [figures.correctness for case, figures in pairs if case.status == "done"]
    return min(found or [Correctness("not checked")], key=lambda one: order.index(one.outcome))
