"""A grid as a backend of joblib, and so of scikit-learn. Importing this module registers it.

For example::

    import gridrpc.joblib
    with joblib.parallel_config("gridrpc", n_jobs=8):
        cross_val_score(model, X, y, cv=8)

The grid stays open for the next `Parallel` with the same options, and is closed when it has been
idle for `idle_worker_timeout` seconds, or by `close_idle()`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from joblib._parallel_backends import AutoBatchingMixin, FallbackToBackend, SequentialBackend
from joblib.parallel import ParallelBackendBase, register_parallel_backend

from gridrpc._config import Config, processors
from gridrpc._grid import Grid
from gridrpc._native import Call
from gridrpc.errors import GridError

#: Seconds that an unused grid stays open, as the workers of joblib's own default backend do.
IDLE_WORKER_TIMEOUT = 300.0

#: Options that joblib passes to every backend. Those about the memory-mapped files that it makes
#: itself have no meaning here: large arrays travel through shared memory.
JOBLIB_OPTIONS = frozenset(
    {"context", "max_nbytes", "mmap_mode", "prefer", "require", "temp_folder", "verbose"}
)
#: Options of `Grid` that are not keys of its configuration.
GRID_OPTIONS = frozenset({"config", "initializer", "initargs"})


class GridrpcBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs joblib's batches of tasks as calls.

    `grid`: an open grid to use, which stays open; otherwise one is opened, and kept for the next
    `Parallel` with the same options. `idle_worker_timeout`: seconds that such a grid stays open
    without being used. `inner_max_num_threads`: how many threads numerical libraries may use in a
    worker. Other options go to `Grid`. Raises TypeError for an unknown option.
    """

    supports_inner_max_num_threads = True
    supports_retrieve_callback = True
    uses_threads = False
    supports_sharedmem = False

    def __init__(self, nesting_level: int | None = None, **options: Any) -> None:
        super().__init__(nesting_level=nesting_level, **options)
        _check(self.backend_kwargs)
        #: As joblib's own backends name what runs their tasks.
        self._workers: Grid | None = None
        #: Whether the grid is one of those that stay open for reuse, and is to be handed back.
        self._borrowed = False
        #: What is under way, with its batch.
        self._calls: dict[Call[Any], Any] = {}

    @property
    def default_n_jobs(self) -> int:
        """As joblib's own backends: one job, unless a grid is given, all of whose workers count."""
        return 1 if self.backend_kwargs.get("grid") is None else -1

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """How many tasks run at once: as joblib counts, -1 being all processors.

        With a grid that was given, its workers take the place of the processors.
        """
        return _effective(n_jobs, self.backend_kwargs.get("grid"))

    def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:
        """Get a grid ready: the one that was given, or one that fits the options."""
        options = {**self.backend_kwargs, **options}
        _check(options)
        options = {name: options[name] for name in options if name not in JOBLIB_OPTIONS}
        given = options.pop("grid", None)
        jobs = _effective(n_jobs, given)
        if jobs == 1 and given is None:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        if given is not None:
            self._workers = given
            return jobs
        idle = options.pop("idle_worker_timeout", None)
        if self.inner_max_num_threads is not None:
            options["threads"] = self.inner_max_num_threads
        self._release()
        self._workers = _reusable.borrow(
            jobs, options, IDLE_WORKER_TIMEOUT if idle is None else float(idle)
        )
        self._borrowed = True
        return jobs

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None
    ) -> Call[Any]:
        """Run one batch of tasks; joblib is called back when it has ended."""
        assert self._workers is not None, "joblib configures a backend before it uses it"
        batch: Any = func
        if "numpy" in sys.modules:
            from gridrpc._memmap import ByFile

            batch = ByFile(func, elsewhere=bool(self._workers.config.servers))
        call = self._workers.submit(_run, batch)
        self._calls[call] = func

        def ended(call: Call[Any]) -> None:
            error = call.exception()
            batch = self._calls.pop(call, None)
            if isinstance(error, GridError) and batch is not None:
                error.add_note(_describe(batch))
            if callback is not None:
                callback(call)

        call.add_done_callback(ended)
        return call

    def retrieve_result_callback(self, out: Call[Any]) -> Any:
        """The results of a batch that has ended."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Give up what is under way."""
        for call in list(self._calls):
            call.cancel()
        if not ensure_ready:
            self._release()

    def terminate(self) -> None:
        """The `Parallel` is over. A grid that this module opened stays for the next one."""
        self._release()
        self.reset_batch_stats()

    def _release(self) -> None:
        grid, self._workers = self._workers, None
        if self._borrowed and grid is not None:
            _reusable.give_back(grid)
        self._borrowed = False


def _effective(n_jobs: int | None, grid: Grid | None) -> int:
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 in Parallel has no meaning")
    if n_jobs is None:
        return 1
    most = processors() if grid is None else grid.workers
    if n_jobs < 0:
        return max(1, most + 1 + n_jobs)
    return n_jobs if grid is None else min(n_jobs, most)


def _check(options: dict[str, Any]) -> None:
    """Refuse options that nothing here knows."""
    own = {"grid", "idle_worker_timeout"}
    settings = {field.name for field in fields(Config)} - {"workers", "threads"} | GRID_OPTIONS
    for name in options:
        if name not in JOBLIB_OPTIONS | own | settings:
            raise TypeError(
                f"the joblib backend `gridrpc` has no option {name!r}; it knows "
                f"{', '.join(sorted(own | settings))}"
            )
    if options.get("grid") is not None:
        for name in sorted(settings | {"idle_worker_timeout"}):
            if options.get(name) is not None:
                raise TypeError(
                    f"{name!r} has no effect on a grid that is open already: give it to `Grid`, or "
                    "leave out `grid`"
                )


def _run(batch: Callable[[], Any]) -> Any:
    return batch()


def _describe(batch: Any) -> str:
    """Which functions a batch runs, for people."""
    functions = (task[0] for task in getattr(batch, "items", ()))
    names = sorted({getattr(one, "__qualname__", type(one).__name__) for one in functions})
    return f"it ran a batch of {len(batch)} tasks of joblib: {', '.join(names)}"


class _ReusableGrids:
    """Grids that stay open between one `Parallel` and the next, one idle one at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: In use, by identity: the options and the number of users.
        self._used: dict[int, tuple[Grid, Any, float, int]] = {}
        self._idle: tuple[Grid, Any, float] | None = None
        self._timer: threading.Timer | None = None

    def borrow(self, jobs: int, options: dict[str, Any], idle: float) -> Grid:
        """A grid of so many workers with these options, to be given back."""
        # What a spawner has of its client is fixed when it starts.
        key = (jobs, options, os.getcwd())
        unfit = None
        with self._lock:
            self._stop_timer()
            for grid, its_key, its_idle, users in self._used.values():
                if its_key == key and not grid._closed:
                    self._used[id(grid)] = grid, its_key, max(idle, its_idle), users + 1
                    return grid
            if self._idle is not None:
                grid, its_key, _ = self._idle
                self._idle = None
                if its_key == key and not grid._closed:
                    self._used[id(grid)] = grid, key, idle, 1
                    return grid
                unfit = grid
        if unfit is not None:
            unfit.close()
        grid = Grid(jobs, **options)
        with self._lock:
            self._used[id(grid)] = grid, key, idle, 1
        return grid

    def give_back(self, grid: Grid) -> None:
        """A user is done with it."""
        unfit = None
        with self._lock:
            _, key, idle, users = self._used[id(grid)]
            if users > 1:
                self._used[id(grid)] = grid, key, idle, users - 1
                return
            del self._used[id(grid)]
            if self._idle is not None:
                unfit = self._idle[0]
            self._idle = grid, key, idle
            self._stop_timer()
            self._timer = threading.Timer(idle, self._time_is_up)
            self._timer.daemon = True
            try:
                self._timer.start()
            except RuntimeError:
                # Without a thread nobody would close it later.
                self._idle = self._timer = None
                grid.close()
        if unfit is not None:
            unfit.close()

    def close_idle(self) -> None:
        """Close the grid that nobody uses, if there is one."""
        with self._lock:
            self._stop_timer()
            idle, self._idle = self._idle, None
        if idle is not None:
            idle[0].close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_is_up(self) -> None:
        with self._lock:
            # Somebody may have taken the grid just now, or given back another one.
            if threading.current_thread() is not self._timer or self._idle is None:
                return
            grid = self._idle[0]
            self._idle = self._timer = None
        grid.close()


_reusable = _ReusableGrids()


def close_idle() -> None:
    """End the workers that are kept for the next `Parallel`. Workers in use continue."""
    _reusable.close_idle()


def _forget() -> None:
    """In a child of fork: the grids are the parent's."""
    global _reusable
    _reusable = _ReusableGrids()


os.register_at_fork(after_in_child=_forget)
register_parallel_backend("gridrpc", GridrpcBackend)
