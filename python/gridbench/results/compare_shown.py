"""A comparison of two results, in the terminal and as a page."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from gridbench.formats import amount, digits
from gridbench.pages import render as pages
from gridbench.pages.table import Table
from gridbench.result_kind import Measure
from gridbench.results.compare import Compared, told
from gridbench.terminal import new_table

_HEAD = ("figure", "first", "second", "ratio", "95 % bounds", "")
_WORDS = {"better": "better", "worse": "worse", "no difference": "–", "too few": "too few"}
_STYLES = {"worse": "red", "better": "green", "no difference": "", "too few": "dim"}


def print_compared(console: Console, found: Sequence[Compared]) -> None:
    """One sentence, and a line for each figure, the worst first."""
    table = new_table("Second by first, in the medians", words=_HEAD[:1], numbers=_HEAD[1:])
    for one in found:
        table.add_row(*_cells(one), style=_STYLES[one.verdict])
    console.print(table)
    console.print(Text(told(found), style="bold"))


def render_compared(found: Sequence[Compared], first: Path, second: Path) -> str:
    """The same as a page."""
    return pages.render(
        "results/compare.html",
        f"gridbench report: {first.name} and {second.name}",
        {},
        scripts=[],
        kind="gridbench report",
        heading=f"{second.name} against {first.name}",
        subheading=f"first: {first} · second: {second}",
        navigation=[],
        verdict=told(found),
        compared=Table(_HEAD, [_cells(one) for one in found]),
    )


def _cells(one: Compared) -> list[str]:
    return [
        f"{one.engine}: {one.what}",
        _value(one.before),
        _value(one.after),
        digits(one.ratio),
        " – ".join(map(digits, one.bounds)),
        _WORDS[one.verdict],
    ]


def _value(measure: Measure) -> str:
    return amount(statistics.median(measure.values), measure.unit)
