"""Plots of each scenario: cost over the varied parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gridbench.analysis.transfer import NINFG, SYMPHONY
from gridbench.formats import as_given
from gridbench.pages.curves import Curve, Line, Place, Point, exactly
from gridbench.scenario.cases import (
    MEGABIT,
    ScenarioCell,
    TransferRates,
    Value,
    cores_label,
    engines_of,
    groups,
    size_label,
    size_name,
    work_of,
)
from gridbench.statistics.interval import Interval

Name = Callable[[ScenarioCell], str]

_BESIDE = "Measured time less that of the tasks on as many cores without overhead."


def plots_of(scenario: int, cells: Sequence[ScenarioCell]) -> list[Curve]:
    """The plots of a scenario, all engines in each; only those with something to draw."""
    found: list[Curve] = []
    for number, (name, group) in enumerate(groups(scenario, cells) if cells else ()):
        found += _MAKERS[scenario](group, f"{number}", f" ({name})" if name else "")
    return [plot for plot in found if plot.drawn]


@dataclass(frozen=True, slots=True)
class _Axis:
    """An x axis: a number of each case, side by side."""

    title: str
    value: Callable[[ScenarioCell], int]
    text: Callable[[int], str]
    cells: Sequence[ScenarioCell]

    @property
    def places(self) -> dict[int, Place]:
        """By value, from left to right."""
        values = sorted(set(map(self.value, self.cells)))
        return {value: Place(number, self.text(value)) for number, value in enumerate(values)}

    def lines(
        self,
        name: Name,
        value: Value,
        cells: Iterable[ScenarioCell] | None = None,
        *,
        dashed: bool | None = None,
    ) -> list[Line]:
        """A line for each engine and name, with a point for each cell whose value is known.
        `dashed`: whether the lines are; None: every other one of several engines."""
        ordered = sorted(self.cells if cells is None else cells, key=_order)
        engines = engines_of(cell.one for cell in ordered)
        names = list(dict.fromkeys(map(name, ordered)))
        places = self.places
        points: dict[tuple[str, str], list[Point]] = {}
        for cell in ordered:
            found = value(cell)
            if found is not None and math.isfinite(found.value):
                point = Point(places[self.value(cell)], _finite(found), cell.counts)
                points.setdefault((cell.one.engine, name(cell)), []).append(point)
        several = len(engines) > 1
        return [
            Line(
                f"{engine}, {variant}" if several else variant,
                sorted(points[engine, variant], key=lambda point: point.place.x),
                engine=engine if several else "",
                variant=several and bool(names.index(variant) % 2) if dashed is None else dashed,
            )
            for engine in engines
            for variant in names
            if (engine, variant) in points
        ]

    def limits(self) -> list[Line]:
        """The rate of the client's link, if it has one."""
        rates = {cell.one.link_rate for cell in self.cells if cell.one.link_rate}
        lines = []
        for rate in sorted(rate for rate in rates if rate):
            # As the report counts: its Mbit are 1/8 of 1,024 x 1,024 bytes.
            value = exactly(rate / 8 * MEGABIT)
            points = [Point(place, value, True) for place in self.places.values()]
            lines.append(Line("the client's link", points, dash="dash"))
        return lines

    def curve(
        self, name: str, title: str, about: str, y_axis: tuple[str, str], lines: list[Line]
    ) -> Curve:
        """A plot over this axis; `y_axis`: title and unit of the other one."""
        places = list(self.places.values())
        y_title, unit = y_axis
        return Curve(name, title, about, self.title, places, y_title, unit, lines, numeric=False)


def _order(cell: ScenarioCell) -> tuple[float, ...]:
    one = cell.one
    return one.cores, one.sleep_s, one.bytes_shared, one.bytes_in, one.bytes_out, one.tasks


def _finite(value: Interval) -> Interval:
    """Without ends that no axis has."""
    high = value.high if math.isfinite(value.high) else value.value
    return Interval(value.value, value.low, high)


def _over_tasks(cells: Sequence[ScenarioCell]) -> _Axis:
    return _Axis("tasks", lambda cell: cell.one.tasks, "{:,}".format, cells)


def _first(cells: Sequence[ScenarioCell], mark: str, suffix: str) -> list[Curve]:
    usual = min(cell.one.sleep_s for cell in cells)

    def name(cell: ScenarioCell) -> str:
        longer = f", {as_given(cell.one.sleep_s)}" if cell.one.sleep_s > usual else ""
        return cores_label(cell) + longer

    sizes = _Axis("shared data", lambda cell: cell.one.bytes_shared, size_name, cells)
    cores = _Axis("cores", lambda cell: cell.one.cores, "{:,}".format, cells)
    known = TransferRates(cells, lambda cell: cell.one.bytes_shared)
    rates = sizes.lines(name, known.shared())
    return [
        sizes.curve(
            f"shared-start-{mark}",
            f"When the last worker began to compute{suffix}",
            "Start-up and the transfer of shared data together; without data it is start-up alone.",
            ("calc-in of the last worker", "s"),
            sizes.lines(name, lambda cell: cell.figure("last_start", clocks=1)),
        ),
        sizes.curve(
            f"shared-rate-{mark}",
            f"Rate at which shared data reached the workers{suffix}",
            "Cores times size, over the time that it added to the start of the last worker. "
            + known.note(),
            ("rate", "Mbit/s"),
            [*rates, *sizes.limits()],
        ),
        cores.curve(
            f"shared-overhead-{mark}",
            f"Total time beside the tasks, over cores{suffix}",
            _BESIDE,
            ("total less ideal", "s"),
            cores.lines(
                lambda cell: f"{size_name(cell.one.bytes_shared)} shared",
                ScenarioCell.overhead,
                [cell for cell in cells if cell.one.sleep_s == usual],
            ),
        ),
    ]


def _second(cells: Sequence[ScenarioCell], mark: str, suffix: str) -> list[Curve]:
    axis = _Axis("input and output of a task", lambda cell: cell.one.bytes_in, size_name, cells)

    def name(cell: ScenarioCell) -> str:
        return f"tasks of {as_given(cell.one.sleep_s)}"

    return [
        axis.curve(
            f"data-efficiency-{mark}",
            f"Efficiency over the data of a task{suffix}",
            "Time of the tasks themselves over measured time. Input and output are of this size.",
            ("efficiency [%]", "%"),
            axis.lines(
                name,
                lambda cell: cell.efficiency().times(100),
                [cell for cell in cells if cell.one.sleep_s > 0],
            ),
        ),
        axis.curve(
            f"data-overhead-{mark}",
            f"Total time beside the tasks{suffix}",
            "The cost of the same data with short and with long tasks: long tasks hide transfers.",
            ("total less ideal", "s"),
            axis.lines(name, ScenarioCell.overhead),
        ),
    ]


def _third(cells: Sequence[ScenarioCell], mark: str, suffix: str) -> list[Curve]:
    axis = _over_tasks(cells)
    several = len({cell.one.cores for cell in cells}) > 1
    parts: list[tuple[str, Value]] = [
        ("total less ideal", ScenarioCell.overhead),
        ("first task computing", lambda cell: cell.figure("first_start", clocks=1)),
        ("last worker computing", lambda cell: cell.figure("last_start", clocks=1)),
    ]
    lines = []
    for name, value in parts:

        def named(cell: ScenarioCell, name: str = name) -> str:
            return f"{name}, {cores_label(cell)}" if several else name

        lines += axis.lines(named, value, dashed=name != parts[0][0])
    return [
        axis.curve(
            f"start-{mark}",
            f"Cost of starting{suffix}",
            "From t = 0. The total less the time of the tasks includes handing them over and back.",
            ("time", "s"),
            lines,
        )
    ]


@dataclass(frozen=True, slots=True)
class _Transfers:
    """How data travel in scenarios 4 and 5, and the figures that show it."""

    what: str
    size: Callable[[ScenarioCell], int]
    first: str
    later: str
    mean: str
    """What the figures `first` and `later` are the mean of."""
    pace: str
    stamp: str
    """The times that `pace` is computed from."""
    clocks: int
    """Offsets of clocks in `pace`."""
    sent: str


_INPUT = _Transfers(
    "input",
    lambda cell: cell.one.bytes_in,
    "first_dispatch",
    "later_dispatch",
    "from submit, or the worker being free, to calc-in",
    "start_pace",
    "calc-in",
    2,
    "was sent off",
)
_OUTPUT = _Transfers(
    "output",
    lambda cell: cell.one.bytes_out,
    "first_return",
    "later_return",
    "from calc-out to retrieve",
    "return_pace",
    "retrieve",
    1,
    "was computed",
)


def _by_block(
    cells: Sequence[ScenarioCell], mark: str, suffix: str, way: _Transfers
) -> list[Curve]:
    most = max(cell.one.tasks / cell.one.cores for cell in cells)
    deepest = [cell for cell in cells if cell.one.tasks / cell.one.cores == most]
    axis = _Axis(f"{way.what} of a task", way.size, size_name, cells)

    def lines(named: Callable[[str], str], value: Value, dashed: bool | None = None) -> list[Line]:
        return axis.lines(lambda cell: named(cores_label(cell)), value, deepest, dashed=dashed)

    def mean(figure: str) -> Value:
        return lambda cell: cell.figure(figure, clocks=1)

    means = [
        *lines("first block, {}".format, mean(way.first), False),
        *lines("later blocks, {}".format, mean(way.later), True),
    ]
    known = TransferRates(cells, way.size)
    rates = [
        *lines("{}, block".format, known.block(way.pace, way.clocks), False),
        *lines("{}, one task".format, known.one_task(way.pace, way.clocks), True),
        *(lines("{}, submitted".format, known.submitted()) if way is _INPUT else []),
    ]
    how = (
        f"From {way.stamp} times of the first block: of one task by the median of successive steps,"
        " of the block by the time in which its data travelled, from when the first"
        f" {way.sent}, if that is known, to the last; the same without data is taken off."
    )
    if any(cell.one.engine == "log" for cell in cells):
        how += (
            " Of logs, waits of 0.5 s between waves of workers are taken off as well, and the"
            " second task is the base where the first worker started long before the others; the"
            " smallest step of submit times shows what was submitted."
        )
    summary_text = f"{as_given(most, '')} tasks on each core. " if most > 1 else ""
    return [
        axis.curve(
            f"{way.what}-overhead-{mark}",
            f"Total time beside the tasks{suffix}",
            summary_text + _BESIDE,
            ("total less ideal", "s"),
            lines(str, ScenarioCell.overhead),
        ),
        axis.curve(
            f"{way.what}-blocks-{mark}",
            f"First block against later blocks{suffix}",
            f"Mean of a task {way.mean}. The first block, one task on each core, contends for the"
            " network; later tasks spread out.",
            ("mean of a task", "s"),
            means,
        ),
        axis.curve(
            f"{way.what}-rate-{mark}",
            f"Rate of transfers{suffix}",
            f"{how} {known.note()}",
            ("rate", "Mbit/s"),
            [*rates, *axis.limits()],
        ),
    ]


def _fourth(cells: Sequence[ScenarioCell], mark: str, suffix: str) -> list[Curve]:
    return _by_block(cells, mark, suffix, _INPUT)


def _fifth(cells: Sequence[ScenarioCell], mark: str, suffix: str) -> list[Curve]:
    return _by_block(cells, mark, suffix, _OUTPUT)


def _sixth(cells: Sequence[ScenarioCell], mark: str, suffix: str) -> list[Curve]:
    found = []
    for work in sorted(set(map(work_of, cells)), reverse=True):
        own = [cell for cell in cells if work_of(cell) == work]
        axis = _over_tasks(own)
        found.append(
            axis.curve(
                f"split-{mark}-{work:g}",
                f"Total time of {as_given(work)} of work over the number of tasks{suffix}",
                "The smallest is the best split. Fewer tasks leave cores without work; more tasks"
                " cost more to hand over.",
                ("total time", "s"),
                [*axis.lines(size_label, ScenarioCell.total), *_by_formula(axis)],
            )
        )
    return found


def _by_formula(axis: _Axis) -> list[Line]:
    """What the original report's formulas say of the systems it measured, without data."""
    # The same holds for all engines.
    empty = {cell.one.tasks: cell.one for cell in axis.cells if cell.one.bytes_in == 0}
    places = axis.places
    lines = []
    for system in (SYMPHONY, NINFG):
        points = []
        for tasks in sorted(empty):
            one = empty[tasks]
            total = system.total(tasks=tasks, cores=one.cores, sleep=one.ideal_s or 0.0)
            points.append(Point(places[tasks], exactly(total), True))
        lines.append(Line(f"{system.name}, by the report's formula, no data", points, dash="dot"))
    return lines


_MAKERS: dict[int, Callable[[Sequence[ScenarioCell], str, str], list[Curve]]] = {
    1: _first,
    2: _second,
    3: _third,
    4: _fourth,
    5: _fifth,
    6: _sixth,
}
