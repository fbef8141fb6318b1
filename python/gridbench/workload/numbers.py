"""Numbers as people write them into files: plain decimals, with a clear reason if they are not.

Python's own `int` and `float` take more than a benchmark should (`1_000`, `nan`,
`infinity`, digits of other scripts), so the form is checked first.
"""

from __future__ import annotations

import math
import re

from gridbench.formats import as_given, whole

MOST_CORES = 100_000
MOST_TASKS = 10_000_000
LARGEST_KB = 1024.0**3
"""One terabyte: anything above is a slip of the pen, not a benchmark."""
LONGEST_TIME = 1e6
"""Seconds (eleven days); more is taken for a slip."""

_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_LONGEST = 64  # characters of a number; more is not a number anybody meant
_SHOWN = 40


def shown(text: str) -> str:
    """`text` as it may be in a message: one line, printable, not long."""
    short = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return "".join(c if c.isprintable() else "?" for c in short)


def parse_whole(text: str, low: int, high: int) -> int:
    """The whole number in `text`, from `low` to `high`. ValueError describes the problem."""
    if not _WHOLE.match(text):
        if _REAL.match(text):
            raise ValueError(f"must be a whole number, not `{shown(text)}`")
        raise ValueError(f"must be a whole number, and `{shown(text)}` is not a number")
    if len(text) > _LONGEST or not low <= int(text) <= high:
        raise ValueError(f"must be from {low} to {high:,}, not `{shown(text)}`")
    return int(text)


def parse_real(text: str, low: float, high: float) -> float:
    """The number in `text`, from `low` to `high`. ValueError describes the problem."""
    if not _REAL.match(text) or len(text) > _LONGEST:
        if re.match(r"[+-]?[0-9]+,[0-9]+\Z", text):
            raise ValueError(f"must be written with a decimal point, not `{shown(text)}`")
        if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            raise ValueError(f"must be finite, not `{shown(text)}`")
        raise ValueError(f"must be a number, and `{shown(text)}` is not")
    value = float(text)
    if not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"must be from {as_given(low, '')} to {whole(high)}, not `{shown(text)}`")
    return value
