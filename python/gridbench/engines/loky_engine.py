"""loky: a process pool whose workers are started afresh rather than forked, as joblib uses it.

Used as its manual recommends: `get_reusable_executor`, with the number of workers. Workers that
idle would end after ten seconds by default and be started again by the next call; here they stay,
so that no measurement holds the start of a worker by chance. The pool has no verb that gives data
to every worker, so shared data goes along as an argument of each call, pickled each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any, ClassVar

from loky import get_reusable_executor

from gridbench.engines.base import Description
from gridbench.engines.functions import Chunk, FunctionEngine, fixed


class LokyEngine(FunctionEngine):
    """loky's reusable executor."""

    name: ClassVar[str] = "loky"

    def __init__(self) -> None:
        super().__init__()
        self._executor: Any = None

    def describe(self) -> Description:
        """What the executor was made with; the rest is loky's default."""
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
        """Make the executor; it starts all its workers at the first call."""
        self._workers = workers
        self._executor = get_reusable_executor(max_workers=workers, timeout=None, reuse=False)

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """The executor's `submit`; its queue has no bound."""
        return self._running().submit(function, *args)

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], chunk: Chunk
    ) -> Iterable[Any]:
        """The executor's `map` with a chunk size."""
        return self._running().map(function, items, chunksize=fixed(chunk))  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the workers, without waiting for tasks that still run."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)

    def _running(self) -> Any:
        if self._executor is None:
            raise RuntimeError("loky is not running")
        return self._executor
