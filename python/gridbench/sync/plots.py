"""Charts of all rounds: over workers, over parameters, and over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridbench.formats import counted, scale, shortened
from gridbench.pages.chart import Chart, downsample, figure
from gridbench.pages.colours import SERIES
from gridbench.pages.curves import Curve, Line, Place, Point
from gridbench.statistics.interval import Interval
from gridbench.sync.cases import SyncCase, in_order, numbers_of, phases_of_all, rate_of
from gridbench.sync.figures import Numbers, Parallelism, PhaseFigures, parallelism
from gridbench.sync.record import HOLD_POINTS

_MOST_LINES = 10
_MOST_PHASES = 8
_MOST_STEPPED = 6
"""Lines that go up and down, and cross each other."""
_TICKS = 100
"""Letters below an axis."""
_DELAYS = 200
"""Points of a line of start delays."""
_STEPS = 2_000
"""Points of a line of running tasks."""

INSTANT = "time since the agreed instant"
_BARS = "Bars reach from the smallest to the largest of the repeats"
_RATE = (
    "The work of all tasks over the time of the slowest task, as IOR and mdtest report it."
    f" {_BARS}."
)
Value = Callable[[SyncCase], Interval | None]


# ---- Over workers and parameters


@dataclass(frozen=True, slots=True)
class _CaseAxis:
    """The x axis of curves, and the cases of each of their lines."""

    what: str
    places: Sequence[Place]
    groups: Sequence[tuple[str, Sequence[SyncCase]]]
    place: Callable[[SyncCase], int]
    numeric: bool = True

    def curve(
        self, name: str, title: str, *, about: str, y_title: str, unit: str, value: Value
    ) -> Curve:
        """The curve of a figure."""
        return Curve(
            id=f"{self.what}-{name}",
            title=title,
            about=about,
            x_title=self.what,
            places=self.places,
            y_title=y_title,
            unit=unit,
            lines=[Line(one, self._points(own, value)) for one, own in self.groups],
            numeric=self.numeric,
        )

    def rates_and_times(self, cases: Sequence[SyncCase]) -> list[Curve]:
        """The rates of the first phases that have one, and the times of tasks."""
        known = [(phase, rate_of(cases, phase)) for phase in phases_of_all(cases)[:_MOST_PHASES]]
        rates = [
            self.curve(
                f"rate-{number}",
                f"{phase}: {rate[0]} over {self.what}",
                about=_RATE,
                y_title=rate[0],
                unit=rate[1],
                value=_of_phase(phase, rate[2]),
            )
            for number, (phase, rate) in enumerate(known)
            if rate is not None
        ]
        times = self.curve(
            "times",
            f"Task times over {self.what}",
            about="The median of the tasks of a case; bars reach from its shortest task to its"
            " longest.",
            y_title="time of a task",
            unit="s",
            value=_task_times,
        )
        return [*rates, times]

    def _points(self, cases: Sequence[SyncCase], value: Value) -> list[Point]:
        found = [(case, value(case)) for case in cases]
        points = [
            Point(self.places[self.place(case)], one, case.counts)
            for case, one in found
            if one is not None
        ]
        return sorted(points, key=lambda point: point.place.x)


def over_workers(cases: Sequence[SyncCase]) -> list[Curve]:
    """Curves with one line for each parameter."""
    workers = sorted({case.workers for case in cases})
    over = _CaseAxis(
        "workers",
        [Place(count, f"{count:,}") for count in workers],
        _groups(cases, lambda case: case.parameter),
        lambda case: workers.index(case.workers),
    )
    found = [
        *over.rates_and_times(cases),
        over.curve(
            "span",
            "First start to last end over workers",
            about=f"For tasks that do nothing, the cost of starting together. {_BARS}, plus the"
            " error of the clocks.",
            y_title="first start to last end",
            unit="s",
            value=SyncCase.span,
        ),
        over.curve(
            "skew",
            "Start skew over workers",
            about="From the first instruction of the first task to that of the last task."
            f" {_BARS}, plus the error of the clocks.",
            y_title="start skew",
            unit="s",
            value=SyncCase.skew,
        ),
        over.curve(
            "simultaneity",
            "Overlap over workers",
            about="Share of the time from the first start to the last end in which all tasks run."
            f" {_BARS}.",
            y_title="overlap [%]",
            unit="%",
            value=_overlap,
        ),
    ]
    return [one for one in found if one.drawn]


def over_parameters(cases: Sequence[SyncCase]) -> list[Curve]:
    """Curves with one line for each number of workers; numbers and sizes are placed by value."""
    parameters = in_order(case.parameter for case in cases)
    numbers = numbers_of(parameters)
    room = max(8, _TICKS // max(1, len(parameters)))
    over = _CaseAxis(
        "parameter",
        [
            Place(float(number) if numbers is None else numbers[number], shortened(one, room))
            for number, one in enumerate(parameters)
        ],
        _groups(cases, lambda case: counted(case.workers, "worker")),
        lambda case: parameters.index(case.parameter),
        numeric=numbers is not None,
    )
    return [one for one in over.rates_and_times(cases) if one.drawn]


def _groups(
    cases: Sequence[SyncCase], name: Callable[[SyncCase], str]
) -> list[tuple[str, list[SyncCase]]]:
    """The cases of each line; several hold points have lines of their own."""
    found: dict[str, list[SyncCase]] = {}
    several = len({case.start for case in cases}) > 1
    for case in cases:
        parts = [name(case), HOLD_POINTS[case.start] if several else ""]
        found.setdefault(", ".join(part for part in parts if part), []).append(case)
    return downsample(list(found.items()), _MOST_LINES)


def _of_phase(name: str, of: Callable[[PhaseFigures], float]) -> Value:
    return lambda case: case.phase_interval(name, of)


def _task_times(case: SyncCase) -> Interval | None:
    middle = case.interval(lambda f: f.median)
    if middle is None:
        return None
    known = [found for found in case.figures if math.isfinite(found.median)]
    return Interval(middle.value, min(f.shortest for f in known), max(f.longest for f in known))


def _overlap(case: SyncCase) -> Interval | None:
    found = case.interval(lambda f: f.simultaneity)
    return found and found.times(100)


# ---- Over time


def over_time(cases: Sequence[SyncCase]) -> list[Chart]:
    """Running tasks over time, the same as shares, and when tasks began."""
    charts = []
    steps = _steps(cases)
    if steps:
        unit = scale(max(float(one.times[-1]) for _, one in steps), "s")
        lines = [(case.describe(), one.times * unit.factor, one.running) for case, one in steps]
        charts.append(
            _step_chart(
                "running",
                "Tasks running over time",
                lines,
                x=f"{INSTANT} [{unit.suffix}]",
                y="tasks running",
                about="One round of each number of workers, with the median span of its case. A"
                " steep rise is a small start skew, a flat top is the time in which all run, and a"
                " long slope at the end means that some tasks take longer than others.",
            )
        )
        charts.append(
            _step_chart(
                "share",
                "The same rounds as shares",
                [
                    (
                        case.describe(),
                        (one.times - one.times[0]) / (one.times[-1] - one.times[0]) * 100,
                        one.running / max(1, len(case.shown.tasks)) * 100,
                    )
                    for case, one in steps
                    if one.times[-1] > one.times[0]
                ],
                x="share of the round [%]",
                y="share of the tasks running [%]",
                about="From the first start at 0 % to the last end at 100 %. If all workers ran all"
                " the time, the line would stay at the top.",
                percent=True,
            )
        )
    if delays := _delays(cases):
        charts.append(delays)
    return charts


def _steps(cases: Sequence[SyncCase]) -> list[tuple[SyncCase, Parallelism]]:
    """Of each number of workers the case with the first parameter."""
    chosen: dict[tuple[str, int], SyncCase] = {}
    for case in _of_some_workers(cases):
        chosen.setdefault((case.start, case.workers), case)
    steps = [(case, parallelism(case.shown.tasks)) for case in chosen.values()]
    return [(case, one) for case, one in steps if one.times.size]


def _of_some_workers(cases: Sequence[SyncCase]) -> list[SyncCase]:
    """Cases with a few numbers of workers, the same for each hold point."""
    starts = {case.start for case in cases}
    workers = sorted({case.workers for case in cases})
    stored = downsample(workers, _MOST_STEPPED // max(1, len(starts)))
    return [case for case in cases if case.workers in stored]


def _delays(cases: Sequence[SyncCase]) -> Chart | None:
    """The share of tasks that had begun, over the time since the instant, by number of workers."""
    found: dict[str, list[float]] = {}
    several = len({case.start for case in cases}) > 1
    for case in _of_some_workers(cases):
        parts = [counted(case.workers, "worker"), HOLD_POINTS[case.start] if several else ""]
        name = ", ".join(part for part in parts if part)
        for one in case.counting:
            began = [task.began for task in one.tasks if task.began is not None]
            found.setdefault(name, []).extend(began)
    found = {name: values for name, values in found.items() if values}
    if not found:
        return None
    unit = scale(max(max(map(abs, values)) for values in found.values()), "s")
    lines = []
    for name, values in found.items():
        ordered = np.sort(np.array(values)) * unit.factor
        share = np.arange(1, ordered.size + 1) / ordered.size * 100
        stored = np.unique(np.linspace(0, ordered.size - 1, _DELAYS).round().astype(int))
        lines.append((name, ordered[stored], share[stored]))
    return _step_chart(
        "delays",
        "When tasks began after the agreed instant",
        lines,
        x=f"time after the agreed instant [{unit.suffix}]",
        y="share of the tasks [%]",
        about="Share of the tasks that had reached their first instruction, over all rounds that"
        " count.",
        percent=True,
    )


def _step_chart(
    name: str,
    title: str,
    lines: Sequence[tuple[str, Numbers, NDArray[Any]]],
    *,
    x: str,
    y: str,
    about: str,
    percent: bool = False,
) -> Chart:
    traces = []
    for number, (reported, xs, ys) in enumerate(lines):
        stored = downsample(range(xs.size), _STEPS)
        colour = SERIES[number % len(SERIES)]
        traces.append(
            {
                "name": shortened(reported, 40),
                "x": [round(float(value), 6) for value in xs[stored]],
                "y": [round(float(value), 3) for value in ys[stored]],
                "mode": "lines" if len(stored) > 1 else "markers",
                "showlegend": len(lines) > 1,
                "line": {"shape": "hv", "color": colour, "width": 1.8},
                "marker": {"color": colour, "size": 8},
                "hovertemplate": "%{fullData.name}<br>%{y} at %{x}<extra></extra>",
            }
        )
    return figure(
        traces,
        x={"title": x, "zeroline": True},
        y={"title": y, "rangemode": "tozero", **({"range": [0, 102]} if percent else {})},
        label=title,
        name=name,
        title=title,
        about=about,
    )
