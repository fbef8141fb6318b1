"""The results as one HTML page that holds all it needs; the pictures are drawn by micro.js."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.formats import NOTHING, amount, interval, round_amount, times
from gridbench.micro.present import charts
from gridbench.micro.present.each import Cell as EachCell
from gridbench.micro.present.each import against_each
from gridbench.micro.present.families import Family, best_first, families, has_value, ours
from gridbench.micro.present.matrix import percentiles
from gridbench.micro.present.notes import (
    MAIN_ENGINE,
    behind,
    compared_engine,
    disturbed,
    gaps,
    headline,
    incomplete,
    machine_line,
    method,
    not_judged,
    reason,
    targets,
    undecided,
    unproven,
    when,
)
from gridbench.micro.present.wording import (
    against_limit,
    against_peer,
    compared_values,
    first_limit,
    label,
    measured,
    peer_interval,
    reached,
    status_word,
    titled,
    to_reach,
)
from gridbench.micro.record import FigureCurve, FigureEntry, MicroFigure, Results
from gridbench.pages import render as pages
from gridbench.pages.chart import Chart
from gridbench.pages.table import Cell, Table, facts

_LIMIT = (
    "The limit is what the same machine did in the same rounds without an engine: a bare round"
    " trip, a copy, a fork."
)


def write_report(results: Results, path: Path) -> None:
    """Write the page, completely or not at all. InputError if `path` cannot be written."""
    write_file(path, render(results))


def render(results: Results) -> str:
    """The whole page as HTML."""
    groups = families(results)
    told = headline(results)
    return pages.render(
        "micro/present/micro.html",
        "gridbench micro: engines side by side",
        _data(results),
        styles=["micro/present/micro.css"],
        scripts=["pages/curves.js", "micro/present/micro.js"],
        engines=_engines(results),
        kind="gridbench micro",
        heading="Engines side by side",
        subheading=" · ".join(filter(None, [machine_line(results), when(results)])),
        navigation=[
            ("summary", "Summary"),
            ("each", "Each engine"),
            ("ratios", "Ratios"),
            ("honest", "Not ahead"),
            *((group.name, group.title) for group in groups),
            *([("targets", "Targets")] if targets(results) else []),
            ("missing", "Not measured"),
            ("method", "Method"),
        ],
        notices=[text for text in (incomplete(results), disturbed(results)) if text],
        verdict=told[0] if told else "",
        sentences=told[1:],
        targets=_targets(results),
        engine=compared_engine(results),
        each=_each(results),
        ratios=_ratio_charts(results),
        behind=behind(results),
        undecided=undecided(results),
        unproven=unproven(results),
        families=[_family(group) for group in groups],
        missing=_missing(results),
        method=method(results),
        machine=facts([(name, _text(value)) for name, value in results.machine.items()]),
        versions=facts(sorted(results.versions.items())),
    )


def _engines(results: Results) -> list[str]:
    """Those with a value, gridrpc-python first, then gridrpc's others, then peers."""
    names = {e.engine for figure in results.figures for e in figure.entries if has_value(e)}
    names |= {line.engine for curve in results.curves for line in curve.lines}
    return sorted(names, key=lambda name: (not ours(name), name != MAIN_ENGINE, name))


def _data(results: Results) -> dict[str, Any]:
    names = _engines(results)
    return {
        "ours": [name for name in names if ours(name)],
        "peers": [name for name in names if not ours(name)],
        "bars": {figure.id: charts.bars(figure) for figure in results.figures},
        "curve": {curve.id: charts.curve(curve) for curve in results.curves},
        "percentiles": {figure.id: charts.percentiles(figure) for figure in results.figures},
        "peer": charts.against_best_peer(results),
        "limit": charts.against_limits(results),
    }


def _targets(results: Results) -> Table | None:
    """What was to be reached, with a sign and a word for whether it was; None without any."""
    known = targets(results)
    if not known:
        return None
    rows: list[list[str | Cell]] = []
    for lead in known:
        style = "yes" if lead.reached else "no"
        rows.append(
            [
                Cell(lead.what, lead.engine),
                to_reach(results, lead),
                Cell(measured(results, lead), "; ".join(compared_values(results, lead))),
                Cell(reached(lead), lead.why, style),
            ]
        )
    return Table(["", "target", "measured", "reached"], rows, style="lead")


def _missing(results: Results) -> Table:
    rows = [
        [label(gap.engine), reason(gap.status, gap.why), "; ".join(gap.figures)]
        for gap in gaps(results.figures)
    ]
    rows += [[lead.engine, lead.why, lead.what] for lead in not_judged(results)]
    return Table(["engine", "why", "figures"], rows, style="lead")


@dataclass(frozen=True, slots=True)
class _Figure:
    """One figure: what is said of it, and its bars."""

    title: str
    about: str
    chart: Chart


@dataclass(frozen=True, slots=True)
class _Family:
    """A section of the page."""

    name: str
    title: str
    about: str
    charts: list[Chart]
    figures: list[_Figure]


def _family(family: Family) -> _Family:
    wide = [chart for figure in family.figures if (chart := _percentiles(figure))]
    wide += map(_curve, family.curves)
    figures = [_figure(figure) for figure in family.figures]
    return _Family(family.name, family.title, family.about, wide, figures)


def _curve(curve: FigureCurve) -> Chart:
    rows = [
        [line.engine, round_amount(x, curve.x.unit), amount(y, curve.y.unit)]
        for line in curve.lines
        for x, y in zip(line.x, line.y, strict=True)
    ]
    title = titled(curve.title)
    table = Table(["engine", curve.x.name, curve.y.name], rows)
    return Chart("curve", title, name=curve.id, title=title, table=table)


def _percentiles(figure: MicroFigure) -> Chart | None:
    names, rows = percentiles(figure)
    if not rows:
        return None
    title = f"{titled(figure.title)}: percentiles"
    table = Table(["", *names], rows)
    return Chart("percentiles", title, name=figure.id, title=title, table=table)


def _each(results: Results) -> Table | None:
    peers, rows = against_each(results)
    cells: list[list[str | Cell]] = [
        [
            row.title,
            *(Cell(cell.text, style=_style(cell)) for cell in row.cells),
        ]
        for row in rows
    ]
    return Table(["", *peers], cells, style="each") if rows else None


def _style(cell: EachCell) -> str:
    """Classes of the style sheet."""
    claim = (cell.claim or "unknown").replace(" ", "-")
    return claim if cell.proven else f"{claim} provisional"


def _ratio_charts(results: Results) -> dict[str, Chart]:
    """The two pictures of ratios, with their numbers."""
    peers, limits = [], []
    for family in families(results):
        for figure in family.figures:
            for engine in filter(ours, figure.ratios):
                between = peer_interval(figure, engine)
                told = against_peer(figure, engine) + (f" ({between})" if between else "")
                first = [titled(figure.title), engine]
                peers.append([*first, told, figure.best_peer or NOTHING])
                limits.append([*first, against_limit(figure, engine), label(first_limit(figure))])
    return {
        kind: Chart(
            kind,
            f"Times as good as {what}",
            title=f"Times as good as {what}",
            about=about,
            table=Table(["figure", "engine", *head], [row for row in rows if row[2] != NOTHING]),
        )
        for kind, what, about, head, rows in (
            ("peer", "the best peer", "", ("against best peer", "best peer"), peers),
            ("limit", "the machine's limit", _LIMIT, ("against limit", "limit"), limits),
        )
    }


def _figure(figure: MicroFigure) -> _Figure:
    better = "less" if figure.better == "less" else "more"
    absent = [f"{e.engine} ({status_word(e.status)})" for e in figure.entries if not has_value(e)]
    without = f"; without a value: {', '.join(absent)}" if absent else ""
    noise = f"; equals differ by {times(figure.noise)}" if figure.noise > 1 else ""
    title = titled(figure.title)
    chart = Chart("bars", title, name=figure.id, table=_figure_table(figure))
    return _Figure(title, f"{better} is better{noise}{without}", chart)


def _figure_table(figure: MicroFigure) -> Table:
    entries = best_first(figure)
    rows = [_figure_row(figure, entry, entry.engine) for entry in entries]
    rows += [_figure_row(figure, limit, f"limit: {label(limit.engine)}") for limit in figure.limits]
    styles = ["ours" if ours(entry.engine) else "peer" for entry in entries]
    styles += ["limit"] * len(figure.limits)
    head = ["engine", "median", "95 % interval", "runs", "against best peer", "against limit", ""]
    return Table(head, rows, styles)


def _figure_row(figure: MicroFigure, entry: FigureEntry, name: str) -> list[str]:
    if not has_value(entry):
        return [name, status_word(entry.status), "", "", "", "", " ".join(entry.why.split())]
    median = entry.median or 0.0
    compared = against_peer(figure, entry.engine)
    between = peer_interval(figure, entry.engine)
    return [
        name,
        amount(median, figure.unit) + ("*" if entry.disturbed_runs else ""),
        interval(entry.low, entry.high, figure.unit, around=median, alone=True) or NOTHING,
        f"{entry.runs}",
        f"{compared} ({between})" if between else compared,
        against_limit(figure, entry.engine),
        entry.note,
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
