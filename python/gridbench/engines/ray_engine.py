"""Ray: remote functions on a local cluster of this machine, with Ray's object store.

Used as its manual recommends: `ray.init` with a logical processor per worker, remote functions that
need one each, `ray.put` for shared data, and one `ray.get` for many results. There is no dashboard
and no usage report. Ray listens on the loopback interface only, and requires a token of this
process.
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

# Ray reads these at import, and all processes of a cluster inherit them. Without multi-machine
# clusters, it listens on the loopback interface only.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.update({
    "RAY_USAGE_STATS_ENABLED": "0",
    # Otherwise a head requires the token that `ray.init` may have left in the home folder, which
    # clients and nodes of a named head do not read, and hosts do not share. So each cluster has its
    # own token; a worker that imports this module has the token of its cluster.
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
        """One copy in the object store, which workers map."""
        del workers, warm
        return 1

    def describe(self) -> Description:
        """Settings of Ray, and the size of its object store."""
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
        """Start Ray, and its workers in the background."""
        self._workers = workers
        # A short name: paths of sockets below it are limited.
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
        """Call the remote function; Ray resolves references to shared data."""
        return self._remote(function).remote(*args)

    def result(self, future: Any) -> Any:
        """The result of `ray.get`, or the exception of the function."""
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
        """Tasks of `chunk` items each, as Ray's manual advises for small tasks."""
        each = self._remote(_each)
        source, size = iter(items), fixed(chunk)
        batches = iter(lambda: list(islice(source, size)), [])
        results = ray.get([each.remote(function, batch) for batch in batches])
        return (result for batch in results for result in batch)

    def put(self, value: Any) -> Any:
        """A reference to the value in the object store."""
        return ray.put(value)

    def when_done(self, future: Any, report: Callable[[], object]) -> None:
        """By the standard-library future of the reference."""
        future.future().add_done_callback(lambda _: report())

    def close(self) -> None:
        """End Ray's processes, and abandon running tasks."""
        folder, self._folder = self._folder, None
        self._functions.clear()
        if folder is not None:
            started = descendants_of(os.getpid()) - self._others
            ray.shutdown()
            end(started, _PATIENCE)  # they still write to the folder
            folder.cleanup()

    def _remote(self, function: Callable[..., Any]) -> Any:
        """The remote function, created once: Ray sends a function to its workers once."""
        if self._folder is None:
            raise RuntimeError("Ray is not running")
        if function not in self._functions:
            # A task fails with its worker; it is not retried.
            self._functions[function] = ray.remote(num_cpus=1, max_retries=0)(function)
        return self._functions[function]


def _each(function: Callable[..., Any], items: list[Any]) -> list[Any]:
    """Run one batch in a worker."""
    return [function(item) for item in items]
