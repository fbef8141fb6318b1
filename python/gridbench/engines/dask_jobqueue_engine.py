"""dask-jobqueue: Dask whose workers are batch jobs, on a Slurm of this machine.

Used as its manual shows: a `SLURMCluster` whose jobs have one worker of one core each, then
`scale`. gridbench starts a Slurm with a processor for each worker and an empty queue. Tasks go from
the scheduler, in this process, to the workers without Slurm.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, ClassVar

import dask.config
from dask_jobqueue import SLURMCluster
from distributed import Client

from gridbench.engines.base import Description
from gridbench.engines.batch_jobs import OnBatchSystem
from gridbench.engines.dask_engine import SETTINGS, DaskEngine
from gridbench_testbed.batch import BatchSystem
from gridbench_testbed.batch.slurm import Slurm

_PATIENCE = {
    name: value for name, value in SETTINGS.items() if name.startswith("distributed.comm.")
}
"""Settings that workers need as well, as environment variables."""
_JOB = {
    "cores": 1,
    "processes": 1,
    # Required by dask-jobqueue; Slurm here does not count it, and workers have no limit.
    "memory": "1 GB",
    "job_directives_skip": ["--mem"],
    "worker_extra_args": ["--memory-limit", "0", "--no-dashboard"],
    "walltime": "24:00:00",
    # Seconds until a worker without a scheduler ends: many start at once on few cores.
    "death_timeout": 180,
    "interface": "lo",
}


class DaskJobqueueEngine(OnBatchSystem, DaskEngine):
    """dask-jobqueue's SLURMCluster on an emulated Slurm, a job for each worker."""

    name: ClassVar[str] = "emulated-slurm-dask"
    cannot: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("null_call", "argument", "echo", "metg", "solve", "burst", "tasks"),
        "calls are those of the engine dask: Slurm only starts the workers",
    )

    system: ClassVar[type[BatchSystem]] = Slurm

    def describe(self) -> Description:
        """Settings of the cluster; others are dask-jobqueue's defaults."""
        whole = super().describe()
        stored = {
            name: value
            for name, value in whole.configuration.items()
            if name not in ("n_workers", "threads_per_worker", "processes", "memory_limit")
        }
        return Description(
            name=self.name,
            version=f"{version('dask-jobqueue')}, distributed {whole.version}",
            configuration={
                "batch_system": "Slurm, started by gridbench on this machine, before t = 0",
                "jobs": self._workers,
                **_JOB,
                **stored,
            },
        )

    def _set_up(self, rig: BatchSystem) -> None:
        # dask-jobqueue runs Slurm's commands in this process's environment.
        rig.use()

    def start(self, workers: int) -> None:
        """Request the jobs without waiting for them."""
        self.prepare(workers)
        self._workers = workers
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-jobqueue-")
        dask.config.set({**SETTINGS, "temporary-directory": self._folder.name})
        self._cluster = SLURMCluster(
            **_JOB,
            local_directory=self._folder.name,
            log_directory=self._folder.name,
            job_script_prologue=[f"export {_variable(n)}={v}" for n, v in _PATIENCE.items()],
            scheduler_options={"dashboard": False},
        )
        self._cluster.scale(jobs=workers)
        self._client = Client(self._cluster, set_as_default=False)

    def put(self, value: Any) -> Any:
        """A future for data that all workers have, once all have come."""
        self._running().wait_for_workers(self._workers)
        return super().put(value)

    def _processes_of(self, cluster: Any) -> set[int]:
        """None: Slurm ends its jobs."""
        del cluster
        return set()


def _variable(setting: str) -> str:
    """The environment variable of a setting of Dask."""
    return "DASK_" + setting.upper().replace(".", "__").replace("-", "_")
