"""Cases to measure, the values measured, and the rows that are made of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from gridbench.machine.claims import excludes_equality
from gridbench.records import from_record

Unit = Literal["s", "us", "MB", "/s", "copies", "x", ""]
Values = dict[str, float]


class LimitReached(Exception):
    """Raised by a case's function: what it measures did not end within its limit, with how far it
    came, and why as far as that can be seen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One thing to measure: a function of a module, run in a fresh process."""

    name: str
    """Unique within all areas."""
    function: Callable[..., Values | Iterator[Values]]
    """What it yields is kept as it comes, also when the run is cut off later."""
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
    at_limit: bool = False
    """They are missing because the case did not end within its limit."""
    disturbed: frozenset[int] = frozenset()
    """The rounds that other programs disturbed."""

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
        return replace(self, by_round=scaled)

    def difference_to(self, twin: Measured) -> Measured:
        """How many times the larger of the two is the smaller, for each round that both have."""
        common = self.by_round.keys() & twin.by_round.keys()
        pairs = {n: sorted((self.by_round[n], twin.by_round[n])) for n in common}
        differences = {n: high / low for n, (low, high) in pairs.items() if low}
        return Measured(
            differences,
            self.problem or twin.problem,
            self.at_limit or twin.at_limit,
            self.disturbed | twin.disturbed,
        )

    def ratios_to(self, other: Measured) -> Measured:
        """How many times the other value this one is, for each round that both have.

        Values of one round were measured within seconds of each other, so that a machine
        that is slow for a while does not shift their ratio.
        """
        common = sorted(self.by_round.keys() & other.by_round.keys())
        return Measured(
            {n: self.by_round[n] / other.by_round[n] for n in common if other.by_round[n]},
            disturbed=self.disturbed | other.disturbed,
        )

    @property
    def undisturbed(self) -> list[float]:
        """What a claim may rest on."""
        return [self.by_round[n] for n in sorted(self.by_round.keys() - self.disturbed)]

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
    def claimed(self) -> bool:
        """Whether it can be claimed that ours and the peer's differ."""
        return self.peer is not None and excludes_equality(
            self.ours.ratios_to(self.peer).undisturbed
        )

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


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of a case."""

    values: Values = field(default_factory=dict)
    """One that failed may have given some before."""
    problem: str = ""
    """Why it gave none, or not all; empty if it did."""
    hopeless: bool = False
    """It reached its limit, and so would another one."""
    seconds: float = 0.0
    """How long it took."""
    others: float = 0.0
    """Processors that other work on the machine took meanwhile."""
    disturbed: bool = False
    """That was more than is tolerated."""


class Samples:
    """What the runs of an area's cases gave."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[int, Run]] = {}

    def add(self, case: str, number: int, values: Values) -> None:
        """Keep the values of a run."""
        self.keep(case, number, Run(values=values))

    def add_failure(self, case: str, number: int, why: str) -> None:
        """Keep why a run gave none."""
        self.keep(case, number, Run(problem=why))

    def keep(self, case: str, number: int, run: Run) -> None:
        """Keep a run, the `number`th of the case."""
        self._runs.setdefault(case, {})[number] = run

    def runs_of(self, case: str) -> dict[int, Run]:
        """By round."""
        return self._runs.get(case, {})

    @property
    def count(self) -> int:
        """How many runs there are."""
        return sum(map(len, self._runs.values()))

    def seconds(self, cases: Iterable[str]) -> float:
        """How long all runs of these cases took."""
        return sum(run.seconds for case in cases for run in self.runs_of(case).values())

    def of(self, case: str, quantity: str) -> Measured:
        """One quantity of a case."""
        runs = self.runs_of(case)
        values = {n: run.values[quantity] for n, run in runs.items() if quantity in run.values}
        failed = [n for n, run in runs.items() if run.problem and n not in values]
        problem = ""
        if failed:
            problem = f"{case}, round {failed[-1] + 1}: {runs[failed[-1]].problem}"
        elif not values:
            problem = f"{case}: was not run"
        disturbed = frozenset(n for n in values if runs[n].disturbed)
        return Measured(values, problem, bool(failed) and runs[failed[-1]].hopeless, disturbed)

    def others(self) -> list[float]:
        """What other work took during each run, in processors."""
        return [run.others for runs in self._runs.values() for run in runs.values() if run.seconds]

    @property
    def disturbed(self) -> int:
        """How many runs other programs disturbed."""
        return sum(run.disturbed for runs in self._runs.values() for run in runs.values())

    def as_record(self) -> dict[str, Any]:
        """For the file: all runs."""
        return {
            case: {str(number): asdict(run) for number, run in runs.items()}
            for case, runs in self._runs.items()
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Samples:
        """Those of a file. Raises RecordError if it is damaged."""
        samples = cls()
        for case, runs in record.items():
            for number, run in runs.items():
                samples.keep(case, int(number), from_record(Run, run))
        return samples


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
    budget: float | None = None
    """Seconds for all runs of its cases: further rounds have what the first one leaves."""
