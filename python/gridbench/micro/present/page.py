"""The results as one HTML page that holds all it needs; the pictures are drawn by micro.js."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any

from gridbench.formats import NOTHING, amount, interval, round_amount, times
from gridbench.micro.figures import Curve, Entry, Figure, Results
from gridbench.micro.present import charts
from gridbench.micro.present.each import against_each
from gridbench.micro.present.families import Family, best_first, families, has_value, ours
from gridbench.micro.present.matrix import percentiles
from gridbench.micro.present.notes import (
    MAIN_ENGINE,
    behind,
    disturbed,
    gaps,
    headline,
    incomplete,
    machine_line,
    method,
    reason,
    undecided,
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
from gridbench.report.document import document
from gridbench.report.files import asset, write_page
from gridbench.report.text import details, escape, table

_ASSETS = "gridbench.micro.present"


def write_report(results: Results, path: Path) -> None:
    """Write the page, completely or not at all. InputError if `path` cannot be written."""
    write_page(path, render(results))


def render(results: Results) -> str:
    """The whole page as HTML."""
    groups = families(results)
    body = Template(asset("micro.html", _ASSETS)).substitute(
        subheading=escape(" · ".join(filter(None, [machine_line(results), when(results)]))),
        navigation='<a href="#ratios">Ratios</a><a href="#honest">Not ahead</a>'
        + "".join(f'<a href="#{group.name}">{escape(group.title)}</a>' for group in groups),
        notices=_notice(results),
        sentences=_paragraphs(headline(results)),
        lead=_lead(results),
        each=_each(results),
        **_ratio_tables(results),
        honest=_honest(results),
        families="".join(map(_family, groups)),
        missing=_missing(results),
        method=_paragraphs(method(results)),
        machine=table(["", ""], [[name, _text(value)] for name, value in results.machine.items()]),
        versions=table(["", ""], sorted(results.versions.items())),
    )
    return document(
        "gridbench micro: engines side by side",
        body,
        _data(results),
        css=asset("micro.css", _ASSETS),
        scripts=[asset("curves.js"), asset("micro.js", _ASSETS)],
    )


def _data(results: Results) -> dict[str, Any]:
    names = {e.engine for figure in results.figures for e in figure.entries if has_value(e)}
    names |= {line.engine for curve in results.curves for line in curve.lines}
    return {
        "ours": sorted(filter(ours, names), key=lambda name: (name != MAIN_ENGINE, name)),
        "peers": sorted(name for name in names if not ours(name)),
        "bars": {figure.id: charts.bars(figure) for figure in results.figures},
        "curve": {curve.id: charts.curve(curve) for curve in results.curves},
        "percentiles": {figure.id: charts.percentiles(figure) for figure in results.figures},
        "peer": charts.against_best_peer(results),
        "limit": charts.against_limits(results),
    }


def _notice(results: Results) -> str:
    told = [text for text in (incomplete(results), disturbed(results)) if text]
    if not told:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in told)
    return f'<aside class="notice" role="note"><h3>Mind</h3><ul>{items}</ul></aside>'


def _lead(results: Results) -> str:
    """What is to be reached, with a sign and a word for whether it was."""
    if not results.lead:
        return ""
    rows = []
    for lead in results.lead:
        values = "; ".join(compared_values(results, lead))
        style = {True: "yes", False: "no", None: "unknown"}[lead.reached]
        cells = [
            escape(to_reach(results, lead)),
            f"{escape(measured(results, lead))}{_small(values)}",
            f'<span class="{style}">{escape(reached(lead))}</span>{_small(lead.why)}',
        ]
        what = f"{escape(lead.what)}{_small(lead.engine)}"
        rows.append(
            f'<tr><th scope="row">{what}</th>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("", "to reach", "measured", "reached")
    )
    return (
        '<h2>What is to be reached</h2><div class="scroll"><table class="lead">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _honest(results: Results) -> str:
    parts = []
    for title, lines in (
        ("A peer is ahead", behind(results)),
        ("No difference can be claimed", undecided(results)),
    ):
        parts.append(f"<h3>{title}</h3>" + (_items(lines) if lines else "<p>Nowhere.</p>"))
    return "".join(parts)


def _missing(results: Results) -> str:
    rows = [
        [label(gap.engine), reason(gap.status, gap.why), "; ".join(gap.figures)]
        for gap in gaps(results.figures)
    ]
    rows += [[lead.engine, lead.why, lead.what] for lead in results.lead if lead.why]
    if not rows:
        return "<p>Nothing is missing.</p>"
    return f'<div class="lead">{table(["engine", "why", "figures"], rows)}</div>'


def _family(family: Family) -> str:
    parts = [f'<section id="{escape(family.name)}"><h2>{escape(family.title)}</h2>']
    parts += [f"<p>{escape(family.about)}</p>" if family.about else ""]
    parts += map(_percentiles, family.figures)
    parts += map(_curve, family.curves)
    parts.append('<div class="figures">')
    parts += map(_figure, family.figures)
    parts.append("</div></section>")
    return "".join(parts)


def _picture(kind: str, name: str, title: str) -> str:
    """Where the script draws; the numbers follow as a table."""
    return (
        f'<figure data-chart="{kind}" data-name="{escape(name)}" '
        f'aria-label="{escape(titled(title))}"></figure>'
    )


def _curve(curve: Curve) -> str:
    rows = [
        [line.engine, round_amount(x, curve.x.unit), amount(y, curve.y.unit)]
        for line in curve.lines
        for x, y in zip(line.x, line.y, strict=True)
    ]
    return (
        f"<h3>{escape(titled(curve.title))}</h3>"
        + _picture("curve", curve.id, curve.title)
        + details("As a table", table(["engine", curve.x.name, curve.y.name], rows))
    )


def _percentiles(figure: Figure) -> str:
    names, rows = percentiles(figure)
    if not rows:
        return ""
    return (
        f"<h3>{escape(titled(figure.title))}: percentiles</h3>"
        + _picture("percentiles", figure.id, f"{figure.title}: percentiles")
        + details("As a table", table(["", *names], rows))
    )


def _each(results: Results) -> str:
    peers, rows = against_each(results)
    if not rows:
        return "<p>No peer was measured.</p>"
    parts = []
    for row in rows:
        cells = "".join(
            f'<td class="{(cell.claim or "unknown").replace(" ", "-")}">{escape(cell.text)}</td>'
            for cell in row.cells
        )
        parts.append(f'<tr><th scope="row">{escape(row.title)}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("", *peers))
    return (
        '<div class="scroll"><table class="each">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(parts)}</tbody></table></div>"
    )


def _ratio_tables(results: Results) -> dict[str, str]:
    """The numbers of the two pictures of ratios."""
    peers, limits = [], []
    for family in families(results):
        for figure in family.figures:
            for engine in filter(ours, figure.ratios):
                between = peer_interval(figure, engine)
                told = against_peer(figure, engine) + (f" ({between})" if between else "")
                first = [titled(figure.title), engine]
                peers.append([*first, told, figure.best_peer or NOTHING])
                limits.append([*first, against_limit(figure, engine), label(first_limit(figure))])
    heads = {"peer": ("against best peer", "best peer"), "limit": ("against limit", "limit")}
    return {
        f"{name}_table": details(
            "As a table",
            table(
                ["figure", "engine", *heads[name]],
                [row for row in rows if row[2] != NOTHING],
            ),
        )
        for name, rows in (("peer", peers), ("limit", limits))
    }


def _figure(figure: Figure) -> str:
    better = "less" if figure.better == "less" else "more"
    absent = [f"{e.engine} ({status_word(e.status)})" for e in figure.entries if not has_value(e)]
    without = f"; without a value: {', '.join(absent)}" if absent else ""
    noise = f"; equals differ by {times(figure.noise)}" if figure.noise > 1 else ""
    return (
        f"<div><h3>{escape(titled(figure.title))}</h3>"
        f'<p class="better">{better} is better{escape(noise + without)}</p>'
        + _picture("bars", figure.id, figure.title)
        + details("As a table", _figure_table(figure))
        + "</div>"
    )


def _figure_table(figure: Figure) -> str:
    entries = best_first(figure)
    rows = [_figure_row(figure, entry, entry.engine) for entry in entries]
    rows += [_figure_row(figure, limit, f"limit: {label(limit.engine)}") for limit in figure.limits]
    styles = ["ours" if ours(entry.engine) else "peer" for entry in entries]
    styles += ["limit"] * len(figure.limits)
    head = ["engine", "median", "95 % interval", "runs", "against best peer", "against limit", ""]
    return table(head, rows, styles=styles)


def _figure_row(figure: Figure, entry: Entry, name: str) -> list[str]:
    if not has_value(entry):
        return [name, status_word(entry.status), "", "", "", "", " ".join(entry.why.split())]
    median = entry.median or 0.0
    compared = against_peer(figure, entry.engine)
    between = peer_interval(figure, entry.engine)
    return [
        name,
        amount(median, figure.unit) + ("*" if entry.disturbed_runs else ""),
        interval(entry.low, entry.high, figure.unit, around=median) or NOTHING,
        f"{entry.runs}",
        f"{compared} ({between})" if between else compared,
        against_limit(figure, entry.engine),
        entry.note,
    ]


def _items(lines: Sequence[str]) -> str:
    return '<ul class="plain">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _small(text: str) -> str:
    return f"<small>{escape(text)}</small>" if text else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
