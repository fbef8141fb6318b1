"""Parts of HTML. All that comes from outside is escaped here."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any


def escape(text: object) -> str:
    """Text for HTML, also inside of attributes."""
    return html.escape(str(text), quote=True)


def as_json(data: dict[str, Any]) -> str:
    """JSON that can stand inside of a script element: nothing in it can close the element."""
    encoded = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    styles: Iterable[str] = (),
) -> str:
    """An HTML table; the first cell of each row names it. `styles` are classes, one per row."""
    parts = ['<div class="scroll"><table>']
    if caption:
        parts.append(f"<caption>{escape(caption)}</caption>")
    cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    parts.append(f"<thead><tr>{cells}</tr></thead><tbody>")
    for (name, *values), style in zip(rows, chain(styles, repeat("")), strict=False):
        cells = "".join(f"<td>{escape(value)}</td>" for value in values)
        row = f'<tr class="{escape(style)}">' if style else "<tr>"
        parts.append(f'{row}<th scope="row">{escape(name)}</th>{cells}</tr>')
    parts.append("</tbody></table></div>")
    return "".join(parts)


def details(summary: str, content: str) -> str:
    """Content (HTML) that opens on a click."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"
