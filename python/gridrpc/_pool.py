"""A grid behind the interface of `multiprocessing.Pool`, for code that knows no other."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.pool import CLOSE, RUN, TERMINATE
from types import TracebackType
from typing import Any, Generic, TypeVar

from gridrpc._executor import BackgroundMap, Executor, FailedItem
from gridrpc._grid import Grid
from gridrpc._map import Map, known_length
from gridrpc._mapping import planned
from gridrpc._senders import MapOptions
from gridrpc._wrapped import Spread
from gridrpc.errors import GridClosed, StartError

T = TypeVar("T")

Callback = Callable[[Any], object] | None


class Pool:
    """`multiprocessing.Pool` on a grid: use it in place of that class.

    `processes`, `initializer`, `initargs`, `maxtasksperchild`, `context`: as those of
    `multiprocessing.Pool`, except that `context` has no effect. `grid`: a grid that is open
    already, and stays open; no other argument can then be given. Other arguments go to `Grid`. A
    worker that dies costs the call that it ran, which raises `WorkerLost`; a pool of
    `multiprocessing` waits forever. Raises ConfigError, TypeError, ValueError.
    """

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
        *,
        grid: Grid | None = None,
        **settings: Any,
    ) -> None:
        if processes is not None and processes < 1:
            raise ValueError("Number of processes must be at least 1")
        self._executor = Executor(
            processes,
            context,
            initializer,
            tuple(initargs),
            max_tasks_per_child=maxtasksperchild,
            grid=grid,
            **settings,
        )
        self._state = RUN

    def apply(
        self,
        func: Callable[..., T],
        args: Iterable[Any] = (),
        kwds: Mapping[str, Any] | None = None,
    ) -> T:
        """The result of `func(*args, **kwds)`."""
        return self.apply_async(func, args, kwds).get()

    def apply_async(
        self,
        func: Callable[..., T],
        args: Iterable[Any] = (),
        kwds: Mapping[str, Any] | None = None,
        callback: Callback = None,
        error_callback: Callback = None,
    ) -> AsyncResult[T]:
        """Call `func(*args, **kwds)` and return at once.

        `callback` gets the result, and `error_callback` the error, in a thread of the grid's.
        """
        self._check()
        future = self._executor.submit(func, *args, **(kwds or {}))
        return AsyncResult(future, callback, error_callback)

    def map(
        self, func: Callable[..., T], iterable: Iterable[Any], chunksize: int | None = None
    ) -> list[T]:
        """The results of `func` for all items, in their order. Runs all of them, and raises the
        first error. `chunksize`: as in `Executor.map`."""
        return self.map_async(func, iterable, chunksize).get()

    def map_async(
        self,
        func: Callable[..., T],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: Callback = None,
        error_callback: Callback = None,
    ) -> AsyncResult[list[T]]:
        """`map`, without waiting for the results. The callbacks are those of `apply_async`."""
        items = list(iterable)
        collected = _Collected(self._plan(func, items, chunksize), len(items), self._executor._work)
        return AsyncResult(collected.future, callback, error_callback)

    def starmap(
        self,
        func: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
    ) -> list[T]:
        """`map` for items that are the arguments of a call: `func(*item)`."""
        return self.starmap_async(func, iterable, chunksize).get()

    def starmap_async(
        self,
        func: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: Callback = None,
        error_callback: Callback = None,
    ) -> AsyncResult[list[T]]:
        """`starmap`, without waiting for the results."""
        items = map(tuple, iterable)
        return self.map_async(Spread(func), items, chunksize, callback, error_callback)

    def imap(
        self, func: Callable[..., T], iterable: Iterable[Any], chunksize: int | None = None
    ) -> PoolResults[T]:
        """The results of `func` for the items, in their order, each as soon as it is due.

        All items are taken and run, in a thread, whether or not somebody takes the results.
        """
        return self._results(func, iterable, chunksize, ordered=True)

    def imap_unordered(
        self, func: Callable[..., T], iterable: Iterable[Any], chunksize: int | None = None
    ) -> PoolResults[T]:
        """`imap`, with each result as soon as it is there."""
        return self._results(func, iterable, chunksize, ordered=False)

    def close(self) -> None:
        """Take no more calls; workers end when all have ended."""
        if self._state == RUN:
            self._state = CLOSE
            self._executor.shutdown(wait=False)

    def terminate(self) -> None:
        """Give up all calls, also those that run, and end the workers."""
        self._state = TERMINATE
        self._executor.terminate_workers()

    def join(self) -> None:
        """Wait until all calls have ended, and the workers are gone. Raises ValueError unless
        `close` or `terminate` was called before."""
        if self._state == RUN:
            raise ValueError("Pool is still running")
        self._executor.shutdown()

    def _results(
        self, func: Callable[..., T], iterable: Iterable[Any], chunksize: int | None, ordered: bool
    ) -> PoolResults[T]:
        plan = self._plan(func, iterable, chunksize, ordered=ordered)
        return PoolResults(BackgroundMap(plan, None, self._executor._work))

    def _plan(
        self,
        func: Callable[..., Any],
        iterable: Iterable[Any],
        chunksize: int | None,
        *,
        ordered: bool = True,
    ) -> Map:
        self._check()
        if chunksize is not None and chunksize < 1:
            raise ValueError(f"Chunksize must be 1+, not {chunksize:n}")
        work = self._executor._work
        try:
            return planned(
                work.grid,
                func,
                iter(iterable),
                MapOptions(True, stand_in=FailedItem),
                total=known_length([iterable]),
                chunk="auto" if chunksize is None else chunksize,
                ordered=ordered,
            )
        except (GridClosed, StartError) as error:
            raise work.seen(error) from None

    def _check(self) -> None:
        if self._state != RUN:
            raise ValueError("Pool not running")

    def __enter__(self) -> Pool:
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.terminate()

    def __reduce__(self) -> Any:
        raise NotImplementedError("pool objects cannot be passed between processes or pickled")

    def __repr__(self) -> str:
        size = self._executor._max_workers
        return f"<gridrpc.Pool state={self._state} pool_size={size}>"


class AsyncResult(Generic[T]):
    """What a call of a `Pool` will come to, as `multiprocessing.pool.AsyncResult`."""

    def __init__(
        self, future: concurrent.futures.Future[T], callback: Callback, error_callback: Callback
    ) -> None:
        self._future = future
        if callback is not None or error_callback is not None:

            def ended(future: concurrent.futures.Future[T]) -> None:
                error = _error_of(future)
                called = callback if error is None else error_callback
                if called is not None:
                    called(future.result() if error is None else error)

            future.add_done_callback(ended)

    def get(self, timeout: float | None = None) -> T:
        """The result. Raises the call's error, and multiprocessing.TimeoutError after `timeout`
        seconds."""
        self.wait(timeout)
        if not self.ready():
            raise multiprocessing.TimeoutError
        return self._future.result()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the call has ended, at most `timeout` seconds."""
        concurrent.futures.wait([self._future], timeout)

    def ready(self) -> bool:
        """Whether the call has ended."""
        return self._future.done()

    def successful(self) -> bool:
        """Whether the call has returned. Raises ValueError if it has not ended."""
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return _error_of(self._future) is None


def _error_of(future: concurrent.futures.Future[Any]) -> BaseException | None:
    """The error of a future that has ended; to be cancelled is one, too."""
    if future.cancelled():
        return concurrent.futures.CancelledError()
    return future.exception()


class _Collected(BackgroundMap):
    """A `map` whose results are a list."""

    def __init__(self, plan: Map, total: int, work: Any) -> None:
        self.future: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()
        self.future.set_running_or_notify_cancel()
        super().__init__(plan, total, work)

    def _finished(self) -> None:
        values: list[Any] = []
        first: BaseException | None = None
        while first is None:
            try:
                group = self.next_group(None)
            except concurrent.futures.CancelledError as error:  # some were given up
                first = error
                break
            if group is None:
                self.future.set_result(values)
                return
            while group and first is None:
                value = group.pop()
                if isinstance(value, FailedItem):
                    first = self.raised(value.error)
                else:
                    values.append(value)
        self.future.set_exception(first)


class PoolResults(Iterator[T]):
    """The results of `Pool.imap`. An error takes the place of its result, and others follow it."""

    def __init__(self, mapped: BackgroundMap) -> None:
        self._mapped = mapped
        self._group: list[Any] = []

    def __next__(self) -> T:
        return self.next()

    def next(self, timeout: float | None = None) -> T:
        """The next result. Raises its error, StopIteration, and multiprocessing.TimeoutError after
        `timeout` seconds."""
        if not self._group:
            try:
                group = self._mapped.next_group(timeout)
            except TimeoutError:
                raise multiprocessing.TimeoutError from None
            if group is None:
                raise StopIteration
            self._group = group
            return self.next()
        value = self._group.pop()
        if isinstance(value, FailedItem):
            raise self._mapped.raised(value.error)
        result: T = value
        return result
