"""Numbers and HTML as a reader sees them. All that comes from outside is escaped here."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

NOTHING = "–"


def duration(seconds: float) -> str:
    """Four significant digits in the unit that suits: µs, ms or s; a dash if not known."""
    if not math.isfinite(seconds):
        return NOTHING
    size = abs(seconds)
    if size == 0:
        return "0 s"
    if size < 999.95e-6:
        return f"{_digits(seconds * 1e6)} µs"
    if size < 0.99995:
        return f"{_digits(seconds * 1e3)} ms"
    return f"{_digits(seconds)} s"


def size(count: float) -> str:
    """Bytes in units of 1024."""
    for unit in ("B", "KB", "MB", "GB"):
        if abs(count) < 1024 or unit == "GB":
            break
        count /= 1024
    return f"{count:.4g} {unit}"


def percent(share: float) -> str:
    """A share (0 to 1) in percent with one decimal."""
    return f"{share * 100:.1f} %" if math.isfinite(share) else NOTHING


def counted(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `10,000 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


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


def _digits(value: float) -> str:
    whole = len(str(int(abs(value))))
    return f"{value:,.{max(0, 4 - whole)}f}"
