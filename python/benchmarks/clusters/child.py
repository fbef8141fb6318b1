"""The client of a cluster, in the Python of its engine.

    python -m benchmarks.clusters.child ENGINE FILE

FILE has the job; the values are printed as JSON, the last line of the output.
"""

from __future__ import annotations

import importlib
import json
import sys

from benchmarks.clusters.measures import measure
from benchmarks.clusters.task import read

MODULES = {
    "gridrpc-python": "benchmarks.clusters.gridrpc_cluster",
    "ray": "benchmarks.clusters.ray_cluster",
    "dask": "benchmarks.clusters.dask_cluster",
}


def main(name: str, file: str) -> None:
    """Bring the cluster up, measure, and end it."""
    job = read(file)
    engine = importlib.import_module(MODULES[name]).Cluster(job)
    try:
        engine.start(job.all_workers)
        engine.wait_ready()
        values = measure(engine, job)
    finally:
        engine.close()
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
