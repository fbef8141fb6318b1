"""Slurm without a grid: a job for each task, or an array for the tasks that come together."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from gridbench.engines.batch_jobs import BatchJobsEngine
from gridbench.engines.python_tasks import one_line
from gridbench_testbed.batch import BatchSystem, slurm

_TOGETHER = 0.1  # seconds without another call after which an array is submitted
_LARGEST = 1000  # tasks of an array, at most


class SlurmJobsEngine(BatchJobsEngine):
    """An emulated Slurm, a job for each task."""

    name: ClassVar[str] = "emulated-slurm-jobs"
    _why_not = staticmethod(slurm.why_not)

    def _make(self, slots: int) -> tuple[BatchSystem, str]:
        rig = slurm.Slurm(nodes=1, processors=slots)
        return rig, rig.run("sbatch", "--version").split()[-1]

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
        #: Written and not submitted: the first one's number, how many, and when the last one came.
        self._first = self._count = 0
        self._last = 0.0
        self._changed = threading.Condition()

    def start(self, workers: int) -> None:
        """Look for results, and for tasks that go together."""
        super().start(workers)
        threading.Thread(target=self._collect, daemon=True).start()

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Write a file; it goes with those that come within a tenth of a second."""
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
                except Exception as error:  # told to those who wait for them
                    self._fail(one_line(error))
