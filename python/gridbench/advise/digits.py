"""Times as far as a model knows them: with two digits."""

from __future__ import annotations

import math

from gridbench.formats import NOTHING, percent

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_TIMES = 2.0
"""From so many times on a ratio is told as times, and not as percent."""


def rough(seconds: float) -> str:
    """Two significant digits in the unit that suits: `1.3 s`, `830 ms`, `12,000 s`."""
    if not math.isfinite(seconds):
        return NOTHING
    if seconds == 0:
        return "0 s"
    value = _two(seconds)
    unit, name = next((one for one in _UNITS if abs(value) >= one[0]), _UNITS[-1])
    shown = _two(value / unit)
    decimals = max(0, 1 - math.floor(math.log10(abs(shown))))
    return f"{shown:,.{decimals}f} {name}"


def longer(total: float, best: float) -> str:
    """How much longer one total is than another that is no longer: `12 % longer`, `3.4 times as
    long`."""
    ratio = total / best
    if ratio < _TIMES:
        return f"{percent(ratio - 1, 0)} longer"
    return f"{_two(ratio):,.{0 if ratio >= 9.95 else 1}f} times as long"


def _two(value: float) -> float:
    return float(f"{value:.1e}")
