"""Calls: what their native class leaves to Python, and waiting for many of them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from gridrpc import _native
from gridrpc._native import Call

if TYPE_CHECKING:
    from gridrpc._profile import Profile

T = TypeVar("T")


def cancel(call: Call[Any]) -> bool:
    """`Call.cancel`."""
    return call._grid._native.cancel(call)


def cancelled(call: Call[Any]) -> bool:
    """`Call.cancelled`."""
    if not call.done():
        return False
    from gridrpc._cancelled import CallCancelled

    return isinstance(call.exception(), CallCancelled)


def profile_of(call: Call[Any]) -> Profile:
    """`Call.profile`."""
    import socket  # for this only

    from gridrpc._profile import Profile

    values = call._profile()
    for name in ("sent", "received", "calc_in", "calc_out", "retrieve"):
        values[name] = values[name] or float("nan")
    return Profile(host=socket.gethostname() if values["pid"] else "", **values)


def add_done_callback(call: Call[T], callback: Callable[[Call[T]], object]) -> None:
    """`Call.add_done_callback`."""
    call._grid._dispatcher.add(call, lambda: callback(call))


async def wait_async(call: Call[T]) -> T:
    """`await call`. A task that is cancelled while it waits gives up the call."""
    if not call.done():
        import asyncio  # takes 40 ms: not before it is needed

        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def wake() -> None:
            if not ended.done():
                ended.set_result(None)

        def tell() -> None:
            # A loop that has been closed meanwhile waits for nothing.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(wake)

        call._grid._dispatcher.add(call, tell)
        try:
            await ended
        except asyncio.CancelledError:
            call.cancel()
            raise
    return call.result()


def describe(call: Call[Any]) -> str:
    """`repr(call)`."""
    state = "running" if call._profile()["sent"] else "queued"
    if call.done():
        error = call.exception()
        state = "done" if error is None else f"failed: {type(error).__name__}"
    return f"<gridrpc.Call of {call.function_name}: {state}>"


def as_completed(calls: Iterable[Call[T]], timeout: float | None = None) -> Iterator[Call[T]]:
    """The calls, each as soon as it has ended.

    Raises TimeoutError if they have not all ended `timeout` seconds from now.
    """
    watch = _native.Watch()
    waited = list(dict.fromkeys(calls))
    for token, call in enumerate(waited):
        call._grid._check_process()
        call._watch(watch, token)
    until = None if timeout is None else time.monotonic() + timeout

    def ended() -> Iterator[Call[T]]:
        left = len(waited)
        while left:
            tokens = watch.take(None if until is None else max(0.0, until - time.monotonic()))
            if not tokens:
                raise TimeoutError(f"{left} of {len(waited)} calls take longer than {timeout} s")
            left -= len(tokens)
            for token in tokens:
                yield waited[token]

    return ended()


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

    def add(self, call: Call[Any], callback: Callable[[], object]) -> None:
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
                call._watch(self._watch, token)
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
