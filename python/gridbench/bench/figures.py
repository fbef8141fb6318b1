"""Cases to measure, the values measured, and the rows that are made of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Unit = Literal["s", "us", "MB", "/s", "copies", "x", ""]
Values = dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One thing to measure: a function of a module, run in a fresh process."""

    name: str
    """Unique within all areas."""
    function: Callable[..., Values]
    arguments: dict[str, Any] = field(default_factory=dict)
    most_runs: int | None = None
    """A case that takes long is run no more often than that."""
    timeout: float = 120.0
    """Seconds after which a run is given up."""
    missing: str = ""
    """What this machine lacks for it, and how to get that; it is not run then."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Values of one quantity, by round; the order of rounds pairs them with those of others."""

    by_round: dict[int, float]
    problem: str = ""
    """Why values are missing; empty if none are."""

    @classmethod
    def exactly(cls, value: float) -> Measured:
        """A quantity that follows from the numbers of the case, such as the ideal time."""
        return cls({0: value})

    @property
    def values(self) -> list[float]:
        """In the order of rounds."""
        return [self.by_round[number] for number in sorted(self.by_round)]

    @property
    def median(self) -> float:
        """NaN if nothing could be measured."""
        return statistics.median(self.by_round.values()) if self.by_round else float("nan")

    def scaled(self, factor: float) -> Measured:
        """The same in another unit."""
        scaled = {number: value * factor for number, value in self.by_round.items()}
        return Measured(scaled, self.problem)

    def difference_to(self, twin: Measured) -> Measured:
        """How many times the larger of the two is the smaller, for each round that both have."""
        common = self.by_round.keys() & twin.by_round.keys()
        pairs = {n: sorted((self.by_round[n], twin.by_round[n])) for n in common}
        differences = {n: high / low for n, (low, high) in pairs.items() if low}
        return Measured(differences, self.problem or twin.problem)

    def ratios_to(self, other: Measured) -> Measured:
        """How many times the other value this one is, for each round that both have.

        Values of one round were measured within seconds of each other, so that a machine
        that is slow for a while does not shift their ratio.
        """
        common = sorted(self.by_round.keys() & other.by_round.keys())
        return Measured(
            {n: self.by_round[n] / other.by_round[n] for n in common if other.by_round[n]}
        )

    def ratio_to(self, other: Measured) -> float:
        """Median of the ratios of those rounds that both have; NaN if there are none."""
        return self.ratios_to(other).median


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be reached: a bound on the median, or on its ratio to the peer's or limit's."""

    bound: float
    at_least: bool = False
    of_peer: bool = False
    of_limit: bool = False

    def reached(self, value: float) -> bool:
        """Whether `value` (a median, or a ratio) is on the right side."""
        return value >= self.bound if self.at_least else value <= self.bound


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    unit: Unit
    ours: Measured
    peer: Measured | None = None
    limit: Measured | None = None
    """What the machine allows, or the ideal."""
    target: Target | None = None
    digits: int = 3

    @property
    def ratio_to_peer(self) -> float:
        """NaN without a peer."""
        return float("nan") if self.peer is None else self.ours.ratio_to(self.peer)

    @property
    def ratio_to_limit(self) -> float:
        """NaN without a limit. By rounds where those are paired, else of the medians."""
        if self.limit is None or not self.limit.median:
            return float("nan")
        by_round = self.ours.ratio_to(self.limit)
        return self.ours.median / self.limit.median if math.isnan(by_round) else by_round

    @property
    def ratios(self) -> dict[str, list[float]]:
        """Those of single rounds to the peer's and the limit's values, in the order of rounds."""
        parts = {"peer": self.peer, "limit": self.limit}
        return {name: self.ours.ratios_to(part).values for name, part in parts.items() if part}

    @property
    def reached(self) -> bool | None:
        """None if there is nothing to reach, or what it takes could not be measured."""
        if self.target is None:
            return None
        value = self.ours.median
        if self.target.of_peer:
            value = self.ratio_to_peer
        elif self.target.of_limit:
            value = self.ratio_to_limit
        return None if math.isnan(value) else self.target.reached(value)

    @property
    def problems(self) -> list[str]:
        """Why values are missing."""
        parts = (self.ours, self.peer, self.limit)
        return [part.problem for part in parts if part is not None and part.problem]


class Samples:
    """What the runs of an area's cases gave."""

    def __init__(self) -> None:
        self._values: dict[str, dict[int, Values]] = {}
        self._failures: dict[str, str] = {}

    def add(self, case: str, number: int, values: Values) -> None:
        """Keep the values of a run."""
        self._values.setdefault(case, {})[number] = values

    def add_failure(self, case: str, number: int, why: str) -> None:
        """Keep why a run gave none."""
        self._failures[case] = f"{case}, round {number + 1}: {why}"

    def of(self, case: str, quantity: str) -> Measured:
        """One quantity of a case."""
        runs = self._values.get(case, {})
        values = {n: run[quantity] for n, run in runs.items() if quantity in run}
        problem = self._failures.get(case, "")
        if not values and not problem:
            problem = f"{case}: was not run"
        return Measured(values, problem)

    def as_record(self) -> dict[str, Any]:
        """For the file: all values of all runs."""
        return {"values": self._values, "failures": self._failures}


@dataclass(frozen=True, slots=True)
class Area:
    """Cases that are measured together, and the rows made of them."""

    name: str
    title: str
    cases: Sequence[Case]
    rows: Callable[[Samples], list[Row]]
    part: str = ""
    """What it is called within a larger area that it is a part of."""
    picture: Callable[[Samples], str] | None = None
    """An SVG picture of the values, for the page."""
