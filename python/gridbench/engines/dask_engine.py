"""Dask: dask.distributed with a scheduler in this process and one-threaded worker processes.

Used as its manual recommends on one machine: a `LocalCluster` of processes, `Client.submit` with
`pure=False`, which runs repeated calls too, `Client.gather`, and `Client.scatter` straight to
workers: with `broadcast=True` for shared data, and for arguments of 10 MB or more, for which Dask
would otherwise warn of a large graph.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any, ClassVar

import dask.config
from distributed import Client, LocalCluster
from toolz import partition_all

from gridbench.engines.base import Description
from gridbench.engines.functions import Chunk, FunctionEngine, NamespaceNode, fixed, one_node
from gridbench.process.children import PYTHON, descendants_of, end

_LARGE = 10_000_000  # bytes: Dask's own threshold for its warning of a large graph
_PATIENCE = 20.0  # seconds for the workers to end; Dask itself kills a busy one after four
SETTINGS = {
    # Seconds for a worker to start or connect: many start at once on few cores.
    "distributed.comm.timeouts.connect": "180s",
    "distributed.comm.timeouts.tcp": "180s",
    # A task fails with its worker; it is not retried.
    "distributed.scheduler.allowed-failures": 0,
    # As the manual says of `broadcast`: every 2 s it would drop all copies of data but one, and a
    # broadcast that takes longer makes them again without end.
    "distributed.scheduler.active-memory-manager.start": False,
}


class DaskEngine(FunctionEngine):
    """dask.distributed's LocalCluster with processes."""

    name: ClassVar[str] = "dask"
    takes_namespaces: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._node: NamespaceNode | None = None
        self._started: list[subprocess.Popen[bytes]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._cluster: Any = None
        self._client: Any = None

    def describe(self) -> Description:
        """Settings of the cluster; others are Dask's defaults."""
        return Description(
            name=self.name,
            version=version("distributed"),
            configuration={
                "n_workers": self._workers,
                "threads_per_worker": 1,
                "processes": True,
                "memory_limit": None,
                "dashboard_address": None,
                "pure": False,
                "arguments_scattered_from_bytes": _LARGE,
                "shared_data": "scatter(broadcast=True, direct=True)",
                **SETTINGS,
            },
        )

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        """`dask worker` runs there, and connects to the scheduler in this process."""
        self._node = one_node(self.name, namespaces)

    def start(self, workers: int) -> None:
        """Create the cluster, which waits for its worker processes."""
        self._workers = workers
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-dask-")
        dask.config.set({**SETTINGS, "temporary-directory": self._folder.name})
        self._cluster = LocalCluster(
            n_workers=0 if self._node else workers,
            host=self._node.client if self._node else None,
            threads_per_worker=1,
            processes=True,
            memory_limit=None,  # or a worker would stop taking tasks at its share of the memory
            dashboard_address=None,
        )
        self._client = Client(self._cluster, set_as_default=False)
        if self._node is not None:
            self._start_workers(self._node, self._folder.name)

    def _start_workers(self, node: NamespaceNode, folder: str) -> None:
        program = [*node.inside, *PYTHON, "-m", "distributed.cli.dask_worker"]
        options = ["--nworkers", str(self._workers), "--nthreads", "1", "--memory-limit", "0"]
        options += ["--host", node.address, "--no-dashboard", "--local-directory", folder]
        settings = {
            f"DASK_{name.upper().replace('.', '__').replace('-', '_')}": str(value)
            for name, value in SETTINGS.items()
        }
        self._started.append(
            subprocess.Popen(
                [*program, self._cluster.scheduler_address, *options],
                env={**os.environ, **settings},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        )  # fmt: skip

    def wait_ready(self) -> None:
        """Wait until all workers run a task."""
        self._running().wait_for_workers(self._workers)
        super().wait_ready()

    def arrived(self) -> int | None:
        """From the scheduler."""
        return len(self._running().scheduler_info(n_workers=-1)["workers"])

    def call_on_each(self, function: Callable[..., Any], /, *args: Any) -> list[Any]:
        """Name each worker: the scheduler would queue two calls on one."""
        client = self._running()
        workers = client.scheduler_info(n_workers=-1)["workers"]
        return [client.submit(function, *args, workers=[one], pure=False) for one in workers]

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The client's `submit`."""
        client = self._running()
        sent = (
            client.scatter(argument, direct=True, hash=False) if _is_large(argument) else argument
            for argument in args
        )
        return client.submit(function, *sent, pure=False)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The client's `gather`."""
        return self._running().gather(list(futures))  # type: ignore[no-any-return]

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], chunk: Chunk
    ) -> Iterable[Any]:
        """Tasks of `chunk` items each, as Dask's best practices advise for short calls.

        The `batch_size` of the client's own `map` only divides the messages to the scheduler.
        """
        client = self._running()
        batches = list(partition_all(fixed(chunk), items))
        results = client.gather(client.map(_each, [function] * len(batches), batches, pure=False))
        return (result for batch in results for result in batch)

    def put(self, value: Any) -> Any:
        """A future for data that all workers have."""
        return self._running().scatter(value, broadcast=True, direct=True, hash=False)

    def close(self) -> None:
        """End the workers, and abandon running tasks."""
        client, self._client = self._client, None
        cluster, self._cluster = self._cluster, None
        folder, self._folder = self._folder, None
        if client is not None:
            with suppress(Exception):  # the cluster may have failed
                client.close(timeout=2)
        if cluster is not None:
            processes = self._processes_of(cluster)
            with suppress(TimeoutError):
                cluster.close(timeout=_PATIENCE)
            end(processes, patience=0.0)
        for program in self._started:
            descend = descendants_of(program.pid)
            program.terminate()
            end({program.pid, *descend}, patience=_PATIENCE)
            program.wait()
        self._started.clear()
        if folder is not None:
            folder.cleanup()

    def _processes_of(self, cluster: Any) -> set[int]:
        """Processes whose end this process has to await when it closes the cluster."""
        return {nanny.pid for nanny in cluster.workers.values() if nanny.pid}

    def _running(self) -> Any:
        if self._client is None:
            raise RuntimeError("Dask is not running")
        return self._client


def _is_large(argument: Any) -> bool:
    return getattr(argument, "nbytes", 0) >= _LARGE


def _each(function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
    """Run one batch in a worker."""
    return [function(item) for item in items]
