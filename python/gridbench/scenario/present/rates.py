"""Rates of transfers, in Mbit/s: from what data added to times, and only those that can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gridbench.formats import bit_rate, percent
from gridbench.scenario.cases import MeasuredCase
from gridbench.scenario.present.series import (
    MEGABIT,
    Value,
    cores_label,
    shared_transfer,
    size_name,
    without_data,
)
from gridbench.statistics.interval import Interval

_TELLING = 0.3
"""Share of the time without data that data must add, so that a rate follows: less may be chance."""
_MEMORY = 50e9 * MEGABIT
"""No process copies memory faster, so no data on one host can travel faster."""


_REGULAR = 1.0
"""Steps whose 95 % interval, were there one of them, is within so much of their median."""


class Rates:
    """The rates of a picture, and which were refused: what exceeds its link was not transferred in
    the time that it was divided by."""

    def __init__(self, cells: Sequence[MeasuredCase], size: Callable[[MeasuredCase], int]) -> None:
        self.cells = cells
        self.size = size
        self.refused: list[str] = []

    def shared(self) -> Value:
        """At which shared data reached all cores of a case together."""

        def rate(cell: MeasuredCase) -> Interval | None:
            start = cell.figure("last_start", clocks=1)
            added = shared_transfer(cell, self.cells)
            amount = cell.one.cores * self.size(cell) * MEGABIT
            return self._possible(cell, "all", amount, start, added)

        return rate

    def one_task(self, pace: str, clocks: int) -> Value:
        """Of a single task, from the median step between successive stamps of the first block."""

        def rate(cell: MeasuredCase) -> Interval | None:
            step, before = (_step(one, pace, clocks) for one in self._pair(cell))
            added = None if step is None or before is None else step.minus(before)
            return self._possible(cell, "one task", self.size(cell) * MEGABIT, step, added)

        return rate

    def block(self, pace: str, clocks: int) -> Value:
        """Of the first block, from the time in which its data travelled."""

        def rate(cell: MeasuredCase) -> Interval | None:
            span, before = (_per_task(one, pace, clocks) for one in self._pair(cell))
            added = None if span is None or before is None else span.minus(before)
            return self._possible(cell, "block", self.size(cell) * MEGABIT, span, added)

        return rate

    def submitted(self) -> Value:
        """From client to scheduler, from the smallest step of submit times: of logs, in which
        handing a task over may be sending its data."""

        def rate(cell: MeasuredCase) -> Interval | None:
            if cell.one.engine != "log":
                return None
            step, before = (one and one.figure("submit_step") for one in self._pair(cell))
            telling = step and before and step.above(before.times(1 + _TELLING))
            # As the report does: the client prepares a task while the one before is sent.
            return step.under(self.size(cell) * MEGABIT) if step and telling else None

        return rate

    def note(self) -> str:
        """What a reader has to know of them, when all of them have been asked for."""
        told = (
            f"No rate is told where data added less than {percent(_TELLING, 0)} to the time without"
            " it, or less than the scatter of both, as that may be chance. "
        )
        linked = any(cell.one.link_rate for cell in self.cells)
        if linked:
            told += "The dashed line is what the client's link carries."
        elif any(cell.one.transport == "links" or cell.one.engine == "log" for cell in self.cells):
            told += "Of two hops of a network it is the slower one that shows."
        else:
            told += (
                "On one host nothing is sent over a wire: data is copied in memory, or shared, so"
                " this is no rate of a network."
            )
        if self.refused:
            limit = "the client's link" if linked else "memory"
            told += (
                f" Refused, as {limit} is not so fast, so that data must have travelled before the"
                f" time that it was divided by: {'; '.join(self.refused)}."
            )
        return told

    def _pair(self, cell: MeasuredCase) -> tuple[MeasuredCase, MeasuredCase | None]:
        """A case, and the same without data."""
        return cell, without_data(cell, self.cells, self.size)

    def _possible(
        self,
        cell: MeasuredCase,
        what: str,
        amount: float,
        whole: Interval | None,
        added: Interval | None,
    ) -> Interval | None:
        """The rate of what data added to a time, if it did and if anything is so fast.

        Some of what takes time without data may go on during a transfer, so the true rate lies
        between those of all the time and of what was added. Where only the latter exceeds the link,
        it does so for that reason.
        """
        if whole is None or added is None or not amount:
            return None
        if added.low <= 0 or added.value < _TELLING * (whole.value - added.value):
            return None
        limit = _limit(cell)
        slow, fast = whole.under(amount), added.under(amount)
        if slow is None or fast is None:
            return None
        value = fast.value if fast.value <= limit else slow.value
        if value > limit:
            name = ", ".join([cell.one.engine, cores_label(cell), size_name(self.size(cell)), what])
            self.refused.append(f"{name} ({bit_rate(value * 1e6)})")
            return None
        return Interval(value, min(slow.low, value), max(value, min(fast.high, limit)))


def _limit(cell: MeasuredCase) -> float:
    if cell.one.link_rate:
        # As the report counts: its Mbit are 1/8 of 1,024 x 1,024 bytes.
        return cell.one.link_rate / 8 * MEGABIT
    return _MEMORY


def _step(cell: MeasuredCase | None, pace: str, clocks: int) -> Interval | None:
    """The median step, which lies within its scatter, that of rounds, and what clocks move it.

    Clocks of hosts that differ at random scatter the steps. If they are regular, clocks can be
    wrong only by what grows slowly from task to task, and that is shared by all steps.
    """
    step = cell.figure(f"{pace}_step") if cell else None
    if cell is None or step is None:
        return None
    noise = max(result.figures.get(f"{pace}_noise", 0.0) for result in cell.results)
    tasks = min(result.figures[f"{pace}_tasks"] for result in cell.results)
    regular = noise * math.sqrt(tasks) < _REGULAR * step.value
    noise += cell.margin(clocks) / (tasks if regular else 1) if clocks else 0.0
    return Interval(step.value, step.low - noise, step.high + noise)


def _per_task(cell: MeasuredCase | None, pace: str, clocks: int) -> Interval | None:
    """The span by the number of tasks that came in it."""
    span = cell.figure(f"{pace}_span", clocks=clocks) if cell else None
    if cell is None or span is None:
        return None
    tasks = min(result.figures[f"{pace}_tasks"] for result in cell.results)
    return span.times(1 / tasks)
