"""Rates of links, as people write them and as they are shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import bit_rate
from gridbench.quantities import Quantity
from gridbench.workload.numbers import shown

_SMALLEST, _LARGEST = 10e3, 1e12  # bits per second
_UNITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_RATE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([A-Za-z]*)(?:/s)?", re.ASCII)
_REMEDY = "give a rate such as 1gbit, 100mbit or 500kbit"


class LinkRate(Quantity[float]):
    """Bits per second, such as `1gbit`, `100mbit` or `2.5 Gbit/s`. Prefixes are powers of 1,000."""

    name = "rate"

    def read(self, value: Any, folder: Path | None = None) -> float:
        """The rate. InputError says what was probably meant."""
        del folder
        text = str(value)
        match = _RATE.fullmatch(text.strip())
        if match is None:
            raise InputError(f"`{shown(text)}` is not a rate", remedy=_REMEDY)
        number, unit = match[1], match[2]
        if unit.lower() not in _UNITS:
            # People write 1g, 1gb, 1Gb and 1Gbps for 1gbit; some of them mean bytes.
            near = f"{unit[0].lower()}bit" if unit else ""
            meant = f"did you mean `{number}{near}`? " if near in _UNITS else ""
            wrong = f"`{shown(unit)}` is not a unit of rates" if unit else "the unit is missing"
            raise InputError(f"`{shown(text)}` is not a rate: {wrong}", remedy=meant + _REMEDY)
        rate = float(number) * _UNITS[unit.lower()]
        if not _SMALLEST <= rate <= _LARGEST:
            raise InputError(
                f"{shown(text)} is not between {bit_rate(_SMALLEST)} and {bit_rate(_LARGEST)}",
                remedy=_REMEDY,
            )
        return rate


LINK_RATE = LinkRate()
parse_rate = LINK_RATE.parse
