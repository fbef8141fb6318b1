"""Measures the cases of an area round by round, within the seconds that there are for them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.figures import Area, AreaCase, Values
from benchmarks.programs import launch_with_benchmarks
from gridbench.bench.points import DataPoint, Points
from gridbench.bench.session import Item, Limits, RepeatBudget, Runner, Session
from gridbench.engines.environments import our_launch
from gridbench.formats import about, as_given
from gridbench.process.children import Leftovers
from gridbench.process.interrupt import Stopped
from gridbench.progress import Steps
from gridbench.statistics.series import Status


class Watcher:
    """Shows the current run, and saves each as it ends."""

    def __init__(
        self, steps: Steps, area: Area, *, areas_left: int, save: Callable[[], object]
    ) -> None:
        """`areas_left`: number of areas after this one."""
        self._steps = steps
        self._area = area
        self._areas_left = areas_left
        self._save = save

    def begin(self, number: int, case: AreaCase, *, limit: float, left: float | None) -> None:
        """A run begins."""
        note = f"at most {about(limit)}"
        if left is not None:
            note += f"; this part has {about(left)} left"
        if self._areas_left:
            note += f", {self._areas_left} more to come"
        self._steps.begin(f"round {number + 1}, {case.name}", note=note)

    def glance(self) -> None:
        """It still runs: called ten times a second."""
        self._steps.glance()

    def end(self, number: int, case: AreaCase, point: DataPoint) -> None:
        """It has ended, and is saved; report missing values at once."""
        self._steps.end(point.seconds)
        self._save()
        # Runs of parts with a budget take long.
        is_long = self._area.budget is not None and not self._steps.console.is_terminal
        if point.why or is_long:
            reported = point.why or f"done in {about(point.seconds)}"
            self._steps.say(f"{self._area.name}, round {number + 1}, {case.name}: {reported}")


def measure(
    area: Area,
    runs: int,
    points: Points,
    *,
    check: Callable[[], object] = lambda: None,
    watcher: Watcher | None = None,
) -> None:
    """Run the area's cases, without those that are there; what they give is added to `points`.

    `check` is called ten times a second; it ends when that raises Stopped. Where the area has a
    budget, each case is run once as long as that lasts. Further rounds have what is left of it: a
    case is not begun that will not end in time by how long it took before, nor one again that has
    reached its limit.
    """

    def look() -> None:
        if watcher is not None:
            watcher.glance()
        check()

    with Leftovers() as leftovers:
        for number, case in _due(area, runs, points):
            left = _left(area, points)
            limit = case.timeout if left is None else min(case.timeout, left)
            if case.missing:
                points.add(_not_run(case, number, "missing", case.missing))
                continue
            if area.budget is not None and limit <= 0:
                why = f"was not begun: the {as_given(area.budget)} of its part were over"
                points.add(_not_run(case, number, "failed", why))
                continue
            if watcher is not None:
                watcher.begin(number, case, limit=limit, left=left)
            try:
                _run(case, number, points, leftovers, limit=limit, look=look)
            except Stopped:
                return
            if watcher is not None:
                watcher.end(number, case, points.rounds_of(case.name)[number])


def _due(area: Area, runs: int, points: Points) -> Iterator[tuple[int, AreaCase]]:
    """The cases to run, in random order within each round."""
    order = random.Random(area.name)
    for number in range(runs):
        due = [case for case in area.cases if case.most_runs is None or number < case.most_runs]
        order.shuffle(due)
        for case in due:
            # One that this machine lacked something for can be run now.
            before = points.rounds_of(case.name).get(number)
            is_new = before is None or (before.status != "ok" and not before.at)
            if is_new and (number == 0 or _fits(area, case, points)):
                yield number, case


def _fits(area: Area, case: AreaCase, points: Points) -> bool:
    """Whether a further run of a case has a place in the area's budget."""
    left = _left(area, points)
    if left is None or case.missing:
        return True
    earlier = points.rounds_of(case.name).values()
    return not any(one.at_limit or one.seconds >= left or not one.at for one in earlier)


def _left(area: Area, points: Points) -> float | None:
    """Seconds that are left of the area's budget."""
    if area.budget is None:
        return None
    every = (point for case in area.cases for point in points.of_workload(case.name))
    return area.budget - sum(point.seconds for point in every)


def run_apart(
    function: Callable[..., Values], arguments: dict[str, Any], glance: Callable[[], object]
) -> Values:
    """The function's numbers, found in a process below this one. RuntimeError if there are none.

    `glance` is called ten times a second meanwhile.
    """
    case, points = AreaCase("apart", function, arguments), Points()
    with Leftovers() as leftovers:
        _run(case, 0, points, leftovers, limit=math.inf, look=glance)
    found = points.rounds_of(case.name)[0]
    if found.status != "ok":
        raise RuntimeError(found.why)
    return found.values


def _run(
    case: AreaCase,
    number: int,
    points: Points,
    leftovers: Leftovers,
    *,
    limit: float,
    look: Callable[[], object],
) -> None:
    """One run in a fresh process, whose imports and clean memory all have alike."""
    function = case.function
    item = Item(
        workload=case.name,
        measure=f"{function.__module__}:{function.__name__}",
        arguments=case.arguments,
        seconds=limit,
    )
    # Engines' own Pythons need not have NumPy.
    imports = (function.__module__,) if case.python_of else ("numpy", function.__module__)
    session = Session(name=case.name, imports=imports, items=(item,))
    # Its start is within its limit, and nothing is repeated.
    limits = Limits(start=limit, item=0.0)
    launch = launch_with_benchmarks(case.python_of) if case.python_of else our_launch()
    with Runner(limits, leftovers, RepeatBudget(0.0), note=points.add, check=look) as runner:
        points.add(runner.measure(session, item, launch, number))


def _not_run(case: AreaCase, number: int, status: Status, why: str) -> DataPoint:
    return DataPoint(workload=case.name, round=number, status=status, why=why)
