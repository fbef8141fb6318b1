"""Rounds of the same workers, parameter and start together: a case, with how its figures spread."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gridbench.machine.rule import disturbed
from gridbench.statistics.interval import Interval, measured
from gridbench.sync.figures import PhaseFigures, RoundFigures, figures_of
from gridbench.sync.record import Round, Start

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)([kKmMgGtT]?)(i?[bB])?")
_STEP = 1024.0


def counts(one: Round) -> bool:
    """Whether a claim may rest on it: all of its tasks ended well, undisturbed."""
    return one.status == "done" and not disturbed(one)


@dataclass(frozen=True, slots=True)
class SyncCase:
    """The repeats of a case."""

    rounds: tuple[Round, ...]
    all_figures: tuple[RoundFigures, ...]
    """Of these rounds."""

    @property
    def workers(self) -> int:
        """How many there are."""
        return self.rounds[0].workers

    @property
    def parameter(self) -> str:
        """Empty: there are none."""
        return self.rounds[0].parameter

    @property
    def start(self) -> Start:
        """Where tasks waited."""
        return self.rounds[0].start

    def told(self) -> str:
        """`56 workers, 4k`; with the way to start if that is the less usual one."""
        return self.rounds[0].told()

    @property
    def counts(self) -> bool:
        """Whether any round counts. Where none does, figures are of all rounds, and are marked."""
        return any(map(counts, self.rounds))

    @property
    def figures(self) -> list[RoundFigures]:
        """Those of the rounds that count or, if none does, of all."""
        pairs = zip(self.rounds, self.all_figures, strict=True)
        return [found for one, found in pairs if counts(one) or not self.counts]

    @property
    def counting(self) -> list[Round]:
        """The rounds that count or, if none does, all."""
        return [one for one in self.rounds if counts(one) or not self.counts]

    @property
    def shown(self) -> Round:
        """The round that pictures show: that with the middle span of those that count, if any."""
        pairs = [
            (found.span if math.isfinite(found.span) else math.inf, one.repeat, number)
            for number, (one, found) in enumerate(zip(self.rounds, self.all_figures, strict=True))
            if counts(one) or not self.counts
        ]
        return self.rounds[sorted(pairs)[(len(pairs) - 1) // 2][2]]

    @property
    def phases(self) -> list[str]:
        """Names of the phases, in the order of the tasks."""
        return list(dict.fromkeys(name for found in self.all_figures for name in found.phases))

    def values(self, of: Callable[[RoundFigures], float]) -> list[float]:
        """A figure in each round that counts, as far as it is known."""
        return [value for found in self.figures if math.isfinite(value := of(found))]

    def interval(self, of: Callable[[RoundFigures], float]) -> Interval | None:
        """Its median, from the smallest to the largest; None if it is not known."""
        return measured(self.values(of), 0.0)

    def skew(self) -> Interval | None:
        """The start skew; what is not known of the clocks widens it, though not below 0."""
        margin = max((found.clock_error for found in self.figures), default=0.0)
        return _from_zero(measured(self.values(lambda f: f.skew), margin))

    def span(self) -> Interval | None:
        """From the first begin to the last end, widened in the same way."""
        margin = max((found.clock_error for found in self.figures), default=0.0)
        return _from_zero(measured(self.values(lambda f: f.span), margin))

    def phase_values(self, name: str, of: Callable[[PhaseFigures], float]) -> list[float]:
        """As `values`, of a phase."""
        return self.values(lambda f: of(f.phases[name]) if name in f.phases else math.nan)

    def phase_interval(self, name: str, of: Callable[[PhaseFigures], float]) -> Interval | None:
        """As `interval`, of a phase."""
        return measured(self.phase_values(name, of), 0.0)


def cases_of(rounds: Iterable[Round]) -> list[SyncCase]:
    """All cases, by start, parameter and workers."""
    groups: dict[tuple[int, str, Start], list[Round]] = {}
    for one in rounds:
        groups.setdefault((one.workers, one.parameter, one.start), []).append(one)
    place = {name: at for at, name in enumerate(parameters_of(groups))}
    ordered = sorted(groups, key=lambda key: (key[2] == "exec", place[key[1]], key[0]))
    cases = []
    for key in ordered:
        repeats = sorted(groups[key], key=lambda one: one.repeat)
        cases.append(SyncCase(tuple(repeats), tuple(map(figures_of, repeats))))
    return cases


Rate = tuple[str, str, Callable[[PhaseFigures], float]]
"""What it is called, its unit, and the figure."""
_RATES: tuple[Rate, ...] = (
    ("bandwidth", "bytes/s", lambda p: p.bandwidth),
    ("operations per second", "operations/s", lambda p: p.rate),
)


def rate_of(cases: Iterable[SyncCase], phase: str) -> Rate | None:
    """What a phase is known by: its bandwidth or, if no bytes are moved, its operations per second;
    None if it has neither."""
    some = list(cases)
    return next(
        (rate for rate in _RATES if any(case.phase_values(phase, rate[2]) for case in some)), None
    )


def phases_of_all(cases: Iterable[SyncCase]) -> list[str]:
    """The names of all phases, in the order of the tasks."""
    return list(dict.fromkeys(name for case in cases for name in case.phases))


def parameters_of(keys: Iterable[tuple[int, str, Start]]) -> Sequence[str]:
    """The parameters in order."""
    return in_order(parameter for _, parameter, _ in keys)


def _from_zero(found: Interval | None) -> Interval | None:
    return found and Interval(found.value, max(0.0, found.low), found.high)


def number_of(parameter: str) -> float | None:
    """`4k` is 4096; None if it is neither a number nor a size."""
    match = _NUMBER.fullmatch(parameter.strip())
    if match is None:
        return None
    unit = match[2].lower()
    value = float(match[1]) * _STEP ** (" kmgt".index(unit) if unit else 0)
    return value if math.isfinite(value) else None


def in_order(parameters: Iterable[str]) -> list[str]:
    """Each once: by size if all are numbers or sizes, else as they first appear."""
    seen = list(dict.fromkeys(parameters))
    numbers = numbers_of(seen)
    if numbers is None:
        return seen
    return [parameter for _, parameter in sorted(zip(numbers, seen, strict=True))]


def numbers_of(parameters: Sequence[str]) -> list[float] | None:
    """The number of each; None if one is no number, or two are the same."""
    numbers = [number for one in parameters if (number := number_of(one)) is not None]
    return numbers if len(set(numbers)) == len(parameters) else None
