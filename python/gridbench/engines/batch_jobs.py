"""Tasks as batch jobs, with data in files, as without a grid; and batch systems for engines.

gridbench starts a batch system on this machine with a slot for each worker and an empty queue. Each
task is a job that starts Python, reads its arguments from a file and writes its result to one. The
client polls for results fifty times a second, as the original benchmark did on Condor and Grid
Engine.
"""

from __future__ import annotations

import abc
import contextlib
import pickle
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any, ClassVar

import gridbench
from gridbench.engines.base import Cannot, Description, Engine
from gridbench.engines.environments import ONE_THREAD
from gridbench.engines.functions import FunctionEngine, one_line
from gridbench.engines.job_files import read_result, store_argument
from gridbench.process.children import PYTHON
from gridbench_testbed.batch import BatchSystem
from gridbench_testbed.batch.gridengine import GridEngine
from gridbench_testbed.batch.htcondor import HTCondor
from gridbench_testbed.batch.slurm import Slurm

_LOOK_EVERY = 0.02  # seconds between polls for results
_ASK_EVERY = 1.0  # seconds between polls for jobs that ended without a result
_PATIENCE = 30.0  # seconds that the batch system may be silent
_SMALL = "a batch job for each call is made for tasks of seconds: its latency means nothing"


class BatchJobFuture(Future[Any]):
    """A submitted task."""

    def __init__(self) -> None:
        super().__init__()
        #: When it was submitted, s of CLOCK_MONOTONIC.
        self.sent = time.monotonic()
        #: Its name in the batch system, once known.
        self.name = ""


class OnBatchSystem(Engine):
    """An engine on a batch system that gridbench starts on this machine, before t = 0."""

    system: ClassVar[type[BatchSystem]]

    def __init__(self) -> None:
        super().__init__()
        if why := self.system.why_not():
            raise Cannot(why)
        self._rig: BatchSystem | None = None
        self._version = ""
        """Of the batch system, once that has started."""

    def prepare(self, workers: int) -> None:
        """Start the batch system."""
        if self._rig is None:
            self._rig = self.system.of(*self._nodes(workers))
            self._version = self._rig.version
            self._set_up(self._rig)

    def close(self) -> None:
        """End the engine, and then the batch system."""
        rig, self._rig = self._rig, None
        try:
            super().close()  # type: ignore[safe-super] # of the engine
        finally:
            if rig is not None:
                rig.close()

    def _nodes(self, workers: int) -> tuple[int, int]:
        """Nodes, and processors of each, for so many workers."""
        return 1, workers

    def _set_up(self, rig: BatchSystem) -> None:
        """Use the batch system, which has just started."""


class BatchJobsEngine(OnBatchSystem, FunctionEngine):
    """One batch job for each task, on a batch system of this machine."""

    cannot: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("null_call", "argument", "echo", "metg", "solve", "burst", "tasks"), _SMALL
    )

    def __init__(self) -> None:
        super().__init__()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._number = 0
        #: By number, which its files are named after.
        self._open: dict[int, BatchJobFuture] = {}
        #: Numbers, by the batch system's names of their jobs.
        self._named: dict[str, int] = {}
        self._closed = threading.Event()

    @abc.abstractmethod
    def _submit(self, rig: BatchSystem, count: int, command: list[str]) -> list[str]:
        """Submit `count` jobs; their names, as in `BatchSystem.jobs`."""

    def describe(self) -> Description:
        """Its workers are slots of the batch system."""
        return Description(
            name=self.name,
            version=self._version,
            configuration={
                "batch_system": "started by gridbench on this machine",
                "slots": self._workers,
                "jobs_per_task": 1,
                "arguments_and_results": "files",
                "client_looks_every_seconds": _LOOK_EVERY,
            },
        )

    def _set_up(self, rig: BatchSystem) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-jobs-")
        rig.variables |= ONE_THREAD
        rig.variables["PYTHONPATH"] = str(Path(gridbench.__file__).parents[1])

    def start(self, workers: int) -> None:
        """Start to poll for results."""
        self.prepare(workers)
        self._workers = workers
        threading.Thread(target=self._watch, daemon=True).start()

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Write a file and submit a job."""
        number, job = self._written(function, args)
        self._ask(number, 1)
        return job

    def put(self, value: Any) -> Any:
        """Write the value to a file, which stands for it."""
        return store_argument(value, self._place / f"shared-{time.monotonic_ns()}")

    def queued(self, future: Any) -> float:
        """When the job was submitted."""
        return float(future.sent)

    def close(self) -> None:
        """End all jobs, and the batch system."""
        self._closed.set()
        rig, self._rig = self._rig, None
        folder, self._folder = self._folder, None
        if rig is not None:
            rig.close()
        self._fail("the engine was closed")
        if folder is not None:
            folder.cleanup()

    @property
    def _place(self) -> Path:
        if self._folder is None:
            raise RuntimeError("the batch system is not running")
        return Path(self._folder.name)

    def _written(
        self, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> tuple[int, BatchJobFuture]:
        place, job = self._place, BatchJobFuture()
        with self._lock:
            number = self._number
            self._number += 1
            self._open[number] = job
        (place / f"{number}.in").write_bytes(pickle.dumps((function, args), protocol=5))
        return number, job

    def _ask(self, first: int, count: int) -> None:
        """Submit jobs whose files exist. Raises the error of the batch system."""
        rig, place = self._rig, self._place
        if rig is None:
            raise RuntimeError("the batch system is not running")
        command = [*PYTHON, "-m", "gridbench.engines.job_files", str(place), str(first)]
        try:
            names = self._submit(rig, count, command)
        except Exception:
            with self._lock:
                for number in range(first, first + count):
                    self._open.pop(number, None)
            raise
        with self._lock:
            for number, name in zip(range(first, first + count), names, strict=True):
                # A job that has already ended needs no name.
                if number in self._open:
                    self._open[number].name = name
                    self._named[name] = number

    def _watch(self) -> None:
        """Poll for results, and fail jobs that ended without one; runs in a thread."""
        requested = answered = time.monotonic()
        gone: set[str] = set()
        while not self._closed.wait(_LOOK_EVERY):
            try:
                for file in self._place.glob("*.out"):
                    self._take(file)
                if time.monotonic() - requested < _ASK_EVERY:
                    continue
                requested = time.monotonic()
                if self._named and self._rig is not None:
                    gone = self._fail_lost(gone, {line.split()[0] for line in self._rig.jobs()})
                answered = time.monotonic()
            except Exception as error:
                if time.monotonic() - answered > _PATIENCE and not self._closed.is_set():
                    self._fail(one_line(error))

    def _take(self, file: Path) -> None:
        number = int(file.stem)
        error, value = read_result(file)
        for suffix in (".out", ".in"):
            file.with_suffix(suffix).unlink(missing_ok=True)
        with self._lock:
            job = self._open.pop(number, None)
            if job is not None:
                self._named.pop(job.name, None)
        if job is not None:
            _settle(job, value, error)

    def _fail_lost(self, before: set[str], alive: set[str]) -> set[str]:
        """Fail jobs that two polls in a row did not list, and that have no result."""
        with self._lock:
            gone = set(self._named) - alive
            lost = {name: self._open.pop(self._named.pop(name), None) for name in gone & before}
        for name, job in lost.items():
            if job is not None:
                _settle(job, None, RuntimeError(f"job {name} ended without a result"))
        return gone - before

    def _fail(self, why: str) -> None:
        """Fail all open jobs."""
        with self._lock:
            jobs = list(self._open.values())
            self._open.clear()
            self._named.clear()
        for job in jobs:
            _settle(job, None, RuntimeError(why))


def _settle(job: BatchJobFuture, value: Any, error: BaseException | None) -> None:
    with contextlib.suppress(InvalidStateError):
        if error is None:
            job.set_result(value)
        else:
            job.set_exception(error)


_TOGETHER = 0.1  # seconds without a further call before an array is submitted
_LARGEST = 1000  # tasks of an array, at most


class SlurmJobsEngine(BatchJobsEngine):
    """An emulated Slurm, a job for each task."""

    name: ClassVar[str] = "emulated-slurm-jobs"
    system: ClassVar[type[BatchSystem]] = Slurm

    def _submit(self, rig: BatchSystem, count: int, command: list[str]) -> list[str]:
        array = [f"--array=0-{count - 1}"] if count > 1 else []
        wrapped = f"--wrap=exec {shlex.join(command)}"
        said = rig.run("sbatch", "--parsable", "--output=/dev/null", *array, wrapped)
        job = said.strip().partition(";")[0]
        return [f"{job}_{task}" for task in range(count)] if count > 1 else [job]


class SlurmArrayEngine(SlurmJobsEngine):
    """An emulated Slurm, an array of jobs for tasks submitted together."""

    name: ClassVar[str] = "emulated-slurm-array"

    def __init__(self) -> None:
        super().__init__()
        #: Tasks to submit: number of the first, count, and time of the last.
        self._first = self._count = 0
        self._last = 0.0
        self._changed = threading.Condition()

    def start(self, workers: int) -> None:
        """Start to poll for results, and to collect tasks for arrays."""
        super().start(workers)
        threading.Thread(target=self._collect, daemon=True).start()

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Write a file; tasks within a tenth of a second share an array."""
        with self._changed:
            number, job = self._written(function, args)
            if not self._count:
                self._first = number
            self._count += 1
            self._last = time.monotonic()
            self._changed.notify()
        return job

    def _collect(self) -> None:
        while not self._closed.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._count, timeout=0.5)
                while self._count and self._count < _LARGEST:
                    left = self._last + _TOGETHER - time.monotonic()
                    if left <= 0:
                        break
                    self._changed.wait(left)
                first, count, self._count = self._first, self._count, 0
            if count and not self._closed.is_set():
                try:
                    self._ask(first, count)
                except Exception as error:
                    self._fail(one_line(error))


class GridEngineJobsEngine(BatchJobsEngine):
    """An emulated Grid Engine, a job for each task."""

    name: ClassVar[str] = "emulated-gridengine-jobs"
    system: ClassVar[type[BatchSystem]] = GridEngine

    def _submit(self, rig: BatchSystem, count: int, command: list[str]) -> list[str]:
        assert count == 1, "it makes no arrays"
        quiet = ("-terse", "-b", "y", "-V", "-o", "/dev/null", "-j", "y", "-shell", "n")
        return [rig.run("qsub", *quiet, *command).strip()]


class HTCondorJobsEngine(BatchJobsEngine):
    """An emulated HTCondor, a job for each task."""

    name: ClassVar[str] = "emulated-htcondor-jobs"
    system: ClassVar[type[BatchSystem]] = HTCondor

    def _submit(self, rig: BatchSystem, count: int, command: list[str]) -> list[str]:
        assert count == 1, "it makes no clusters of several jobs"
        program, *arguments = command
        said = rig.run(
            "condor_submit", "-terse", "universe=vanilla", f"executable={program}",
            f"arguments={_quoted(arguments)}", "getenv=true", "should_transfer_files=no",
            "-queue", "1",
        )  # fmt: skip
        return [said.split()[0]]


def _quoted(arguments: Sequence[str]) -> str:
    """Quoted for HTCondor: quotes doubled, each argument in single quotes."""
    words = " ".join("'" + argument.replace("'", "''") + "'" for argument in arguments)
    return '"' + words.replace('"', '""') + '"'
