"""What is measured on each cluster, through the verbs of its driver."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.clusters.task import Job
from gridbench.engines.functions import FunctionEngine
from gridbench.process.barrier import Meeting
from gridbench.workload.calls import PAGE, null, read, read_and_meet, stand

_PATIENCE = 300.0  # seconds for workers to meet
_REPEATED = 3


def data_of(job: Job) -> Any:
    """Bytes that no compressor makes shorter."""
    return np.random.default_rng(1).integers(0, 256, job.size, np.uint8)


def measure(engine: FunctionEngine, job: Job) -> dict[str, float]:
    """All values, of workers that are there; seconds."""
    data = data_of(job)
    values = {} if job.only_shared else calls(engine, job, data)
    return values | {"to all": to_all(engine, job.all_workers, data)}


def calls(engine: FunctionEngine, job: Job, data: Any) -> dict[str, float]:
    """Those of single calls and of many tasks."""
    expected = int(data[::PAGE].sum(dtype="u8"))

    def large() -> None:
        if engine.result(engine.call(read, data)) != expected:
            raise RuntimeError("a call got other data than were sent")

    def tasks() -> None:
        engine.gather([engine.call(stand, job.seconds) for _ in range(job.tasks)])

    return {
        "null": _median(lambda: engine.result(engine.call(null)), job.calls),
        "argument": _median(large, _REPEATED),
        "tasks": _median(tasks, 1, warm=0),
    }


def _median(call: Callable[[], object], count: int, warm: int | None = None) -> float:
    for _ in range(count // 10 + 1 if warm is None else warm):
        call()
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def to_all(engine: FunctionEngine, workers: int, data: Any) -> float:
    """Seconds until all workers, so many, have read the data, which the engine is given once."""
    with Meeting(_PATIENCE) as meeting:
        begin = time.monotonic()
        shared = engine.put(data)
        under_way = engine.call_on_each(read_and_meet, shared, meeting.place)
        arrivals = meeting.gather(workers)
        meeting.end()
        totals = set(engine.gather(under_way))
    if totals != {int(data[::PAGE].sum(dtype="u8"))}:
        raise RuntimeError("a worker got other data than were shared")
    return max(arrivals) - begin
