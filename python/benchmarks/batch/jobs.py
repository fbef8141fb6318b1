"""Tasks as plain jobs of each batch system, beside a grid whose workers are asked for first.

Both begin with nothing but a batch system that waits: start-up is in all values.
"""

from __future__ import annotations

from benchmarks.batch.budget import BUDGET
from benchmarks.batch.engines import AGAIN, cases_of
from benchmarks.extent import Extent
from benchmarks.figures import Area, Row, Target, noise_row
from gridbench.bench.series import Points
from gridbench.engines.registry import installed_engines
from gridbench.formats import as_given

_NUMBERS = {Extent.TRIAL: (2, 2, 0.2), Extent.USUAL: (100, 100, 1.0), Extent.FULL: (100, 100, 1.0)}
"""Slots, tasks, and seconds of each."""
_OURS = "emulated-slurm"
_JOBS = (
    "emulated-slurm-jobs",
    "emulated-slurm-array",
    "emulated-gridengine-jobs",
    "emulated-htcondor-jobs",
)
_PREFIX = "jobs, "
_LIMIT = 100.0  # seconds for a run of one engine: a job for each task is slow to submit


def area(extent: Extent) -> Area:
    """One case for each kind of jobs that this gridbench has a driver for."""
    slots, tasks, seconds = _NUMBERS[extent]
    known = installed_engines()
    peers = [name for name in _JOBS if name in known]
    cases = cases_of(
        (_OURS, _OURS + AGAIN, *peers),
        slots, tasks=tasks, seconds=seconds, limit=_LIMIT, prefix=_PREFIX,
    )  # fmt: skip
    what = f"{tasks:,} tasks of {as_given(seconds)}"

    def rows(samples: Points) -> list[Row]:
        ours = samples.of(_PREFIX + _OURS, "all")
        made = [
            noise_row(f"{what}, ours by itself", ours, samples.of(_PREFIX + _OURS + AGAIN, "all"))
        ]
        made += [
            Row(
                f"{what}, with start-up; peer: {peer}",
                "s",
                ours,
                peer=samples.of(_PREFIX + peer, "all"),
                target=Target(1.0, of_peer=True),
            )
            for peer in peers
        ]
        return made

    title = f"{what} as jobs, on {slots:,} slots; ours: {_OURS}, Python workers"
    return Area("cluster/jobs", title, cases, rows, part="jobs", budget=BUDGET[extent])
