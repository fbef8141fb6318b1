"""Curves over sizes, numbers of tasks or cores, as the script of the pages draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gridbench.formats import amount
from gridbench.pages.axis import axis_of, is_wide
from gridbench.statistics.interval import Interval


@dataclass(slots=True)
class Line:
    """One line of a picture."""

    name: str
    points: list[tuple[str, Interval, bool]] = field(default_factory=list)
    """Where on the x axis, the value, and whether it counts."""
    engine: str = ""
    """Which it is of; none for a limit."""
    variant: str = ""
    """Lines of one engine are told apart by it."""
    dash: str = ""
    """For what was not measured, such as a limit: how it is drawn."""

    def add(self, where: str, value: Interval | None, *, counts: bool = True) -> None:
        """Add a point, if its value is known."""
        if value is not None and math.isfinite(value.value):
            self.points.append((where, value, counts))


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with its title and what has to be said about it."""

    id: str
    title: str
    about: str
    x_title: str
    places: Sequence[str]
    """The values of the x axis as texts, in order; they are drawn at equal distances."""
    y_title: str
    unit: str
    lines: Sequence[Line]

    @property
    def drawn(self) -> bool:
        """Whether there is anything to draw."""
        return any(line.points for line in self.lines)

    def data(self) -> dict[str, Any]:
        """What the page's script needs."""
        values = [value.value for line in self.lines for _, value, _ in line.points]
        above = [value for value in values if value > 0]
        logarithmic = is_wide(above) and self.unit != "%"
        lines = [self._line(line, logarithmic=logarithmic) for line in self.lines if line.points]
        shown = [y for line in lines for y in line["y"]]
        y_axis = axis_of(shown, self.unit, logarithmic=logarithmic, from_zero=not logarithmic)
        if self.unit == "%":
            # Room for a mark at 100 %, and no more: there is no more.
            y_axis["range"] = [0, 104]
        return {
            "x": {
                "log": False,
                "title": self.x_title,
                "range": [-0.3, len(self.places) - 0.7],
                "ticks": list(range(len(self.places))),
                "texts": list(self.places),
            },
            "y": y_axis | {"title": self.y_title + (", logarithmic" if logarithmic else "")},
            "units": ["", self.unit],
            "lines": lines,
        }

    def rows(self) -> list[list[str]]:
        """The same as a table: line, x, value, interval."""
        return [
            [line.name, where, amount(value.value, self.unit, 4), self._between(value)]
            for line in self.lines
            for where, value, _ in line.points
        ]

    def _line(self, line: Line, *, logarithmic: bool) -> dict[str, Any]:
        # A logarithmic axis has no place for 0 and less.
        kept = [point for point in line.points if not logarithmic or point[1].value > 0]
        kept.sort(key=lambda point: self.places.index(point[0]))
        made: dict[str, Any] = {
            "name": line.name,
            "engine": line.engine,
            "variant": list(dict.fromkeys(one.variant for one in self.lines)).index(line.variant),
            "x": [self.places.index(where) for where, _, _ in kept],
            "y": [value.value for _, value, _ in kept],
            "low": [self._end(value.low, logarithmic=logarithmic) for _, value, _ in kept],
            "high": [self._end(value.high, logarithmic=logarithmic) for _, value, _ in kept],
            "hover": [self._hover(line.name, *point) for point in kept],
        }
        if line.dash:
            made["dash"] = line.dash
        else:
            made["hollow"] = [not counts for _, _, counts in kept]
        return made

    def _hover(self, name: str, where: str, value: Interval, counts: bool) -> list[str]:
        told = [name, f"{where}: {amount(value.value, self.unit, 4)}"]
        between = self._between(value)
        told += [between] if between else []
        return told if counts else [*told, "marked invalid"]

    def _between(self, value: Interval) -> str:
        if value.low == value.high:
            return ""
        high = amount(value.high, self.unit, 4) if math.isfinite(value.high) else "any"
        return f"{amount(value.low, self.unit, 4)} to {high}"

    @staticmethod
    def _end(value: float, *, logarithmic: bool) -> float | None:
        return value if math.isfinite(value) and (value > 0 or not logarithmic) else None
