"""The pictures of each scenario: what was varied, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gridbench.formats import as_given
from gridbench.scenario.cases import MeasuredCase
from gridbench.scenario.present.curves import Picture
from gridbench.scenario.present.rates import Rates
from gridbench.scenario.present.series import (
    Name,
    Value,
    by_formula,
    cores_label,
    groups,
    limit_lines,
    lines_of,
    numbers_of,
    size_label,
    size_name,
    sizes_of,
    work_of,
)


def pictures_of(scenario: int, cells: Sequence[MeasuredCase]) -> list[Picture]:
    """The pictures of a scenario, all engines in each; only what can be drawn."""
    found: list[Picture] = []
    for number, (name, group) in enumerate(groups(scenario, cells) if cells else ()):
        found += _MAKERS[scenario](group, f"{number}", f" ({name})" if name else "")
    return [picture for picture in found if picture.drawn]


def _first(cells: Sequence[MeasuredCase], mark: str, suffix: str) -> list[Picture]:
    sizes = sizes_of(cells, lambda cell: cell.one.bytes_shared)
    usual = min(cell.one.sleep_s for cell in cells)

    def name(cell: MeasuredCase) -> str:
        longer = f", {as_given(cell.one.sleep_s)}" if cell.one.sleep_s > usual else ""
        return cores_label(cell) + longer

    known = Rates(cells, lambda cell: cell.one.bytes_shared)
    rates = lines_of(cells, name, lambda cell: size_name(cell.one.bytes_shared), known.shared())
    return [
        Picture(
            f"shared-start-{mark}",
            f"When the last worker began to compute{suffix}",
            "Start-up and the transfer of shared data together; without data it is start-up alone.",
            "shared data",
            sizes,
            "calc-in of the last worker",
            "s",
            lines_of(
                cells,
                name,
                lambda cell: size_name(cell.one.bytes_shared),
                lambda cell: cell.figure("last_start", clocks=1),
            ),
        ),
        Picture(
            f"shared-rate-{mark}",
            f"Rate at which shared data reached the workers{suffix}",
            "Cores times size, over the time that it added to the start of the last worker. "
            + known.note(),
            "shared data",
            sizes,
            "rate",
            "Mbit/s",
            [*rates, *limit_lines(cells, sizes)],
        ),
        Picture(
            f"shared-overhead-{mark}",
            f"Total time beside the tasks, over cores{suffix}",
            "Measured time less that of the tasks on as many cores without overhead.",
            "cores",
            numbers_of(cells, lambda cell: cell.one.cores),
            "total less ideal",
            "s",
            lines_of(
                [cell for cell in cells if cell.one.sleep_s == usual],
                lambda cell: f"{size_name(cell.one.bytes_shared)} shared",
                lambda cell: f"{cell.one.cores:,}",
                MeasuredCase.overhead,
            ),
        ),
    ]


def _second(cells: Sequence[MeasuredCase], mark: str, suffix: str) -> list[Picture]:
    sizes = sizes_of(cells, lambda cell: cell.one.bytes_in)
    by_sleep: Name = lambda cell: f"tasks of {as_given(cell.one.sleep_s)}"  # noqa: E731
    at_size: Name = lambda cell: size_name(cell.one.bytes_in)  # noqa: E731
    return [
        Picture(
            f"data-efficiency-{mark}",
            f"Efficiency over the data of a task{suffix}",
            "Time of the tasks themselves over measured time. Input and output are of this size.",
            "input and output of a task",
            sizes,
            "efficiency [%]",
            "%",
            lines_of(
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
            lines_of(cells, by_sleep, at_size, MeasuredCase.overhead),
        ),
    ]


def _third(cells: Sequence[MeasuredCase], mark: str, suffix: str) -> list[Picture]:
    tasks = numbers_of(cells, lambda cell: cell.one.tasks)
    place: Name = lambda cell: f"{cell.one.tasks:,}"  # noqa: E731
    cores = len({cell.one.cores for cell in cells}) > 1
    parts: list[tuple[str, Value]] = [
        ("total less ideal", MeasuredCase.overhead),
        ("first task computing", lambda cell: cell.figure("first_start", clocks=1)),
        ("last worker computing", lambda cell: cell.figure("last_start", clocks=1)),
    ]
    lines = []
    for name, value in parts:
        lines += lines_of(
            cells,
            lambda cell, name=name: f"{name}, {cores_label(cell)}" if cores else name,  # type: ignore[misc]
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


def _fourth(cells: Sequence[MeasuredCase], mark: str, suffix: str) -> list[Picture]:
    return _by_block(
        cells,
        mark,
        suffix,
        size=lambda cell: cell.one.bytes_in,
        what="input",
        ways=(("first_dispatch", "later_dispatch"), "from submit, or the worker being free, to"
              " calc-in", 1),
        pace=("start_pace", "calc-in", 2, "was sent off"),
    )  # fmt: skip


def _fifth(cells: Sequence[MeasuredCase], mark: str, suffix: str) -> list[Picture]:
    return _by_block(
        cells,
        mark,
        suffix,
        size=lambda cell: cell.one.bytes_out,
        what="output",
        ways=(("first_return", "later_return"), "from calc-out to retrieve", 1),
        pace=("return_pace", "retrieve", 1, "was computed"),
    )


def _by_block(
    cells: Sequence[MeasuredCase],
    mark: str,
    suffix: str,
    *,
    size: Callable[[MeasuredCase], int],
    what: str,
    ways: tuple[tuple[str, str], str, int],
    pace: tuple[str, str, int, str],
) -> list[Picture]:
    sizes = sizes_of(cells, size)
    at_size: Name = lambda cell: size_name(size(cell))  # noqa: E731
    most = max((cell.one.tasks / cell.one.cores for cell in cells), default=0)
    deepest = [cell for cell in cells if cell.one.tasks / cell.one.cores == most]
    (first, later), way, clocks = ways
    means = []
    for name, block in ((first, "first block"), (later, "later blocks")):
        means += lines_of(
            deepest,
            lambda cell, block=block: f"{block}, {cores_label(cell)}",  # type: ignore[misc]
            at_size,
            lambda cell, name=name: cell.figure(name, clocks=clocks),  # type: ignore[misc]
        )
    figure, stamp, pace_clocks, sent = pace
    known = Rates(cells, size)
    rates = []
    for name, value in (
        ("block", known.block(figure, pace_clocks)),
        ("one task", known.one_task(figure, pace_clocks)),
        *([("submitted", known.submitted())] if what == "input" else []),
    ):
        rates += lines_of(
            deepest,
            lambda cell, name=name: f"{cores_label(cell)}, {name}",  # type: ignore[misc]
            at_size,
            value,
        )
    how = (
        f"From {stamp} times of the first block: of one task by the median of successive steps, of"
        f" the block by the time in which its data travelled, from when the first {sent}, if that"
        " is known, to the last; the same without data is taken off."
    )
    if any(cell.one.engine == "log" for cell in cells):
        how += (
            " Of logs, waits of 0.5 s between waves of workers are taken off as well, and the"
            " second task is the base where the first worker started long before the others; what"
            " was submitted is told by the smallest step of submit times."
        )
    told = f"{as_given(most, '')} tasks on each core. " if most > 1 else ""
    return [
        Picture(
            f"{what}-overhead-{mark}",
            f"Total time beside the tasks{suffix}",
            told + "Measured time less that of the tasks on as many cores without overhead.",
            f"{what} of a task",
            sizes,
            "total less ideal",
            "s",
            lines_of(deepest, cores_label, at_size, MeasuredCase.overhead),
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
            f"{how} {known.note()}",
            f"{what} of a task",
            sizes,
            "rate",
            "Mbit/s",
            [*rates, *limit_lines(cells, sizes)],
        ),
    ]


def _sixth(cells: Sequence[MeasuredCase], mark: str, suffix: str) -> list[Picture]:
    tasks = numbers_of(cells, lambda cell: cell.one.tasks)
    found = []
    for work in sorted({work_of(cell) for cell in cells}, reverse=True):
        own = [cell for cell in cells if work_of(cell) == work]
        found.append(
            Picture(
                f"split-{mark}-{work:g}",
                f"Total time of {as_given(work)} of work over the number of tasks{suffix}",
                "The smallest is the best split. Fewer tasks leave cores without work; more of "
                "them cost more to hand over.",
                "tasks",
                tasks,
                "total time",
                "s",
                [
                    *lines_of(
                        own,
                        size_label,
                        lambda cell: f"{cell.one.tasks:,}",
                        MeasuredCase.total,
                    ),
                    *by_formula(own),
                ],
            )
        )
    return found


_MAKERS: dict[int, Callable[[Sequence[MeasuredCase], str, str], list[Picture]]] = {
    1: _first,
    2: _second,
    3: _third,
    4: _fourth,
    5: _fifth,
    6: _sixth,
}
