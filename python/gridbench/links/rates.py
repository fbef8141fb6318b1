"""Rates of links, as people write them and as they are shown."""

from __future__ import annotations

import math
import re

from gridbench.errors import InputError

SMALLEST, LARGEST = 64e3, 100e9  # bits per second

_UNITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_RATE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([A-Za-z]*)(?:/s)?", re.ASCII)
_REMEDY = "give a rate such as 1gbit, 100mbit or 500kbit"
_SHOWN = 40  # characters of a text that is not a rate


def parse_rate(text: str, *, option: str = "--link") -> float:
    """Bits per second, of `1gbit`, `100mbit` or `2.5 Gbit/s`.

    Prefixes are powers of 1,000. InputError, which names `option`, for what is no rate or none that
    a link can have, with what was probably meant.
    """
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{option}: `{shown}` is not a rate", remedy=_REMEDY)
    number, unit = match[1], match[2]
    if unit.lower() not in _UNITS:
        # People write 1g, 1gb, 1Gb and 1Gbps for 1gbit; some of them mean bytes.
        near = f"{unit[0].lower()}bit" if unit else ""
        meant = f"did you mean `{number}{near}`? " if near in _UNITS else ""
        wrong = f"`{unit}` is not a unit of rates" if unit else "the unit is missing"
        raise InputError(f"{option}: `{shown}` is not a rate: {wrong}", remedy=meant + _REMEDY)
    rate = float(number) * _UNITS[unit.lower()]
    check_rate(rate, option=option)
    return rate


def check_rate(rate: float, *, option: str) -> None:
    """InputError, which names `option`, unless a link can have this rate, bits per second."""
    number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    if not number or not math.isfinite(rate) or not SMALLEST <= rate <= LARGEST:
        shown = rate_text(rate) if number and math.isfinite(rate) else repr(rate)
        raise InputError(
            f"{option}: links can have from {rate_text(SMALLEST)} to {rate_text(LARGEST)},"
            f" not {shown}",
            remedy=_REMEDY,
        )


def rate_text(rate: float) -> str:
    """Bits per second in the unit that suits, with three digits: `1 Gbit/s`, `868 Mbit/s`."""
    for unit, step in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if abs(rate) >= 0.9995 * step:
            value = rate / step
            digits = max(0, 2 - math.floor(math.log10(abs(value))))
            text = f"{value:,.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"
    return f"{rate:g} bit/s"
