"""How the times of a benchmark come about: costs, and how often each of them counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.model_kind import Parameter

Cases = Mapping[str, Floats]
"""By the names of parameters, their values in some cases, each of shape (cases,)."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A term."""

    name: str
    meaning: str
    unit: Literal["s", "s/byte"]
    times: Callable[[Cases], Floats]
    """How often it counts, shape (cases,)."""
    crowded: bool = False
    """It takes longer where more share something than fill it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A time that is measured by itself: the sum of its costs."""

    name: str
    what: str
    costs: tuple[Cost, ...]
    """Where some of them cannot be told apart, the earlier ones stand for the later ones."""
    sharing: str = ""
    """The parameter that says how many share what is crowded; empty: nothing is."""
    filled: str = ""
    """What the number is that fills it."""

    def columns(self, cases: Cases, crowd: Floats | float) -> list[Floats]:
        """How often each cost counts, and how many times as long it takes: one of shape (cases,)
        for each."""
        return [
            np.asarray(cost.times(cases) * (crowd if cost.crowded else 1.0)) for cost in self.costs
        ]

    def crowd(self, cases: Cases, filled: float) -> Floats | float:
        """How many times as long it takes as for one alone."""
        return np.maximum(1.0, cases[self.sharing] / filled) if self.sharing else 1.0


@dataclass(frozen=True, slots=True)
class Formula:
    """What a benchmark's measurements are made of, one part after the other."""

    quantity: str
    """What the parts are together, in words."""
    noun: str
    """What a measurement is called."""
    parameters: tuple[Parameter, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A case that was measured."""

    values: Mapping[str, float]
    """Of the parameters, by name."""
    repeats: tuple[Mapping[str, float], ...]
    """Seconds of each part, by name, once for each repeat; at least one."""

    def time(self, part: str) -> float:
        """The median of the repeats, seconds."""
        return float(np.median([one[part] for one in self.repeats]))

    @property
    def total(self) -> float:
        """The median of all parts together."""
        return float(np.median([sum(one.values()) for one in self.repeats]))


def cases_of(values: Sequence[Mapping[str, float]]) -> Cases:
    """Cases by their parameters; at least one."""
    return {name: np.array([one[name] for one in values]) for name in values[0]}
