"""dask-jobqueue: Dask whose workers are batch jobs, on a Slurm of this machine.

Used as its manual shows: a `SLURMCluster` whose jobs have one worker of one core each, `scale`, and
then Dask as ever. gridbench starts a Slurm of its own with a processor for each
worker and nobody else in its queue. Tasks go from the scheduler, in this process, to the workers
without Slurm.
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
"""Of the settings, those that workers need too; variables of Dask tell them."""
_JOB = {
    "cores": 1,
    "processes": 1,
    # Has to be said. Slurm of this machine does not count it, and workers are told of no limit.
    "memory": "1 GB",
    "job_directives_skip": ["--mem"],
    "worker_extra_args": ["--memory-limit", "0", "--no-dashboard"],
    "walltime": "24:00:00",
    # A worker that finds no scheduler for so many seconds ends: many start at once on few cores.
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
        """What the cluster was made with; the rest is dask-jobqueue's default."""
        whole = super().describe()
        kept = {
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
                **kept,
            },
        )

    def _set_up(self, rig: BatchSystem) -> None:
        # dask-jobqueue asks it as any program of this process would.
        rig.use()

    def start(self, workers: int) -> None:
        """Ask for the jobs; does not wait for them."""
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
        """A future whose data all workers have: it is sent to those that are there."""
        self._running().wait_for_workers(self._workers)
        return super().put(value)

    def _processes_of(self, cluster: Any) -> set[int]:
        """Slurm sees the end of its jobs."""
        del cluster
        return set()


def _variable(setting: str) -> str:
    """How a setting of Dask is called in the environment."""
    return "DASK_" + setting.upper().replace(".", "__").replace("-", "_")
