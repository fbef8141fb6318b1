"""The client of an engine that a batch system starts, in the Python of the engine.

    python -m gridbench.bench.clusters.on_batch JOB

JOB is JSON. The values are printed as JSON, the last line of the output: seconds from asking for
the workers until each has done a task (`start`), for the tasks after that (`tasks`), and both.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

from gridbench.engines.batch_jobs import BatchJobsEngine
from gridbench.engines.functions import FunctionEngine
from gridbench.micro.work import stand


def measure(engine: FunctionEngine, job: dict[str, Any]) -> dict[str, float]:
    """All values. What a site has before, such as a batch system, is not counted."""
    workers = job["workers"]
    engine.patience = 300.0
    engine.modules = (*engine.modules, stand.__module__)
    engine.prepare(workers)
    begin = time.monotonic()
    engine.start(workers)
    if not isinstance(engine, BatchJobsEngine):  # which has no workers to wait for
        engine.wait_ready()
        engine.gather([engine.call(stand, 0.0) for _ in range(workers)])
    ready = time.monotonic()
    engine.gather([engine.call(stand, job["seconds"]) for _ in range(job["tasks"])])
    end = time.monotonic()
    return {"start": ready - begin, "tasks": end - ready, "all": end - begin}


def main(text: str) -> None:
    """Bring the engine up, measure, and end it."""
    job = json.loads(text)
    module, _, name = job["place"].partition(":")
    engine = getattr(importlib.import_module(module), name)()
    try:
        values = measure(engine, job)
    finally:
        engine.close()
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
