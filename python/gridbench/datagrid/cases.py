"""The repeats of a case together, with how their figures spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from gridbench.datagrid.figures import (
    CaseFigures,
    Correctness,
    Quantiles,
    figures_of,
    merged,
    quantiles,
)
from gridbench.datagrid.record import Counted, DataGridCase, Latencies
from gridbench.statistics.interval import Interval, measured

OPERATIONS = ("read", "update", "insert", "overwrite", "scan")
"""In the order in which they are shown."""
_LABELS = ("read", "update", "insert")


@dataclass(frozen=True)
class RepeatedCase:
    """One case, as often as it was measured."""

    cases: tuple[DataGridCase, ...]
    all_figures: tuple[CaseFigures, ...]
    """Of these."""

    @property
    def case(self) -> DataGridCase:
        """The first of them, for what all have in common."""
        return self.cases[0]

    @property
    def counts(self) -> bool:
        """Whether any of them is valid. Where none is, figures are of all that came to an end, and
        are marked."""
        return any(found.verdict == "valid" for found in self.all_figures)

    @property
    def too_short(self) -> bool:
        """Whether one of those that count had too short a measured part to judge whether throughput
        was steady."""
        # What a killed member does to throughput is looked at in another way.
        return not self.case.kill and any(one.steadiness.steady is None for one in self.figures)

    @property
    def measured(self) -> bool:
        """Whether any of them came to its end."""
        return any(case.status == "done" for case in self.cases)

    @property
    def runs(self) -> list[tuple[DataGridCase, CaseFigures]]:
        """All of them, with their figures."""
        return list(zip(self.cases, self.all_figures, strict=True))

    @property
    def counting(self) -> list[tuple[DataGridCase, CaseFigures]]:
        """Those that are valid or, if none is, all that came to an end."""
        valid = [pair for pair in self.runs if pair[1].verdict == "valid"]
        return valid or [pair for pair in self.runs if pair[0].status == "done"]

    @property
    def figures(self) -> list[CaseFigures]:
        """Of those that count."""
        return [found for _, found in self.counting]

    @property
    def shown(self) -> tuple[DataGridCase, CaseFigures]:
        """What pictures show: the one with the middle throughput of those that count."""
        pairs = self.counting or self.runs
        ordered = sorted(
            pairs,
            key=lambda p: (p[1].throughput if math.isfinite(p[1].throughput) else 0, p[0].repeat),
        )
        return ordered[(len(ordered) - 1) // 2]

    @property
    def reasons(self) -> list[str]:
        """Why some of them do not count."""
        return list(dict.fromkeys(why for found in self.all_figures for why in found.reasons))

    def values(self, of: Callable[[CaseFigures], float]) -> list[float]:
        """A figure in each that counts, as far as it is known."""
        return [value for found in self.figures if math.isfinite(value := of(found))]

    def interval(self, of: Callable[[CaseFigures], float]) -> Interval | None:
        """Its median, from the smallest to the largest; None if it is not known."""
        return measured(self.values(of), 0.0)

    def task_times(self, *, start_up: bool = False) -> Interval | None:
        """The median of the repeats' medians, from the shortest task of all to the longest."""
        found = [
            times
            for one in self.figures
            if (times := one.with_start_up if start_up else one.without_start_up) is not None
        ]
        middle = measured((times.median for times in found), 0.0)
        if middle is None:
            return None
        shortest, longest = min(t.shortest for t in found), max(t.longest for t in found)
        return Interval(middle.value, shortest, longest)

    def task_time(self) -> Interval | None:
        """The median task without start-up: the median of the repeats, from smallest to largest."""
        return self.interval(
            lambda f: f.without_start_up.median if f.without_start_up else math.nan
        )

    @cached_property
    def latencies(self) -> list[Latencies]:
        """Histograms of all that count together, in the order of the operations."""
        found = merged(one for case, _ in self.counting for one in case.latencies)
        return sorted(found, key=lambda one: (_place(one.operation), one.counted != "service"))

    def quantiles(self, operation: str, counted: Counted = "service") -> Quantiles | None:
        """Of all operations that count together; None if there are none."""
        for one in self.latencies:
            if (one.operation, one.counted) == (operation, counted):
                return quantiles(one)
        return None

    def latency(
        self, operation: str, of: Callable[[Quantiles], float], counted: Counted = "service"
    ) -> Interval | None:
        """A quantile of all operations together, from the smallest of a repeat's to the largest."""
        known = [q for f in self.figures if (q := f.latency(operation, counted)) is not None]
        together = self.quantiles(operation, counted)
        if together is None:
            return None
        return Interval(of(together), min(map(of, known)), max(map(of, known)))

    @property
    def worst(self) -> Correctness:
        """The worst outcome of the repeats that came to an end."""
        order = ("wrong", "lost", "not checked", "right")
        found = [figures.correctness for case, figures in self.runs if case.status == "done"]
        return min(found or [Correctness("not checked")], key=lambda one: order.index(one.outcome))

    @property
    def operations(self) -> list[str]:
        """Those of which there are latencies."""
        return list(dict.fromkeys(one.operation for one in self.latencies))

    @property
    def main(self) -> str:
        """The operation that the case is about, or else the most frequent one; empty: none."""
        if self.case.label in self.operations:
            return self.case.label
        most = max(self.latencies, key=lambda one: sum(one.counts), default=None)
        return most.operation if most is not None else ""


def repeats_of(cases: Iterable[DataGridCase]) -> list[RepeatedCase]:
    """All cases, by scenario, label, size, clients and members, with products side by side."""
    groups: dict[tuple[object, ...], list[DataGridCase]] = {}
    for case in cases:
        groups.setdefault(case.key_without("repeat"), []).append(case)
    titles = list(dict.fromkeys(group[0].title for group in groups.values()))
    labels = sorted({group[0].label for group in groups.values()}, key=_label_place)
    ordered = sorted(
        groups.values(),
        key=lambda group: (
            group[0].scenario or 9,
            labels.index(group[0].label),
            group[0].parameters.get("ObjectSize", 0),
            group[0].clients,
            group[0].member_count,
            group[0].kill,
            group[0].loop,
            group[0].updates,
            titles.index(group[0].title),
            group[0].rate or 0.0,
        ),
    )
    found = []
    for group in ordered:
        repeats = sorted(group, key=lambda case: case.repeat)
        found.append(RepeatedCase(tuple(repeats), tuple(map(figures_of, repeats))))
    return found


def _place(operation: str) -> int:
    return OPERATIONS.index(operation) if operation in OPERATIONS else len(OPERATIONS)


def _label_place(label: str) -> tuple[int, str]:
    return (_LABELS.index(label) if label in _LABELS else len(_LABELS)), label
