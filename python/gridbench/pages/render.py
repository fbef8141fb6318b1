"""Makes a page from a template: one file with its style, scripts and data, that asks for nothing.

A template is named by the package it belongs to and its file there, such as `pages/base.html` for
assets/base.html of gridbench.pages. All text that is put into it is escaped.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from gridbench.pages.chart import Chart
from gridbench.pages.document import (
    Block,
    ChartChoice,
    Document,
    Section,
    StaticChart,
    circumstances,
    media_of,
)


def asset(name: str) -> str:
    """The text of a file that pages are made of: `pages/plots.js` is assets/plots.js of the
    package gridbench.pages."""
    package, _, file = name.rpartition("/")
    folder = resources.files("gridbench." + package.replace("/", "."))
    return folder.joinpath("assets", file).read_text(encoding="utf-8")


_STYLE = "pages/page.css"
_SCRIPTS = ("pages/plots.js", "pages/curves.js", "pages/document.js")


def page(document: Document) -> str:
    """A document as HTML: the answer as its title, then the first chart, the other sentences, the
    caveats and the rest."""
    answer, *sentences = document.sentences
    summary = _on_page(document.summary)
    picture = next(
        (one for one in summary if isinstance(one, Chart | ChartChoice | StaticChart)), None
    )
    charts = list(document.charts)
    has_summary = bool(sentences or document.notices or summary)
    sections = [
        dataclasses.replace(one, blocks=blocks)
        for one in document.sections
        if (blocks := _on_page(one.blocks))
    ]
    if document.header is not None:
        sections = _with_circumstances(sections, circumstances(document.header))
    data = {
        "charts": {one.name: one.data for one in charts if one.data is not None},
        "file": document.kind.replace(" ", "-"),
    }
    return (
        environment()
        .get_template("pages/document.html")
        .render(
            title=document.title,
            css=_joined([_STYLE, *document.styles]),
            # A page without charts has no script at all.
            plotly=_plotly() if charts else "",
            data=as_json(data),
            script=_joined(_SCRIPTS) if charts else "",
            written=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            kind=document.kind,
            heading=document.heading,
            subheading=document.subheading,
            navigation=[
                *([("summary", "Summary")] if has_summary else []),
                *((one.id, one.short or one.title) for one in sections),
            ],
            verdict=answer,
            sentences=sentences,
            notices=document.notices,
            picture=picture,
            summary=[one for one in summary if one is not picture],
            sections=sections,
        )
    )


def _on_page(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if "page" in media_of(block)]


def _with_circumstances(sections: list[Section], block: Block) -> list[Section]:
    """At the end of the last section, or in one of their own."""
    if not sections:
        return [Section("circumstances", "Machine and options", [block])]
    last = sections.pop()
    return [*sections, dataclasses.replace(last, blocks=[*last.blocks, block])]


def as_json(data: dict[str, Any]) -> str:
    """JSON that can stand inside of a script element: nothing in it can close the element."""
    encoded = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plotly() -> str:
    """The part of plotly.js that draws lines and bars; all of it where that was not fetched."""
    try:
        return asset("pages/plotly-basic.min.js")
    except FileNotFoundError:
        from plotly.offline import get_plotlyjs

        return str(get_plotlyjs())


def _joined(names: Sequence[str]) -> str:
    return "\n".join(map(asset, names))


@cache
def environment() -> Environment:
    """What finds templates and fills them in."""
    return Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
