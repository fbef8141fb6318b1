"""The advice as one HTML page; its picture is drawn by assets/advise.js."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

from gridbench.advise.advice import Advice
from gridbench.advise.prose import sentences, warnings
from gridbench.advise.work import Work
from gridbench.model.terminal import amount, place_told
from gridbench.report.document import document
from gridbench.report.files import asset, write_page
from gridbench.report.text import NOTHING, details, duration, escape, percent, size, table

_ASSETS = "gridbench.advise"


def write_advice(advice: Advice, path: Path) -> None:
    """Write the page, completely or not at all. InputError if `path` cannot be written."""
    write_page(path, render(advice))


def render(advice: Advice) -> str:
    """The whole page as HTML."""
    first, *others = sentences(advice)
    body = Template(asset("advise.html", _ASSETS)).substitute(
        heading=escape(first),
        subheading=escape(f"{_asked(advice.work)} · {place_told(advice.model.fit.place)}"),
        notices=_notices(advice),
        sentences="".join(f"<p>{escape(text)}</p>" for text in others),
        cores=f"{advice.split.cores:,}",
        points=details("As a table", _points(advice)),
        parts=_parts(advice),
        helps=_helps(advice),
        shape=escape(advice.model.fit.shape.told()),
        terms=_terms(advice),
    )
    return document("gridbench advise", body, _data(advice), scripts=[asset("advise.js", _ASSETS)])


def _data(advice: Advice) -> dict[str, Any]:
    points = [point.prediction for point in advice.points]
    return {
        "tasks": [point.tasks for point in advice.points],
        "total": [one.total for one in points],
        "low": [one.low for one in points],
        "high": [one.high for one in points],
        "texts": [
            f"{point.tasks:,} tasks: {duration(point.prediction.total)}" for point in advice.points
        ],
        "best": advice.split.tasks,
        "best_text": f"{advice.split.tasks:,} tasks: {duration(advice.expected.total)}",
        "ideal": [one.ideal for one in points],
    }


def _asked(work: Work) -> str:
    parts = [f"{duration(work.seconds)} of work", f"up to {work.cores:,} cores"]
    for value, what in (
        (work.bytes_in, "of input, divided"),
        (work.bytes_in_each, "of input in each task"),
        (work.bytes_shared, "of shared data"),
        (work.bytes_out, "of output, divided"),
        (work.bytes_out_each, "of output of each task"),
    ):
        parts += [f"{size(value)} {what}"] if value else []
    return ", ".join([*parts, "warm start" if work.warm else "cold start"])


def _notices(advice: Advice) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in warnings(advice))
    if not items:
        return ""
    return f'<aside class="notice" role="note"><h3>Mind</h3><ul>{items}</ul></aside>'


def _points(advice: Advice) -> str:
    rows = [
        [
            f"{point.tasks:,}",
            duration(point.prediction.total),
            f"{duration(point.prediction.low)} to {duration(point.prediction.high)}",
            duration(point.prediction.ideal),
        ]
        for point in advice.points
    ]
    return table(["tasks", "total", "90 % interval", "without overhead"], rows)


def _parts(advice: Advice) -> str:
    total = advice.expected.total
    rows = [[what, duration(part), percent(part / total)] for what, part in advice.parts]
    return table(["part", "time", "share"], [*rows, ["total", duration(total), ""]])


def _helps(advice: Advice) -> str:
    total = advice.expected.total
    rows = [[one.what, duration(one.total), percent(1 - one.total / total)] for one in advice.helps]
    return table(["change", "total", "less"], rows) if rows else "<p>Nothing alone.</p>"


def _terms(advice: Advice) -> str:
    rows = []
    for one in advice.model.fit.estimates:
        low, high = amount(one.low, one.term.unit), amount(one.high, one.term.unit)
        value = amount(one.value, one.term.unit) if one.determined else NOTHING
        between = f"{low} to {high}" if one.determined else f"below {high}"
        rows.append([one.term.name, value, between, one.term.meaning])
    return details(
        "What this is worked out from",
        table(["term", "value", "95 % interval", "what it is"], rows),
    )
