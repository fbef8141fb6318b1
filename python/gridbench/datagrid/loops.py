"""Closed against open loop: what a closed loop leaves out of its latencies.

A client of a closed loop waits for an answer before it sends its next operation. While the data
grid stalls, it sends nothing, and the stall is counted once, however many operations it would have
delayed (coordinated omission). In an open loop, operations should begin when they arrive, and their
time counts from then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gridbench.datagrid.cases import Repeats
from gridbench.statistics.interval import Interval


@dataclass(frozen=True, slots=True)
class Compared:
    """An operation in an open loop, and in the closed loop of the same case if there is one."""

    operation: str
    open: Repeats
    closed: Repeats | None

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
        told = self.closed_service or self.service
        if self.intended is None or told is None or not told.value > 0:
            return None
        return self.intended.value / told.value


def compared_loops(groups: Sequence[Repeats]) -> list[Compared]:
    """One for each open case and operation."""
    closed = {_alike(group): group for group in groups if group.case.loop == "closed"}
    return [
        Compared(operation, group, closed.get(_alike(group)))
        for group in groups
        if group.case.loop == "open" and group.measured
        for operation in group.operations
    ]


def _alike(group: Repeats) -> tuple[object, ...]:
    case = group.case
    engine, label, scenario, parameters, _, _ = case.identity
    mix = None if case.mix is None else tuple(sorted(case.mix.items()))
    return engine, label, scenario, parameters, case.updates, mix, case.kill
