"""MPI on several hosts: the client is rank 0, all others are workers.

    mpiexec ... python -m benchmarks.clusters.mpi_world FILE

Data for all goes by MPI's own broadcast; calls go by mpi4py.futures.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

from benchmarks.clusters import measures
from benchmarks.clusters.task import Job, read
from gridbench.engines.functions import FunctionEngine
from gridbench.engines.mpi_engine import MpiEngine
from gridbench.workload.calls import PAGE


class _Pool(MpiEngine):
    """The driver of one machine, with an executor of this world."""

    def __init__(self, executor: Any) -> None:
        super().__init__()
        self._executor = executor

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The executor's `submit`."""
        return self._executor.submit(function, *args)


def _broadcast(world: Any, job: Job) -> float:
    """Seconds until all ranks have read the data; the clock is common to all of them."""
    data = measures.data_of(job) if world.rank == 0 else np.zeros(job.size, np.uint8)
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


def main(file: str) -> None:
    """Measure; rank 0 prints the values."""
    world, job = MPI.COMM_WORLD, read(file)
    shared = _broadcast(world, job)
    values: dict[str, float] = {}
    with MPICommExecutor(world, root=0, use_pkl5=True) as executor:
        if executor is not None:
            engine: FunctionEngine = _Pool(executor)
            if not job.only_shared:
                values = measures.calls(engine, job, measures.data_of(job))
    if world.rank == 0:
        print(json.dumps(values | {"to all": shared}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
