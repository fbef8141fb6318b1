"""Measured cases with the interval of their repetitions, and the rates of transfers in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gridbench.analysis.transfer import MEGABITS_PER_MEGABYTE, MEGABYTE
from gridbench.engines.names import is_gridrpc
from gridbench.formats import bit_rate, compact_size, counted, percent, rounded
from gridbench.machine.judgement import DISTURBED
from gridbench.scenario.results import CaseResult
from gridbench.statistics.interval import Interval, measured

Value = Callable[["ScenarioCell"], Interval | None]

_FINEST = 1e-6
"""Seconds, where the results do not tell how exact stamps are."""


@dataclass(frozen=True, slots=True)
class ScenarioCell:
    """A case on one engine: its rounds that count or, if none does, all that were measured."""

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
        """The uncertainty in seconds of times that depend on so many offsets between clocks."""
        if clocks < 2:
            return self._certain("clock_margin" if clocks else "clock_step")
        return clocks * self._certain("clock_between", "clock_margin")

    def _certain(self, *names: str) -> float:
        """The largest of all rounds, by the first of these figures that a round has."""
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


def cells_of(results: Iterable[CaseResult]) -> list[ScenarioCell]:
    """The cases that were measured, in the order in which they first appear."""
    groups: dict[tuple[str, str], list[CaseResult]] = {}
    for result in results:
        if result.total_s is not None and result.ideal_s is not None:
            groups.setdefault((result.case, result.engine), []).append(result)
    found = []
    for group in groups.values():
        good = tuple(result for result in group if result.status == "done")
        found.append(ScenarioCell(good or tuple(group), bool(good)))
    return found


def engines_of(results: Iterable[CaseResult]) -> list[str]:
    """The engines, gridrpc's first."""
    names = {result.engine for result in results}
    return sorted(names, key=lambda name: (not is_gridrpc(name), name))


MEGABIT = MEGABITS_PER_MEGABYTE / MEGABYTE
"""Per byte, as the original report counts: 1 MB are 8 Mbit."""


def groups(scenario: int, cells: Sequence[ScenarioCell]) -> list[tuple[str, list[ScenarioCell]]]:
    """Cells that belong into the same plots and sentences, with a name if there are several groups.

    Scenarios whose grid has one number of cores have a group for each number that was chosen.
    """
    if scenario not in (2, 6):
        return [("", list(cells))]
    found: dict[tuple[int, ...], list[ScenarioCell]] = {}
    for cell in cells:
        one = cell.one
        found.setdefault((one.cores, one.tasks) if scenario == 2 else (one.cores,), []).append(cell)
    names = ("cores", "tasks")
    return [
        (
            ", ".join(f"{n:,} {name}" for n, name in zip(key, names, strict=False))
            if len(found) > 1
            else "",
            found[key],
        )
        for key in sorted(found)
    ]


def work_of(cell: ScenarioCell) -> float:
    """Scenario 6: seconds of all tasks together, scaled."""
    return rounded(cell.one.sleep_s * cell.one.tasks, 6)


def without_data(
    cell: ScenarioCell, cells: Iterable[ScenarioCell], size: Callable[[ScenarioCell], int]
) -> ScenarioCell | None:
    """The same case without data."""
    one = cell.one
    key = one.engine, one.cores, one.tasks, one.sleep_s
    return next(
        (
            other
            for other in cells
            if (other.one.engine, other.one.cores, other.one.tasks, other.one.sleep_s) == key
            and size(other) == 0
        ),
        None,
    )


def shared_transfer(cell: ScenarioCell, cells: Iterable[ScenarioCell]) -> Interval | None:
    """Seconds that shared data added to the start of the last worker; None without a case that
    has none."""
    empty = without_data(cell, cells, lambda one: one.one.bytes_shared)
    start = cell.figure("last_start", clocks=1)
    before = empty.figure("last_start", clocks=1) if empty else None
    return None if start is None or before is None else start.minus(before)


def cores_label(cell: ScenarioCell) -> str:
    """`1 core`, `100 cores`."""
    return counted(cell.one.cores, "core")


def size_name(size: int) -> str:
    """A size on an axis."""
    return compact_size(size) if size else "0"


def size_label(cell: ScenarioCell) -> str:
    """Scenario 6: the input of each task, in words."""
    return f"{compact_size(cell.one.bytes_in)} to each task" if cell.one.bytes_in else "no data"


# ---- Rates of transfers, in Mbit/s

_CLEAR = 0.3
"""A rate follows only if data add this share to the time without data: less may be chance."""
_MEMORY = 50e9 * MEGABIT
"""No process copies memory faster, so no data on one host travel faster."""
_REGULAR = 1.0
"""Steps are regular if the 95 % interval of their mean is within this share of their median."""


class TransferRates:
    """The rates of a plot, and those it leaves out: a rate above that of its link is divided by a
    time in which not all of the data travelled."""

    def __init__(self, cells: Sequence[ScenarioCell], size: Callable[[ScenarioCell], int]) -> None:
        self.cells = cells
        self.size = size
        self.refused: list[str] = []

    def shared(self) -> Value:
        """The rate at which shared data reached all cores of a case together."""

        def rate(cell: ScenarioCell) -> Interval | None:
            start = cell.figure("last_start", clocks=1)
            added = shared_transfer(cell, self.cells)
            amount = cell.one.cores * self.size(cell) * MEGABIT
            return self._possible(cell, "all", amount, start, added)

        return rate

    def one_task(self, pace: str, clocks: int) -> Value:
        """Of a single task, from the median step between successive stamps of the first block."""

        def rate(cell: ScenarioCell) -> Interval | None:
            step, before = (_step(one, pace, clocks) for one in self._pair(cell))
            added = None if step is None or before is None else step.minus(before)
            return self._possible(cell, "one task", self.size(cell) * MEGABIT, step, added)

        return rate

    def block(self, pace: str, clocks: int) -> Value:
        """Of the first block, from the time in which its data travelled."""

        def rate(cell: ScenarioCell) -> Interval | None:
            span, before = (_per_task(one, pace, clocks) for one in self._pair(cell))
            added = None if span is None or before is None else span.minus(before)
            return self._possible(cell, "block", self.size(cell) * MEGABIT, span, added)

        return rate

    def submitted(self) -> Value:
        """From client to scheduler, from the smallest step of submit times. Only logs have it: in
        them, handing a task over may be sending its data."""

        def rate(cell: ScenarioCell) -> Interval | None:
            if cell.one.engine != "log":
                return None
            step, before = (one and one.figure("submit_step") for one in self._pair(cell))
            telling = step and before and step.above(before.times(1 + _CLEAR))
            # As the report does: the client prepares a task while the one before is sent.
            return step.under(self.size(cell) * MEGABIT) if step and telling else None

        return rate

    def note(self) -> str:
        """What a reader has to know about the rates, once all are computed."""
        text = (
            f"No rate is shown where data added less than {percent(_CLEAR, 0)} to the time without"
            " data, or less than the scatter of both, as that may be chance. "
        )
        linked = any(cell.one.link_rate for cell in self.cells)
        if linked:
            text += "The dashed line is the rate of the client's link."
        elif any(cell.one.transport == "links" or cell.one.engine == "log" for cell in self.cells):
            text += "Of two hops of a network, the slower one shows."
        else:
            text += (
                "On one host, data are copied in memory or shared: this is not the rate of a"
                " network."
            )
        if self.refused:
            limit = "the client's link" if linked else "memory"
            text += (
                f" Left out, as {limit} is not so fast, so that data must have travelled before the"
                f" time that it was divided by: {'; '.join(self.refused)}."
            )
        return text

    def _pair(self, cell: ScenarioCell) -> tuple[ScenarioCell, ScenarioCell | None]:
        """A case, and the same without data."""
        return cell, without_data(cell, self.cells, self.size)

    def _possible(
        self,
        cell: ScenarioCell,
        what: str,
        amount: float,
        whole: Interval | None,
        added: Interval | None,
    ) -> Interval | None:
        """The rate of what data added to a time, if it did and if anything is so fast.

        Some of what takes time without data may continue during a transfer, so the true rate lies
        between those of all the time and of what was added. Where only the latter exceeds the link,
        it does so for that reason.
        """
        if whole is None or added is None or not amount:
            return None
        if added.low <= 0 or added.value < _CLEAR * (whole.value - added.value):
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


def _limit(cell: ScenarioCell) -> float:
    if cell.one.link_rate:
        # As the report counts: its Mbit are 1/8 of 1,024 x 1,024 bytes.
        return cell.one.link_rate / 8 * MEGABIT
    return _MEMORY


def _step(cell: ScenarioCell | None, pace: str, clocks: int) -> Interval | None:
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


def _per_task(cell: ScenarioCell | None, pace: str, clocks: int) -> Interval | None:
    """The span by the number of tasks that came in it."""
    span = cell.figure(f"{pace}_span", clocks=clocks) if cell else None
    if cell is None or span is None:
        return None
    tasks = min(result.figures[f"{pace}_tasks"] for result in cell.results)
    return span.times(1 / tasks)
