"""Parsl: its high-throughput executor with a local provider.

Used as its manual recommends: apps made by `python_app`, one block on this machine with a worker
process for each concurrent task, and no prefetching. Messages are not encrypted, as they stay on
the loopback interface. Parsl cannot send several items in one call (the pool executor's `map`
ignores its chunk size) or data to every worker: shared data is an argument of each call.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import WrappedLauncher
from parsl.providers import LocalProvider

from gridbench.engines.base import Description
from gridbench.engines.functions import FunctionEngine, NamespaceNode, one_node
from gridbench.process.children import temporary_files_in


class ParslEngine(FunctionEngine):
    """Parsl's HighThroughputExecutor with a LocalProvider."""

    name: ClassVar[str] = "parsl"
    takes_namespaces: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._node: NamespaceNode | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._kernel: Any = None
        self._apps: dict[Callable[..., Any], Any] = {}

    def describe(self) -> Description:
        """Settings of the executor; others are Parsl's defaults."""
        return Description(
            name=self.name,
            version=version("parsl"),
            configuration={
                "executor": "HighThroughputExecutor",
                "provider": "LocalProvider",
                "max_workers_per_node": self._workers,
                "prefetch_capacity": 0,
                "encrypted": False,
                "strategy": "none",
                "shared_data": "argument of each call",
            },
        )

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        """The block of workers starts there."""
        self._node = one_node(self.name, namespaces)

    def start(self, workers: int) -> None:
        """Load the configuration, which starts the interchange and a block of workers."""
        self._workers = workers
        # Parsl starts its programs by name, as from an activated environment.
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-parsl-")
        executor = HighThroughputExecutor(
            label="gridbench",
            address=self._node.client if self._node else "127.0.0.1",
            max_workers_per_node=workers,
            cores_per_worker=1e-6,  # the number of cores does not limit the workers
            prefetch_capacity=0,
            encrypted=False,
            provider=LocalProvider(
                init_blocks=1,
                min_blocks=1,
                max_blocks=1,
                launcher=WrappedLauncher(shlex.join(self._node.inside) if self._node else ""),
                # The worker pool leaves temporary files behind.
                worker_init=f"export TMPDIR={shlex.quote(self._folder.name)}",
            ),
        )
        config = Config(
            executors=[executor],
            strategy="none",
            initialize_logging=False,
            run_dir=self._folder.name,
        )
        with temporary_files_in(self._folder.name):
            self._kernel = parsl.load(config)

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The app of `function`."""
        if self._kernel is None:
            raise RuntimeError("Parsl is not running")
        if function not in self._apps:
            self._apps[function] = parsl.python_app(function, data_flow_kernel=self._kernel)
        return self._apps[function](*args)

    def close(self) -> None:
        """End the workers, and abandon running tasks."""
        kernel, self._kernel = self._kernel, None
        folder, self._folder = self._folder, None
        self._apps.clear()
        if kernel is not None:
            kernel.cleanup()
            parsl.clear()
        if folder is not None:
            folder.cleanup()
