"""What the lines of pictures are made from: values of cells, rates, limits, places on an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gridbench.analysis.transfer import MEGABITS_PER_MEGABYTE, MEGABYTE, NINFG, SYMPHONY
from gridbench.formats import compact_size, rounded
from gridbench.scenario.cases import MeasuredCase, engines_of
from gridbench.scenario.present.curves import Line
from gridbench.statistics.interval import Interval

Value = Callable[[MeasuredCase], Interval | None]
Name = Callable[[MeasuredCase], str]

MEGABIT = MEGABITS_PER_MEGABYTE / MEGABYTE
"""Per byte: as the report counts, in which 1 MB are 8 Mbit."""


def by_formula(cells: Sequence[MeasuredCase]) -> list[Line]:
    """What the original report's formulas say of the systems that it measured, without data."""
    lines = []
    for system in (SYMPHONY, NINFG):
        line = Line(f"{system.name}, by the report's formula, no data", dash="dot")
        # The same holds for all engines.
        empty = {cell.one.tasks: cell.one for cell in cells if cell.one.bytes_in == 0}
        for one in empty.values():
            total = system.total(tasks=one.tasks, cores=one.cores, sleep=one.ideal_s or 0.0)
            line.add(f"{one.tasks:,}", Interval(total, total, total))
        lines.append(line)
    return lines


def groups(scenario: int, cells: Sequence[MeasuredCase]) -> list[tuple[str, list[MeasuredCase]]]:
    """Cells that belong together in pictures and sentences, with what tells the groups apart.

    Where the grid has one number of cores, others that were chosen are looked at by themselves.
    """
    if scenario == 2:
        keys = sorted({(cell.one.cores, cell.one.tasks) for cell in cells})
        found = [
            (
                f"{cores:,} cores, {tasks:,} tasks",
                [cell for cell in cells if (cell.one.cores, cell.one.tasks) == (cores, tasks)],
            )
            for cores, tasks in keys
        ]
    elif scenario == 6:
        found = [
            (f"{cores:,} cores", [cell for cell in cells if cell.one.cores == cores])
            for cores in sorted({cell.one.cores for cell in cells})
        ]
    else:
        found = [("", list(cells))]
    return found if len(found) > 1 else [("", group) for _, group in found]


def work_of(cell: MeasuredCase) -> float:
    """Scenario 6: seconds of all tasks together, scaled."""
    return rounded(cell.one.sleep_s * cell.one.tasks, 6)


def size_label(cell: MeasuredCase) -> str:
    """Scenario 6: the input of each task, in words."""
    return f"{compact_size(cell.one.bytes_in)} to each task" if cell.one.bytes_in else "no data"


def shared_transfer(cell: MeasuredCase, cells: Iterable[MeasuredCase]) -> Interval | None:
    """Seconds that shared data added to the start of the last worker; None without a case that
    has none."""
    empty = without_data(cell, cells, lambda one: one.one.bytes_shared)
    start = cell.figure("last_start", clocks=1)
    before = empty.figure("last_start", clocks=1) if empty else None
    return None if start is None or before is None else start.minus(before)


def without_data(
    cell: MeasuredCase, cells: Iterable[MeasuredCase], size: Callable[[MeasuredCase], int]
) -> MeasuredCase | None:
    """The same case without data."""
    one = cell.one
    return next(
        (
            other
            for other in cells
            if (other.one.engine, other.one.cores, other.one.tasks, other.one.sleep_s)
            == (one.engine, one.cores, one.tasks, one.sleep_s)
            and size(other) == 0
        ),
        None,
    )


def lines_of(cells: Iterable[MeasuredCase], name: Name, place: Name, value: Value) -> list[Line]:
    """A line for each engine and name, with a point of each cell that has it."""
    ordered = sorted(cells, key=_order)
    engines = engines_of(cell.one for cell in ordered)
    lines = {
        (engine, variant): Line(
            f"{engine}, {variant}" if len(engines) > 1 else variant, engine=engine, variant=variant
        )
        for engine in engines
        for variant in dict.fromkeys(map(name, ordered))
    }
    for cell in ordered:
        lines[cell.one.engine, name(cell)].add(place(cell), value(cell), counts=cell.counts)
    return list(lines.values())


def _order(cell: MeasuredCase) -> tuple[float, ...]:
    one = cell.one
    return one.cores, one.sleep_s, one.bytes_shared, one.bytes_in, one.bytes_out, one.tasks


def limit_lines(cells: Sequence[MeasuredCase], places: Sequence[str]) -> list[Line]:
    """The rate of the client's link, where there is one."""
    rates = {cell.one.link_rate for cell in cells if cell.one.link_rate}
    lines = []
    for rate in sorted(rate for rate in rates if rate):
        line = Line("the client's link", dash="dash")
        # As the report counts: its Mbit are 1/8 of 1,024 x 1,024 bytes.
        value = rate / 8 * MEGABIT
        for place in places:
            line.add(place, Interval(value, value, value))
        lines.append(line)
    return lines


def cores_label(cell: MeasuredCase) -> str:
    """`1 core`, `100 cores`."""
    return f"{cell.one.cores:,} core{'s' if cell.one.cores > 1 else ''}"


def size_name(size: int) -> str:
    """A size as it stands on an axis."""
    return compact_size(size) if size else "0"


def sizes_of(cells: Iterable[MeasuredCase], size: Callable[[MeasuredCase], int]) -> list[str]:
    """The sizes of an axis, rising."""
    return [size_name(value) for value in sorted({size(cell) for cell in cells})]


def numbers_of(cells: Iterable[MeasuredCase], number: Callable[[MeasuredCase], int]) -> list[str]:
    """The numbers of an axis, rising."""
    return [f"{value:,}" for value in sorted({number(cell) for cell in cells})]
