"""Cases that differ in one parameter: what changes with object size, clients and members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gridbench.datagrid.cases import Repeats
from gridbench.datagrid.figures import operations_of_task
from gridbench.datagrid.fit import KB_IN_MB, Fit, fitted
from gridbench.statistics.interval import Interval

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
class Sweep:
    """The cases of one engine and label along an axis, in its order.

    Cases that would not find room are made with fewer operations: times are those of as many
    operations as a task of the first case has.
    """

    axis: Axis
    groups: tuple[Repeats, ...]
    apart: tuple[Axis, ...] = ()
    """Other axes along which sweeps of the same scenario and label differ."""

    @property
    def first(self) -> Repeats:
        """That with the smallest value of the axis."""
        return self.groups[0]

    @property
    def operations(self) -> float:
        """Of a task of the first case."""
        return operations_of_task(self.first.case)

    def place(self, group: Repeats) -> float:
        """Its value on the axis."""
        return group.case.parameters[self.axis]

    def share(self, group: Repeats) -> float:
        """By which a time of the case is multiplied for that of as many operations; 1 for tasks
        without any."""
        own = operations_of_task(group.case)
        return self.operations / own if own and self.operations else 1.0

    def task_time(self, group: Repeats) -> Interval | None:
        """The median task without start-up, of as many operations."""
        found = group.task_time()
        return found and found.times(self.share(group))

    def task_fit(self) -> Fit | None:
        """Time of a task over MB, of all repeats that count."""
        points = [
            (self.place(group) / KB_IN_MB, found.without_start_up.median * self.share(group))
            for group in self.groups
            for found in group.figures
            if found.without_start_up is not None
        ]
        return _line(points)

    def operation_fit(self) -> Fit | None:
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


def sweeps_of(groups: Iterable[Repeats], axis: Axis) -> list[Sweep]:
    """All sweeps along an axis. A scenario has its own axis alone; cases of the user's own belong
    to a sweep if they are alike otherwise."""
    found: dict[tuple[object, ...], list[Repeats]] = {}
    for group in groups:
        if group.measured and axis in group.case.parameters:
            scenario = group.case.scenario
            if scenario is None or _OF_SCENARIO.get(scenario) == axis:
                found.setdefault(_alike(group, axis), []).append(group)
    made = [
        Sweep(axis, tuple(sorted(own, key=lambda group: group.case.parameters[axis])))
        for own in found.values()
    ]
    swept = [one for one in made if len({one.place(group) for group in one.groups}) > 1]
    return [replace(one, apart=_apart(one, swept)) for one in swept]


def scenarios_of(sweeps: Sequence[Sweep]) -> list[int | None]:
    """Those that there are, the numbered ones first."""
    found = {sweep.first.case.scenario for sweep in sweeps}
    return sorted(found, key=lambda one: (one is None, one or 0))


def _apart(sweep: Sweep, all_sweeps: Sequence[Sweep]) -> tuple[Axis, ...]:
    """What has to be told of the sweep beside its engine."""
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


def _alike(group: Repeats, axis: Axis) -> tuple[object, ...]:
    """What has to be the same in all cases of a sweep."""
    case = group.case
    _, label, scenario, _, how, _ = case.identity
    if scenario is None:
        left_out = {axis, *_WITH[axis]}
        others = tuple(sorted((k, v) for k, v in case.parameters.items() if k not in left_out))
    else:
        others = tuple((name, case.parameters.get(name, 0)) for name in AXES if name != axis)
    return case.engine, label, scenario, others, how


def _line(points: Sequence[tuple[float, float]]) -> Fit | None:
    return fitted([x for x, _ in points], [y for _, y in points]) if points else None
