"""The repeats of a case together, with how their figures spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from gridbench.datagrid.figures import (
    CaseFigures,
    Correctness,
    Quantiles,
    figures_of,
    merged,
    operations_of_task,
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
        """Those with latencies."""
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


# ---- Comparisons

# ---- Time over object size

KB_IN_MB = 1024
_SURE = 0.95


@dataclass(frozen=True, slots=True)
class SizeFit:
    """Seconds = `per_mb` x size in MB + `constant`; both with their 95 % intervals, which are
    infinite if there are no more points than a line needs."""

    per_mb: Interval
    constant: Interval

    def times(self, factor: float) -> SizeFit:
        """The line of so many times as many operations."""
        return SizeFit(self.per_mb.times(factor), self.constant.times(factor))

    def at(self, size: float) -> float:
        """Seconds for a size in MB."""
        return self.per_mb.value * size + self.constant.value


def fitted(sizes: Sequence[float], seconds: Sequence[float]) -> SizeFit | None:
    """The line of least squares of the relative errors, as times of small and of large objects
    differ by orders of magnitude and scatter alike. `sizes` in MB; times have to be above 0.

    None for fewer than two different sizes.
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    if len(np.unique(x)) < 2 or not (y > 0).all():
        return None
    # Each equation divided by its time: what is left over is relative.
    columns = np.stack([x / y, 1 / y], axis=1)
    inverse = np.linalg.inv(columns.T @ columns)
    found = inverse @ columns.T @ np.ones_like(y)
    freedom = len(y) - 2
    margins = np.full(2, math.inf)
    if freedom > 0:
        from scipy.special import stdtrit

        left = float(((columns @ found - 1) ** 2).sum())
        spread = np.sqrt(np.diag(inverse) * left / freedom)
        margins = spread * float(stdtrit(freedom, (1 + _SURE) / 2))
    slope, constant = (
        Interval(float(value), float(value - margin), float(value + margin))
        for value, margin in zip(found, margins, strict=True)
    )
    return SizeFit(slope, constant)


# ---- Sweeps

Axis = Literal["ObjectSize", "NNodes", "MNodes"]
AXES: tuple[Axis, ...] = ("ObjectSize", "NNodes", "MNodes")
_OF_SCENARIO: dict[int, Axis] = {1: "ObjectSize", 2: "NNodes", 3: "MNodes"}
_WITH: dict[Axis, set[str]] = {
    "ObjectSize": {"NObjects"},
    "NNodes": {"NTasks", "NObjects"},
    "MNodes": set(),
}
"""Parameters that may change with that of the axis: fewer objects if they are large, more tasks for
more clients. The time of a task does not depend on them by its definition."""


@dataclass(frozen=True, slots=True)
class DataGridSweep:
    """The cases of one engine and label along an axis, in its order.

    Cases that would not find room are made with fewer operations: times are those of as many
    operations as a task of the first case has.
    """

    axis: Axis
    groups: tuple[RepeatedCase, ...]
    apart: tuple[Axis, ...] = ()
    """Other axes along which sweeps of the same scenario and label differ."""

    @property
    def first(self) -> RepeatedCase:
        """That with the smallest value of the axis."""
        return self.groups[0]

    @property
    def operations(self) -> float:
        """Of a task of the first case."""
        return operations_of_task(self.first.case)

    def place(self, group: RepeatedCase) -> float:
        """Its value on the axis."""
        return group.case.parameters[self.axis]

    def share(self, group: RepeatedCase) -> float:
        """By which a time of the case is multiplied for that of as many operations; 1 for tasks
        without any."""
        own = operations_of_task(group.case)
        return self.operations / own if own and self.operations else 1.0

    def task_time(self, group: RepeatedCase) -> Interval | None:
        """The median task without start-up, of as many operations."""
        found = group.task_time()
        return found and found.times(self.share(group))

    def task_fit(self) -> SizeFit | None:
        """Time of a task over MB, of all repeats that count."""
        points = [
            (self.place(group) / KB_IN_MB, found.without_start_up.median * self.share(group))
            for group in self.groups
            for found in group.figures
            if found.without_start_up is not None
        ]
        return _line(points)

    def operation_fit(self) -> SizeFit | None:
        """Mean time of the operation that the cases are about, over MB."""
        points = [
            (self.place(group) / KB_IN_MB, known.mean)
            for group in self.groups
            for found in group.figures
            if (known := found.latency(self.first.main)) is not None
        ]
        return _line(points)

    def relative_times(self) -> list[tuple[float, float]]:
        """(Value of the axis, time of a task there over that at the first), where both are known:
        over clients this is what contention adds, over members what more of them save."""
        known = [(self.place(group), self.task_time(group)) for group in self.groups]
        times = [(place, found.value) for place, found in known if found is not None]
        if not times or self.place(self.first) != times[0][0] or not times[0][1] > 0:
            return []
        return [(place, value / times[0][1]) for place, value in times]

    def relative_rates(self) -> list[tuple[float, float]]:
        """The same of throughput."""
        known = [(self.place(g), g.interval(lambda f: f.throughput)) for g in self.groups]
        rates = [(place, found.value) for place, found in known if found is not None]
        if not rates or self.place(self.first) != rates[0][0] or not rates[0][1] > 0:
            return []
        return [(place, value / rates[0][1]) for place, value in rates]


def sweeps_of(groups: Iterable[RepeatedCase], axis: Axis) -> list[DataGridSweep]:
    """All sweeps along an axis. A scenario has its own axis alone; cases of the user's own belong
    to a sweep if they are alike otherwise."""
    found: dict[tuple[object, ...], list[RepeatedCase]] = {}
    for group in groups:
        if group.measured and axis in group.case.parameters:
            scenario = group.case.scenario
            if scenario is None or _OF_SCENARIO.get(scenario) == axis:
                found.setdefault(_alike(group, axis), []).append(group)
    made = [
        DataGridSweep(axis, tuple(sorted(own, key=lambda group: group.case.parameters[axis])))
        for own in found.values()
    ]
    swept = [one for one in made if len({one.place(group) for group in one.groups}) > 1]
    return [replace(one, apart=_apart(one, swept)) for one in swept]


def scenarios_of(sweeps: Sequence[DataGridSweep]) -> list[int | None]:
    """Those that there are, the numbered ones first."""
    found = {sweep.first.case.scenario for sweep in sweeps}
    return sorted(found, key=lambda one: (one is None, one or 0))


def _apart(sweep: DataGridSweep, all_sweeps: Sequence[DataGridSweep]) -> tuple[Axis, ...]:
    """What the page says about the sweep besides its engine."""
    case = sweep.first.case
    others = [
        one.first.case
        for one in all_sweeps
        if (one.first.case.scenario, one.first.case.label) == (case.scenario, case.label)
    ]
    return tuple(
        name
        for name in AXES
        if name != sweep.axis and len({other.parameters.get(name) for other in others}) > 1
    )


def _alike(group: RepeatedCase, axis: Axis) -> tuple[object, ...]:
    """Parameters that all cases of a sweep share."""
    case = group.case
    if case.scenario is None:
        left_out = {axis, *_WITH[axis]}
        others = tuple(sorted((k, v) for k, v in case.parameters.items() if k not in left_out))
    else:
        others = tuple((name, case.parameters.get(name, 0)) for name in AXES if name != axis)
    return *case.key_without("parameters", "repeat"), others


def _line(points: Sequence[tuple[float, float]]) -> SizeFit | None:
    return fitted([x for x, _ in points], [y for _, y in points]) if points else None


# ---- Loops


@dataclass(frozen=True, slots=True)
class LoopComparison:
    """An operation in an open loop, and in the closed loop of the same case if there is one."""

    operation: str
    open: RepeatedCase
    closed: RepeatedCase | None

    @property
    def service(self) -> Interval | None:
        """99th percentile in the open loop, from when operations began."""
        return self.open.latency(self.operation, lambda q: q.p99)

    @property
    def intended(self) -> Interval | None:
        """The same from when they should have begun."""
        return self.open.latency(self.operation, lambda q: q.p99, "intended")

    @property
    def closed_service(self) -> Interval | None:
        """The same in the closed loop."""
        if self.closed is None:
            return None
        return self.closed.latency(self.operation, lambda q: q.p99)

    @property
    def factor(self) -> float | None:
        """By how much the closed loop's, or without one the open loop's own service time, is too
        small: `intended` over it."""
        reported = self.closed_service or self.service
        if self.intended is None or reported is None or not reported.value > 0:
            return None
        return self.intended.value / reported.value


def compared_loops(groups: Sequence[RepeatedCase]) -> list[LoopComparison]:
    """One for each open case and operation."""
    closed = {_without_loop(group): group for group in groups if group.case.loop == "closed"}
    return [
        LoopComparison(operation, group, closed.get(_without_loop(group)))
        for group in groups
        if group.case.loop == "open" and group.measured
        for operation in group.operations
    ]


def _without_loop(group: RepeatedCase) -> tuple[object, ...]:
    return group.case.key_without("loop", "rate", "share", "repeat")
