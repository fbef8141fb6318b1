"""Ray: remote functions on a local cluster of this machine, with Ray's object store.

Used as its manual recommends: `ray.init` with as many logical processors as workers, remote
functions that need one each, `ray.put` for data that several calls share, and one `ray.get` for
many results. There is no dashboard, nothing is reported to Ray's makers, all listens on the
loopback interface, and asks for a token that this process alone has made.
"""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from itertools import islice
from typing import Any, ClassVar

from gridbench.engines.base import Description
from gridbench.engines.functions import Chunk, FunctionEngine, fixed
from gridbench.process.children import descendants_of, end

# Ray reads them when it is imported, and all processes of a cluster inherit them. Without clusters
# of several machines, it listens on the loopback interface alone.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.update({
    "RAY_USAGE_STATS_ENABLED": "0",
    # Otherwise a head asks for the token in its user's home folder, if `ray.init` has left one.
    # Clients and nodes of a named head do not look for it, and hosts have other home folders.
    # So each cluster has a token of its own; a worker that imports this has its cluster's.
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32),
})  # fmt: skip

import ray
from ray.exceptions import RayTaskError

_PATIENCE = 5.0  # seconds for Ray's processes to end


class RayEngine(FunctionEngine):
    """Ray's tasks, on a cluster of one machine."""

    name: ClassVar[str] = "ray"
    uses_shared_memory: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._functions: dict[Callable[..., Any], Any] = {}
        self._others: set[int] = set()

    def shared_copies(self, workers: int, *, warm: bool) -> int:
        """The object store keeps data once; workers map it."""
        del workers, warm
        return 1

    def describe(self) -> Description:
        """What Ray was told, and the size that it chose for its object store."""
        store = ray.cluster_resources().get("object_store_memory") if ray.is_initialized() else None
        return Description(
            name=self.name,
            version=version("ray"),
            configuration={
                "num_cpus": self._workers,
                "include_dashboard": False,
                "max_retries": 0,
                "object_store_bytes": store,
                "shared_data": "ray.put",
            },
        )

    def start(self, workers: int) -> None:
        """Start Ray, which starts its workers in the background."""
        self._workers = workers
        # A short name, as the paths of sockets below it may not be long.
        self._folder = tempfile.TemporaryDirectory(prefix="gb-ray-", ignore_cleanup_errors=True)
        self._others = descendants_of(os.getpid())
        ray.init(
            address="local",
            num_cpus=workers,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=self._folder.name,
        )

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The remote function of `function`; references to shared data are resolved by Ray."""
        return self._remote(function).remote(*args)

    def result(self, future: Any) -> Any:
        """What `ray.get` returns, or what the function raised."""
        try:
            return ray.get(future)
        except RayTaskError as error:
            raise error.cause from error

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """One `ray.get` for all."""
        return ray.get(list(futures))  # type: ignore[no-any-return]

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], chunk: Chunk
    ) -> Iterable[Any]:
        """Tasks of `chunk` items each: what Ray's manual advises instead of too small tasks."""
        each = self._remote(_each)
        source, size = iter(items), fixed(chunk)
        batches = iter(lambda: list(islice(source, size)), [])
        results = ray.get([each.remote(function, batch) for batch in batches])
        return (result for batch in results for result in batch)

    def put(self, value: Any) -> Any:
        """A reference to the value in the object store."""
        return ray.put(value)

    def when_done(self, future: Any, report: Callable[[], object]) -> None:
        """By the reference's future of the standard library."""
        future.future().add_done_callback(lambda _: report())

    def close(self) -> None:
        """End Ray's processes; a task that still runs is given up."""
        folder, self._folder = self._folder, None
        self._functions.clear()
        if folder is not None:
            started = descendants_of(os.getpid()) - self._others
            ray.shutdown()
            end(started, _PATIENCE)  # they still write to the folder
            folder.cleanup()

    def _remote(self, function: Callable[..., Any]) -> Any:
        """The remote function, made once, as Ray sends a function to its workers once."""
        if self._folder is None:
            raise RuntimeError("Ray is not running")
        if function not in self._functions:
            # A task whose worker died has failed; it is not run again.
            self._functions[function] = ray.remote(num_cpus=1, max_retries=0)(function)
        return self._functions[function]


def _each(function: Callable[..., Any], items: list[Any]) -> list[Any]:
    """In a worker: one batch."""
    return [function(item) for item in items]
