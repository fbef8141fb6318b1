"""Dask on several hosts: the scheduler beside the client, `dask worker` on each host."""

from __future__ import annotations

import tempfile
from contextlib import suppress

import dask.config
from distributed import Client

from benchmarks.clusters.client import ClusterJob, ClusterPrograms
from gridbench.engines.dask_engine import SETTINGS, DaskEngine
from gridbench.process.children import PYTHON


class DaskCluster(DaskEngine):
    """The driver of one machine, on a cluster that it makes."""

    def __init__(self, job: ClusterJob) -> None:
        super().__init__()
        self._job = job
        self._programs = ClusterPrograms()

    def start(self, workers: int) -> None:
        """The scheduler tells by a file where it is."""
        self._workers = workers
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-dask-")
        dask.config.set({**SETTINGS, "temporary-directory": self._folder.name})
        place = ["--scheduler-file", f"{self._folder.name}/scheduler.json"]
        program = [*PYTHON, "-m", "distributed.cli.dask_scheduler"]
        self._run([*program, *place, "--host", self._job.client, "--port", "0", "--no-dashboard"])
        for node in self._job.nodes:
            options = ["--nworkers", str(self._job.workers), "--nthreads", "1"]
            options += ["--host", node.address, "--no-dashboard", "--memory-limit", "0"]
            options += ["--local-directory", f"{node.home}/dask"]
            program = [*node.inside, *PYTHON, "-m", "distributed.cli.dask_worker"]
            self._run([*program, *place, *options], home=node.home)
        self._client = Client(scheduler_file=place[1], set_as_default=False)

    def close(self) -> None:
        """Disconnect, and end the programs."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # the cluster may have failed
                client.close(timeout=2)
        self._programs.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _run(self, command: list[str], home: str = "") -> None:
        settings = {
            f"DASK_{name.upper().replace('.', '__').replace('-', '_')}": str(value)
            for name, value in SETTINGS.items()
        }
        self._programs.run(command, settings, home)
