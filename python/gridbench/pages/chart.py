"""A picture as every page shows it: a specification that the script draws, and its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from gridbench.pages.table import Table


@dataclass(frozen=True, slots=True)
class Chart:
    """A `curve` (see `gridbench.pages.curves`) or a `figure`, which the page's script draws."""

    kind: Literal["curve", "figure"]
    label: str
    """What it shows, for those who cannot see it."""
    name: str
    """Its key in the data of the page."""
    title: str = ""
    """A heading above it."""
    about: str = ""
    table: Table | None = None
    data: Mapping[str, Any] | None = None
    """The specification; None: there is nothing to draw."""


def names_axis(names: Sequence[Any], **more: Any) -> dict[str, Any]:
    """A y axis of names from top to bottom, each at its number: shortened names may be alike."""
    return {
        "title": "",
        "range": [len(names) - 0.4, -0.6],
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "showgrid": False,
        "zeroline": False,
        **more,
    }


def vertical(at: float, colour: str = "var(--ink)", dash: str = "dash") -> dict[str, Any]:
    """A line from the bottom of a chart to its top."""
    line = {"color": colour, "width": 1.5, "dash": dash}
    return {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def horizontal(at: float, colour: str = "var(--soft)", dash: str = "dot") -> dict[str, Any]:
    """A line from the left of a chart to its right."""
    line = {"color": colour, "width": 1, "dash": dash}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at, "line": line}


def note(text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
    """A text in a chart; `more` says what `x` and `y` are of, and its anchors."""
    font = {"size": 12, "color": "var(--ink)"}
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": font, **more}


def figure(
    traces: Sequence[Mapping[str, Any]],
    *,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    label: str,
    name: str,
    title: str = "",
    about: str = "",
    height: int = 380,
    layout: Mapping[str, Any] | None = None,
    table: Table | None = None,
) -> Chart:
    """A chart from Plotly's own specification: traces, the axes `x` and `y` (their `title` is a
    text), and more of the layout.

    Texts need no escaping. Colours of the page are `var(--ink)`, `var(--soft)`, `var(--paper)`,
    `var(--accent)`, `var(--grid)` and `var(--axis)`; they follow light and dark.
    """
    data = {
        "traces": list(traces),
        "x": dict(x),
        "y": dict(y),
        "height": height,
        "layout": dict(layout or {}),
    }
    shown = data if traces else None
    return Chart("figure", label, name=name, title=title, about=about, table=table, data=shown)


T = TypeVar("T")


def downsample(items: Sequence[T], most: int) -> list[T]:
    """At most so many of them, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(n * (len(items) - 1) / (most - 1))] for n in range(most)]
