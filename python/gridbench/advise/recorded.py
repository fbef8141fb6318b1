"""A work whose tasks have been run before: their times and sizes, from a log or a run's folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from gridbench.advise.uneven import edges
from gridbench.analysis.columns import Floats, seconds, succeeded
from gridbench.errors import InputError
from gridbench.formats import plain
from gridbench.report.source import Run, load_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Pieces of known times, in the order in which they are put together to tasks."""

    source: str
    """Where they are from."""
    pieces: int
    share: float
    """Standard deviation of their times, as share of the mean."""
    done: Floats = field(repr=False, compare=False)
    """Seconds of all pieces before each, and of all, shape (pieces + 1,)."""
    longest_first: bool = False
    """The tasks that they are put together to begin with the longest."""

    def told(self) -> str:
        """In words, after the mean: `deviating by 50 %, as in FILE`."""
        return f"deviating by {plain(self.share * 100)} %, as in {self.source}"

    def draws(self, _tasks: int) -> int:
        """Nothing is drawn: there is one."""
        return 1

    def times(self, total: float, tasks: int, _draw: int) -> Floats:
        """Of `tasks` tasks of pieces that follow each other, so that together they take `total`
        seconds, shape (tasks,)."""
        ends = self.done[edges(self.pieces, tasks)] * (total / float(self.done[-1]))
        times = ends[1:] - ends[:-1]
        return -np.sort(-times) if self.longest_first else times


@dataclass(frozen=True, slots=True)
class Log:
    """What a log tells of a work. Sizes are in bytes, of all tasks together."""

    recorded: Recorded
    seconds: float
    bytes_in: float
    bytes_shared: float
    """The same for all tasks."""
    bytes_out: float


def read_log(path: Path) -> Log:
    """The tasks of a task log or a run's folder, in the order of their numbers. InputError if it is
    neither, holds several runs, or lacks the time of a task: the work would be another."""
    runs = load_runs([path])
    if len(runs) > 1:
        raise InputError(
            f"holds {len(runs)} runs, and a work is one", file=path, remedy="give one of them"
        )
    (run,) = runs
    table = run.table.sort_by("tid")
    times = _times(run, table)
    return Log(
        recorded=Recorded(
            source=path.name,
            pieces=len(times),
            share=float(times.std() / times.mean()),
            done=np.concatenate(([0.0], np.cumsum(times))),
        ),
        seconds=float(times.sum()),
        bytes_in=float(seconds(table, "bytes_in").sum()),
        bytes_shared=float(seconds(table, "bytes_shared").max()),
        bytes_out=float(seconds(table, "bytes_out").sum()),
    )


def _times(run: Run, table: pa.Table) -> Floats:
    """Seconds that each task took on its worker, shape (tasks,). InputError if that is not known of
    all of them."""
    lost = run.ntasks - int(succeeded(table).sum())
    if lost:
        raise InputError(
            f"{lost:,} of its {run.ntasks:,} tasks have no result, so that their times are not"
            " known",
            file=run.path,
            remedy="give a log of a run in which no task was lost",
        )
    times = seconds(table, "slept")
    if not (times > 0).any():  # of tasks that did not sleep
        times = seconds(table, "calc_out") - seconds(table, "calc_in")
    if not (times >= 0).all() or not times.sum() > 0:
        raise InputError(
            "it does not tell how long its tasks computed",
            file=run.path,
            remedy="a log needs sleep times, or calc-in and calc-out, none of them below 0",
        )
    return times
