"""Whole numbers on the command line: `1000` or `1e3`."""

from __future__ import annotations

import re

import click

from gridbench.errors import InputError
from gridbench.workload.numbers import shown

_COUNT = re.compile(r"[0-9]{1,20}|[0-9]{1,20}(\.[0-9]{0,20})?[eE]\+?[0-9]{1,2}")


def parse_count(option: str, text: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`. InputError names `option`."""
    text = text.strip()
    value = float(text) if _COUNT.fullmatch(text) else -1.0
    # Digits alone are exact, however many there are.
    count = int(text) if text.isascii() and text.isdecimal() and value >= 0 else int(value)
    if not (value.is_integer() and value >= 0 and low <= count <= high):
        raise InputError(
            f"{option}: `{shown(text)}` is not a whole number from {low:,} to {high:,}",
            remedy=f"for example {option} {_example(low, high)}",
        )
    return count


def _example(low: int, high: int) -> str:
    return "1000, or 1e3" if low <= 1000 <= high else str(low)


class Count(click.ParamType[int]):
    """The type of options of a whole number from `low` to `high`."""

    name = "count"

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        del ctx
        if isinstance(value, int):
            return value
        return parse_count(param.opts[-1] if param else "a number", str(value), self.low, self.high)
