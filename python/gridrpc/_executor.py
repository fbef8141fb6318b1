"""A grid behind the interface of `concurrent.futures`, for code that knows no other."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from gridrpc._cancelled import CallCancelled
from gridrpc._grid import Grid
from gridrpc._native import Call

P = ParamSpec("P")
T = TypeVar("T")


class Executor(concurrent.futures.Executor):
    """`concurrent.futures.Executor` on a grid: use it in the place of a process pool.

    `max_workers`: as `Grid(workers=)`; or `grid`: one that is open already, and stays open.
    Other arguments go to `Grid`.
    """

    def __init__(
        self, max_workers: int | None = None, *, grid: Grid | None = None, **settings: Any
    ) -> None:
        self._owned = grid is None
        self._grid = Grid(max_workers, **settings) if grid is None else grid
        self._shut_down = False
        #: Those that have not ended.
        self._futures: set[_Future[Any]] = set()

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        """As `concurrent.futures.Executor.submit`."""
        if self._shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self._grid._check_process()
        future: _Future[T] = _Future()
        function = self._grid._functions.find(fn)
        call: Call[T] = self._grid._submit(function, args, kwargs, None, False)
        future.call = call
        self._futures.add(future)

        def ended(call: Call[T]) -> None:
            future.settle(call)
            self._futures.discard(future)

        call.add_done_callback(ended)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `concurrent.futures.Executor.shutdown`. A grid that was passed in stays open."""
        self._shut_down = True
        pending = list(self._futures)
        if cancel_futures:
            for future in pending:
                future.cancel()
        if not self._owned:
            if wait:
                concurrent.futures.wait(pending)
        elif wait:
            self._grid.close(cancel=False)
        else:
            import threading

            # The calls go on; the workers end after the last of them.
            threading.Thread(target=self._grid.close, kwargs={"cancel": False}).start()


class _Future(concurrent.futures.Future[T]):
    """A future that follows a call."""

    call: Call[T]

    def cancel(self) -> bool:
        """Cancels while the call waits for a worker, as other executors do."""
        started = self.call._profile()["sent"]
        if not started and self.call.cancel():
            return super().cancel()
        return self.cancelled()

    def running(self) -> bool:
        return not self.done() and bool(self.call._profile()["sent"])

    def settle(self, call: Call[T]) -> None:
        """The call has ended."""
        error = call.exception()
        if isinstance(error, CallCancelled):
            super().cancel()
            self.set_running_or_notify_cancel()
            return
        if not self.set_running_or_notify_cancel():
            return
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(call.result())
