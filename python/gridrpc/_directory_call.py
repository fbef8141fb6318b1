"""Calls of a grid with a directory, which move to another server until one has begun them."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

from gridrpc import _native
from gridrpc._call import add_done_callback, cancelled, describe, follower, wait_async
from gridrpc._options import DEFAULT
from gridrpc.errors import (
    FunctionNotFound,
    GridClosed,
    LimitReached,
    NotPermitted,
    StartError,
    WorkerLost,
)

if TYPE_CHECKING:
    from gridrpc._directory_choice import Choice
    from gridrpc._grid import Grid
    from gridrpc._native import Call, CallOptions, Watch
    from gridrpc._profile import Profile

T = TypeVar("T")

#: A server refuses a call before it begins.
REFUSALS = (LimitReached, StartError, FunctionNotFound, NotPermitted)


class DirectoryCall(Generic[T]):
    """A call at the server that is best for it. It has the methods of `gridrpc.Call`.

    When the server ends, stops taking calls or refuses this one, the call goes to the next best
    server if it has not begun, or is idempotent. It ends once.
    """

    def __init__(
        self,
        grid: Grid,
        name: str,
        choose: Callable[[set[str], Exception | None], Choice],
        send: Callable[[Choice, CallOptions], Call[T]],
        options: CallOptions,
        *,
        is_idempotent: bool,
        times: int = 1,
    ) -> None:
        """`choose`: a server, none of those that have been tried; raises the failure if none is
        left. `send`: sends the call there. `times`: it runs the function so often."""
        self._grid = grid
        self.function_name = name
        self._choose, self._send = choose, send
        self._options = options
        self._is_idempotent = is_idempotent
        self._times = times
        self._until = None if options.deadline is None else time.monotonic() + options.deadline
        self._tried = set[str]()
        self._lock = threading.RLock()
        self._failure: Exception | None = None
        self._has_ended = self._is_cancelled = False
        self._watches: list[tuple[Watch, int]] = []
        #: At its present server.
        self._choice: Choice
        self._call: Call[T]
        self._begin(None)

    def _begin(self, failure: Exception | None) -> None:
        """Send it to the next server. Raises what `choose` and `send` raise."""
        while True:
            choice = self._choose(self._tried, failure)
            options = self._options
            if self._until is not None:
                left = max(1e-3, self._until - time.monotonic())
                options = _native.CallOptions(deadline=left).over(options)
            try:
                call = self._send(choice, options)
            except BaseException as error:
                choice.release()
                # Its grid may be closed at the moment because the server is lost.
                if self._grid._closed or not isinstance(error, (*REFUSALS, GridClosed)):
                    raise
                choice.server.refuse()
                self._tried.add(choice.server.address)
                failure = error
                continue
            self._choice, self._call = choice, call
            call.add_done_callback(self._settle)
            return

    def _settle(self, call: Call[T]) -> None:
        """The call has ended at a server: end it, or move it."""
        with self._lock:
            if self._has_ended or call is not self._call:
                return
            # The next call knows of this one, even if it comes before the callback.
            self._choice.ended(call, self._times)
            error = call.exception()
            if isinstance(error, Exception) and self._may_move(call, error):
                self._choice.server.refuse()
                self._tried.add(self._choice.server.address)
                try:
                    self._begin(error)
                except Exception as failure:  # a policy of the user's own may raise anything
                    self._failure = failure
                else:
                    if self._is_cancelled:
                        self._call.cancel()
                    return
            self._has_ended = True
            for watch, token in self._watches:
                watch.push(token)
            self._watches.clear()

    def _may_move(self, call: Call[T], error: Exception) -> bool:
        """Whether another server may run it: none has begun it, or it may run again."""
        if self._is_cancelled or self._grid._closed:
            return False
        profile = call._profile()
        if isinstance(error, REFUSALS):
            # A function that has raised such an error itself has taken time.
            return bool(profile["calc_out"] <= profile["calc_in"])
        if isinstance(error, (WorkerLost, GridClosed)):
            return self._is_idempotent or not profile["sent"]
        return False

    def done(self) -> bool:
        """Return whether the call has ended, with a result or an error."""
        call = self._call
        if not self._has_ended and call.done():
            self._settle(call)
        return self._has_ended

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the call has ended, at most `timeout` seconds. Returns whether it has."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._has_ended:
            call = self._call
            if not call.wait(None if until is None else max(0.0, until - time.monotonic())):
                return False
            self._settle(call)
        return True

    def result(self, timeout: float | None = None) -> T:
        """Return the result of the call, as `gridrpc.Call.result`."""
        self._wait_for_end(timeout)
        if self._failure is not None:
            raise self._failure
        return self._call.result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the error that `result` would raise, or None."""
        self._wait_for_end(timeout)
        return self._failure or self._call.exception()

    def _wait_for_end(self, timeout: float | None) -> None:
        if not self.wait(timeout):
            raise TimeoutError(f"the call of {self.function_name} takes longer than {timeout} s")

    def cancel(self) -> bool:
        """Cancel the call, even while it runs. Returns False if it had already ended."""
        if self._has_ended:
            return False
        self._is_cancelled = True
        self._call.cancel()
        return not self._has_ended

    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        return cancelled(self.as_call)

    def detach(self) -> str:
        """Have its present server run the call even if this program ends. Returns its id."""
        return self._call.detach()

    def add_done_callback(self, callback: Callable[[Call[T]], object]) -> None:
        """Call `callback(call)` in a thread of the grid when the call has ended."""
        add_done_callback(self.as_call, callback)

    def __await__(self) -> Generator[Any, None, T]:
        return wait_async(self.as_call).__await__()

    @property
    def profile(self) -> Profile:
        """When and where the call ran."""
        return self._call.profile

    @property
    def as_call(self) -> Call[T]:
        """Itself: it has all that a native call has."""
        return cast("Call[T]", self)

    def _profile(self) -> dict[str, Any]:
        return self._call._profile()

    def _cost(self) -> tuple[int, int, int, int, int]:
        return self._call._cost()

    def _window(self) -> int:
        return self._call._window()

    def _watch(self, watch: Watch, token: int) -> None:
        with self._lock:
            if not self._has_ended:
                self._watches.append((watch, token))
                return
        watch.push(token)

    # `concurrent.futures.wait` and `as_completed` use these attributes of a future.

    @property
    def _condition(self) -> threading.Condition:
        return follower(self.as_call).condition

    @property
    def _state(self) -> str:
        return follower(self.as_call).state

    @property
    def _waiters(self) -> list[Any]:
        return follower(self.as_call).waiters

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """As of a native call: a future, for callers such as `asyncio.wrap_future`."""
        futures = sys.modules.get("concurrent.futures._base")
        return _native.Call if futures is None else cast("type", futures.Future)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a call of a grid with a directory cannot be an argument of another call, which may go "
            "to another server: give its result"
        )

    def __repr__(self) -> str:
        with contextlib.suppress(TimeoutError):
            return describe(self.as_call)
        return f"<gridrpc.Call of {self.function_name}>"


def options_with(deadline: float | None) -> CallOptions:
    """Options of a call with a deadline, s."""
    return DEFAULT if deadline is None else _native.CallOptions(deadline=deadline)
