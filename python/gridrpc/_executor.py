"""A grid behind the interface of `concurrent.futures`, for code that knows no other."""

from __future__ import annotations

import concurrent.futures
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from gridrpc._cancelled import CallCancelled
from gridrpc._grid import Grid
from gridrpc._initializer import Logged
from gridrpc._map import Map
from gridrpc._mapping import planned
from gridrpc._native import Call
from gridrpc._options import DEFAULT
from gridrpc._senders import MapOptions
from gridrpc.errors import ConfigError, GridClosed, StartError, WorkerLost

P = ParamSpec("P")
T = TypeVar("T")


class Executor(concurrent.futures.Executor):
    """`concurrent.futures.Executor` on a grid: use it in place of a process pool.

    `max_workers`, `mp_context`, `initializer`, `initargs`, `max_tasks_per_child`: as those of
    `ProcessPoolExecutor`, except that `mp_context` has no effect: workers are always forked from a
    process that was started for this purpose. `grid`: a grid that is open already, and stays open;
    no other argument can then be given. Other arguments go to `Grid`. Submitted calls run even if
    the executor is dropped, or the program ends, without `shutdown`. Raises ConfigError, TypeError.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: Any = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        grid: Grid | None = None,
        **settings: Any,
    ) -> None:
        named = {
            "initializer": None if initializer is None else Logged(initializer),
            "initargs": initargs or None,
            "max_tasks_per_child": max_tasks_per_child,
        }
        settings.update((name, value) for name, value in named.items() if value is not None)
        if max_workers is not None and max_workers < 1:
            raise ConfigError(f"max_workers must be greater than 0, not {max_workers}")
        if grid is None:
            self._work = _Work(Grid(max_workers, **settings), owned=True)
        else:
            if max_workers is not None or settings:
                name = "max_workers" if max_workers is not None else next(iter(settings))
                raise TypeError(
                    f"{name!r} has no effect on a grid that is open already: give it to `Grid`, or "
                    "leave out `grid`"
                )
            self._work = _Work(grid, owned=False)
        self._mp_context = mp_context
        self._max_workers = self._work.grid.workers
        self._shut_down = False
        # Who drops an executor shuts it down, as with other executors.
        weakref.finalize(self, self._work.finish_soon).atexit = False

    @property
    def _broken(self) -> str | bool:
        """Why nothing can be submitted any more, as far as that is known."""
        return self._work.broken

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        """As `concurrent.futures.Executor.submit`.

        If the function or an argument cannot be pickled, the future has the error. Raises
        RuntimeError after `shutdown` or if no thread can be started, BrokenProcessPool if no worker
        can be started, GridClosed.
        """
        self._check()
        work = self._work
        # The future needs it, and without it nothing is to run.
        work.grid._dispatcher.start()
        future: _Future[T] = _Future()
        try:
            grid = work.grid
            call: Call[T] = grid._native.submit(grid, fn, args, kwargs, DEFAULT)
        except (GridClosed, StartError) as error:
            raise work.seen(error) from None
        except Exception as error:
            future.set_running_or_notify_cancel()
            future.set_exception(error)
            return future
        future.call = call
        work.futures.add(future)

        def ended(call: Call[T]) -> None:
            future.settle(call, work)
            work.futures.discard(future)

        call.add_done_callback(ended)
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
    ) -> Iterator[T]:
        """As `concurrent.futures.Executor.map`: takes all items at once, and runs them in any case.

        `chunksize`: number of items in one call; by default as many as keep its overhead small.
        Raises ValueError for a `chunksize` below 1.
        """
        if chunksize is not None and chunksize < 1:
            raise ValueError(f"chunksize must be >= 1, not {chunksize}")
        until = None if timeout is None else monotonic() + timeout
        self._check()
        work = self._work
        single = len(iterables) == 1
        items = list(iterables[0]) if single else list(zip(*iterables, strict=False))
        try:
            plan = planned(
                work.grid,
                fn,
                iter(items),
                MapOptions(single, stand_in=FailedItem),
                total=len(items),
                chunk="auto" if chunksize is None else chunksize,
                ordered=True,
            )
        except (GridClosed, StartError) as error:
            raise work.seen(error) from None
        except Exception as error:
            return _raising(error)
        return BackgroundMap(plan, len(items), work).results(until, timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `concurrent.futures.Executor.shutdown`. A grid that was passed in stays open."""
        self._shut_down = True
        if cancel_futures:
            self._work.cancel()
        if wait:
            self._work.finish()
        else:
            self._work.finish_soon()

    def terminate_workers(self) -> None:
        """Give up all calls, also those that run, end the workers, and shut down.

        As in Python 3.14. Futures get GridClosed. A grid that was passed in stays open with its
        workers, and futures are cancelled.
        """
        self._shut_down = True
        self._work.give_up()
        self._work.finish()

    #: As in Python 3.14. Workers that do not end by themselves are killed in any case.
    kill_workers = terminate_workers

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is KeyboardInterrupt:
            # Processes of a pool get Ctrl-C themselves, and end; ours get it from us.
            self._work.give_up()
        self.shutdown()

    def _check(self) -> None:
        if self._shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if _exiting:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")
        self._work.grid._check_process()


class _Work:
    """What an executor has under way, and its grid; it lives until all of that has ended."""

    def __init__(self, grid: Grid, *, owned: bool) -> None:
        self.grid = grid
        self.broken: str | bool = False
        #: Those that have not ended.
        self.futures: set[_Future[Any]] = set()
        self.maps: set[BackgroundMap] = set()
        self._owned = owned
        self._finishing = threading.Lock()
        _unfinished.add(self)

    def seen(self, error: BaseException) -> BaseException:
        """The error as code written for process pools knows it."""
        if isinstance(error, StartError):
            self.broken = str(error)
        if isinstance(error, WorkerLost):
            from gridrpc._broken import broken_pool

            return broken_pool(error)
        return error

    def cancel(self) -> None:
        """Give up what waits for a worker."""
        for mapped in list(self.maps):
            mapped.give_up()
        for future in list(self.futures):
            future.cancel()

    def give_up(self) -> None:
        """Give up all of it, also what runs."""
        if self._owned:
            self.grid.close()
            return
        self.cancel()
        for future in list(self.futures):
            future.call.cancel()

    def finish(self) -> None:
        """Wait until all has ended, and end the workers."""
        with self._finishing:
            if self not in _unfinished:
                return
            for mapped in list(self.maps):
                mapped.thread.join()
            if self._owned:
                self.grid.close(cancel=False)
            else:
                concurrent.futures.wait(list(self.futures))
            _unfinished.discard(self)

    def finish_soon(self) -> None:
        """The same, without waiting for it."""
        if self in _unfinished and not _exiting:
            thread = threading.Thread(target=self.finish, name="gridrpc-shutdown", daemon=True)
            # Without a thread it ends with the program.
            with suppress(RuntimeError):
                thread.start()


class _Future(concurrent.futures.Future[T]):
    """A future that follows a call."""

    call: Call[T]

    def cancel(self) -> bool:
        """Cancels while the call waits for a worker, as other executors do."""
        if not self.done() and not self.call._profile()["sent"] and self.call.cancel():
            return super().cancel()
        return self.cancelled()

    def running(self) -> bool:
        return not self.done() and bool(self.call._profile()["sent"])

    def settle(self, call: Call[T], work: _Work) -> None:
        """The call has ended."""
        error = call.exception()
        if isinstance(error, CallCancelled):
            super().cancel()
            self.set_running_or_notify_cancel()
            return
        if not self.set_running_or_notify_cancel():
            return
        if error is not None:
            self.set_exception(work.seen(error))
        else:
            self.set_result(call.result())


class FailedItem:
    """Stands for the result of an item that failed."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class BackgroundMap:
    """A `map` that continues by itself: a thread of its own sends items and takes results."""

    def __init__(self, plan: Map, total: int | None, work: _Work) -> None:
        self._plan = plan
        #: How many results are still to be taken, if that is known.
        self._left = total
        self._work = work
        #: Groups of results, the first of each at its end.
        self._groups: deque[list[Any]] = deque()
        self._changed = threading.Condition()
        self._ended = self._given_up = False
        self.thread = threading.Thread(target=self._run, name="gridrpc-map", daemon=True)
        work.maps.add(self)
        try:
            self.thread.start()
        except BaseException:  # there may be too many threads: nobody is to wait for this one
            work.maps.discard(self)
            plan.cancel()
            raise

    def _run(self) -> None:
        try:
            for group in self._plan.groups():
                group.reverse()
                with self._changed:
                    if self._given_up:
                        self._plan.give_up_waiting()
                    self._groups.append(group)
                    self._changed.notify()
                del group
        except BaseException as error:  # whoever takes the results is to have it
            with self._changed:
                self._groups.append([FailedItem(error)])
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._finished()
        self._work.maps.discard(self)

    def _finished(self) -> None:
        """All results are there."""

    def give_up(self) -> None:
        """Run no items that wait for a worker."""
        with self._changed:
            self._given_up = True

    def results(self, until: float | None, timeout: float | None) -> Generator[Any, None, None]:
        """The results in order; gives up the others when it is closed."""
        try:
            while (group := self._next(until, timeout)) is not None:
                while group:
                    if isinstance(group[-1], FailedItem):
                        raise self.raised(group.pop().error)
                    # Nothing here may refer to it any longer.
                    yield group.pop()
        finally:
            self.give_up()

    def _next(self, until: float | None, timeout: float | None) -> list[Any] | None:
        try:
            return self.next_group(None if until is None else max(0.0, until - monotonic()))
        except TimeoutError:
            raise TimeoutError(
                f"map: the next result is not there {timeout} s after the start"
            ) from None

    def next_group(self, timeout: float | None) -> list[Any] | None:
        """Results, the first at the end; None: there are no more. Raises TimeoutError, and
        CancelledError if items have been given up."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._groups or self._ended, timeout):
                raise TimeoutError
            if self._groups:
                group = self._groups.popleft()
                if self._left is not None:
                    self._left -= len(group)
                return group
            if self._left if self._left is not None else self._given_up:
                raise concurrent.futures.CancelledError
        return None

    def raised(self, error: BaseException) -> BaseException:
        """The error as code written for pools knows it."""
        if isinstance(error, CallCancelled):
            return concurrent.futures.CancelledError()
        return self._work.seen(error)


def _raising(error: BaseException) -> Iterator[Any]:
    """Results that begin with an error."""
    raise error
    yield


#: Work of executors that has not ended; it may be all that is left of them.
_unfinished: set[_Work] = set()
_exiting = False


def _finish_all() -> None:
    """The program ends: what has been submitted is still run."""
    global _exiting
    _exiting = True
    interrupted = getattr(sys, "last_type", None) is KeyboardInterrupt
    for work in list(_unfinished):
        if interrupted:
            work.give_up()
        work.finish()


def _leave_to_parent() -> None:
    """In a child of fork: the grids are the parent's."""
    _unfinished.clear()


# Before the interpreter waits for threads, as the executors of the standard library do it: handlers
# of `atexit` close grids.
threading._register_atexit(_finish_all)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_leave_to_parent)
