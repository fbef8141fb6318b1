"""A grid as a backend of joblib, and so of scikit-learn. Importing this module registers it.

For example:

    import gridrpc.joblib
    with joblib.parallel_config("gridrpc", n_jobs=8):
        cross_val_score(model, X, y, cv=8)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from joblib.parallel import ParallelBackendBase, register_parallel_backend

from gridrpc._config import processors
from gridrpc._grid import Grid
from gridrpc._native import Call


class GridBackend(ParallelBackendBase):  # type: ignore[misc]
    """Runs joblib's batches of tasks as calls.

    `grid`: an open grid to use; otherwise one is opened for each `Parallel`. Other arguments go to
    `Grid`.
    """

    supports_inner_max_num_threads = False
    supports_retrieve_callback = True
    uses_threads = False
    supports_sharedmem = False
    #: Who names this backend but no number means all workers.
    default_n_jobs = -1

    def __init__(
        self, grid: Grid | None = None, nesting_level: int | None = None, **settings: Any
    ) -> None:
        super().__init__(nesting_level=nesting_level)
        self._given = grid
        self._grid = grid
        self._settings = settings
        self._calls: set[Call[Any]] = set()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """How many tasks run at once: as joblib counts, -1 being all processors."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 has no meaning")
        if self._given is not None and n_jobs in {-1, None}:
            return self._given.config.workers
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max(1, processors() + 1 + n_jobs)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_settings: Any) -> int:
        """Opens the grid if none was given."""
        jobs = self.effective_n_jobs(n_jobs)
        self.parallel = parallel
        if self._grid is None:
            self._grid = Grid(jobs, **self._settings)
        return jobs

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None]) -> Call[Any]:
        """Runs one batch of tasks; joblib is called back when it has ended."""
        assert self._grid is not None, "joblib configures a backend before it uses it"
        call = self._grid.submit(_run, func)
        self._calls.add(call)

        def ended(call: Call[Any]) -> None:
            self._calls.discard(call)
            callback(call)

        call.add_done_callback(ended)
        return call

    def retrieve_result_callback(self, out: Call[Any]) -> Any:
        """The results of a batch that has ended."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002 - joblib's own
        """Gives up what is under way."""
        for call in list(self._calls):
            call.cancel()

    def terminate(self) -> None:
        """Closes the grid that `configure` opened."""
        if self._grid is not None and self._given is None:
            self._grid.close()
            self._grid = None

    def get_nested_backend(self) -> tuple[Any, int | None]:
        """What tasks that use joblib themselves get: no processes of processes."""
        from joblib.parallel import SequentialBackend

        return SequentialBackend(nesting_level=(self.nesting_level or 0) + 1), None


def _run(batch: Callable[[], Any]) -> Any:
    return batch()


register_parallel_backend("gridrpc", GridBackend)
