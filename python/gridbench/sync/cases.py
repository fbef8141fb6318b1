"""Cases: rounds with the same workers, parameter and hold point, and how their figures scatter.

A sweep is all cases that differ in their workers only. `scaling_of` finds the number of workers
from which on more of them add nothing.
"""

from __future__ import annotations

import functools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gridbench.analysis.scaling import Scalability, fit_scalability
from gridbench.formats import amount, counted, digits, percent, times
from gridbench.machine.judgement import disturbed
from gridbench.statistics.interval import Interval, measured
from gridbench.sync.bottlenecks import frequent_bottlenecks
from gridbench.sync.figures import PhaseFigures, RoundFigures, figures_of
from gridbench.sync.record import HoldPoint, Round

FEWEST = 3
"""Numbers of workers that a sweep needs."""
SAME = 0.05
"""Relative difference below which rates are equal: repeats of a round differ by some percent."""
LESS = 0.1
"""Relative decrease from which on more workers do less than fewer."""
FITS = 0.15
"""Largest relative error of a scalability law that is reported."""
_SMALL = 0.02
"""Share of the work that is not worth a sentence."""
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)([kKmMgGtT]?)(i?[bB])?")
_STEP = 1024.0


def counts(one: Round) -> bool:
    """Whether all tasks of a round ended well, undisturbed: only such rounds support a claim."""
    return one.status == "done" and not disturbed(one)


@dataclass(frozen=True)
class SyncCase:
    """The repeats of a case."""

    rounds: tuple[Round, ...]
    all_figures: tuple[RoundFigures, ...]
    """Of each round."""

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.rounds[0].workers

    @property
    def parameter(self) -> str:
        """Empty: none."""
        return self.rounds[0].parameter

    @property
    def start(self) -> HoldPoint:
        """Where tasks were held."""
        return self.rounds[0].start

    def describe(self) -> str:
        """`56 workers, 4k`, with the hold point unless it is the default."""
        return self.rounds[0].describe()

    @property
    def counts(self) -> bool:
        """Whether any round counts. Otherwise figures are of all rounds, and are marked."""
        return any(map(counts, self.rounds))

    @property
    def figures(self) -> list[RoundFigures]:
        """Of the rounds that count; of all if none does."""
        pairs = zip(self.rounds, self.all_figures, strict=True)
        return [found for one, found in pairs if counts(one) or not self.counts]

    @property
    def counting(self) -> list[Round]:
        """The rounds that count; all if none does."""
        return [one for one in self.rounds if counts(one) or not self.counts]

    @property
    def shown(self) -> Round:
        """The round that charts show: the one with the median span."""
        pairs = [
            (found.span if math.isfinite(found.span) else math.inf, one.repeat, number)
            for number, (one, found) in enumerate(zip(self.rounds, self.all_figures, strict=True))
            if counts(one) or not self.counts
        ]
        return self.rounds[sorted(pairs)[(len(pairs) - 1) // 2][2]]

    @functools.cached_property
    def bottlenecks(self) -> list[tuple[str, int, str]]:
        """Each bottleneck, the number of its rounds among those that count, and a sentence."""
        return frequent_bottlenecks(self.counting)

    @property
    def limited_by(self) -> list[str]:
        """Bottlenecks of at least half of the rounds that count."""
        return [what for what, times, _ in self.bottlenecks if 2 * times >= len(self.counting)]

    @property
    def phases(self) -> list[str]:
        """Names of the phases in order."""
        return list(dict.fromkeys(name for found in self.all_figures for name in found.phases))

    def values(self, of: Callable[[RoundFigures], float]) -> list[float]:
        """A figure of each round that counts, if known."""
        return [value for found in self.figures if math.isfinite(value := of(found))]

    def interval(self, of: Callable[[RoundFigures], float]) -> Interval | None:
        """The median of a figure with the smallest and the largest value; None if unknown."""
        return measured(self.values(of), 0.0)

    def skew(self) -> Interval | None:
        """The start skew, widened by the clock error but not below 0."""
        margin = max((found.clock_error for found in self.figures), default=0.0)
        return _from_zero(measured(self.values(lambda f: f.skew), margin))

    def span(self) -> Interval | None:
        """The time from the first begin to the last end, widened in the same way."""
        margin = max((found.clock_error for found in self.figures), default=0.0)
        return _from_zero(measured(self.values(lambda f: f.span), margin))

    def phase_values(self, name: str, of: Callable[[PhaseFigures], float]) -> list[float]:
        """As `values`, of a phase."""
        return self.values(lambda f: of(f.phases[name]) if name in f.phases else math.nan)

    def phase_interval(self, name: str, of: Callable[[PhaseFigures], float]) -> Interval | None:
        """As `interval`, of a phase."""
        return measured(self.phase_values(name, of), 0.0)


def cases_of(rounds: Iterable[Round]) -> list[SyncCase]:
    """All cases, ordered by hold point, parameter and workers."""
    groups: dict[tuple[int, str, HoldPoint], list[Round]] = {}
    for one in rounds:
        groups.setdefault((one.workers, one.parameter, one.start), []).append(one)
    place = {name: at for at, name in enumerate(in_order(key[1] for key in groups))}
    ordered = sorted(groups, key=lambda key: (key[2] == "exec", place[key[1]], key[0]))
    cases = []
    for key in ordered:
        repeats = sorted(groups[key], key=lambda one: one.repeat)
        cases.append(SyncCase(tuple(repeats), tuple(map(figures_of, repeats))))
    return cases


Rate = tuple[str, str, Callable[[PhaseFigures], float]]
"""Name, unit, figure."""
_RATES: tuple[Rate, ...] = (
    ("bandwidth", "bytes/s", lambda p: p.bandwidth),
    ("operations per second", "operations/s", lambda p: p.rate),
)


def rate_of(cases: Iterable[SyncCase], phase: str) -> Rate | None:
    """The rate of a phase: bandwidth or, if it moves no bytes, operations per second."""
    some = list(cases)
    return next(
        (rate for rate in _RATES if any(case.phase_values(phase, rate[2]) for case in some)), None
    )


def phases_of_all(cases: Iterable[SyncCase]) -> list[str]:
    """The names of all phases in order."""
    return list(dict.fromkeys(name for case in cases for name in case.phases))


def _from_zero(found: Interval | None) -> Interval | None:
    return found and Interval(found.value, max(0.0, found.low), found.high)


def number_of(parameter: str) -> float | None:
    """The value of a number or size, such as 4096 for `4k`; None for other text."""
    match = _NUMBER.fullmatch(parameter.strip())
    if match is None:
        return None
    unit = match[2].lower()
    value = float(match[1]) * _STEP ** (" kmgt".index(unit) if unit else 0)
    return value if math.isfinite(value) else None


def in_order(parameters: Iterable[str]) -> list[str]:
    """Each once: by value if all are numbers or sizes, else as they first appear."""
    seen = list(dict.fromkeys(parameters))
    numbers = numbers_of(seen)
    if numbers is None:
        return seen
    return [parameter for _, parameter in sorted(zip(numbers, seen, strict=True))]


def numbers_of(parameters: Sequence[str]) -> list[float] | None:
    """The number of each; None if one is not a number, or two are equal."""
    numbers = [number for one in parameters if (number := number_of(one)) is not None]
    return numbers if len(set(numbers)) == len(parameters) else None


# ---- Sweeps over workers


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseScaling:
    """How the rate of a phase changes over a sweep."""

    phase: str
    parameter: str
    start: HoldPoint
    rates: Mapping[int, float]
    """Median bytes or operations per second, by workers."""
    of_bytes: bool
    workers: int | None
    """The fewest with the highest rate; None: more workers always did more."""
    law: Scalability | None
    """None: it does not fit, or the sweep is too short."""
    told: str
    """Sentences with the figures."""


def scaling_of(rounds: Iterable[Round]) -> tuple[PhaseScaling, ...]:
    """The scaling of each phase in each sweep."""
    sweeps: dict[tuple[HoldPoint, str], list[SyncCase]] = {}
    for case in cases_of(one for one in rounds if one.status == "done"):
        sweeps.setdefault((case.start, case.parameter), []).append(case)
    return tuple(one for cases in sweeps.values() for one in _of_sweep(cases))


def _of_sweep(cases: Sequence[SyncCase]) -> Iterator[PhaseScaling]:
    for phase in dict.fromkeys(name for case in cases for name in case.phases):
        bandwidths = _medians(
            {c.workers: c.phase_values(phase, lambda f: f.bandwidth) for c in cases}
        )
        rates = bandwidths or _medians(
            {c.workers: c.phase_values(phase, lambda f: f.rate) for c in cases}
        )
        if len(rates) >= FEWEST:
            yield _scaling(cases[0], phase, rates, of_bytes=bool(bandwidths))


def _medians(values: Mapping[int, Sequence[float]]) -> dict[int, float]:
    return {count: statistics.median(found) for count, found in values.items() if found}


def _scaling(
    case: SyncCase, phase: str, rates: Mapping[int, float], *, of_bytes: bool
) -> PhaseScaling:
    best = max(rates.values())
    workers = next(count for count in sorted(rates) if rates[count] >= (1 - SAME) * best)
    law = fit_scalability(rates)
    law = law if law and law.error <= FITS else None
    most = max(rates)
    found = workers if workers < most else None

    def shown(count: int) -> str:
        return f"{_rate(rates[count], of_bytes=of_bytes)} with {count:,}"

    few, verb = counted(workers, "worker"), "s" if workers == 1 else ""
    if found is None:
        before = sorted(rates)[-2]
        ratio = times(rates[most] / rates[before])
        text = f"More workers still do more: {shown(most)}, {ratio} the rate with {before:,}."
    elif rates[most] < (1 - LESS) * best:
        less = percent(1 - rates[most] / rates[workers], 0)
        text = (
            f"{few} {'does' if verb else 'do'} the most, and more do less: {shown(workers)}, and"
            f" {shown(most)}, {less} less."
        )
    else:
        text = f"More than {few} add{verb} nothing: {shown(workers)}, and {shown(most)}."
    return PhaseScaling(
        phase=phase,
        parameter=case.parameter,
        start=case.start,
        rates=rates,
        of_bytes=of_bytes,
        workers=found,
        law=law,
        told=" ".join([text, *_by_law(law, most, of_bytes=of_bytes)]),
    )


def _by_law(law: Scalability | None, most: int, *, of_bytes: bool) -> Iterator[str]:
    if law is None:
        return
    fits = f"The universal scalability law fits within {percent(law.error, 0)}:"
    crowding = law.coherence * most * (most - 1) / (1 + law.contention * (most - 1))
    parts = []
    if law.contention >= _SMALL:
        share = percent(min(1.0, law.contention), 0)
        parts.append(f"{share} of the work is done by one worker at a time")
        if crowding < _SMALL:
            bound = _rate(law.alone / law.contention, of_bytes=of_bytes)
            parts[-1] += f", so that any number of workers stays below {bound}"
    if crowding >= _SMALL:
        parts.append("each pair of workers costs time")
        if law.most <= 2 * most:
            parts[-1] += f", so that about {max(1, round(law.most)):,} do the most"
    yield f"{fits} {', and '.join(parts or ['workers do not slow each other down'])}."


def _rate(value: float, *, of_bytes: bool) -> str:
    return amount(value, "bytes/s") if of_bytes else f"{digits(value)} operations/s"
