"""One value of a simulation after another: `--sweep cores=1000,10000,100000`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import as_given, bit_rate, compact_size, whole
from gridbench.links.options import parse_rate
from gridbench.quantities import (
    Count,
    parse_list,
    parse_seconds,
    parse_size,
    parse_stddev,
)
from gridbench.simulate.account import Account
from gridbench.simulate.simulation import MOST_TASKS
from gridbench.workload.numbers import LONGEST_TIME, shown

OPTION = "--sweep"
STDDEV_SHARE = "stddev-share"
"""What is varied where deviations of times are given as shares of the mean."""
MOST_VALUES = 100


def parse_count(option: str, text: str) -> float:
    """A number of something. InputError names `option`."""
    return Count(1, MOST_TASKS).parse(option, text)


def parse_time(option: str, text: str) -> float:
    """Seconds, from `5`, `5s` or `200ms`. InputError names `option`."""
    value = parse_seconds(option, text)
    if not 0 <= value <= LONGEST_TIME:
        raise InputError(f"{option}: {shown(text)} is not from 0 to {as_given(LONGEST_TIME)}")
    return value


def _parse_share(option: str, text: str) -> float:
    """A share of the mean, from `50%`. InputError names `option`."""
    seconds, share = parse_stddev(option, text)
    if seconds:
        raise InputError(
            f"{option}: `{shown(text)}` is a time among shares of the mean",
            remedy="give either times or shares, such as 20%",
        )
    return share


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """Something that can be varied."""

    name: str
    parse: Callable[[str, str], float]
    text: Callable[[float], str]


AXES = {
    axis.name: axis
    for axis in (
        SweepAxis("cores", parse_count, whole),
        SweepAxis("tasks", parse_count, whole),
        SweepAxis("tasks-per-core", parse_count, whole),
        SweepAxis("sleep", parse_time, as_given),
        SweepAxis("stddev", parse_time, as_given),
        SweepAxis("input", parse_size, compact_size),
        SweepAxis("shared", parse_size, compact_size),
        SweepAxis("output", parse_size, compact_size),
        SweepAxis("link", parse_rate, bit_rate),
        SweepAxis("node-link", parse_rate, bit_rate),
    )
}

_SHARES = SweepAxis(STDDEV_SHARE, _parse_share, lambda share: as_given(share * 100, "%"))
"""Deviations of times, where they are given as shares of the mean."""


@dataclass(frozen=True, slots=True)
class SimulationSweep:
    """What is varied, and its values."""

    axis: SweepAxis
    values: Sequence[float]


def parse_sweep(text: str) -> SimulationSweep:
    """From `cores=1000,10000`. Raises InputError."""
    name, equals, values = text.partition("=")
    if not equals or name not in AXES:
        raise InputError(
            f"{OPTION}: `{shown(text)}` does not say what to vary",
            remedy=f"for example {OPTION} cores=1000,10000; also {', '.join(list(AXES)[1:])}",
        )
    axis = _SHARES if name == "stddev" and "%" in values else AXES[name]
    parsed = parse_list(OPTION, values, axis.parse)
    if len(parsed) > MOST_VALUES:
        raise InputError(f"{OPTION} has {len(parsed):,} values, more than {MOST_VALUES}")
    return SimulationSweep(axis, parsed)


@dataclass(frozen=True, slots=True)
class Swept:
    """What came of a sweep, as far as it got."""

    sweep: SimulationSweep
    accounts: Sequence[Account]
    """Of the first values, or all."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        axis, values = self.sweep.axis, self.sweep.values
        return {
            "sweep": axis.name,
            "complete": len(self.accounts) == len(values),
            "points": [
                {axis.name: value, **one.to_dict()}
                for value, one in zip(values, self.accounts, strict=False)
            ],
        }
