"""The order of parameters, and the numbers or sizes that they may be."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)([kKmMgGtT]?)(i?[bB])?")
_STEP = 1024.0


def number_of(parameter: str) -> float | None:
    """`4k` is 4096; None if it is neither a number nor a size."""
    match = _NUMBER.fullmatch(parameter.strip())
    if match is None:
        return None
    unit = match[2].lower()
    value = float(match[1]) * _STEP ** (" kmgt".index(unit) if unit else 0)
    return value if math.isfinite(value) else None


def in_order(parameters: Iterable[str]) -> list[str]:
    """Each once: by size if all are numbers or sizes, else as they first appear."""
    seen = list(dict.fromkeys(parameters))
    numbers = numbers_of(seen)
    if numbers is None:
        return seen
    return [parameter for _, parameter in sorted(zip(numbers, seen, strict=True))]


def numbers_of(parameters: Sequence[str]) -> list[float] | None:
    """The number of each; None if one is no number, or two are the same."""
    numbers = [number for one in parameters if (number := number_of(one)) is not None]
    return numbers if len(set(numbers)) == len(parameters) else None
