"""The pictures of all rounds together: what changes over workers, and over parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridbench.formats import counted, scale
from gridbench.pages.curves import Curve, Line, Place, Point
from gridbench.pages.downsample import evenly
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
"""Points of a line of tasks running."""

Value = Callable[[SyncCase], Interval | None]

_RATE = (
    "All that the tasks did over the time of the slowest of them, as IOR and mdtest report it."
    " Bars reach from the smallest to the largest of the repeats."
)
_BARS = "Bars reach from the smallest to the largest of the repeats"


def over_workers(cases: Sequence[SyncCase]) -> list[Curve]:
    """One line for each parameter."""
    workers = sorted({case.workers for case in cases})
    over = _Over(
        "workers",
        [Place(count, f"{count:,}") for count in workers],
        _groups(cases, lambda case: case.parameter),
        lambda case: workers.index(case.workers),
    )
    found = [
        *over.rates(cases),
        over.times(),
        over.curve(
            "span",
            "First start to last end over workers",
            about="For tasks that do nothing, this is what synchronised starting costs."
            f" {_BARS}, and what is not known of the clocks comes on top.",
            y_title="first start to last end",
            unit="s",
            value=SyncCase.span,
        ),
        over.curve(
            "skew",
            "Start skew over workers",
            about="From the first of the tasks' first instructions to the last."
            f" {_BARS}, and what is not known of the clocks comes on top.",
            y_title="start skew",
            unit="s",
            value=SyncCase.skew,
        ),
        over.curve(
            "simultaneity",
            "Share of the time in which all tasks run, over workers",
            about=f"Of the time from the first start to the last end. {_BARS}.",
            y_title="all run [%]",
            unit="%",
            value=_simultaneity,
        ),
    ]
    return [one for one in found if one.drawn]


def over_parameters(cases: Sequence[SyncCase]) -> list[Curve]:
    """One line for each number of workers; sizes and numbers have their places on a scale."""
    parameters = in_order(case.parameter for case in cases)
    numbers = numbers_of(parameters)
    room = max(8, _TICKS // max(1, len(parameters)))
    over = _Over(
        "parameter",
        [
            Place(float(number) if numbers is None else numbers[number], _shortened(one, room))
            for number, one in enumerate(parameters)
        ],
        _groups(cases, lambda case: counted(case.workers, "worker")),
        lambda case: parameters.index(case.parameter),
        numeric=numbers is not None,
    )
    return [one for one in (*over.rates(cases), over.times()) if one.drawn]


@dataclass(frozen=True, slots=True)
class _Over:
    """What curves over the same thing have in common."""

    what: str
    places: Sequence[Place]
    groups: Sequence[tuple[str, Sequence[SyncCase]]]
    """The cases of each line."""
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

    def rates(self, cases: Sequence[SyncCase]) -> list[Curve]:
        """The rate of each phase that has one, of so many phases as find room."""
        known = [(phase, rate_of(cases, phase)) for phase in phases_of_all(cases)[:_MOST_PHASES]]
        return [
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

    def times(self) -> Curve:
        """How long tasks took."""
        return self.curve(
            "times",
            f"Task times over {self.what}",
            about="The median of the tasks of a case; bars reach from its shortest task to its"
            " longest.",
            y_title="time of a task",
            unit="s",
            value=_task_times,
        )

    def _points(self, cases: Sequence[SyncCase], value: Value) -> list[Point]:
        found = [(case, value(case)) for case in cases]
        points = [
            Point(self.places[self.place(case)], one, case.counts)
            for case, one in found
            if one is not None
        ]
        return sorted(points, key=lambda point: point.place.x)


def running(cases: Sequence[SyncCase]) -> dict[str, Any] | None:
    """Tasks running over time, of one round for each number of workers: that with the first
    parameter that there is."""
    steps = _steps(cases)
    if not steps:
        return None
    unit = scale(max(float(one.times[-1]) for _, one in steps), "s")
    lines = [_line(case.told(), one.times * unit.factor, one.running) for case, one in steps]
    return {"unit": unit.suffix, "lines": lines}


def share_running(cases: Sequence[SyncCase]) -> dict[str, Any] | None:
    """The same of rounds of any length and size: shares of the tasks over shares of the span."""
    lines = []
    for case, one in _steps(cases):
        span = one.times[-1] - one.times[0]
        if span > 0:
            tasks = max(1, len(case.shown.tasks))
            over = (one.times - one.times[0]) / span * 100
            lines.append(_line(case.told(), over, one.running / tasks * 100))
    return {"unit": "%", "lines": lines} if lines else None


def _steps(cases: Sequence[SyncCase]) -> list[tuple[SyncCase, Parallelism]]:
    chosen: dict[tuple[str, int], SyncCase] = {}
    for case in _of_some_workers(cases):
        chosen.setdefault((case.start, case.workers), case)
    steps = [(case, parallelism(case.shown.tasks)) for case in chosen.values()]
    return [(case, one) for case, one in steps if one.times.size]


def _of_some_workers(cases: Sequence[SyncCase]) -> list[SyncCase]:
    """Those of a few numbers of workers, the same ones for each way to start."""
    starts = {case.start for case in cases}
    workers = sorted({case.workers for case in cases})
    kept = evenly(workers, _MOST_STEPPED // max(1, len(starts)))
    return [case for case in cases if case.workers in kept]


def _line(name: str, x: Numbers, y: NDArray[Any]) -> dict[str, Any]:
    kept = evenly(range(x.size), _STEPS)
    return {
        "name": name,
        "x": [round(float(value), 6) for value in x[kept]],
        "y": [round(float(value), 3) for value in y[kept]],
    }


def delays(cases: Sequence[SyncCase]) -> dict[str, Any] | None:
    """Which share of the tasks had begun so long after the agreed instant, of all rounds that
    count, for each number of workers."""
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
        kept = np.unique(np.linspace(0, ordered.size - 1, _DELAYS).round().astype(int))
        lines.append(_line(name, ordered[kept], share[kept]))
    return {"unit": unit.suffix, "lines": lines}


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _groups(
    cases: Sequence[SyncCase], name: Callable[[SyncCase], str]
) -> list[tuple[str, list[SyncCase]]]:
    """The cases of each line; if there are several ways to start, each has lines of its own."""
    found: dict[str, list[SyncCase]] = {}
    several = len({case.start for case in cases}) > 1
    for case in cases:
        parts = [name(case), HOLD_POINTS[case.start] if several else ""]
        found.setdefault(", ".join(part for part in parts if part), []).append(case)
    return evenly(list(found.items()), _MOST_LINES)


def _of_phase(name: str, of: Callable[[PhaseFigures], float]) -> Value:
    return lambda case: case.phase_interval(name, of)


def _task_times(case: SyncCase) -> Interval | None:
    middle = case.interval(lambda f: f.median)
    if middle is None:
        return None
    known = [found for found in case.figures if math.isfinite(found.median)]
    shortest, longest = min(f.shortest for f in known), max(f.longest for f in known)
    return Interval(middle.value, shortest, longest)


def _simultaneity(case: SyncCase) -> Interval | None:
    found = case.interval(lambda f: f.simultaneity)
    return found and found.times(100)
