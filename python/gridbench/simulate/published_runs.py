"""The simulator beside the published tables, with nothing given but the workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gridbench.analysis.transfer import MEGABYTE, block_span
from gridbench.formats import as_given
from gridbench.model.pipeline import TaskWatch
from gridbench.published.printed import BINARY, figure_in_text, megabytes, table, tasks_of
from gridbench.simulate.compared import Against, Comparison, Tell
from gridbench.simulate.simulation import Simulation, simulate
from gridbench.simulate.systems import System, system
from gridbench.simulate.work import Work

PUBLISHED = "published"
"""What stands for these tables where a folder of results could stand."""
_CORES = 100
"""Of scenario 6, and of the totals in the text."""
_TASK = 30.0
"""Seconds that tasks of scenarios 4 and 5 take."""
_START = 5.6
"""Seconds after which instances are there (5.5.1-1, 0 KB)."""
_Follow = Callable[..., Simulation]
"""Simulates the work of this name with a profile, and its start-up if that is not the profile's."""


def against_published(tell: Tell, watch: TaskWatch | None = None) -> list[Against]:
    """Blocks of up to 400 cores on Symphony, and totals on 100 cores of both systems."""

    def follow(what: str, work: Work, profile: System, start_up: float | None = None) -> Simulation:
        tell(what, work.tasks)
        return simulate(work, profile, start_up=start_up, watch=watch)

    symphony, ninfg = system("symphony"), system("ninfg")
    return [
        Against(
            "Scenario 4 on Symphony: from the first to the last calc-in of a block (5.5.4-2)",
            f"As many tasks as cores, of {as_given(_TASK)}. All instances start after {_START} s,"
            " as the published spans are without the waits between them. What the manager does for"
            " a task is of one of these rows, 0 KB of 100 cores.",
            list(_spans("5.5.4-2", symphony, follow)),
        ),
        Against(
            "Scenario 5 on Symphony: from the first to the last result of a block (5.5.5-1)",
            "The same, of retrieve times. What the client does for a result is of two of these "
            "rows, 0 KB and 100 KB of 400 cores.",
            list(_spans("5.5.5-1", symphony, follow)),
        ),
        Against(
            "Totals on Symphony: scenario 6 (5.5.6-1 and -2), and data both ways (5.5.2)",
            f"On up to {_CORES} cores. Start-up is that of the profile, not that of the run; the "
            "profile has it from two of these rows, of 1 and of 10 tasks.",
            [
                *_totals("5.5.6-1", symphony, 0.0, follow),
                *_totals("5.5.6-2", symphony, MEGABYTE, follow),
                *_both_ways(symphony, follow),
            ],
        ),
        Against(
            "Totals on Ninf-G with Grid Engine: scenario 6 (5.5.6-3 and -4)",
            f"On up to {_CORES} cores. Start-up is that of the profile, not that of the run.",
            [
                *_totals("5.5.6-3", ninfg, 0.0, follow),
                *_totals("5.5.6-4", ninfg, MEGABYTE, follow),
            ],
        ),
    ]


def _spans(name: str, symphony: System, follow: _Follow) -> Iterator[Comparison]:
    back = name == "5.5.5-1"
    for row in table(name):
        cores = int(row["tasks"])
        size = megabytes(row["size"], BINARY) * MEGABYTE
        what = f"{row['size']}, {cores} cores"
        work = Work(
            cores=cores,
            tasks=cores,
            sleep=_TASK,
            bytes_in=0.0 if back else size,
            bytes_out=size if back else 0.0,
        )
        stamps = follow(what, work, symphony, _START).stamps
        found = block_span(stamps.retrieve if back else stamps.calc_in, cores)
        yield Comparison(what, float(row["span_s"]), found)


def _totals(name: str, profile: System, size: float, follow: _Follow) -> Iterator[Comparison]:
    for row in table(name):
        tasks = int(row["tasks"])
        work = Work(
            cores=min(tasks, _CORES), tasks=tasks, sleep=float(row["sleep_s"]), bytes_in=size
        )
        what = f"{tasks_of(row)}, {'1 MB' if size else 'no data'}"
        yield _total(what, float(row["total_s"]), work, profile, follow)


def _both_ways(profile: System, follow: _Follow) -> Iterator[Comparison]:
    for key, size in (("two_way_100kb", "100 KB"), ("two_way_1mb", "1 MB")):
        row = figure_in_text(key, profile.name)
        each = megabytes(size, BINARY) * MEGABYTE
        work = Work(cores=_CORES, tasks=400, sleep=1.0, bytes_in=each, bytes_out=each)
        what = f"400 tasks of 1 s, {size} in and out"
        yield _total(what, float(row["value"]), work, profile, follow)


def _total(what: str, real: float, work: Work, profile: System, follow: _Follow) -> Comparison:
    done = follow(what, work, profile)
    return Comparison(what, real, done.total, done.ideal)
