"""Many tasks on the workers that a batch system has started, beside other ways to have them done.

The ideal is the time of the tasks themselves, one after the other on each worker.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.batch.budget import BUDGET
from benchmarks.batch.engines import AGAIN, cases_of, few_of, peers_on_slurm
from benchmarks.extent import Extent
from benchmarks.figures import Area, Row, Target, noise_row
from gridbench.bench.series import Points
from gridbench.formats import as_given
from gridbench.statistics.series import Series

_ON_SLURM = {Extent.TRIAL: (2, 8, 0.05), Extent.USUAL: (100, 1000, 0.1)}
_ON_GRID_ENGINE = {Extent.TRIAL: (2, 2, 0.2), Extent.USUAL: (100, 100, 1.0)}
"""Workers, tasks, and seconds of each."""
_LIMIT = 120.0  # seconds for a run of all workers: a job for each task takes long


def on_slurm(extent: Extent) -> Area:
    """Short tasks on workers of Slurm; an array of jobs beside it."""
    return _area(
        "slurm-tasks",
        "Slurm",
        numbers=_ON_SLURM[_extent(extent)],
        ours=("emulated-slurm-native", "emulated-slurm"),
        jobs="emulated-slurm-array",
        peers=peers_on_slurm(),
        bound=1.02,
        extent=extent,
    )


def on_grid_engine(extent: Extent) -> Area:
    """Tasks of a second on workers of Grid Engine; a job for each task beside it."""
    return _area(
        "gridengine-tasks",
        "Grid Engine",
        numbers=_ON_GRID_ENGINE[_extent(extent)],
        ours=("emulated-gridengine-native", "emulated-gridengine"),
        jobs="emulated-gridengine-jobs",
        peers=(),
        bound=1.03,
        extent=extent,
    )


def _extent(extent: Extent) -> Extent:
    return Extent.TRIAL if extent is Extent.TRIAL else Extent.USUAL


def _area(
    part: str,
    system: str,
    *,
    numbers: tuple[int, int, float],
    ours: tuple[str, str],
    jobs: str,
    peers: Sequence[str],
    bound: float,
    extent: Extent,
) -> Area:
    """`ours`: native and Python workers; `jobs`: the engine with a batch job for each task."""
    workers, tasks, seconds = numbers
    each = math.ceil(tasks / workers)
    few = few_of(workers)
    sizes = sorted({few, workers} if extent is Extent.FULL else {few}) if peers else []
    native, python = ours

    def prefix(size: int) -> str:
        return f"{part}, {size:,} workers, "

    def count(size: int) -> int:
        return tasks if size == workers else size * each

    def what(size: int) -> str:
        return f"{count(size):,} tasks of {as_given(seconds)} on {size:,} workers"

    cases = cases_of(
        (native, native + AGAIN, python, jobs),
        workers, tasks=tasks, seconds=seconds, limit=_LIMIT, prefix=prefix(workers),
    )  # fmt: skip
    for size in sizes:
        compared = peers if size == workers else (python, *peers)
        cases += cases_of(compared, size, tasks=count(size), seconds=seconds, prefix=prefix(size))

    def rows(samples: Points) -> list[Row]:
        def of(engine: str, quantity: str, size: int = workers) -> Series:
            return samples.of(prefix(size) + engine, quantity)

        made = [noise_row(f"{native} by itself", of(native, "tasks"), of(native + AGAIN, "tasks"))]
        for engine in ours:
            made += [
                Row(
                    f"{what(workers)}, {engine}, after start-up; limit: the tasks alone",
                    "s",
                    of(engine, "tasks"),
                    limit=Series.exactly(each * seconds),
                    target=Target(bound, of_limit=True),
                ),
                Row(f"start-up, {engine}", "s", of(engine, "start")),
            ]
        # Jobs have no start-up that could be left out.
        compared = [(jobs, "all", "with start-up", workers)]
        compared += [(peer, "tasks", "after start-up", size) for size in sizes for peer in peers]
        made += [
            Row(
                f"{what(size)}, {python}, {told}; peer: {peer}",
                "s",
                of(python, quantity, size),
                peer=of(peer, quantity, size),
                target=Target(1.0, of_peer=True),
            )
            for peer, quantity, told, size in compared
        ]
        return made

    title = f"{tasks:,} tasks of {as_given(seconds)} on {workers:,} workers of {system}"
    return Area(f"cluster/{part}", title, cases, rows, part=part, budget=BUDGET[extent])
