"""Sizes and lists as people give them on the command line, and as they are shown."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from gridbench.counts import parse_count
from gridbench.errors import InputError
from gridbench.seconds import parse_seconds
from gridbench.workload.numbers import shown
from gridbench.workload.setup_file import LARGEST_KB, MOST_NODES
from gridbench.workload.task_times import LONGEST_TIME

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30

_UNITS = {"": 1, "B": 1, "KB": KB, "MB": MB, "GB": GB, "TB": 1 << 40}
_SIZE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+) ?([A-Za-z]*)\Z")

T = TypeVar("T")


def parse_list(option: str, text: str, parse: Callable[[str, str], T]) -> list[T]:
    """The values of a list such as `1,10,100`, without repetitions. InputError names `option`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(
            f"{option} is a list of values with commas between them, not `{shown(text)}`",
            remedy=f"for example {option} 1,10,100",
        )
    return list(dict.fromkeys(parse(option, part) for part in parts))


def parse_size(option: str, text: str) -> int:
    """Bytes, from `10KB`, `1 MB` or `0`; 1 MB is 1,024 KB. InputError names `option`."""
    return parse_bytes(option, text, LARGEST_KB * KB, "a terabyte")


def parse_bytes(option: str, text: str, most: float, most_told: str) -> int:
    """The same of up to `most` bytes, which are called `most_told`."""
    match = _SIZE.match(text)
    remedy = "give a size such as 0, 10KB, 1.5MB or 1GB"
    if match is None or match[2].upper() not in _UNITS or len(text) > 40:
        below = re.match(r"-[0-9.]", text)
        what = "is below 0" if below else "is not a size"
        raise InputError(f"{option}: `{shown(text)}` {what}", remedy=remedy)
    size = round(float(match[1]) * _UNITS[match[2].upper()])
    if size > most:
        raise InputError(f"{option}: {shown(text)} is more than {most_told}", remedy=remedy)
    return size


def parse_cores(option: str, text: str) -> int:
    """A number of cores. InputError names `option`."""
    return parse_count(option, text, 1, MOST_NODES)


def parse_stddev(option: str, text: str) -> tuple[float, float]:
    """Seconds, and share of the mean: one of them is 0. From `5`, `200ms` or `20%`. InputError
    names `option`."""
    share = text.endswith("%")
    try:
        value = float(text.removesuffix("%")) if share else parse_seconds(option, text)
    except (ValueError, InputError):
        value = math.nan
    if not (math.isfinite(value) and 0 <= value <= (100.0 if share else LONGEST_TIME)):
        raise InputError(
            f"{option}: `{shown(text)}` is not a deviation",
            remedy="give a time, such as 5 or 200ms, or a share of the mean, such as 20%",
        )
    return (0.0, value / 100) if share else (value, 0.0)


def exact_size(count: int) -> str:
    """Bytes in the largest unit of which they are a whole number: no two sizes look alike."""
    for unit in ("GB", "MB", "KB"):
        if count and count % _UNITS[unit] == 0:
            return f"{count // _UNITS[unit]}{unit}"
    return f"{count}B"
