"""Curves over workers or parameters, as the script of the page draws them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gridbench.formats import amount, as_given, round_amount, scale
from gridbench.pages.chart import Chart
from gridbench.pages.colours import SERIES, engine_colours
from gridbench.pages.table import Table
from gridbench.statistics.interval import Interval

# ---- Axes

_WIDE = 20
"""Values that differ by more than this factor are shown on a logarithmic axis."""
_ROOM = 70
"""Characters that fit below an axis on paper."""


def axis_of(
    values: Iterable[float], unit: str, *, logarithmic: bool, from_zero: bool = False
) -> dict[str, Any]:
    """Where an axis begins and ends, and its ticks with their texts, for the page's script."""
    known = list(values) or [1.0]
    low, high = min(known), max(known)
    if logarithmic:
        ends, ticks = _decades(low, high)
        texts = [round_amount(tick, unit) for tick in ticks]
        while len(texts) > 3 and len("  ".join(texts)) > _ROOM:
            ticks, texts = ticks[::2], texts[::2]
        return {"log": True, "range": ends, "ticks": ticks, "texts": texts}
    low, high = (min(low, 0.0), max(high, 0.0)) if from_zero else (low, high)
    step = _step((high - low) or abs(high) or 1.0)
    first, last = math.floor(low / step), math.ceil(high / step * 1.02)
    ticks = [n * step for n in range(first, last + 1)]
    shown = scale(max(abs(ticks[0]), abs(ticks[-1])), unit)
    return {
        "log": False,
        "range": [ticks[0], ticks[-1]],
        "ticks": ticks,
        "texts": [as_given(shown.factor * tick, shown.suffix) for tick in ticks],
    }


def _decades(low: float, high: float) -> tuple[list[float], list[float]]:
    """The ends, with a margin, and powers of ten between them: not more than eight."""
    ends = [low / 1.6, high * 1.6]
    first, last = math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1]))
    every = 1 + (last - first) // 8
    inside = [10.0**n for n in range(first, last + 1) if ends[0] <= 10.0**n <= ends[1]]
    if len(inside) < 3:
        inside = [
            digit * 10.0**n
            for n in range(first, last + 1)
            for digit in (1, 2, 5)
            if ends[0] <= digit * 10.0**n <= ends[1]
        ]
        every = 1
    return ends, inside[::every]


def _step(length: float) -> float:
    """A round distance that divides `length` into four to ten parts."""
    power: float = 10.0 ** math.floor(math.log10(length))
    return next(power * part for part in (0.2, 0.5, 1, 2, 5) if length / (power * part) <= 8)


def is_wide(values: Sequence[float]) -> bool:
    """Whether the values want a logarithmic axis."""
    return _positive(values) and max(values) > _WIDE * min(values)


def _positive(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0


# ---- Curves

_WIDE_X = 8
"""From a factor of this on, places on the x axis are on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value of the x axis."""

    x: float
    text: str


def exactly(value: float) -> Interval:
    """A value without a range."""
    return Interval(value, value, value)


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its range, and whether it counts."""

    place: Place
    value: Interval
    counts: bool


@dataclass(frozen=True, slots=True)
class Line:
    """The points of one line, from left to right."""

    name: str
    points: Sequence[Point]
    engine: str = ""
    """Whose colour it has; empty: that of its place among the lines."""
    colour: str = ""
    """Its colour, if neither decides."""
    of: str = ""
    """The line whose colour it shares, by name: a model's, of what was measured."""
    variant: bool = False
    """A second line of the same colour, whose dashes tell it apart."""
    dash: str = ""
    """Of a limit, an expectation or another's figures, which have no marks; empty: it is measured.
    """
    joined: bool = True
    """Whether a line goes from mark to mark."""
    in_legend: bool = True


@dataclass(frozen=True, slots=True)
class Curve:
    """A picture with its title and its notes."""

    id: str
    title: str
    about: str
    x_title: str
    places: Sequence[Place]
    """From left to right."""
    y_title: str
    unit: str
    lines: Sequence[Line]
    numeric: bool = True
    """Whether the places are numbers; if not, they stand side by side."""

    @property
    def drawn(self) -> bool:
        """Whether it shows more than the table of cases does: two points, at least."""
        return len(self.places) > 1 and any(line.points for line in self.lines)

    def chart(self) -> Chart:
        """On the page, with its numbers as a table."""
        rows = [
            [line.name, point.place.text, amount(point.value.value, self.unit), self._range(point)]
            for line in self.lines
            if not line.dash
            for point in line.points
        ]
        head = ["line", self.x_title, self.y_title, "range"]
        return Chart(
            "curve",
            self.title,
            name=self.id,
            title=self.title,
            about=self.about,
            table=Table(head, rows),
            data=self.data() if self.drawn else None,
        )

    def data(self) -> dict[str, Any]:
        """What the page's script needs."""
        values = [point.value.value for line in self.lines for point in line.points]
        wide = is_wide(values) and self.unit != "%"
        ends = [
            end
            for line in self.lines
            for point in line.points
            for end in (point.value.low, point.value.high)
            if end > 0 or not wide
        ]
        y_axis = axis_of([*values, *ends], self.unit, logarithmic=wide, from_zero=not wide)
        if self.unit == "%":
            # Room for a mark at 100 %, and no more: there is no more.
            ticks = range(0, 101, 20)
            y_axis |= {"range": [0, 104], "ticks": [*ticks], "texts": [f"{t} %" for t in ticks]}
        x_axis = self._x_axis()
        scales = f"{self.x_title}{', logarithmic' if x_axis['log'] else ''}"
        return {
            "x": x_axis | {"title": scales},
            "y": y_axis | {"title": self.y_title + (", logarithmic" if wide else "")},
            "units": ["", self.unit],
            "lines": [self._line(line, wide=wide) for line in self.lines if line.points],
        }

    def _x_axis(self) -> dict[str, Any]:
        places = [place.x for place in self.places]
        low, high = min(places), max(places)
        log = self.numeric and low > 0 and high >= _WIDE_X * low
        room = 0.04 * (high - low) if self.numeric else 0.3
        return {
            "log": log,
            "range": [low / 1.15, high * 1.15] if log else [low - room, high + room],
            "ticks": places,
            "texts": [place.text for place in self.places],
        }

    def _line(self, line: Line, *, wide: bool) -> dict[str, Any]:
        # A logarithmic axis has no place for 0 and less.
        ends = [
            [end if end > 0 or not wide else None for end in (p.value.low, p.value.high)]
            for p in line.points
        ]
        return {
            "name": line.name,
            "index": self._index(line),
            "colour": self._colour(line),
            **({"engine": line.engine} if line.engine else {}),
            **({"variant": True} if line.variant else {}),
            **({"dash": line.dash} if line.dash else {}),
            **({} if line.joined else {"marks": True}),
            **({} if line.in_legend else {"unnamed": True}),
            "x": [point.place.x for point in line.points],
            "y": [point.value.value for point in line.points],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "hover": [self._hover(line.name, point) for point in line.points],
            "hollow": [not point.counts for point in line.points],
        }

    def _index(self, line: Line) -> int:
        """Its place among the lines, or that of the line that it belongs to."""
        names = [one.name for one in self.lines]
        return names.index(line.of) if line.of in names else self.lines.index(line)

    def _colour(self, line: Line) -> str:
        shown = self.lines[self._index(line)]
        own = shown.colour or (engine_colours([shown.engine])[shown.engine] if shown.engine else "")
        return own or SERIES[self._index(line) % len(SERIES)]

    def _hover(self, name: str, point: Point) -> list[str]:
        reported = [name] if name else []
        reported.append(
            f"{self.x_title} {point.place.text}: {amount(point.value.value, self.unit)}"
        )
        reported += [self._range(point)] if self._range(point) else []
        return reported if point.counts else [*reported, "does not count"]

    def _range(self, point: Point) -> str:
        low, high = point.value.low, point.value.high
        return f"{amount(low, self.unit)} to {amount(high, self.unit)}" if low < high else ""
