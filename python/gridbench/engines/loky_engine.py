"""loky: a process pool with spawned workers, which joblib uses.

Used as its manual recommends: `get_reusable_executor` with the number of workers. By default, idle
workers end after ten seconds and start again with the next call; here they stay, so that no
measurement includes the start of a worker. The pool cannot send data to every worker, so shared
data is an argument of each call, pickled each time.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, ClassVar

from loky import get_reusable_executor

from gridbench.engines.base import Description
from gridbench.engines.functions import ExecutorEngine


class LokyEngine(ExecutorEngine):
    """loky's reusable executor."""

    name: ClassVar[str] = "loky"

    def __init__(self) -> None:
        super().__init__()
        self._executor: Any = None

    def describe(self) -> Description:
        """Settings of the executor; others are loky's defaults."""
        return Description(
            name=self.name,
            version=version("loky"),
            configuration={
                "max_workers": self._workers,
                "start_method": "loky (fork and exec)",
                "idle_timeout": None,
                "shared_data": "argument of each call",
            },
        )

    def start(self, workers: int) -> None:
        """Create the executor, which starts its workers at the first call."""
        self._workers = workers
        self._executor = get_reusable_executor(max_workers=workers, timeout=None, reuse=False)

    def close(self) -> None:
        """End the workers, and abandon running tasks."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)

    def _running(self) -> Any:
        if self._executor is None:
            raise RuntimeError("loky is not running")
        return self._executor
