"""Area `cluster`: workers that a batch system starts, beside its own jobs and beside other engines.

Each run starts a batch system of its own on this machine, with a slot for each
worker and nobody else in its queue; that is not counted. A run of one case measures what can share
a batch system in random order, and the cases of a round are mixed.
"""

from __future__ import annotations

from benchmarks.batch import engines, starts

PARTS = {
    "start-workers": starts.start_area,
    "slurm-tasks": engines.on_slurm,
    "gridengine-tasks": engines.on_grid_engine,
    "jobs": engines.jobs_area,
    "numbers": starts.numbers_area,
}
