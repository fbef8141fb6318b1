"""IPython Parallel: a controller and its engines on this machine, with a load-balanced view.

Used as its manual recommends: a `Cluster` of n engines, calls and chunked `map` by a load-balanced
view with one task at a time per engine, and a direct view that pushes shared data to all engines,
where calls refer to it by name.
"""

from __future__ import annotations

import itertools
import logging
import os
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any, ClassVar

import ipyparallel

from gridbench.engines.base import Description
from gridbench.engines.functions import Chunk, FunctionEngine, fixed
from gridbench.process.barrier import Meeting, meet
from gridbench.process.children import descendants_of, end

_PATIENCE = 1.0  # seconds for processes that the cluster leaves behind


class IpyparallelEngine(FunctionEngine):
    """ipyparallel's Cluster and its load-balanced view."""

    name: ClassVar[str] = "ipyparallel"

    def __init__(self) -> None:
        super().__init__()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._cluster: Any = None
        self._client: Any = None
        self._view: Any = None
        self._names = itertools.count()
        self._others: set[int] = set()

    def describe(self) -> Description:
        """Settings of the cluster; others are ipyparallel's defaults."""
        return Description(
            name=self.name,
            version=version("ipyparallel"),
            configuration={
                "n": self._workers,
                "engines": "local",
                "view": "load-balanced",
                "tasks_in_flight_per_engine": 1,
                "shared_data": "push to all engines",
            },
        )

    def start(self, workers: int) -> None:
        """Start controller and engines, and wait until they have registered."""
        self._workers = workers
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-ipp-")
        self._others = descendants_of(os.getpid())
        self._cluster = ipyparallel.Cluster(
            n=workers,
            profile_dir=self._folder.name,
            controller_ip="127.0.0.1",
            engine_timeout=self.patience,
            log_level=logging.ERROR,
        )
        self._client = self._cluster.start_and_connect_sync(activate=False)
        self._view = self._client.load_balanced_view()

    def wait_ready(self) -> None:
        """Wait until each engine runs a task, by a direct view."""
        with Meeting(self.patience) as meeting:
            met = self._client[:].apply_async(meet, meeting.place)
            meeting.gather(self._workers)
            meeting.end()
            met.get()

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The view's `apply_async`."""
        return self._running().apply_async(function, *args)

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], chunk: Chunk
    ) -> Iterable[Any]:
        """The view's `map_async` with a chunk size."""
        return self._running().map_async(function, list(items), chunksize=fixed(chunk))  # type: ignore[no-any-return]

    def put(self, value: Any) -> Any:
        """Push the value to all engines; a reference to its name there."""
        self._running()
        name = f"gridbench_{next(self._names)}"
        self._client[:].push({name: value}, block=True)
        return ipyparallel.Reference(name)

    def close(self) -> None:
        """End engines and controller, and abandon running tasks."""
        client, self._client, self._view = self._client, None, None
        cluster, self._cluster = self._cluster, None
        folder, self._folder = self._folder, None
        if client is not None:
            client.close()
        if cluster is not None:
            started = descendants_of(os.getpid()) - self._others
            cluster.stop_cluster_sync()
            # The nanny of an engine outlives it, to notify a controller that is gone.
            end(started, _PATIENCE)
        if folder is not None:
            folder.cleanup()

    def _running(self) -> Any:
        if self._view is None:
            raise RuntimeError("ipyparallel is not running")
        return self._view
