"""A call, and waiting for many of them."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gridrpc import _native
from gridrpc._pickling import loads
from gridrpc._typed import from_native
from gridrpc.errors import from_outcome

if TYPE_CHECKING:
    from gridrpc._grid import Grid

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Profile:
    """Times of a call in seconds of this host's monotonic clock (NaN: not reached), and places."""

    submit: float
    """The caller handed it over."""
    sent: float
    """It went to a worker."""
    calc_in: float
    """The function started."""
    calc_out: float
    """The function returned."""
    retrieve: float
    """The result was here."""
    worker: int | None
    """Number of the worker; None if it never had one."""
    pid: int
    """Process id of the worker; 0 if it never had one."""
    host: str
    """Where the worker runs."""
    bytes_in: int
    """Bytes of arguments that were moved."""
    bytes_out: int
    """Bytes of the result that were moved."""


class Call(Generic[T]):
    """One remote call, from `Grid.submit`: what will be its result. Can be awaited."""

    __slots__ = ("_error", "_grid", "_native", "_settled", "_value", "function_name")

    def __init__(self, grid: Grid, native: _native.Call, function_name: str) -> None:
        self._grid = grid
        self._native = native
        #: What it runs.
        self.function_name = function_name
        self._settled = False
        self._error: BaseException | None = None
        self._value: Any = None

    def result(self, timeout: float | None = None) -> T:
        """What the function returned; waits for it, at most `timeout` seconds.

        Raises what the function raised (its traceback there is the cause), TimeoutError if it
        takes longer, WorkerLost, DeadlineExceeded, CallCancelled or GridClosed.
        """
        self._settle(timeout)
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What `result` would raise, or None. Raises TimeoutError as `result` does."""
        self._settle(timeout)
        return self._error

    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._native.done()

    def cancel(self) -> bool:
        """Give it up, also while it runs. Returns whether it had not ended.

        A worker that still runs it after a grace time (Config.grace) is ended and replaced.
        """
        return self._grid._native.cancel(self._native)

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        from gridrpc.errors import CallCancelled

        return self.done() and isinstance(self.exception(), CallCancelled)

    @property
    def profile(self) -> Profile:
        """When and where it ran."""
        values = self._native.profile()
        for name in ("sent", "calc_in", "calc_out", "retrieve"):
            values[name] = values[name] or float("nan")
        return Profile(host=socket.gethostname() if values["pid"] else "", **values)

    def add_done_callback(self, callback: Callable[[Call[T]], object]) -> None:
        """Have `callback(call)` called, in a thread of the grid's own, when it has ended."""
        self._grid._dispatcher.add(self._native, lambda: callback(self))

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait_async().__await__()

    async def _wait_async(self) -> T:
        if not self.done():
            loop = asyncio.get_running_loop()
            ended = loop.create_future()

            def wake() -> None:
                if not ended.done():
                    ended.set_result(None)

            def tell() -> None:
                # A loop that has been closed meanwhile waits for nothing.
                if not loop.is_closed():
                    loop.call_soon_threadsafe(wake)

            self._grid._dispatcher.add(self._native, tell)
            try:
                await ended
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.result()

    def _settle(self, timeout: float | None) -> None:
        if self._settled:
            return
        self._grid._check_process()
        if not self._native.wait(timeout):
            raise TimeoutError(f"the call of {self.function_name} takes longer than {timeout} s")
        # The outcome can be taken once: another thread may be decoding it.
        with self._grid._decoding:
            if self._settled:
                return
            outcome = self._native.take_outcome()
            assert outcome is not None, "an ended call has an outcome"
            if outcome[0] != "returned":
                self._error = from_outcome(outcome, self.function_name)
            else:
                try:
                    typed = len(outcome) == 2
                    self._value = from_native(outcome[1]) if typed else loads(*outcome[1:])
                except Exception as error:  # whatever unpickling may raise
                    self._error = error
            self._settled = True

    def __repr__(self) -> str:
        state = "running" if self._native.profile()["sent"] else "queued"
        if self.done():
            state = "done"
            if self._settled and self._error is not None:
                state = f"failed: {type(self._error).__name__}"
        return f"<gridrpc.Call of {self.function_name}: {state}>"


def as_completed(calls: Iterable[Call[T]], timeout: float | None = None) -> Iterator[Call[T]]:
    """The calls, each as soon as it has ended.

    Raises TimeoutError if they have not all ended `timeout` seconds from now.
    """
    watch = _native.Watch()
    waited = list(dict.fromkeys(calls))
    for token, call in enumerate(waited):
        call._grid._check_process()
        call._native.watch(watch, token)
    until = None if timeout is None else time.monotonic() + timeout
    left = len(waited)
    while left:
        tokens = watch.take(None if until is None else max(0.0, until - time.monotonic()))
        if not tokens:
            raise TimeoutError(f"{left} of {len(waited)} calls take longer than {timeout} s")
        left -= len(tokens)
        for token in tokens:
            yield waited[token]


class Dispatcher:
    """Runs callbacks of ended calls in a thread of its own, which starts with the first of them."""

    #: Token that ends the thread.
    STOP = 0

    def __init__(self) -> None:
        self._watch = _native.Watch()
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._next = self.STOP + 1
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, call: _native.Call, callback: Callable[[], object]) -> None:
        """Have `callback` called when `call` has ended, or soon if it has."""
        with self._lock:
            if not self._stopped:
                token = self._next
                self._next += 1
                self._callbacks[token] = callback
                if self._thread is None:
                    name = "gridrpc-callbacks"
                    self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                    self._thread.start()
                call.watch(self._watch, token)
                return
        # The grid is closed, so the call has ended.
        self._call(callback)

    def stop(self) -> None:
        """Run what is due, then end the thread. All calls have ended."""
        with self._lock:
            self._stopped = True
            thread = self._thread
        if thread is not None:
            self._watch.push(self.STOP)
            if thread is not threading.current_thread():
                thread.join()

    def _run(self) -> None:
        while True:
            tokens = self._watch.take()
            for token in tokens:
                if token != self.STOP:
                    self._call(self._callbacks.pop(token))
            if self.STOP in tokens:
                return

    @staticmethod
    def _call(callback: Callable[[], object]) -> None:
        from gridrpc._log import logger

        try:
            callback()
        except BaseException:  # the callback is the user's, the thread is everybody's
            logger.exception("a callback of a call raised an error")
