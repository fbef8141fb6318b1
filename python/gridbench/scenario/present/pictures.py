"""The pictures of each scenario: what was varied, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gridbench.analysis.additive import NINFG, SYMPHONY
from gridbench.analysis.interval import Interval
from gridbench.analysis.transfer import MEGABITS_PER_MEGABYTE, MEGABYTE
from gridbench.scenario.amounts import size_text
from gridbench.scenario.cells import Cell, engines_of
from gridbench.scenario.present.curves import Line, Picture

Value = Callable[[Cell], Interval | None]
Name = Callable[[Cell], str]

_MEGABIT = MEGABITS_PER_MEGABYTE / MEGABYTE
"""Per byte: as the report counts, in which 1 MB are 8 Mbit."""


def pictures_of(scenario: int, cells: Sequence[Cell]) -> list[Picture]:
    """The pictures of a scenario, those of one engine after the other; only what can be drawn."""
    engines = engines_of(cell.one for cell in cells)
    found: list[Picture] = []
    for number, engine in enumerate(engines):
        own = [cell for cell in cells if cell.one.engine == engine]
        suffix = f" ({engine})" if len(engines) > 1 else ""
        found += _MAKERS[scenario](own, f"{number}", suffix)
    return [picture for picture in found if picture.drawn]


def _first(cells: Sequence[Cell], mark: str, suffix: str) -> list[Picture]:
    sizes = _sizes(cells, lambda cell: cell.one.bytes_shared)
    rates = _lines(
        cells, _cores, lambda cell: _size(cell.one.bytes_shared), _shared_rate(cells)
    )
    return [
        Picture(
            f"shared-start-{mark}",
            f"When the last worker began to compute{suffix}",
            "Start-up and the transfer of shared data together; without data it is start-up alone.",
            "shared data",
            sizes,
            "calc-in of the last worker",
            "s",
            _lines(
                cells,
                _cores,
                lambda cell: _size(cell.one.bytes_shared),
                lambda cell: cell.figure("last_start", clocks=1),
            ),
        ),
        Picture(
            f"shared-rate-{mark}",
            f"Rate at which shared data reached the workers{suffix}",
            "Cores times size, over the time that it added to the start of the last worker. "
            + _rate_note(cells),
            "shared data",
            sizes,
            "rate",
            "Mbit/s",
            [*rates, *_limit(cells, sizes)],
        ),
        Picture(
            f"shared-overhead-{mark}",
            f"Total time beside the tasks, over cores{suffix}",
            "Measured time less that of the tasks on as many cores without overhead.",
            "cores",
            _numbers(cells, lambda cell: cell.one.cores),
            "total less ideal",
            "s",
            _lines(
                cells,
                lambda cell: f"{_size(cell.one.bytes_shared)} shared",
                lambda cell: f"{cell.one.cores:,}",
                Cell.overhead,
            ),
        ),
    ]


def _second(cells: Sequence[Cell], mark: str, suffix: str) -> list[Picture]:
    sizes = _sizes(cells, lambda cell: cell.one.bytes_in)
    by_sleep: Name = lambda cell: f"tasks of {cell.one.sleep_s:g} s"  # noqa: E731
    at_size: Name = lambda cell: _size(cell.one.bytes_in)  # noqa: E731
    return [
        Picture(
            f"data-efficiency-{mark}",
            f"Efficiency over the data of a task{suffix}",
            "Time of the tasks themselves over measured time. Input and output are of this size.",
            "input and output of a task",
            sizes,
            "efficiency [%]",
            "%",
            _lines(
                [cell for cell in cells if cell.one.sleep_s > 0],
                by_sleep,
                at_size,
                lambda cell: cell.efficiency().times(100),
            ),
        ),
        Picture(
            f"data-overhead-{mark}",
            f"Total time beside the tasks{suffix}",
            "What the same data costs with short and with long tasks: behind long ones, transfers "
            "hide.",
            "input and output of a task",
            sizes,
            "total less ideal",
            "s",
            _lines(cells, by_sleep, at_size, Cell.overhead),
        ),
    ]


def _third(cells: Sequence[Cell], mark: str, suffix: str) -> list[Picture]:
    tasks = _numbers(cells, lambda cell: cell.one.tasks)
    place: Name = lambda cell: f"{cell.one.tasks:,}"  # noqa: E731
    cores = len({cell.one.cores for cell in cells}) > 1
    parts: list[tuple[str, Value]] = [
        ("total less ideal", Cell.overhead),
        ("first task computing", lambda cell: cell.figure("first_start", clocks=1)),
        ("last worker computing", lambda cell: cell.figure("last_start", clocks=1)),
    ]
    lines = []
    for name, value in parts:
        lines += _lines(
            cells,
            lambda cell, name=name: f"{name}, {_cores(cell)}" if cores else name,  # type: ignore[misc]
            place,
            value,
        )
    return [
        Picture(
            f"start-{mark}",
            f"What starting costs{suffix}",
            "From t = 0. The total less the time of the tasks also counts handing them over and "
            "back.",
            "tasks",
            tasks,
            "time",
            "s",
            lines,
        )
    ]


def _fourth(cells: Sequence[Cell], mark: str, suffix: str) -> list[Picture]:
    return _by_block(
        cells,
        mark,
        suffix,
        size=lambda cell: cell.one.bytes_in,
        what="input",
        ways=(("first_dispatch", "later_dispatch"), "from submit, or the worker being free, to"
              " calc-in", 1),
        step=("submit_step", "client to scheduler, from the smallest step of submit times"),
        span=("start_span", "scheduler to workers, from calc-in times of the first block", 2),
    )  # fmt: skip


def _fifth(cells: Sequence[Cell], mark: str, suffix: str) -> list[Picture]:
    return _by_block(
        cells,
        mark,
        suffix,
        size=lambda cell: cell.one.bytes_out,
        what="output",
        ways=(("first_return", "later_return"), "from calc-out to retrieve", 1),
        step=None,
        span=("return_span", "workers to client, from retrieve times of the first block", 0),
    )


def _by_block(
    cells: Sequence[Cell],
    mark: str,
    suffix: str,
    *,
    size: Callable[[Cell], int],
    what: str,
    ways: tuple[tuple[str, str], str, int],
    step: tuple[str, str] | None,
    span: tuple[str, str, int],
) -> list[Picture]:
    sizes = _sizes(cells, size)
    at_size: Name = lambda cell: _size(size(cell))  # noqa: E731
    most = max((cell.one.tasks / cell.one.cores for cell in cells), default=0)
    deepest = [cell for cell in cells if cell.one.tasks / cell.one.cores == most]
    (first, later), way, clocks = ways
    means = []
    for name, block in ((first, "first block"), (later, "later blocks")):
        means += _lines(
            deepest,
            lambda cell, block=block: f"{block}, {_cores(cell)}",  # type: ignore[misc]
            at_size,
            lambda cell, name=name: cell.figure(name, clocks=clocks),  # type: ignore[misc]
        )
    figure, how, span_clocks = span
    rates = _lines(
        deepest,
        lambda cell: f"{_cores(cell)}, block",
        at_size,
        _block_rate(cells, figure, span_clocks, size),
    )
    if step is not None:
        rates += _lines(
            deepest,
            lambda cell: f"{_cores(cell)}, one task",
            at_size,
            lambda cell: _rate(size(cell), cell.figure(step[0])),
        )
        how = f"{step[1]}; {how}"
    told = f"{most:g} tasks on each core. " if most > 1 else ""
    return [
        Picture(
            f"{what}-overhead-{mark}",
            f"Total time beside the tasks{suffix}",
            told + "Measured time less that of the tasks on as many cores without overhead.",
            f"{what} of a task",
            sizes,
            "total less ideal",
            "s",
            _lines(deepest, _cores, at_size, Cell.overhead),
        ),
        Picture(
            f"{what}-blocks-{mark}",
            f"First block against later blocks{suffix}",
            f"Mean of a task {way}. The first block, one task on each core, contends for the "
            "network; later tasks spread out.",
            f"{what} of a task",
            sizes,
            "mean of a task",
            "s",
            means,
        ),
        Picture(
            f"{what}-rate-{mark}",
            f"Rate of transfers{suffix}",
            f"Of one block: {how}; the span without data is taken off. {_rate_note(cells)}",
            f"{what} of a task",
            sizes,
            "rate",
            "Mbit/s",
            [*rates, *_limit(cells, sizes)],
        ),
    ]


def _sixth(cells: Sequence[Cell], mark: str, suffix: str) -> list[Picture]:
    tasks = _numbers(cells, lambda cell: cell.one.tasks)
    found = []
    for work in sorted({work_of(cell) for cell in cells}, reverse=True):
        own = [cell for cell in cells if work_of(cell) == work]
        found.append(
            Picture(
                f"split-{mark}-{work:g}",
                f"Total time of {work:g} s of work over the number of tasks{suffix}",
                "The smallest is the best split. Fewer tasks leave cores without work; more of "
                "them cost more to hand over.",
                "tasks",
                tasks,
                "total time",
                "s",
                [
                    *_lines(
                        own,
                        lambda cell: f"{size_label(cell)} to each",
                        lambda cell: f"{cell.one.tasks:,}",
                        Cell.total,
                    ),
                    *_by_formula(own),
                ],
            )
        )
    return found


def _by_formula(cells: Sequence[Cell]) -> list[Line]:
    """What the original report's formulas say of the systems that it measured, without data."""
    lines = []
    for system in (SYMPHONY, NINFG):
        line = Line(f"{system.name}, by the report's formula, no data", dash="dot")
        for cell in cells:
            one = cell.one
            if one.bytes_in == 0:
                total = system.total(tasks=one.tasks, cores=one.cores, sleep=one.ideal_s or 0.0)
                line.add(f"{one.tasks:,}", Interval(total, total, total))
        lines.append(line)
    return lines


_MAKERS: dict[int, Callable[[Sequence[Cell], str, str], list[Picture]]] = {
    1: _first,
    2: _second,
    3: _third,
    4: _fourth,
    5: _fifth,
    6: _sixth,
}


def work_of(cell: Cell) -> float:
    """Scenario 6: seconds of all tasks together, scaled."""
    return float(f"{cell.one.sleep_s * cell.one.tasks:.6g}")


def size_label(cell: Cell) -> str:
    """Scenario 6: the input of the case, of each task."""
    return _size(cell.one.bytes_in)


def shared_transfer(cell: Cell, cells: Iterable[Cell]) -> Interval | None:
    """Seconds that shared data added to the start of the last worker; None without a case that
    has none."""
    empty = _without(cell, cells, lambda one: one.one.bytes_shared)
    start = cell.figure("last_start", clocks=1)
    before = empty.figure("last_start", clocks=1) if empty else None
    return None if start is None or before is None else start.minus(before)


def _shared_rate(cells: Sequence[Cell]) -> Value:
    def rate(cell: Cell) -> Interval | None:
        added = shared_transfer(cell, cells)
        amount = cell.one.cores * cell.one.bytes_shared * _MEGABIT
        return added.under(amount) if added is not None and amount else None

    return rate


def _block_rate(
    cells: Sequence[Cell], figure: str, clocks: int, size: Callable[[Cell], int]
) -> Value:
    def rate(cell: Cell) -> Interval | None:
        empty = _without(cell, cells, size)
        span = cell.figure(figure, clocks=clocks)
        before = empty.figure(figure, clocks=clocks) if empty else None
        if span is None or before is None or not size(cell):
            return None
        return span.minus(before).under(cell.one.cores * size(cell) * _MEGABIT)

    return rate


def _rate(size: int, seconds: Interval | None) -> Interval | None:
    return None if seconds is None or not size else seconds.under(size * _MEGABIT)


def _without(cell: Cell, cells: Iterable[Cell], size: Callable[[Cell], int]) -> Cell | None:
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


def _lines(cells: Iterable[Cell], name: Name, place: Name, value: Value) -> list[Line]:
    lines: dict[str, Line] = {}
    for cell in sorted(cells, key=_order):
        lines.setdefault(name(cell), Line(name(cell))).add(
            place(cell), value(cell), counts=cell.counts
        )
    return list(lines.values())


def _order(cell: Cell) -> tuple[float, ...]:
    one = cell.one
    return one.cores, one.sleep_s, one.bytes_shared, one.bytes_in, one.bytes_out, one.tasks


def _limit(cells: Sequence[Cell], places: Sequence[str]) -> list[Line]:
    """The rate of the client's link, where there is one."""
    rates = {cell.one.link_rate for cell in cells if cell.one.link_rate}
    lines = []
    for rate in sorted(rate for rate in rates if rate):
        line = Line("the client's link", dash="dash")
        # As the report counts: its Mbit are 1/8 of 1,024 x 1,024 bytes.
        value = rate / 8 * _MEGABIT
        for place in places:
            line.add(place, Interval(value, value, value))
        lines.append(line)
    return lines


def _rate_note(cells: Sequence[Cell]) -> str:
    if any(cell.one.link_rate for cell in cells):
        return "The dashed line is what the client's link carries."
    return (
        "On one host nothing is sent over a wire: data is copied in memory, or shared, so this is"
        " no rate of a network."
    )


def _cores(cell: Cell) -> str:
    return f"{cell.one.cores:,} core{'s' if cell.one.cores > 1 else ''}"


def _size(size: int) -> str:
    return size_text(size) if size else "0"


def _sizes(cells: Iterable[Cell], size: Callable[[Cell], int]) -> list[str]:
    return [_size(value) for value in sorted({size(cell) for cell in cells})]


def _numbers(cells: Iterable[Cell], number: Callable[[Cell], int]) -> list[str]:
    return [f"{value:,}" for value in sorted({number(cell) for cell in cells})]
