"""gridrpc on workers that a batch system starts: one request, then calls go to workers directly.

As for the engines whose tasks are jobs (batch_jobs.py), gridbench starts a batch system on this
machine, with a slot for each worker. It runs before t = 0, like that of a cluster. Submitting,
waiting for the scheduler and starting agents and workers all count.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import gridbench
from gridbench.engines.base import Description
from gridbench.engines.batch_jobs import OnBatchSystem
from gridbench.engines.gridrpc_engines import GridrpcEngine, NativeEngine, PythonEngine
from gridbench_testbed.batch import BatchSystem
from gridbench_testbed.batch.gridengine import GridEngine
from gridbench_testbed.batch.htcondor import HTCondor
from gridbench_testbed.batch.slurm import Slurm

_MOST_NODES = 4
_SAME_CALLS = "once its workers run, calls are those to any host"
NAME = "cluster"
"""The name of the server."""


def divided(workers: int, most_nodes: int) -> tuple[int, int]:
    """The largest number of nodes, up to `most_nodes`, that divides `workers`; workers of each."""
    nodes = next(n for n in range(min(workers, most_nodes), 0, -1) if workers % n == 0)
    return nodes, workers // nodes


class _OnCluster(OnBatchSystem, GridrpcEngine):
    """gridrpc with workers on an emulated batch system."""

    takes_namespaces: ClassVar[bool] = False
    takes_servers: ClassVar[bool] = False
    cannot: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("null_call", "argument", "echo", "metg", "solve", "burst", "tasks"), _SAME_CALLS
    )

    @property
    def elsewhere(self) -> bool:
        """Whether workers are on hosts: always."""
        return True

    @abc.abstractmethod
    def _server(self, nodes: int, workers: int) -> tuple[str, dict[str, Any]]:
        """The launcher, and further keys of the server."""

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """Once on each node."""
        del warm
        return divided(workers, _MOST_NODES)[0]

    def describe(self) -> Description:
        """The grid's description, with the request to the batch system."""
        reported = super().describe()
        nodes, each = divided(self._workers, _MOST_NODES) if self._workers else (0, 0)
        site = {
            "batch_system": "started by gridbench on this machine, before t = 0",
            "batch_version": self._version,
            "nodes": nodes,
            "workers_per_node": each,
            "requests": 1,
        }
        return Description(reported.name, reported.version, {**reported.configuration, **site})

    def start(self, workers: int) -> None:
        """Request the workers."""
        self.prepare(workers)
        super().start(workers)

    def _nodes(self, workers: int) -> tuple[int, int]:
        return divided(workers, _MOST_NODES)

    def _set_up(self, rig: BatchSystem) -> None:
        rig.use()

    def _place(self, workers: int) -> dict[str, Any]:
        nodes, each = divided(workers, _MOST_NODES)
        launcher, more = self._server(nodes, each)
        keys = {
            "nodes": nodes,
            "workers": each,
            "start_timeout": round(self.patience),
            "output": "plain",
            # For workers to import this gridbench.
            "environment.PYTHONPATH": str(Path(gridbench.__file__).parents[1]),
            **more,
        }
        return {"servers": [f"{launcher}://{NAME}?{urlencode(keys, quote_via=quote)}"]}


class _OnSlurm(_OnCluster):
    """Slurm: an array with a task for each node."""

    system: ClassVar[type[BatchSystem]] = Slurm

    def _server(self, nodes: int, workers: int) -> tuple[str, dict[str, Any]]:
        del nodes, workers
        return "slurm", {"request": "array"}


class SlurmEngine(_OnSlurm, PythonEngine):
    """gridrpc's Python workers on an emulated Slurm, by one request."""

    name: ClassVar[str] = "emulated-slurm"


class SlurmNativeEngine(_OnSlurm, NativeEngine):
    """gridrpc's native workers on an emulated Slurm, by one request."""

    name: ClassVar[str] = "emulated-slurm-native"


class _OnGridEngine(_OnCluster):
    """Grid Engine: an array with a task for each node, of as many slots as that has workers."""

    system: ClassVar[type[BatchSystem]] = GridEngine

    def _server(self, nodes: int, workers: int) -> tuple[str, dict[str, Any]]:
        del nodes
        slots = {"parallel_environment": "mp"} if workers > 1 else {}
        return "gridengine", {"request": "array", **slots}


class GridEngineEngine(_OnGridEngine, PythonEngine):
    """gridrpc's Python workers on an emulated Grid Engine, by one request."""

    name: ClassVar[str] = "emulated-gridengine"


class GridEngineNativeEngine(_OnGridEngine, NativeEngine):
    """gridrpc's native workers on an emulated Grid Engine, by one request."""

    name: ClassVar[str] = "emulated-gridengine-native"


class _OnHTCondor(_OnCluster):
    """HTCondor: a cluster of jobs, one for each node."""

    system: ClassVar[type[BatchSystem]] = HTCondor

    def _server(self, nodes: int, workers: int) -> tuple[str, dict[str, Any]]:
        del nodes, workers
        return "htcondor", {}


class HTCondorEngine(_OnHTCondor, PythonEngine):
    """gridrpc's Python workers on an emulated HTCondor, by one request."""

    name: ClassVar[str] = "emulated-htcondor"


class HTCondorNativeEngine(_OnHTCondor, NativeEngine):
    """gridrpc's native workers on an emulated HTCondor, by one request."""

    name: ClassVar[str] = "emulated-htcondor-native"
