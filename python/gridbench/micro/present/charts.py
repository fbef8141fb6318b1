"""The data that the pictures of the page are drawn from; all texts in them are made here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gridbench.formats import amount, interval, round_amount, times
from gridbench.micro.present.families import best_first, families, has_value, ours
from gridbench.micro.present.notes import reason
from gridbench.micro.present.wording import (
    advantage,
    against_peer,
    first_limit,
    indicated,
    label,
    titled,
)
from gridbench.micro.record import (
    CurveAxis,
    CurveLine,
    FigureCurve,
    FigureEntry,
    MicroFigure,
    Ratio,
    Results,
)
from gridbench.pages.axis import axis_of, is_wide
from gridbench.provisional import PROVISIONAL


def bars(figure: MicroFigure) -> dict[str, Any]:
    """One bar per engine, best first, then the limits."""
    entries = [entry for entry in best_first(figure) if has_value(entry)]
    limits = [entry for entry in figure.limits if has_value(entry)]
    kinds = ["ours" if ours(e.engine) else "peer" for e in entries] + ["limit"] * len(limits)
    shown = [*entries, *limits]
    medians = [entry.median or 0.0 for entry in shown]
    logarithmic = is_wide(medians)
    return {
        "names": [*(e.engine for e in entries), *(label(e.engine) for e in limits)],
        "kinds": kinds,
        "values": medians,
        "low": [entry.low for entry in shown],
        "high": [entry.high for entry in shown],
        "texts": [amount(median, figure.unit) for median in medians],
        "hover": [_hover(figure, entry) for entry in shown],
        "unit": figure.unit,
        "axis": axis_of(medians, figure.unit, logarithmic=logarithmic, from_zero=True),
    }


def curve(drawn: FigureCurve) -> dict[str, Any]:
    """One line per engine."""
    xs = [x for line in drawn.lines for x in line.x]
    ys = [y for line in drawn.lines for y in line.y]
    x_log = drawn.log and is_wide(xs)
    # What has no unit is a share, such as efficiency.
    y_log = drawn.log and bool(drawn.y.unit) and is_wide(ys)
    return {
        "x": axis_of(xs, drawn.x.unit, logarithmic=x_log) | {"title": drawn.x.name},
        "y": axis_of(ys, drawn.y.unit, logarithmic=y_log, from_zero=True) | {"title": drawn.y.name},
        "units": [drawn.x.unit, drawn.y.unit],
        "lines": [_line(drawn, line, x_log=x_log, y_log=y_log) for line in drawn.lines],
    }


def percentiles(figure: MicroFigure) -> dict[str, Any] | None:
    """One line per engine over the percentiles of its samples, as `curve`; None without any."""
    entries = [e for e in best_first(figure) if has_value(e) and e.percentiles]
    names = sorted({name for entry in entries for name in entry.percentiles or {}}, key=float)
    if not names:
        return None
    lines = []
    for entry in entries:
        known = [(n, (entry.percentiles or {}).get(name)) for n, name in enumerate(names)]
        points = [(float(n), value) for n, value in known if value is not None]
        xs, ys = tuple(x for x, _ in points), tuple(y for _, y in points)
        lines.append(CurveLine(engine=entry.engine, x=xs, y=ys))
    drawn = curve(
        FigureCurve(
            id="",
            title="",
            x=CurveAxis(name="share of the calls"),
            y=CurveAxis(name="at most", unit=figure.unit),
            log=True,
            lines=tuple(lines),
        )
    )
    for line, one in zip(drawn["lines"], lines, strict=True):
        told = zip(one.x, one.y, strict=True)
        line["hover"] = [
            [one.engine, f"{names[int(x)]} % take at most {amount(y, figure.unit)}"]
            for x, y in told
        ]
    ends = [-0.3, len(names) - 0.7]
    texts = [f"{name} %" for name in names]
    drawn["x"] |= {"range": ends, "ticks": list(range(len(names))), "texts": texts}
    return drawn


def against_best_peer(results: Results) -> dict[str, Any] | None:
    """For each figure and engine of ours, how many times as good as the best peer it is."""
    points = []
    for figure, engine, ratio in _ratios(results):
        found = advantage(figure, ratio) if ours(engine) else None
        if found is not None:
            told = f"{against_peer(figure, engine)}, best peer {figure.best_peer}"
            claim = indicated(figure, engine)
            sure = "" if claim == ratio.claim else PROVISIONAL.lower()
            points.append((figure, engine, found, sure or claim, told))
    return _comparison(points)


def against_limits(results: Results) -> dict[str, Any] | None:
    """For each figure and engine of ours, how many times as good as the limit it is."""
    points = []
    for figure, engine, ratio in _ratios(results):
        if ours(engine) and ratio.to_limit:
            good = ratio.to_limit if figure.better == "more" else 1 / ratio.to_limit
            name = label(ratio.limit or first_limit(figure))
            told = f"{times(ratio.to_limit)} {name}"
            claim = "faster" if good >= 1 else "slower"
            points.append((figure, engine, (good, None, None), claim, told))
    return _comparison(points)


def _ratios(results: Results) -> Iterable[tuple[MicroFigure, str, Ratio]]:
    """In the order in which the page shows the figures."""
    for family in families(results):
        for figure in family.figures:
            for engine, ratio in figure.ratios.items():
                yield figure, engine, ratio


_Point = tuple[MicroFigure, str, tuple[float, float | None, float | None], str, str]


def _comparison(points: Sequence[_Point]) -> dict[str, Any] | None:
    if not points:
        return None
    values = [point[2][0] for point in points]
    return {
        "figures": list(dict.fromkeys(titled(point[0].title) for point in points)),
        "points": [
            {
                "figure": titled(figure.title),
                "engine": engine,
                "value": found[0],
                "low": found[1],
                "high": found[2],
                "claim": claim,
                "hover": [titled(figure.title), f"{engine}: {told}"],
            }
            for figure, engine, found, claim, told in points
        ],
        "axis": axis_of([*values, 1.0], "x", logarithmic=True),
    }


def _line(drawn: FigureCurve, line: CurveLine, *, x_log: bool, y_log: bool) -> dict[str, Any]:
    # A logarithmic axis has no place for 0 and less.
    kept = [
        n
        for n, (x, y) in enumerate(zip(line.x, line.y, strict=True))
        if (x > 0 or not x_log) and (y > 0 or not y_log)
    ]
    points = [(line.x[n], line.y[n]) for n in kept]
    return {
        "name": line.engine,
        "engine": line.engine,
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "low": [line.low[n] for n in kept] if line.low else None,
        "high": [line.high[n] for n in kept] if line.high else None,
        "hover": [
            [line.engine, f"{amount(y, drawn.y.unit)} at {round_amount(x, drawn.x.unit)}"]
            for x, y in points
        ],
    }


def _hover(figure: MicroFigure, entry: FigureEntry) -> list[str]:
    median = entry.median or 0.0
    between = interval(entry.low, entry.high, figure.unit, around=median, alone=True)
    parts = [
        f"{label(entry.engine)}: {amount(median, figure.unit)}",
        f"95 % interval {between}" if between else "",
        f"{entry.runs} runs",
        against_peer(figure, entry.engine) if entry.engine in figure.ratios else "",
        f"{entry.disturbed_runs} disturbed" if entry.disturbed_runs else "",
        reason(entry.status, entry.why) if entry.why else "",
    ]
    return [part for part in parts if part]
