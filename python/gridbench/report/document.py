"""The frame of every page: one file with its style, scripts and data, that asks for nothing."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from gridbench.report.files import asset
from gridbench.report.text import as_json, escape


def document(
    title: str, body: str, data: dict[str, Any], *, scripts: Sequence[str], css: str = ""
) -> str:
    """A page as HTML. `body` is HTML; `css` and `scripts` come after those that all pages share.

    The scripts find `data` as JSON in the element `report-data`.
    """
    return Template(asset("shell.html")).substitute(
        title=escape(title),
        css=asset("report.css") + css,
        body=body,
        written=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        plotly=get_plotlyjs(),
        data=as_json(data),
        script="\n".join([asset("plots.js"), *scripts]),
    )
