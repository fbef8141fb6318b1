"""A sweep as one HTML page that holds all it needs; the pictures are drawn by sweep.js."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.formats import as_given, duration, percent
from gridbench.pages import render as pages
from gridbench.pages.chart import Chart
from gridbench.pages.table import Table
from gridbench.simulate.account import Account
from gridbench.simulate.sweep import Swept
from gridbench.simulate.terminal import SWEEP_HEAD, heading, links, sweep_rows

_WIDE = 20
"""Values that differ by more than this factor are shown on a logarithmic axis."""


def write_sweep(swept: Swept, path: Path) -> None:
    """Write the page, completely or not at all. InputError if `path` cannot be written."""
    write_file(path, render(swept))


def render(swept: Swept) -> str:
    """The whole page as HTML."""
    first = swept.accounts[0]
    axis = swept.sweep.axis.name
    return pages.render(
        "simulate/sweep.html",
        f"gridbench simulate: {first.system.name}",
        _data(swept),
        scripts=["simulate/sweep.js"],
        kind="gridbench simulate",
        heading=f"{first.system.title}, simulated",
        subheading=f"{axis} varied; first: {heading(first.work)}; {links(first.system)}",
        navigation=[
            ("total", "Total time"),
            ("efficiency", "Efficiency"),
            ("parts", "Where the time goes"),
            ("profile", "Profile"),
        ],
        notices=[
            "No run was made: these are figures of a model.",
            *swept.accounts[-1].notices,
        ],
        values=Table([axis, *SWEEP_HEAD], sweep_rows(swept)),
        charts={
            "total": Chart("total", "Total and ideal time"),
            "efficiency": Chart("efficiency", "Efficiency and use"),
            "parts": Chart("parts", "Parts of the total time"),
        },
        profile=Table(
            ["", "value", "from"],
            [
                [given.name, as_given(given.value, given.unit), given.source]
                for given in first.system.given
            ],
        ),
    )


def _data(swept: Swept) -> dict[str, Any]:
    accounts = swept.accounts
    x = list(swept.sweep.values)[: len(accounts)]
    used = list(dict.fromkeys(use.what for one in accounts for use in one.uses))
    shares = [{use.what: use.share for use in one.uses} for one in accounts]
    parts = list(dict.fromkeys(name for one in accounts for name in one.parts))
    return {
        "axis": swept.sweep.axis.name,
        "log": min(x) > 0 and max(x) > _WIDE * min(x),
        "x": x,
        "texts": [swept.sweep.axis.text(value) for value in x],
        "total": {
            "lines": [
                _line("total", [one.total for one in accounts], duration),
                _line("ideal", [one.ideal for one in accounts], duration, quiet=True),
            ]
        },
        "efficiency": {
            "lines": [
                _line("efficiency", [one.efficiency for one in accounts], percent),
                *(_line(name, [of.get(name, 0.0) for of in shares], percent) for name in used),
            ]
        },
        "parts": {
            "lines": [
                _line(name, [_part(one, name) for one in accounts], percent) for name in parts
            ]
        },
    }


def _part(one: Account, name: str) -> float:
    return one.parts.get(name, 0.0) / one.total if one.total else math.nan


def _line(name: str, values: Sequence[float], text: Any, *, quiet: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "y": [value if math.isfinite(value) else None for value in values],
        "texts": [text(value) for value in values],
        "quiet": quiet,
    }
