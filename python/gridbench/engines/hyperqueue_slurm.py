"""HyperQueue in an allocation of Slurm, with function tasks of its Python package.

One batch job has a processor for each worker of the benchmark. It runs HyperQueue's server and a
worker with all cores, as hyperqueue_engine.py does elsewhere. The client finds the server by its
folder, as all clients of HyperQueue do, and sends tasks without Slurm. gridbench starts the Slurm.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hyperqueue import Client

from gridbench.engines.base import Description
from gridbench.engines.batch_jobs import OnBatchSystem
from gridbench.engines.hyperqueue_engine import READY, HyperQueueEngine
from gridbench.process.children import PYTHON, children_of
from gridbench_testbed.batch import BatchSystem
from gridbench_testbed.batch.slurm import Slurm

_LOOK_EVERY = 0.02  # seconds


class HyperQueueSlurmEngine(OnBatchSystem, HyperQueueEngine):
    """HyperQueue's server and worker in one job of an emulated Slurm."""

    name: ClassVar[str] = "emulated-slurm-hyperqueue"
    cannot: ClassVar[Mapping[str, str]] = {
        **HyperQueueEngine.cannot,
        **dict.fromkeys(("burst", "tasks"), "tasks are those of the engine hyperqueue"),
    }

    takes_namespaces: ClassVar[bool] = False
    system: ClassVar[type[BatchSystem]] = Slurm

    def describe(self) -> Description:
        """One worker in a batch job, whose cores are the benchmark's workers."""
        whole = super().describe()
        configuration = {
            **whole.configuration,
            "batch_system": "Slurm, started by gridbench on this machine, before t = 0",
            "cluster": "LocalCluster of the Python package, in one batch job",
        }
        return Description(name=self.name, version=whole.version, configuration=configuration)

    def _make_cluster(self, folder: str, cores: int) -> Any:
        self.prepare(cores)
        assert self._rig is not None
        # Slurm's daemons outlive the cluster.
        self._others = children_of(os.getpid())
        return _Allocation(self._rig, folder, cores, self.patience)


class _Allocation:
    """A batch job with a HyperQueue, with the interface of `LocalCluster`."""

    def __init__(self, rig: BatchSystem, folder: str, cores: int, patience: float) -> None:
        self._rig = rig
        self._ask(folder, cores)
        self._server = self._wait(Path(folder, READY), patience)

    def client(self, **options: Any) -> Any:
        return Client(self._server, **options)

    def stop(self) -> None:
        self._rig.cancel_all()

    def _ask(self, folder: str, cores: int) -> None:
        server = [*PYTHON, "-m", "gridbench.engines.hyperqueue_engine", folder, str(cores)]
        self._rig.run(
            "sbatch", "--ntasks=1", f"--cpus-per-task={cores}", f"--output={folder}/server.log",
            f"--wrap=exec {shlex.join(server)}",
        )  # fmt: skip

    def _wait(self, ready: Path, patience: float) -> str:
        """Wait for the server; its folder."""
        end = time.monotonic() + patience
        while not ready.exists():
            if time.monotonic() > end or not self._rig.jobs():
                log = ready.with_name("server.log")
                said = (
                    log.read_text(errors="replace") if log.exists() else "the job has not started"
                )
                raise RuntimeError(f"HyperQueue does not start in its batch job: {said[-1000:]}")
            time.sleep(_LOOK_EVERY)
        return ready.read_text(encoding="utf-8")
