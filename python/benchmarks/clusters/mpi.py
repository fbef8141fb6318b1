"""MPI on several hosts, where rank 0 is the client; and MPI's barrier on one machine.

    mpiexec ... python -m benchmarks.clusters.mpi world FILE
    mpiexec ... python -m benchmarks.clusters.mpi barrier REPEATS

`world` measures the job in FILE: shared data goes by MPI's own broadcast, calls by mpi4py.futures.
`barrier` measures how far apart ranks leave a barrier, on the clock that they share. Rank 0 prints
the values.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

from benchmarks.clusters.client import ClusterJob, calls, data_of, read_job
from gridbench.engines.functions import FunctionEngine
from gridbench.engines.mpi_engine import MpiEngine
from gridbench.workload.calls import PAGE


class _WorldPool(MpiEngine):
    """The driver of one machine, with an executor of this world."""

    def __init__(self, executor: Any) -> None:
        super().__init__()
        self._executor = executor


def _broadcast(world: Any, job: ClusterJob) -> float:
    """Seconds until all ranks have read the data; the clock is common to all of them."""
    data = data_of(job) if world.rank == 0 else np.zeros(job.size, np.uint8)
    world.Barrier()
    begin = time.monotonic()
    world.Bcast(data, root=0)
    total = int(data[::PAGE].sum(dtype="u8"))
    ends = world.gather((time.monotonic(), total), root=0)
    if world.rank != 0:
        return 0.0
    if len({total for _, total in ends}) != 1:
        raise RuntimeError("a rank got other data than were sent")
    return float(max(end for end, _ in ends) - begin)


def measure_world(file: str) -> None:
    """Measure; rank 0 prints the values."""
    world, job = MPI.COMM_WORLD, read_job(file)
    shared = _broadcast(world, job)
    values: dict[str, float] = {}
    with MPICommExecutor(world, root=0, use_pkl5=True) as executor:
        if executor is not None:
            engine: FunctionEngine = _WorldPool(executor)
            if not job.only_shared:
                values = calls(engine, job, data_of(job))
    if world.rank == 0:
        print(json.dumps(values | {"to all": shared}), flush=True)


def measure_barrier(repeats: int) -> None:
    """Median skew in seconds; the first barrier connects all ranks and does not count."""
    world = MPI.COMM_WORLD
    skews = []
    for _ in range(repeats + 1):
        world.Barrier()
        stamps = world.gather(time.monotonic(), root=0)
        if stamps:
            skews.append(max(stamps) - min(stamps))
    if world.rank == 0:
        print(statistics.median(skews[1:]), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "barrier":
        measure_barrier(int(sys.argv[2]))
    else:
        measure_world(sys.argv[2])
