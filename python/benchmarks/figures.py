"""Cases of an area, and the table rows that are made of the measurements."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from typing import Any, Literal

from gridbench.bench.points import Points
from gridbench.statistics.claims import excludes_equality
from gridbench.statistics.series import Series


class Extent(Enum):
    """From a look whether all works to figures that are kept."""

    TRIAL = "trial"
    USUAL = "usual"
    FULL = "full"


Unit = Literal["s", "us", "MB", "MB/s", "/s", "copies", "x", ""]
Values = dict[str, float]


@dataclass(frozen=True, slots=True)
class CaseValue:
    """A quantity that a case finds, times `factor`, plus `addend`."""

    case: str
    quantity: str
    factor: float = 1.0
    addend: float = 0.0

    def __mul__(self, factor: float) -> CaseValue:
        return replace(self, factor=self.factor * factor, addend=self.addend * factor)

    def __add__(self, addend: float) -> CaseValue:
        return replace(self, addend=self.addend + addend)

    def of(self, points: Points) -> Series:
        """Its values, by round."""
        found = points.of(self.case, self.quantity)
        values = {n: value * self.factor + self.addend for n, value in found.by_round.items()}
        return replace(found, by_round=values)


@dataclass(frozen=True, slots=True)
class AreaCase:
    """A function to measure, which runs in a fresh process; `case["rate"]` is one of its values."""

    name: str
    """Unique within all areas."""
    function: Callable[..., Values | Iterator[Values]]
    """Yielded values are saved at once, so an interrupted run keeps them."""
    arguments: dict[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    python_of: str = ""
    """Engine whose Python environment runs it; empty: this Python."""
    most_runs: int | None = None
    """Limit on the number of runs, for cases that take long."""
    timeout: float = 120.0
    """Seconds for one run."""
    missing: str = ""
    """What this machine lacks for the case, with a remedy; such a case is not run."""

    def __getitem__(self, quantity: str) -> CaseValue:
        return CaseValue(self.name, quantity)


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


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    unit: Unit
    ours: Series
    _: KW_ONLY
    peer: Series | None = None
    limit: Series | None = None
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
    def claimed(self) -> bool:
        """Whether it can be claimed that ours and the peer's differ."""
        return self.peer is not None and excludes_equality(
            self.ours.ratios_to(self.peer).undisturbed.values
        )

    @property
    def reached(self) -> bool | None:
        """None if there is nothing to reach, or what it takes could not be measured undisturbed."""
        if self.target is None:
            return None
        sound = replace(
            self,
            ours=self.ours.undisturbed,
            peer=self.peer and self.peer.undisturbed,
            limit=self.limit and self.limit.undisturbed,
        )
        value = sound.ours.median
        if self.target.of_peer:
            value = sound.ratio_to_peer
        elif self.target.of_limit:
            value = sound.ratio_to_limit
        return None if math.isnan(value) else self.target.reached(value)

    @property
    def problems(self) -> list[str]:
        """Why values are missing."""
        parts = (self.ours, self.peer, self.limit)
        return [part.problem for part in parts if part is not None and part.problem]


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A line of the table, by the values that it shows once they are measured."""

    what: str
    unit: Unit
    ours: CaseValue
    _: KW_ONLY
    peer: CaseValue | None = None
    limit: CaseValue | Series | None = None
    target: Target | None = None
    digits: int = 3
    again: CaseValue | None = None
    """A second measurement of the same thing: the row shows the difference of the two."""

    def row(self, points: Points) -> Row:
        """The line, with its measurement."""
        ours = self.ours.of(points)
        if self.again is not None:
            ours = ours.difference_to(self.again.of(points))
        limit = self.limit.of(points) if isinstance(self.limit, CaseValue) else self.limit
        peer = None if self.peer is None else self.peer.of(points)
        return Row(
            self.what, self.unit, ours,
            peer=peer, limit=limit, target=self.target, digits=self.digits,
        )  # fmt: skip


def noise_row(what: str, once: CaseValue, again: CaseValue, digits: int = 2) -> PlannedRow:
    """The difference of two measurements of the same thing."""
    return PlannedRow(f"noise: {what}", "x", once, again=again, digits=digits)


@dataclass(frozen=True, slots=True)
class Area:
    """Cases that are measured together, and the rows made of them."""

    name: str
    """`AREA/PART` for a part of a larger area."""
    title: str
    cases: Sequence[AreaCase]
    table: Sequence[PlannedRow] | Callable[[Points], Iterable[PlannedRow]]
    """A function where what was measured decides which rows there are."""
    _: KW_ONLY
    picture: Callable[[Points], str] | None = None
    """An SVG picture of the values, for the page."""
    budget: float | None = None
    """Seconds for all runs of its cases: further rounds have what the first one leaves."""

    @property
    def part(self) -> str:
        """Its name within the larger area; empty if it is a whole one."""
        return self.name.partition("/")[2]

    def rows(self, points: Points) -> list[Row]:
        """The lines of the table, with measurements."""
        planned = self.table(points) if callable(self.table) else self.table
        return [one.row(points) for one in planned]


def shuffled(steps: Mapping[str, Callable[[], float]]) -> Values:
    """What each step gives, in random order: what disturbs the machine disturbs all alike."""
    return {name: value for one in in_random_order(steps) for name, value in one.items()}


def in_random_order(steps: Mapping[str, Callable[[], float]]) -> Iterator[Values]:
    """The same, one after the other as they come."""
    order = list(steps)
    random.shuffle(order)
    for name in order:
        yield {name: steps[name]()}
