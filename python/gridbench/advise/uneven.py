"""Task times that differ: drawn from a distribution, or recorded in a log."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from gridbench.analysis.columns import Floats, seconds, succeeded
from gridbench.errors import InputError
from gridbench.formats import plain, share_given
from gridbench.quantities import parse_seconds, parse_stddev
from gridbench.report.source import Run, load_runs
from gridbench.workload.numbers import shown
from gridbench.workload.workload import draw_task_times

TimeDistribution = Literal["normal", "log-normal", "pareto"]
DISTRIBUTIONS: tuple[TimeDistribution, ...] = get_args(TimeDistribution)
MOST_PIECES = 100_000
"""Of more, no task that is worth its handling notices a single one."""
_MOST_DRAWS, _FEWEST_DRAWS = 32, 8
_TASKS_DRAWN = 20_000
"""In all draws of a split together: the more tasks it has, the less its draws differ."""
_MOST_SHARE = 10.0
_MOST_NORMAL = 1.0
"""Beyond, most of a normal distribution's deviation would be below 0, where no times are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uneven:
    """The deviation of times. InputError for what makes no sense.

    Without pieces, tasks deviate by as much however the work is divided: what lies side by side in
    it is alike, so that nothing evens out within a task. With pieces, each of these takes its own
    time, whatever its neighbours take; a task of n of them deviates by a share that is smaller by
    the root of n. Either way the whole work takes as long as given.
    """

    share: float
    """Standard deviation, as share of the mean."""
    distribution: TimeDistribution = "normal"
    pieces: int = 0
    """What the work consists of, and what deviates so; 0: its tasks do."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= _MOST_SHARE:
            raise InputError(
                f"--stddev: {plain(self.share)} times the mean is not a deviation",
                remedy=f"give a share of the mean, above 0 and up to {share_given(_MOST_SHARE)}",
            )
        if self.distribution == "normal" and self.share > _MOST_NORMAL:
            raise InputError(
                f"--stddev: a normal distribution cannot deviate by {share_given(self.share)} of"
                " its mean with no time below 0",
                remedy="add --distribution log-normal or pareto, or give up to 100%",
            )
        if not 0 <= self.pieces <= MOST_PIECES:
            raise InputError(f"the number of pieces must be from 1 to {MOST_PIECES:,}")

    def describe(self) -> str:
        """In words, after the mean: `deviating by 50 %`."""
        kind = "" if self.distribution == "normal" else f", {self.distribution}"
        return f"deviating by {plain(self.share * 100)} %{kind}"

    def draws(self, tasks: int) -> int:
        """How often the times of so many tasks are drawn, to know the mean total."""
        return max(_FEWEST_DRAWS, min(_MOST_DRAWS, _TASKS_DRAWN // tasks))

    def times(self, seconds: float, tasks: int, draw: int) -> Floats:
        """Of `tasks` tasks that together take `seconds`, drawn for the `draw`th time, shape
        (tasks,). With pieces it is always the same ones that are divided."""
        if self.pieces:
            done = _done(self, draw)[edges(self.pieces, tasks)]
            return seconds * (done[1:] - done[:-1])
        parts = _drawn(self, tasks, draw)
        return parts * (seconds / float(parts.sum()))


def parse_uneven(
    stddev: str | None, distribution: str | None, pieces: int | None, work: str | None = None
) -> Uneven | None:
    """From the command line; None: all tasks take as long. `work`: the time of the whole, if it is
    known; pieces may deviate from it by a time. InputError names the option."""
    if stddev is None:
        for option, value in (("--distribution", distribution), ("--pieces", pieces)):
            if value is not None:
                raise InputError(
                    f"{option} is for times that differ", remedy="add --stddev, such as 50%"
                )
        return None
    share = _share(stddev, pieces, work)
    if not 0 <= share <= _MOST_SHARE:
        raise InputError(
            f"--stddev: `{shown(stddev)}` is not a deviation from 0% to {share_given(_MOST_SHARE)}",
            remedy="give a share of the mean, such as 20%",
        )
    if share == 0:
        return None
    (kind,) = (one for one in DISTRIBUTIONS if one == (distribution or "normal"))
    return Uneven(share=share, distribution=kind, pieces=pieces or 0)


def _share(stddev: str, pieces: int | None, work: str | None) -> float:
    """Of the mean; NaN: it is no number."""
    if stddev.endswith("%"):
        try:
            return float(stddev.removesuffix("%")) / 100
        except ValueError:
            return math.nan
    if pieces is None or work is None:
        raise InputError(
            f"--stddev: `{shown(stddev)}` is not a share of the mean: how long a task takes depends"
            " on how the job is divided",
            remedy="give a share of the mean, such as 20%, or with --work and --pieces that of a"
            " piece",
        )
    whole = parse_seconds("--work", work)
    return parse_stddev("--stddev", stddev)[0] * pieces / whole if whole > 0 else 0.0


def edges(pieces: int, tasks: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Before which pieces tasks begin, and the end of the last: no two differ by more than one
    piece, shape (tasks + 1,)."""
    return np.arange(tasks + 1) * pieces // tasks


@lru_cache(maxsize=_MOST_DRAWS)
def _done(uneven: Uneven, draw: int) -> Floats:
    """Share of the work that is done before each piece, and after the last, shape (pieces + 1,)."""
    parts = _drawn(uneven, uneven.pieces, draw)
    return np.concatenate(([0.0], np.cumsum(parts / parts.sum())))


def _drawn(uneven: Uneven, count: int, draw: int) -> Floats:
    """Times with a mean of about 1, shape (count,)."""
    share, random = uneven.share, np.random.default_rng(draw)
    if uneven.distribution == "log-normal":
        return random.lognormal(sigma=math.sqrt(math.log1p(share**2)), size=count)
    if uneven.distribution == "pareto":
        # Of this exponent: the deviation of a Pareto distribution depends on it alone.
        return 1 + random.pareto(1 + math.sqrt(1 + share**-2), count)
    return draw_task_times(count, 1.0, share, draw)


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

    def describe(self) -> str:
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
class RecordedWork:
    """Description of a work from a log. Sizes are in bytes, of all tasks together."""

    recorded: Recorded
    seconds: float
    bytes_in: float
    bytes_shared: float
    """The same for all tasks."""
    bytes_out: float


def read_log(path: Path) -> RecordedWork:
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
    return RecordedWork(
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
            "it does not say how long its tasks computed",
            file=run.path,
            remedy="a log needs sleep times, or calc-in and calc-out, none of them below 0",
        )
    return times
