"""Many tasks on the workers that a batch system has started, beside other ways to have them done.

The ideal is the time of the tasks themselves, one after the other on each worker.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gridbench.bench.batch.engines import AGAIN, cases_of, peers_on_slurm
from gridbench.bench.extent import Extent
from gridbench.bench.figures import Area, Measured, Row, Samples, Target

_ON_SLURM = {Extent.TRIAL: (2, 8, 0.05), Extent.USUAL: (100, 1000, 0.1)}
_ON_GRID_ENGINE = {Extent.TRIAL: (2, 2, 0.2), Extent.USUAL: (100, 100, 1.0)}
"""Workers, tasks, and seconds of each."""
_LIMIT = 600.0  # seconds for a run of one engine


def on_slurm(extent: Extent) -> Area:
    """Short tasks on workers of Slurm; an array of jobs beside it."""
    numbers = _ON_SLURM[_extent(extent)]
    peers = ("slurm-array", *peers_on_slurm())
    ours = ("gridrpc-slurm-native", "gridrpc-slurm")
    return _area("slurm-tasks", "Slurm", numbers=numbers, ours=ours, peers=peers, bound=1.02)


def on_grid_engine(extent: Extent) -> Area:
    """Tasks of a second on workers of Grid Engine; a job for each task beside it."""
    numbers = _ON_GRID_ENGINE[_extent(extent)]
    ours = ("gridrpc-gridengine-native", "gridrpc-gridengine")
    return _area(
        "gridengine-tasks",
        "Grid Engine",
        numbers=numbers,
        ours=ours,
        peers=("gridengine-jobs",),
        bound=1.03,
    )


def _extent(extent: Extent) -> Extent:
    return Extent.TRIAL if extent is Extent.TRIAL else Extent.USUAL


def _area(
    part: str,
    system: str,
    *,
    numbers: tuple[int, int, float],
    ours: Sequence[str],
    peers: Sequence[str],
    bound: float,
) -> Area:
    workers, tasks, seconds = numbers
    ideal = Measured.exactly(math.ceil(tasks / workers) * seconds)
    prefix = f"{part}, "
    first, again = ours[0], ours[0] + AGAIN
    cases = cases_of(
        (*ours, again, *peers), workers, tasks=tasks, seconds=seconds, limit=_LIMIT, prefix=prefix
    )
    what = f"{tasks:,} tasks of {seconds:g} s"

    def rows(samples: Samples) -> list[Row]:
        def of(engine: str, quantity: str) -> Measured:
            return samples.of(prefix + engine, quantity)

        made = [
            Row(
                what=f"noise: {what}, {first} by itself",
                unit="x",
                ours=of(first, "tasks").difference_to(of(again, "tasks")),
                digits=2,
            )
        ]
        for engine in ours:
            made += [
                Row(
                    what=f"{what}, {engine}, after start-up; limit: the tasks alone",
                    unit="s",
                    ours=of(engine, "tasks"),
                    limit=ideal,
                    target=Target(bound, of_limit=True),
                ),
                Row(what=f"start-up, {engine}", unit="s", ours=of(engine, "start")),
            ]
        for peer in peers:
            # Jobs have no start-up that could be left out.
            whole = peer.endswith(("-jobs", "-array"))
            told = "with start-up" if whole else "after start-up"
            quantity = "all" if whole else "tasks"
            made.append(
                Row(
                    what=f"{what}, {ours[-1]}, {told}; peer: {peer}",
                    unit="s",
                    ours=of(ours[-1], quantity),
                    peer=of(peer, quantity),
                    target=Target(1.0, of_peer=True),
                )
            )
        return made

    title = f"{what} on {workers:,} workers of {system}"
    return Area(f"cluster/{part}", title, cases, rows, part=part)
