"""The client of an engine that a batch system starts, in the Python of the engine.

    python -m benchmarks.clusters.on_batch JOB

JOB is JSON. The values are printed as JSON, the last line of the output: seconds from asking for
the workers until each has done a task (`start`), for the tasks after that (`tasks`), and both. When
it is told to end by SIGTERM, it prints as `came` how far it is, and takes down what it has made.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from gridbench.engines.batch_jobs import BatchJobsEngine
from gridbench.engines.functions import FunctionEngine
from gridbench.workload.calls import stand


class Measurement:
    """One engine, from nothing to the end of its tasks."""

    def __init__(self, engine: FunctionEngine, job: dict[str, Any]) -> None:
        self._engine = engine
        self._job = job
        self._doing = "the batch system was being started"
        self._calls: list[Any] = []
        """What `_doing` waits for, if it waits for calls."""

    def values(self) -> dict[str, float]:
        """All of them. What a site has before, such as a batch system, is not counted."""
        engine, workers, tasks = self._engine, self._job["workers"], self._job["tasks"]
        engine.patience = 300.0
        engine.modules = (*engine.modules, stand.__module__)
        engine.prepare(workers)
        begin = time.monotonic()
        self._doing = f"not all {workers} workers had met"
        engine.start(workers)
        if not isinstance(engine, BatchJobsEngine):  # which has no workers to wait for
            engine.wait_ready()
            self._all_of("first tasks", workers, 0.0)
        ready = time.monotonic()
        self._all_of("tasks", tasks, self._job["seconds"])
        end = time.monotonic()
        return {"start": ready - begin, "tasks": end - ready, "all": end - begin}

    def _all_of(self, what: str, count: int, seconds: float) -> None:
        self._calls = []
        self._doing = f"of {count} {what}"
        for _ in range(count):
            self._calls.append(self._engine.call(stand, seconds))
        self._engine.gather(self._calls)

    def came(self) -> str:
        """How far it is, and what there is for the processors to do."""
        told = self._doing
        if self._calls:
            done = sum(call.done() for call in self._calls)
            told += f" {len(self._calls)} had been submitted and {done} done"
        elif (arrived := self._engine.arrived()) is not None:
            told += f": {arrived} had come"
        return f"{told}; {_wanted()}"


def _wanted() -> str:
    """How many processes want a processor now."""
    status = dict(line.split()[:2] for line in Path("/proc/stat").read_text("ascii").splitlines())
    return f"{status['procs_running']} threads wanted this machine's {os.cpu_count()} processors"


def _end_once(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main(text: str) -> None:
    """Bring the engine up, measure, and end it."""
    job = json.loads(text)
    module, _, name = job["place"].partition(":")
    engine = getattr(importlib.import_module(module), name)()
    measurement = Measurement(engine, job)
    signal.signal(signal.SIGTERM, _end_once)
    try:
        values = measurement.values()
    except SystemExit:
        print(json.dumps({"came": measurement.came()}), flush=True)
        raise
    finally:
        engine.close()
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
