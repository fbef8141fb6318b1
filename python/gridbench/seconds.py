"""Times on the command line: seconds, or a number with a unit."""

from __future__ import annotations

import re

import click

from gridbench.errors import InputError
from gridbench.workload.numbers import shown

UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_WORDS = {
    "millisecond": "ms",
    "second": "s",
    "sec": "s",
    "minute": "min",
    "hour": "h",
    "day": "d",
}
_TIME = re.compile(r"(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?) ?([a-z]*)\Z")
_MOST_LETTERS = 40


def parse_seconds(option: str, text: str) -> float:
    """Seconds, from `100`, `100s`, `2.5h`, `200 ms` or `2 hours`. InputError names `option`."""
    match = _TIME.match(text.strip()) if len(text) <= _MOST_LETTERS else None
    unit = match[2] if match else ""
    unit = _WORDS.get(unit.removesuffix("s") if len(unit) > 2 else unit, unit)
    if match is None or unit not in ("", *UNITS):
        raise InputError(
            f"{option}: `{shown(text)}` is not a time",
            remedy=f"give seconds, or a number with a unit ({', '.join(UNITS)})",
        )
    return float(match[1]) * UNITS.get(unit, 1.0)


class _Seconds(click.ParamType[float]):
    """An option of a time. Whether it makes sense there, the command says."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        del ctx
        if isinstance(value, (int, float)):
            return float(value)
        return parse_seconds(param.opts[-1] if param else "a time", str(value))


SECONDS = _Seconds()
"""The type of options of a time, in seconds."""
