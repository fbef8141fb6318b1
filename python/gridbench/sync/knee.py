"""From how many workers on more of them add nothing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gridbench.analysis.scaling import Scalability, fit_scalability
from gridbench.formats import amount, counted, digits, percent, times
from gridbench.sync.cases import SyncCase, cases_of
from gridbench.sync.record import Round, Start

FEWEST = 3
"""Numbers of workers; two tell nothing of where between them something changes."""
SAME = 0.05
"""Relative difference of rates that is none: repeats of a round differ by some percent."""
LESS = 0.1
"""From which on more workers are said to do less than fewer."""
FITS = 0.15
"""Relative error, with which the law still tells what happens."""
_SMALL = 0.02
"""Share of the work that is not worth a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """Of a phase in rounds that differ in their workers alone."""

    phase: str
    parameter: str
    start: Start
    rates: Mapping[int, float]
    """Bytes or operations per second by workers, medians."""
    of_bytes: bool
    workers: int | None
    """The fewest that do as much as any; None: more of them always did more."""
    law: Scalability | None
    """None: it does not fit, or there are too few numbers of workers."""
    told: str
    """Whole sentences with the figures."""


def knees(rounds: Iterable[Round]) -> tuple[Knee, ...]:
    """Of each phase of each sweep over workers."""
    sweeps: dict[tuple[Start, str], list[SyncCase]] = {}
    for case in cases_of(one for one in rounds if one.status == "done"):
        sweeps.setdefault((case.start, case.parameter), []).append(case)
    return tuple(knee for cases in sweeps.values() for knee in _of_sweep(cases))


def _of_sweep(cases: Sequence[SyncCase]) -> Iterator[Knee]:
    for phase in dict.fromkeys(name for case in cases for name in case.phases):
        bandwidths = _medians(
            {c.workers: c.phase_values(phase, lambda f: f.bandwidth) for c in cases}
        )
        rates = bandwidths or _medians(
            {c.workers: c.phase_values(phase, lambda f: f.rate) for c in cases}
        )
        if len(rates) >= FEWEST:
            yield _knee(cases[0], phase, rates, of_bytes=bool(bandwidths))


def _medians(values: Mapping[int, Sequence[float]]) -> dict[int, float]:
    return {count: statistics.median(found) for count, found in values.items() if found}


def _knee(case: SyncCase, phase: str, rates: Mapping[int, float], *, of_bytes: bool) -> Knee:
    best = max(rates.values())
    workers = next(count for count in sorted(rates) if rates[count] >= (1 - SAME) * best)
    law = fit_scalability(rates)
    law = law if law and law.error <= FITS else None
    most = max(rates)
    found = workers if workers < most else None

    def shown(count: int) -> str:
        return f"{_rate(rates[count], of_bytes=of_bytes)} with {count:,}"

    if found is None:
        before = sorted(rates)[-2]
        told = (
            f"More workers still do more: {shown(most)}, {times(rates[most] / rates[before])} those"
            f" with {before:,}."
        )
    elif rates[most] < (1 - LESS) * best:
        told = (
            f"Most is done by {counted(workers, 'worker')}, and more do less: {shown(workers)}, and"
            f" {shown(most)}, {percent(1 - rates[most] / rates[workers], 0)} less."
        )
    else:
        told = (
            f"From {counted(workers, 'worker')} on, more of them add nothing: {shown(workers)}, and"
            f" {shown(most)}."
        )
    return Knee(
        phase=phase,
        parameter=case.parameter,
        start=case.start,
        rates=rates,
        of_bytes=of_bytes,
        workers=found,
        law=law,
        told=" ".join([told, *_by_law(law, most, of_bytes=of_bytes)]),
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
            parts[-1] += f", so that any number of them stays below {bound}"
    if crowding >= _SMALL:
        parts.append("each worker costs every other one time")
        if law.most <= 2 * most:
            parts[-1] += f", so that about {max(1, round(law.most)):,} do the most"
    yield f"{fits} {', and '.join(parts or ['workers do not hold each other up'])}."


def _rate(value: float, *, of_bytes: bool) -> str:
    return amount(value, "bytes/s") if of_bytes else f"{digits(value)} operations/s"
