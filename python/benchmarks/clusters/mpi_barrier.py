"""How far apart ranks of MPI leave a barrier, on one machine, whose clock they share.

    mpiexec ... python -m benchmarks.clusters.mpi_barrier REPEATS

Rank 0 prints the median, in seconds. The first barrier connects all ranks and does not count.
"""

from __future__ import annotations

import statistics
import sys
import time

from mpi4py import MPI


def main(repeats: int) -> None:
    """Measure."""
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
    main(int(sys.argv[1]))
