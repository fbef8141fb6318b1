"""Axes of pictures: where they end, and the texts at their ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from gridbench.formats import as_given, round_amount, scale

_WIDE = 20
"""Values that differ by more than this factor are shown on a logarithmic axis."""
_ROOM = 70
"""Characters that fit below an axis on paper."""


def axis_of(
    values: Iterable[float], unit: str, *, logarithmic: bool, from_zero: bool = False
) -> dict[str, Any]:
    """Where an axis begins and ends, and its ticks with their texts, for the page's script."""
    known = list(values) or [1.0]
    low, high = min(known), max(known)
    if logarithmic:
        ends, ticks = _decades(low, high)
        texts = [round_amount(tick, unit) for tick in ticks]
        while len(texts) > 3 and len("  ".join(texts)) > _ROOM:
            ticks, texts = ticks[::2], texts[::2]
        return {"log": True, "range": ends, "ticks": ticks, "texts": texts}
    low, high = (min(low, 0.0), max(high, 0.0)) if from_zero else (low, high)
    step = _step((high - low) or abs(high) or 1.0)
    first, last = math.floor(low / step), math.ceil(high / step * 1.02)
    ticks = [n * step for n in range(first, last + 1)]
    shown = scale(max(abs(ticks[0]), abs(ticks[-1])), unit)
    return {
        "log": False,
        "range": [ticks[0], ticks[-1]],
        "ticks": ticks,
        "texts": [as_given(shown.factor * tick, shown.suffix) for tick in ticks],
    }


def _decades(low: float, high: float) -> tuple[list[float], list[float]]:
    """The ends, with a margin, and powers of ten between them: not more than eight."""
    ends = [low / 1.6, high * 1.6]
    first, last = math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1]))
    every = 1 + (last - first) // 8
    inside = [10.0**n for n in range(first, last + 1) if ends[0] <= 10.0**n <= ends[1]]
    if len(inside) < 3:
        inside = [
            digit * 10.0**n
            for n in range(first, last + 1)
            for digit in (1, 2, 5)
            if ends[0] <= digit * 10.0**n <= ends[1]
        ]
        every = 1
    return ends, inside[::every]


def _step(length: float) -> float:
    """A round distance that divides `length` into four to ten parts."""
    power: float = 10.0 ** math.floor(math.log10(length))
    return next(power * part for part in (0.2, 0.5, 1, 2, 5) if length / (power * part) <= 8)


def is_wide(values: Sequence[float]) -> bool:
    """Whether the values want a logarithmic axis."""
    return _positive(values) and max(values) > _WIDE * min(values)


def _positive(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0
