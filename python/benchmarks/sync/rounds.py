"""Synchronised rounds for a case of this area, and the figures of each."""

from __future__ import annotations

import contextlib
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from benchmarks.figures import Values
from gridbench.hosts.place import Place, open_place
from gridbench.hosts.where import Where
from gridbench.sync.experiment import planned_tasks
from gridbench.sync.figures import RoundFigures, figures_of
from gridbench.sync.options import SyncParameters
from gridbench.sync.record import HoldPoint, PlannedRound, Round
from gridbench.sync.round_runner import RoundRunner
from gridbench.sync.task_group import TaskGroup

_TIMEOUT = 300.0  # seconds for a round


@dataclass(frozen=True, slots=True)
class Seen:
    """A round whose tasks all ended well."""

    figures: RoundFigures
    printed: list[str]
    """What each task has written to its standard output, if it has."""
    uncorrected: float
    """The start skew by the hosts' own clocks, seconds: the truth where these are one."""


class Workers:
    """Runs rounds with the workers of a place."""

    def __init__(self, place: Place, workers: int) -> None:
        self._place = place
        self._workers = workers
        self._rounds = RoundRunner(_no_check)
        self._count = 0

    def run(self, task: str, *words: str, start: HoldPoint = "entry") -> Seen:
        """One round. RuntimeError if a task of it does not end well."""
        # On hosts of one core each as well as on hosts of many: the workers are what is asked for.
        parameters = SyncParameters(task=task, arguments=words, oversubscribe=True)
        case = PlannedRound(workers=self._workers, start=start, repeat=self._count)
        self._count += 1
        planned = planned_tasks(parameters, self._place.members, case)
        ran = self._rounds.run(planned, start, _TIMEOUT)
        bad = [one for one in ran.tasks if one.status != "ok"]
        if bad:
            raise RuntimeError(
                f"{len(bad)} of {len(ran.tasks)} tasks of `{task}` failed: {bad[0].why}"
            )
        if any(one.start != start for one in ran.tasks):
            raise RuntimeError(f"tasks of `{task}` could not be held at {start}")
        record = Round(
            workers=self._workers, parameter="", repeat=case.repeat, start=start, at="",
            status="done", prepared_in=ran.prepared_in, tasks=ran.tasks, hosts=ran.hosts,
        )  # fmt: skip
        printed = [output.decode("utf-8", "replace") for output, _ in ran.printed.values()]
        own = [
            one.began + ran.clocks[one.host].offset / 1e9
            for one in ran.tasks
            if one.began is not None
        ]
        return Seen(figures_of(record), printed, max(own) - min(own))


@contextlib.contextmanager
def workers_at(workers: int, servers: Sequence[str] = ()) -> Iterator[Workers]:
    """So many, on this machine or on the hosts of these servers."""
    where = Where(names=tuple(servers))
    with open_place(where, workers, Console(quiet=True), TaskGroup) as place:
        yield Workers(place, workers)


def medians(steps: Mapping[str, Callable[[], Values]], repeats: int) -> Values:
    """Medians of what the steps find, as `STEP QUANTITY`; each is repeated so often, all of them in
    random order."""
    order = [name for name in steps for _ in range(repeats)]
    random.shuffle(order)
    found: dict[str, list[float]] = {}
    for name in order:
        for quantity, value in steps[name]().items():
            found.setdefault(f"{name} {quantity}", []).append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def _no_check() -> None:
    """Who wants an end of the case ends its process, which unwinds."""
