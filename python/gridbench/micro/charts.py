"""Charts as specifications: bars of one figure, curves, percentiles, and ratios of all figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gridbench.formats import NOTHING, amount, interval, round_amount, shortened, times
from gridbench.micro.record import (
    CurveLine,
    FigureCurve,
    FigureEntry,
    MicroFigure,
    Ratio,
    Results,
)
from gridbench.micro.sentences import reason
from gridbench.micro.tables import best_first, families, percentiles
from gridbench.micro.wording import (
    advantage,
    against_limit,
    against_peer,
    first_limit,
    has_value,
    indicated,
    label,
    ours,
    peer_interval,
    status_word,
    titled,
)
from gridbench.pages.chart import Chart, figure, names_axis, vertical
from gridbench.pages.colours import engine_colours
from gridbench.pages.curves import Curve, Line, Place, Point, axis_of, exactly, is_wide
from gridbench.pages.table import Table
from gridbench.statistics.interval import Interval

_LONGEST = 48
"""Letters of a name beside a picture."""
_TICKS = 6
_LIMIT = (
    "The limit is what the same machine did in the same rounds without an engine: a bare round"
    " trip, a copy, a fork."
)
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon")


# ---- One figure


def bars(made: MicroFigure) -> Chart:
    """One bar per engine, best first, then the limits."""
    entries = [entry for entry in best_first(made) if has_value(entry)]
    limits = [entry for entry in made.limits if has_value(entry)]
    shown = [*entries, *limits]
    names = [entry.engine for entry in entries]
    names += [f"{label(entry.engine)} (limit)" for entry in limits]
    values = [entry.median or 0.0 for entry in shown]
    colours = engine_colours([entry.engine for entry in entries])
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": names,
        "marker": {
            "color": [*(colours[e.engine] for e in entries), *["var(--paper)"] * len(limits)],
            "line": {"color": "var(--soft)", "width": [0] * len(entries) + [1] * len(limits)},
        },
        "hovertext": ["\n".join(_hover(made, entry)) for entry in shown],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "error_x": _errors(values, [(entry.low, entry.high) for entry in shown], "var(--ink)"),
    }
    texts = {
        "mode": "text",
        "x": [max(value, entry.high or value) for value, entry in zip(values, shown, strict=True)],
        "y": trace["y"],
        "text": [f"  {amount(value, made.unit)}" for value in values],
        "textposition": "middle right",
        "textfont": {"size": 12, "color": "var(--ink)"},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    axis = axis_of(values, made.unit, logarithmic=is_wide(values), from_zero=True)
    return figure(
        [trace, texts] if shown else [],
        x=_axis(axis, room=1.3) | {"title": "median"},
        y=_rows(names),
        label=titled(made.title),
        name=f"bars-{made.id}",
        title=titled(made.title),
        about=_about(made),
        height=90 + 25 * len(shown),
        layout={"showlegend": False, "bargap": 0.3, "dragmode": False,
                "margin": {"l": 20, "r": 16, "t": 6, "b": 52}},
    )  # fmt: skip


def _about(made: MicroFigure) -> str:
    absent = [f"{e.engine} ({status_word(e.status)})" for e in made.entries if not has_value(e)]
    without = f"; without a value: {', '.join(absent)}" if absent else ""
    noise = f"; equals differ by {times(made.noise)}" if made.noise > 1 else ""
    return f"{made.better} is better{noise}{without}"


def _hover(made: MicroFigure, entry: FigureEntry) -> list[str]:
    median = entry.median or 0.0
    between = interval(entry.low, entry.high, made.unit, around=median, alone=True)
    parts = [
        f"{label(entry.engine)}: {amount(median, made.unit)}",
        f"95 % interval {between}" if between else "",
        f"{entry.runs} runs",
        against_peer(made, entry.engine) if entry.engine in made.ratios else "",
        f"{entry.disturbed_runs} disturbed" if entry.disturbed_runs else "",
        reason(entry.status, entry.why) if entry.why else "",
    ]
    return [part for part in parts if part]


def percentile_curve(made: MicroFigure) -> Chart | None:
    """One line per engine over the percentiles of its samples; None without any."""
    entries = [e for e in best_first(made) if has_value(e) and e.percentiles]
    names = sorted({name for entry in entries for name in entry.percentiles or {}}, key=float)
    if not names:
        return None
    places = [Place(n, f"{name} %") for n, name in enumerate(names)]

    def points(entry: FigureEntry) -> list[Point]:
        known = entry.percentiles or {}
        values = [(place, known.get(name)) for place, name in zip(places, names, strict=True)]
        return [Point(place, exactly(v), counts=True) for place, v in values if v is not None]

    title = f"{titled(made.title)}, percentiles"
    drawn = Curve(
        id=f"percentiles-{made.id}",
        title=title,
        about="",
        x_title="share of the calls",
        places=places,
        y_title="at most",
        unit=made.unit,
        lines=[Line(entry.engine, points(entry), engine=entry.engine) for entry in entries],
        numeric=False,
    )
    return replace(drawn.chart(), table=percentiles(made))


def curve(drawn: FigureCurve) -> Chart:
    """One line per engine."""
    # What has no unit is a share, such as efficiency.
    factor, unit = (1.0, drawn.y.unit) if drawn.y.unit else (100.0, "%")

    def place(x: float) -> Place:
        return Place(x, round_amount(x, drawn.x.unit))

    def points(line: CurveLine) -> list[Point]:
        lows, highs = line.low or line.y, line.high or line.y
        return [
            Point(place(x), Interval(y, low, high).times(factor), counts=True)
            for x, y, low, high in zip(line.x, line.y, lows, highs, strict=True)
        ]

    return Curve(
        id=f"curve-{drawn.id}",
        title=titled(drawn.title),
        about="",
        x_title=drawn.x.name,
        places=[place(x) for x in sorted({x for line in drawn.lines for x in line.x})],
        y_title=drawn.y.name,
        unit=unit,
        lines=[Line(line.engine, points(line), engine=line.engine) for line in drawn.lines],
    ).chart()


# ---- Ratios of all figures


@dataclass(frozen=True, slots=True)
class RatioPoint:
    """The advantage of an engine of gridrpc in a figure: above 1 if it is better."""

    figure: str
    engine: str
    value: float
    ends: tuple[float | None, float | None]
    certainty: str
    """`proven`, `provisional` or `no difference`."""
    told: str
    row: tuple[str, str]
    """For the table: the ratio, and what it is to."""


def against_best_peer(results: Results) -> Chart:
    """The advantage of each engine of gridrpc over the best peer, for each figure."""
    points = []
    for made, engine, ratio in _ratios(results):
        if (found := advantage(made, ratio)) is None:
            continue
        value, low, high = found
        claim = indicated(made, engine)
        sure = "proven" if claim == ratio.claim else "provisional"
        words, peer = against_peer(made, engine), made.best_peer or NOTHING
        between = peer_interval(made, engine)
        points.append(
            RatioPoint(
                titled(made.title),
                engine,
                value,
                (low, high),
                claim if claim == "no difference" else sure,
                f"{words}, best peer {peer}",
                (f"{words} ({between})" if between else words, peer),
            )
        )
    about = (
        "To the right of the line gridrpc is ahead. A full mark is proven, a pale one provisional;"
        " a hollow one is within the noise."
    )
    return _comparison(points, "peer", "the best peer", about)


def against_limits(results: Results) -> Chart:
    """The advantage of each engine of gridrpc over the machine's limit, for each figure."""
    points = []
    for made, engine, ratio in _ratios(results):
        if ratio.to_limit:
            good = ratio.to_limit if made.better == "more" else 1 / ratio.to_limit
            name = label(ratio.limit or first_limit(made))
            text = f"{times(ratio.to_limit)} {name}"
            row = against_limit(made, engine), label(first_limit(made))
            title = titled(made.title)
            points.append(RatioPoint(title, engine, good, (None, None), "proven", text, row))
    return _comparison(points, "limit", "the machine's limit", _LIMIT)


def _ratios(results: Results) -> Iterator[tuple[MicroFigure, str, Ratio]]:
    """Those of gridrpc's engines, in the order in which the page shows the figures."""
    for family in families(results):
        for made in family.figures:
            for engine in filter(ours, made.ratios):
                yield made, engine, made.ratios[engine]


def _comparison(points: Sequence[RatioPoint], kind: str, what: str, about: str) -> Chart:
    figures = list(dict.fromkeys(point.figure for point in points))
    engines = list(dict.fromkeys(point.engine for point in points))
    colours = engine_colours(engines)
    traces = []
    for number, engine in enumerate(engines):
        own = [point for point in points if point.engine == engine]
        values, colour = [point.value for point in own], colours[engine]
        marker = {
            "size": 11,
            "symbol": _SYMBOLS[number % len(_SYMBOLS)],
            "line": {"color": colour, "width": 2},
            "color": [
                "var(--paper)" if point.certainty == "no difference" else colour for point in own
            ],
            "opacity": [0.45 if point.certainty == "provisional" else 1 for point in own],
        }
        traces.append(
            {
                "name": engine,
                "mode": "markers",
                "x": values,
                "y": [point.figure for point in own],
                "marker": marker,
                "cliponaxis": False,
                "error_x": _errors(values, [point.ends for point in own], colour),
                "hovertext": [f"{one.figure}\n{engine}: {one.told}" for one in own],
                "hovertemplate": "%{hovertext}<extra></extra>",
            }
        )
    axis = axis_of([*(point.value for point in points), 1.0], "x", logarithmic=True)
    legend = 40 + 20 * math.ceil(len(engines) / 2)
    title = f"Advantage over {what}"
    rows = [[point.figure, point.engine, *point.row] for point in points]
    return figure(
        traces,
        x=_axis(axis) | {"title": "advantage, logarithmic"},
        y=_rows(figures),
        label=title,
        name=kind,
        title=title,
        about=about,
        height=legend + 70 + 24 * len(figures),
        layout={
            "showlegend": True,
            "dragmode": False,
            "margin": {"l": 20, "r": 24, "t": legend, "b": 54},
            "shapes": [vertical(1, dash="solid")],
        },
        table=Table(["figure", "engine", f"against {what}", what], rows),
    )


# ---- Axes


def _axis(made: Mapping[str, Any], *, room: float = 1.0) -> dict[str, Any]:
    """An axis for Plotly with a few ticks; `room`: for texts behind bars, times its length."""
    low, high = made["range"]
    ends = (math.log10(low), math.log10(high)) if made["log"] else (low, high)
    every = math.ceil(len(made["ticks"]) / _TICKS)
    return {
        "title": "",
        "type": "log" if made["log"] else "linear",
        "range": [ends[0], ends[0] + room * (ends[1] - ends[0])],
        "tickvals": made["ticks"][::every],
        "ticktext": made["texts"][::every],
        "tickangle": 0,
    }


def _rows(names: Sequence[str]) -> dict[str, Any]:
    """An axis of names, from top to bottom."""
    shown = [shortened(name, _LONGEST) for name in names]
    return names_axis(shown, type="category", categoryarray=names, tickvals=names, ticks="")


def _errors(
    values: Sequence[float], ends: Sequence[tuple[float | None, float | None]], colour: str
) -> dict[str, Any]:
    """Bars to both ends, where they are known."""
    pairs = [*zip(values, ends, strict=True)]
    return {
        "type": "data",
        "symmetric": False,
        "thickness": 1.4,
        "width": 3,
        "color": colour,
        "visible": any(end is not None for both in ends for end in both),
        "array": [None if high is None else high - value for value, (_, high) in pairs],
        "arrayminus": [None if low is None else value - low for value, (low, _) in pairs],
    }
