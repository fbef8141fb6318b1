"""Pictures as static SVG, for pages without a script, for Markdown and for paper.

They follow the reader's preference for light or dark, and have all their text inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from gridbench.formats import scale
from gridbench.pages.colours import SERIES
from gridbench.pages.curves import axis_of

WIDTH = 760
_ROW, _BAR = 46, 16
_LEFT, _RIGHT, _TOP = 4, 190, 8
_MARGIN = 10  # of paper around it
_LETTERS = 92  # of a name, in the width of the picture
_LOGARITHMIC = 50.0
"""Bars whose lengths differ by more than this factor have no common linear scale: they become
points on a logarithmic one."""
_STYLE = (
    "<style>text{font:13px system-ui,'Segoe UI',Roboto,'DejaVu Sans',Arial,sans-serif;fill:#1c2430}"
    ".soft{fill:#5b6675}.paper{fill:#fff}.axis{stroke:#b9c1cc}.grid{stroke:#e8ebf0}"
    ".range{stroke:#1c2430}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e8ee}.soft{fill:#a3adba}"
    ".paper{fill:#171c23}.axis{stroke:#6b7686}.grid{stroke:#2a323d}.range{stroke:#e4e8ee}}"
    "@media print{text,.soft{fill:#000}.range{stroke:#000}.paper{fill:#fff}}</style>"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its interval."""

    name: str
    value: float
    low: float
    high: float
    note: str = ""
    """Behind the value."""
    colour: str = SERIES[0]
    hollow: bool = False
    """Whether it does not count."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A value at a place of the x axis, from 0 to 1, with its interval."""

    x: float
    value: float
    low: float
    high: float
    label: str
    """Below the axis."""
    hollow: bool = False


def bars(
    made: Sequence[Bar],
    unit: str,
    label: str,
    *,
    reference: float | None = None,
    paper: bool = False,
) -> str:
    """Horizontal bars below each other, all in one unit, each below its name.

    `label`: what the picture shows, for those who cannot see it. `reference`: a value that each bar
    is marked at. `paper`: an opaque background, for pages that choose light or dark themselves.
    """
    most = max(bar.value for bar in made)
    least = min(bar.value for bar in made)
    shown = scale(most if most < 1000 * least else math.sqrt(most * least), unit)
    wide = least <= 0 or most > _LOGARITHMIC * least
    logarithmic = wide and least > 0
    low = 10 ** math.floor(math.log10(least) - 0.1) if logarithmic else 0.0
    high = max(most, *(bar.high for bar in made if math.isfinite(bar.high)))
    room = WIDTH - _LEFT - _RIGHT

    def place(value: float) -> float:
        if logarithmic:
            share = math.log(max(value, low) / low) / math.log(high / low)
        else:
            share = max(value, 0.0) / high if high else 0.0
        return _LEFT + room * min(share, 1.0)

    def lines() -> Iterator[str]:
        for number, bar in enumerate(made):
            top = _TOP + number * _ROW
            end = place(bar.value)
            middle = top + 20 + _BAR / 2
            name = bar.name if len(bar.name) <= _LETTERS else f"{bar.name[: _LETTERS - 1]}…"
            yield (
                f'<text x="{_LEFT}" y="{top + 13}"><title>{escape(bar.name)}</title>'
                f"{escape(name)}</text>"
            )
            fill = (
                f'fill="{bar.colour}" fill-opacity=".25" stroke="{bar.colour}"'
                if bar.hollow
                else f'fill="{bar.colour}"'
            )
            if logarithmic:
                yield _line("grid", _LEFT, _LEFT + room, middle)
                yield f'<circle cx="{end:.1f}" cy="{middle}" r="6" {fill}/>'
            else:
                width = max(1.0, end - _LEFT)
                yield (
                    f'<rect x="{_LEFT}" y="{top + 20}" width="{width:.1f}" height="{_BAR}" rx="2"'
                    f" {fill}/>"
                )
            if reference is not None:
                x = place(reference)
                yield (
                    f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{middle - 10}"'
                    f' y2="{middle + 10}" stroke-width="2"/>'
                )
            yield from _range(place(bar.low), place(bar.high), middle)
            text = " ".join(filter(None, [shown.text(bar.value), bar.note]))
            yield (
                f'<text x="{max(end, place(bar.high)) + 9:.1f}" y="{middle + 4.5}">'
                f"{escape(text)}</text>"
            )
        if logarithmic:
            yield (
                f'<text class="soft" x="{_LEFT}" y="{_TOP + len(made) * _ROW + 10}">'
                "logarithmic scale</text>"
            )
        if reference is not None:
            yield (
                f'<text class="soft" text-anchor="middle" x="{place(reference):.1f}"'
                f' y="{_TOP + len(made) * _ROW + 10}">{shown.text(reference)}</text>'
            )

    last = logarithmic or reference is not None
    height = _TOP + len(made) * _ROW + (18 if last else 0)
    return _picture(lines(), height, label, paper=paper)


def over_time(made: Sequence[Mark], unit: str, label: str, colour: str = SERIES[0]) -> str:
    """Values from left to right, joined by a line, with an axis from 0."""
    height, bottom, left = 190, 40, 74
    known = [end for mark in made for end in (mark.value, mark.low, mark.high)]
    axis = axis_of(known, unit, logarithmic=False, from_zero=True)
    low, high = map(float, axis["range"])
    room = WIDTH - left - 60

    def x_of(mark: Mark) -> float:
        return left + 20 + room * mark.x

    def y_of(value: float) -> float:
        return 12 + (height - bottom - 12) * (1 - (value - low) / ((high - low) or 1.0))

    def lines() -> Iterator[str]:
        for tick, text in zip(axis["ticks"], axis["texts"], strict=True):
            y = y_of(tick)
            yield _line("grid", left, WIDTH - 10, y)
            yield (
                f'<text class="soft" text-anchor="end" x="{left - 8}" y="{y + 4.5:.1f}">'
                f"{escape(text)}</text>"
            )
        points = " ".join(f"{x_of(mark):.1f},{y_of(mark.value):.1f}" for mark in made)
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for mark in made:
            x, y = x_of(mark), y_of(mark.value)
            yield (
                f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" y1="{y_of(mark.low):.1f}"'
                f' y2="{y_of(mark.high):.1f}"/>'
            )
            yield (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke="{colour}" stroke-width="2"'
                f' fill="{colour}" fill-opacity="{0.2 if mark.hollow else 1}"/>'
            )
        free = -math.inf
        for mark in made:  # labels that would overlap are left out
            if x_of(mark) - free >= 84:
                free = x_of(mark)
                yield (
                    f'<text class="soft" text-anchor="middle" x="{free:.1f}" y="{height - 18}">'
                    f"{escape(mark.label)}</text>"
                )

    return _picture(lines(), height, label)


def _range(left: float, right: float, y: float) -> Iterator[str]:
    if right - left < 1:
        return
    yield _line("range", left, right, y)
    for x in (left, right):
        yield f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 4}" y2="{y + 4}"/>'


def _line(style: str, left: float, right: float, y: float) -> str:
    return f'<line class="{style}" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _picture(lines: Iterator[str], height: float, label: str, *, paper: bool = False) -> str:
    margin = _MARGIN if paper else 0
    left, wide, high = -margin, WIDTH + 2 * margin, height + 2 * margin
    background = (
        f'<rect class="paper" x="{left}" y="{left}" width="{wide}" height="{high}" rx="6"/>'
        if paper
        else ""
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left} {left} {wide} {high}"'
        f' width="{wide}" height="{high}" role="img" aria-label="{escape(label)}">'
        f"{_STYLE}{background}" + "".join(lines) + "</svg>"
    )
