"""Curves with logarithmic axes as an SVG picture, for pages that are read without scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 760, 460
_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 40, 240, 50
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


@dataclass(frozen=True, slots=True)
class SvgLine:
    """One curve."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    """NaN where there is no value."""
    colour: int
    """Lines that belong together have the same."""
    dashed: bool = False


def curves(title: str, x_name: str, y_name: str, lines: Sequence[SvgLine]) -> str:
    """The picture. Values have to be positive; a picture without any says so."""
    points = [point for line in lines for point in _known(line)]
    if not points:
        return _framed([_text(_WIDTH / 2, _HEIGHT / 2, "not measured", "middle")])
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def at_x(value: float) -> float:
        return _LEFT + wide * (math.log10(value) - x_low) / (x_high - x_low)

    def at_y(value: float) -> float:
        return _TOP + high * (y_high - math.log10(value)) / (y_high - y_low)

    parts = [
        _text(_LEFT, 24, title, "start", size=15),
        _text(_LEFT + wide / 2, _HEIGHT - 12, x_name, "middle"),
        _text(_LEFT, _TOP - 4, y_name, "end"),
    ]
    for power in range(x_low, x_high + 1):
        x = at_x(10.0**power)
        parts.append(_stroke(f"M{x:.1f} {_TOP}V{_TOP + high}", "#ddd"))
        parts.append(_text(x, _TOP + high + 18, _amount(power), "middle"))
    for power in range(y_low, y_high + 1):
        y = at_y(10.0**power)
        parts.append(_stroke(f"M{_LEFT} {y:.1f}H{_LEFT + wide}", "#ddd"))
        parts.append(_text(_LEFT - 6, y + 4, _amount(power), "end"))
    for number, line in enumerate(lines):
        colour = _COLOURS[line.colour % len(_COLOURS)]
        way = "L".join(f"{at_x(x):.1f} {at_y(y):.1f}" for x, y in _known(line))
        if way:
            parts.append(_stroke(f"M{way}", colour, width=2, dashed=line.dashed))
        x, y = _LEFT + wide + 12, _TOP + 10 + 20 * number
        parts.append(_stroke(f"M{x} {y}h24", colour, width=2, dashed=line.dashed))
        parts.append(_text(x + 30, y + 4, line.name, "start"))
    return _framed(parts)


def _known(line: SvgLine) -> list[tuple[float, float]]:
    pairs = zip(line.x, line.y, strict=True)
    return [(x, y) for x, y in pairs if x > 0 and math.isfinite(y) and y > 0]


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Powers of ten around all values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _amount(power: int) -> str:
    return f"{10**power:,}" if 0 <= power < 4 else f"{10.0**power:g}"


def _text(x: float, y: float, text: str, anchor: str, size: int = 11) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f"<text {place}>{escape(text)}</text>"


def _stroke(way: str, colour: str, *, width: int = 1, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="6 4"' if dashed else ""
    return f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'


def _framed(parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>", ""])
