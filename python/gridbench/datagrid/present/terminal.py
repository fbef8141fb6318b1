"""The cases as a table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from gridbench.datagrid.cases import repeats_of
from gridbench.datagrid.present.notes import headline, notices
from gridbench.datagrid.present.rows import cases_table, marks_told
from gridbench.datagrid.record import DataGridCase
from gridbench.pages.terminal import fitted
from gridbench.terminal import say

_RANGES = 170
"""Columns from which on a terminal has room for the ranges."""
_FROM = {
    "repeats": 145,
    "with start-up": 135,
    "data rate": 125,
    "how": 115,
    "scenario": 105,
    "members": 95,
    "p50": 90,
    "task time": 85,
}
"""The same of what is left out first."""
_WORDS = {"engine": 10, "operation": 6, "how": 14, "data": 6}
"""Columns of words, with the characters of a line that each has at least."""


def answer(cases: Sequence[DataGridCase]) -> str:
    """The first sentence of the outcome."""
    return headline(repeats_of(cases))[0]


def print_table(console: Console, cases: Sequence[DataGridCase]) -> None:
    """One row for each case, and the outcome in sentences."""
    groups = repeats_of(cases)
    if groups:
        made, notes = cases_table(groups), console.width >= _RANGES
        console.print(fitted(made, console.width, wide=_FROM, words=_WORDS, notes=notes))
        if told := marks_told(groups):
            say(console, told)
    for line in [*headline(groups), *notices(groups)]:
        say(console, line)
