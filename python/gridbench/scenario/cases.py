"""The measured cases of a scenario, repetitions together, with error bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gridbench.engines.names import is_gridrpc
from gridbench.machine.words import DISTURBED
from gridbench.scenario.results import CaseResult
from gridbench.statistics.interval import Interval, measured

_FINEST = 1e-6
"""Seconds, where the results do not tell how exact stamps are."""


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """A case on one engine: all its rounds that count or, if none does, all that were measured."""

    results: tuple[CaseResult, ...]
    counts: bool
    """False: its runs were marked invalid."""

    @property
    def one(self) -> CaseResult:
        """One of them, for what they have in common."""
        return self.results[0]

    @property
    def disturbed(self) -> bool:
        """Whether it does not count for the sole reason that other programs used the machine."""
        return not self.counts and all(one.reason_kind == DISTURBED for one in self.results)

    def margin(self, clocks: int) -> float:
        """Seconds within which times are certain that have so many offsets of clocks in them."""
        if clocks < 2:
            return self._certain("clock_margin" if clocks else "clock_step")
        return clocks * self._certain("clock_between", "clock_margin")

    def _certain(self, *names: str) -> float:
        """The largest of all rounds, by the first of these figures that there is."""
        known = [[r.figures[name] for name in names if name in r.figures] for r in self.results]
        return max(values[0] if values else _FINEST for values in known)

    def total(self) -> Interval:
        """From t = 0 until the last result was there."""
        return self._of([result.total_s for result in self.results])

    def overhead(self) -> Interval:
        """The total less the time of the tasks themselves."""
        return self._of([result.overhead_s for result in self.results])

    def efficiency(self) -> Interval:
        """Ideal over measured time, 0 to 1."""
        total, ideal = self.total(), self.one.ideal_s or 0.0
        low = ideal / total.high if total.high > 0 else 0.0
        high = ideal / total.low if total.low > 0 else math.inf
        return Interval(ideal / total.value if total.value > 0 else 0.0, low, high)

    def figure(self, name: str, *, clocks: int = 0) -> Interval | None:
        """A figure of the runs, seconds; None if it is not known.

        `clocks`: how many offsets between clocks are in it: 0 if both its stamps are the client's,
        1 between client and worker, 2 between workers. No clock moves what comes later before what
        comes first, or after the end of the run.
        """
        values = [r.figures[name] for r in self.results if name in r.figures]
        found = measured(values, self.margin(clocks))
        if found is None or not clocks:
            return found
        end = max(result.total_s or math.inf for result in self.results)
        low, high = max(0.0, found.low), min(end, found.high)
        return Interval(found.value, min(low, found.value), max(high, found.value))

    def _of(self, values: Sequence[float | None]) -> Interval:
        found = measured([value for value in values if value is not None], self.margin(0))
        assert found is not None  # only what was measured is in a cell
        return found


def cells_of(results: Iterable[CaseResult]) -> list[MeasuredCase]:
    """The cases that were measured, in the order in which they first appear."""
    groups: dict[tuple[str, str], list[CaseResult]] = {}
    for result in results:
        if result.total_s is not None and result.ideal_s is not None:
            groups.setdefault((result.case, result.engine), []).append(result)
    found = []
    for group in groups.values():
        good = tuple(result for result in group if result.status == "done")
        found.append(MeasuredCase(good or tuple(group), bool(good)))
    return found


def engines_of(results: Iterable[CaseResult]) -> list[str]:
    """The engines, gridrpc's first."""
    names = {result.engine for result in results}
    return sorted(names, key=lambda name: (not is_gridrpc(name), name))
