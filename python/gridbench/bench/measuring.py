"""Measures the cases of an area round by round, within the seconds that there are for them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Protocol

from gridbench.bench.child import CaseFailed, run_in_child
from gridbench.bench.figures import Area, Case, Run, Samples
from gridbench.machine.load import reading
from gridbench.machine.rule import judged
from gridbench.process.interrupt import Stopped


class Watcher(Protocol):
    """Who is told what happens."""

    def begin(self, number: int, case: Case, *, limit: float, left: float | None) -> None:
        """A run begins that may take `limit` seconds; `left`: all from here on, at most."""

    def glance(self) -> None:
        """It goes on: called ten times a second."""

    def end(self, number: int, case: Case, run: Run) -> None:
        """It has ended, and is kept among the samples."""


def measure(
    area: Area,
    runs: int,
    samples: Samples,
    *,
    check: Callable[[], object] = lambda: None,
    watcher: Watcher | None = None,
) -> None:
    """Run the area's cases into `samples`, without those that are there.

    `check` is called ten times a second; it ends when that raises Stopped.

    Where the area has a budget, each case is run once as long as that lasts. Further rounds have
    what is left of it: a case is not begun that will not end in time by how long it took before,
    nor one again that has reached its limit.
    """

    def glance(process: int) -> None:
        del process
        if watcher is not None:
            watcher.glance()
        check()

    for number, case in _due(area, runs, samples):
        left = _left(area, samples)
        limit = case.timeout if left is None else min(case.timeout, left)
        if case.missing or limit <= 0:
            why = case.missing or f"was not begun: the {area.budget:g} s of its part were over"
            samples.add_failure(case.name, number, why)
            continue
        if watcher is not None:
            watcher.begin(number, case, limit=limit, left=left)
        try:
            run = _run(case, limit, glance)
        except Stopped:
            return
        samples.keep(case.name, number, run)
        if watcher is not None:
            watcher.end(number, case, run)


def _due(area: Area, runs: int, samples: Samples) -> Iterator[tuple[int, Case]]:
    """What is to be run, in random order within each round."""
    order = random.Random(area.name)
    for number in range(runs):
        due = [case for case in area.cases if case.most_runs is None or number < case.most_runs]
        order.shuffle(due)
        for case in due:
            # One that this machine lacked something for can be run now.
            before = samples.runs_of(case.name).get(number)
            is_new = before is None or (before.problem and not before.seconds)
            if is_new and (number == 0 or _fits(area, case, samples)):
                yield number, case


def _fits(area: Area, case: Case, samples: Samples) -> bool:
    """Whether a further run of a case has a place in the area's budget."""
    left = _left(area, samples)
    if left is None or case.missing:
        return True
    earlier = samples.runs_of(case.name).values()
    return not any(run.hopeless or run.seconds >= left or not run.seconds for run in earlier)


def _left(area: Area, samples: Samples) -> float | None:
    if area.budget is None:
        return None
    return area.budget - samples.seconds(case.name for case in area.cases)


def _run(case: Case, limit: float, glance: Callable[[int], object]) -> Run:
    """One run, and what others did meanwhile."""
    before = reading(os.getpid())
    run = Run()
    try:
        run.values = run_in_child(case.function, case.arguments, timeout=limit, glance=glance)
    except CaseFailed as failure:
        run.values, run.problem = failure.values, str(failure)
        run.hopeless = failure.at_limit
    after = reading(os.getpid())
    load = after.load_since(before)
    run.seconds, run.others = load.seconds, load.others
    run.disturbed = judged(load) != "undisturbed"
    return run
