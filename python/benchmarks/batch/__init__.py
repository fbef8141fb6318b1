"""Area `cluster`: workers that a batch system starts, beside its own jobs and beside other engines.

Each run starts a batch system of its own on this machine, with a slot for each
worker and nobody else in its queue; that is not counted. A run of one case measures what can share
a batch system in random order, and the cases of a round are mixed.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.batch import jobs, numbers, start, tasks
from benchmarks.extent import Extent
from benchmarks.figures import Area

PARTS = {
    "start-workers": start.area,
    "slurm-tasks": tasks.on_slurm,
    "gridengine-tasks": tasks.on_grid_engine,
    "jobs": jobs.area,
    "numbers": numbers.area,
}


def areas(extent: Extent) -> Iterator[Area]:
    """One for each figure."""
    for make in PARTS.values():
        yield make(extent)
