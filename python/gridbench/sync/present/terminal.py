"""The cases as a table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from gridbench.pages.terminal import fitted
from gridbench.sync.bottlenecks import bottlenecks as limits_of
from gridbench.sync.cases import cases_of
from gridbench.sync.present.limiting import Limits, remembered
from gridbench.sync.present.notes import headline, notices
from gridbench.sync.present.rows import NOT_COUNTED, cases_table
from gridbench.sync.record import Round
from gridbench.terminal import say

NO_COUNT = f"{NOT_COUNTED} No round of this case counts: its figures are of all rounds."
_RANGES = 160
"""Columns from which on a terminal has room for the ranges."""
_FROM = {"rounds": 135, "limited by": 135, "stragglers": 110, "tasks ok": 95, "not ok": 95}
"""The same of what is told in sentences too."""
_WORDS = dict.fromkeys(("parameter", "rate", "limited by"), 1)
"""Columns of words, with the characters of a line that each has at least."""


def answer(rounds: Sequence[Round]) -> str:
    """The first sentence of the outcome."""
    return headline(cases_of(rounds), remembered(limits_of))[0]


def print_table(console: Console, rounds: Sequence[Round], *, limits: Limits = limits_of) -> None:
    """One row for each number of workers and parameter, and the outcome in sentences."""
    cases = cases_of(rounds)
    limits = remembered(limits)
    if cases:
        ranges = console.width >= _RANGES
        made = cases_table(cases, limits, ranges=ranges)
        console.print(fitted(made, console.width, wide=_FROM, words=_WORDS, notes=ranges))
        if not all(case.counts for case in cases):
            say(console, NO_COUNT)
    for line in [*headline(cases, limits), *notices(cases)]:
        say(console, line)
