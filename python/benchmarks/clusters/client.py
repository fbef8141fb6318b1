"""The client of an engine on hosts or on a batch system, in the Python of the engine.

    python -m benchmarks.clusters.client hosts ENGINE FILE
    python -m benchmarks.clusters.client batch JOB

FILE has the job of an engine on hosts; JOB, in JSON, that of an engine that a batch system starts.
The values are printed as JSON, the last line of the output. For `batch` these are seconds from
requesting the workers until each has done a task (`start`), for the tasks after that (`tasks`), and
both. On SIGTERM it prints as `came` how far it is, and takes down what it has made.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np

import gridbench
from gridbench.engines.batch_jobs import BatchJobsEngine
from gridbench.engines.functions import FunctionEngine
from gridbench.process.barrier import Meeting
from gridbench.process.children import descendants_of, end
from gridbench.workload.calls import PAGE, null, read, read_and_meet, stand


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A host."""

    name: str
    address: str
    inside: list[str]
    """Prefix of commands that run there."""
    home: str


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A cluster, and what to measure on it."""

    client: str
    """The address of this machine on the network."""
    ssh: list[str]
    """Command that logs in to a host by its name."""
    nodes: list[ClusterNode]
    workers: int
    """On each host."""
    size: int
    """Bytes of a large argument, and of the shared data."""
    calls: int
    tasks: int
    seconds: float
    """Sleep of each task."""
    only_shared: bool = False
    """Measure only the shared data."""

    @property
    def all_workers(self) -> int:
        """Workers of all hosts."""
        return self.workers * len(self.nodes)

    def save(self, file: Path) -> None:
        """Write it for `read_job` in another process."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")


def read_job(file: str) -> ClusterJob:
    """Read what `save` has written."""
    values = json.loads(Path(file).read_text(encoding="utf-8"))
    values["nodes"] = [ClusterNode(**node) for node in values["nodes"]]
    return ClusterJob(**values)


_PATIENCE = 300.0  # seconds for the workers to arrive
_REPEATED = 3


def data_of(job: ClusterJob) -> Any:
    """Bytes that no compressor makes shorter."""
    return np.random.default_rng(1).integers(0, 256, job.size, np.uint8)


def measure_cluster(engine: FunctionEngine, job: ClusterJob) -> dict[str, float]:
    """All values, in seconds, once the workers are ready."""
    data = data_of(job)
    values = {} if job.only_shared else calls(engine, job, data)
    return values | {"to all": to_all(engine, job.all_workers, data)}


def calls(engine: FunctionEngine, job: ClusterJob, data: Any) -> dict[str, float]:
    """Times of single calls and of many tasks."""
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
    """Seconds until all `workers` have read data that the engine gets once."""
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


def gridrpc_cluster(job: ClusterJob) -> FunctionEngine:
    """gridrpc with Python workers on hosts behind ssh, with default settings: encrypted."""
    from gridbench.engines.gridrpc_engines import PythonEngine
    from gridbench.engines.servers import Servers

    values = {
        "command": shlex.join(job.ssh),
        "workers": job.workers,
        "python": sys.executable,
        "environment.PYTHONPATH": str(Path(gridbench.__file__).parents[1]),
    }
    keys = urlencode(values, quote_via=quote)
    engine = PythonEngine()
    engine.use_servers(Servers(None, tuple(f"ssh://{node.name}?{keys}" for node in job.nodes), ()))
    return engine


class ClusterPrograms:
    """Programs of a cluster that run on this machine or inside its nodes."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def run(self, command: Sequence[str], variables: Mapping[str, str], home: str = "") -> None:
        """Start a program; `home`: its home folder, if it is another one."""
        environment = {**os.environ, **variables} | ({"HOME": home} if home else {})
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self.started.append(subprocess.Popen(command, env=environment, **quiet))

    def close(self) -> None:
        """End all programs on this machine; those in a node end with the node."""
        for process in reversed(self.started):
            process.terminate()
        end(descendants_of(os.getpid()), 10.0)


MAKERS = {
    "gridrpc-python": "benchmarks.clusters.client:gridrpc_cluster",
    "ray": "benchmarks.clusters.ray_cluster:RayCluster",
    "dask": "benchmarks.clusters.dask_cluster:DaskCluster",
}


def _imported(place: str) -> Any:
    """What MODULE:NAME names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def on_hosts(name: str, file: str) -> None:
    """Start the cluster, measure, and end it."""
    job = read_job(file)
    engine: FunctionEngine = _imported(MAKERS[name])(job)
    try:
        engine.start(job.all_workers)
        engine.wait_ready()
        values = measure_cluster(engine, job)
    finally:
        engine.close()
    print(json.dumps(values), flush=True)


class Measurement:
    """One engine on a batch system, from nothing to the end of its tasks."""

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
        reported = self._doing
        if self._calls:
            done = sum(call.done() for call in self._calls)
            reported += f" {len(self._calls)} had been submitted and {done} done"
        elif (arrived := self._engine.arrived()) is not None:
            reported += f": {arrived} had come"
        return f"{reported}; {_busy()}"


def _busy() -> str:
    """How many processes want a processor now."""
    status = dict(line.split()[:2] for line in Path("/proc/stat").read_text("ascii").splitlines())
    return f"{status['procs_running']} threads wanted this machine's {os.cpu_count()} processors"


def _end_once(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def on_batch(text: str) -> None:
    """Bring the engine up, measure, and end it."""
    job = json.loads(text)
    engine = _imported(job["place"])()
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
    if sys.argv[1] == "hosts":
        on_hosts(*sys.argv[2:])
    else:
        on_batch(*sys.argv[2:])
