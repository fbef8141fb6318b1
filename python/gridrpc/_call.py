"""Calls: what their native class leaves to Python, and waiting for many of them."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from gridrpc import _native
from gridrpc._native import Call
from gridrpc.errors import GridError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from gridrpc._profile import Profile
    from gridrpc._wakeup import LoopWakeup

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


def output_of(call: Call[Any], stream: str) -> str:
    """`Call.stdout` and `Call.stderr`."""
    error = call.exception()
    captured = call._captured or getattr(error, "_captured", None)
    if captured is not None:
        text: str = getattr(captured, stream)
        return text
    if call._grid._captures and isinstance(error, GridError):
        # The function has not answered.
        return ""
    from gridrpc._results import NOT_CAPTURED

    raise ValueError(NOT_CAPTURED)


def profile_of(call: Call[Any]) -> Profile:
    """`Call.profile`."""
    import socket  # for this only

    from gridrpc._profile import Profile

    values = call._profile()
    for name in ("sent", "received", "calc_in", "calc_out", "retrieve"):
        values[name] = values[name] or float("nan")
    host = ""
    if values["pid"]:
        host = call._grid._native.host_of(values["worker"]) or socket.gethostname()
    return Profile(host=host, **values)


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

        def notify() -> None:
            # A loop that has been closed meanwhile waits for nothing.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(wake)

        call._grid._dispatcher.add_soon(call, notify, loop)
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


class AsCompleted(Iterator[Call[T]]):
    """Calls as they end. More can be added at any time."""

    def __init__(self, calls: Iterable[Call[T]], timeout: float | None) -> None:
        self._timeout = timeout
        self._until = None if timeout is None else time.monotonic() + timeout
        #: Not looked at yet: most programs that start over each time take the first one and go.
        self._fresh = deque(dict.fromkeys(calls))
        #: By token, those that had not ended.
        self._watched: dict[int, Call[T]] = {}
        self._watch = _native.Watch()
        self._ended: deque[int] = deque()
        self._next = 0
        #: While it is gone through by `async for`.
        self._wakeup: LoopWakeup | None = None
        for call in self._fresh:
            _check(call)

    def add(self, call: Call[T]) -> None:
        """Give this call as well when it has ended."""
        self.update((call,))

    def update(self, calls: Iterable[Call[T]]) -> None:
        """Give these calls as well, each when it has ended."""
        for call in calls:
            _check(call)
            self._fresh.append(call)
        if self._wakeup is not None:
            self._wakeup.notify()

    def __len__(self) -> int:
        """How many are still to be given."""
        return len(self._fresh) + len(self._watched)

    def __next__(self) -> Call[T]:
        call = self._fresh_that_has_ended()
        if call is not None:
            return call
        if not self._watched:
            raise StopIteration
        if not self._ended:
            self._ended.extend(self._watch.take(self._left()))
            if not self._ended:
                raise self._too_late()
        return self._watched.pop(self._ended.popleft())

    def _fresh_that_has_ended(self) -> Call[T] | None:
        """The first of those not looked at that has ended; those before it are watched."""
        while self._fresh:
            call = self._fresh.popleft()
            if call.done():
                return call
            self._watched[self._next] = call
            call._watch(self._watch, self._next)
            if self._wakeup is not None:
                self._wakeup.watch(call)
            self._next += 1
        return None

    def _left(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def _too_late(self) -> TimeoutError:
        return TimeoutError(f"{len(self)} calls take longer than {self._timeout} s")

    def __aiter__(self) -> AsyncIterator[Call[T]]:
        return self._one_by_one()

    async def _one_by_one(self) -> AsyncIterator[Call[T]]:
        from gridrpc._wakeup import LoopWakeup  # asyncio takes 40 ms: not before it is needed

        self._wakeup = LoopWakeup()
        for call in self._watched.values():
            self._wakeup.watch(call)
        try:
            while len(self):
                ended = self._fresh_that_has_ended()
                if ended is None:
                    self._ended.extend(self._watch.take(0.0))
                    if not self._ended:
                        if not await self._wakeup.wait(self._left()):
                            raise self._too_late()
                        continue
                    ended = self._watched.pop(self._ended.popleft())
                yield ended
        finally:
            self._wakeup = None


def _check(call: Call[Any]) -> None:
    if not isinstance(call, _native.Call):
        from gridrpc._directory_call import DirectoryCall

        if not isinstance(call, DirectoryCall):
            raise TypeError(
                f"{type(call).__name__} is not a call of a grid: for futures, those of an Executor "
                "included, use `wait` and `as_completed` of concurrent.futures, which also take "
                "calls"
            )
    call._grid._check_process()


def as_completed(calls: Iterable[Call[T]], timeout: float | None = None) -> AsCompleted[T]:
    """The calls, each as soon as it has ended.

    The returned iterator takes further calls during the iteration, by `add` and `update`. A call
    that is given twice comes once. Raises TimeoutError if not all calls have ended `timeout`
    seconds from now.
    """
    return AsCompleted(calls, timeout)


class Waited(NamedTuple, Generic[T]):
    """What `wait` returns."""

    done: set[Call[T]]
    not_done: set[Call[T]]


def wait(
    calls: Iterable[Call[T]], timeout: float | None = None, return_when: str = "ALL_COMPLETED"
) -> Waited[T]:
    """Wait for calls, as `concurrent.futures.wait`: returns the ended calls, and the others.

    `return_when`: "ALL_COMPLETED", "FIRST_COMPLETED" or "FIRST_EXCEPTION". After `timeout` seconds
    it returns in any case. Raises ValueError for another `return_when`.
    """
    if return_when not in {"ALL_COMPLETED", "FIRST_COMPLETED", "FIRST_EXCEPTION"}:
        raise ValueError(
            f"`return_when` is {return_when!r}: give ALL_COMPLETED, FIRST_COMPLETED or "
            "FIRST_EXCEPTION"
        )
    not_done = set(calls)
    for call in not_done:
        _check(call)
    done = {call for call in not_done if call.done()}
    not_done -= done

    def enough(ended: Iterable[Call[T]]) -> bool:
        if return_when == "FIRST_COMPLETED":
            return any(True for _ in ended)
        return return_when == "FIRST_EXCEPTION" and any(map(_has_failed, ended))

    if not_done and not enough(done):
        with contextlib.suppress(TimeoutError):
            for call in AsCompleted(not_done, timeout):
                done.add(call)
                if enough((call,)):
                    break
        done.update(call for call in not_done if call.done())
        not_done -= done
    return Waited(done, not_done)


def _has_failed(call: Call[Any]) -> bool:
    """Whether it raised an error; to be cancelled is none, as for futures."""
    from gridrpc._cancelled import CallCancelled

    error = call.exception()
    return error is not None and not isinstance(error, CallCancelled)


class Follower:
    """What `concurrent.futures` looks at of a call that it waits for."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.waiters: list[Any] = []
        self.state = "PENDING"

    def settle(self, call: Call[Any]) -> None:
        """The call has ended: tell who waits for it."""
        with self.condition:
            failed = call.exception() is not None
            self.state = "CANCELLED_AND_NOTIFIED" if cancelled(call) else "FINISHED"
            for waiter in self.waiters:
                if cancelled(call):
                    waiter.add_cancelled(call)
                elif failed:
                    waiter.add_exception(call)
                else:
                    waiter.add_result(call)
            self.condition.notify_all()


_followers: weakref.WeakKeyDictionary[Call[Any], Follower] = weakref.WeakKeyDictionary()
_follow = threading.Lock()


def follower(call: Call[Any]) -> Follower:
    """That of a call; it is made when somebody asks for it."""
    if not call.done():
        # Before anything is kept that would need it.
        call._grid._dispatcher.start()
    with _follow:
        made = _followers.get(call)
        if made is not None:
            return made
        made = _followers[call] = Follower()
    if call.done():
        made.settle(call)
    else:
        add_done_callback(call, made.settle)
    return made


class Dispatcher:
    """Runs callbacks of ended calls in a thread of its own, which starts with the first of them."""

    #: Token that ends the thread.
    STOP = 0
    #: Seconds between attempts to start the thread: a shortage of threads may pass.
    PAUSES = (0.01, 0.03, 0.1, 0.3, 0.6)
    #: The same for an event loop, which must not be held up.
    LOOP_PAUSE = 0.05

    def __init__(self) -> None:
        self._watch = _native.Watch()
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._next = self.STOP + 1
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, call: Call[Any], callback: Callable[[], object]) -> None:
        """Have `callback` called when `call` has ended, or soon if it has.

        Raises RuntimeError, and will not call it, if no thread can be started for it.
        """
        if not call.done():
            self.start()
        self._add(call, callback)

    def add_soon(
        self, call: Call[Any], callback: Callable[[], object], loop: AbstractEventLoop
    ) -> None:
        """The same for a callback that an event loop needs, which tries again without a thread."""
        if call.done() or self._has_thread():
            self._add(call, callback)
        else:
            loop.call_later(self.LOOP_PAUSE, self.add_soon, call, callback, loop)

    def start(self) -> None:
        """See that there is a thread. Raises RuntimeError if none can be started for a second."""
        if self._thread is not None:
            return
        for pause in self.PAUSES:
            if self._has_thread():
                return
            time.sleep(pause)
        if not self._has_thread():
            raise RuntimeError(
                "no thread can be started to run callbacks of calls: see `ulimit -u`, and "
                "`pids.max` of the control group"
            )

    def _has_thread(self) -> bool:
        """Whether there is a thread, or none is needed any more; starts one if that is possible."""
        if self._thread is not None:
            return True
        with self._lock:
            if self._thread is None and not self._stopped:
                name = "gridrpc-callbacks"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return False
                self._thread = thread
        return True

    def _add(self, call: Call[Any], callback: Callable[[], object]) -> None:
        with self._lock:
            if not self._stopped and self._thread is not None:
                token = self._next
                self._next += 1
                self._callbacks[token] = callback
                call._watch(self._watch, token)
                return
        # The call has ended.
        self._call(callback)

    def stop(self) -> None:
        """Run due callbacks, then end the thread. All calls have ended."""
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
        try:
            callback()
        except BaseException:  # the callback is the user's, the thread is everybody's
            # Not before: loading `logging` would keep the first results of a program waiting.
            from gridrpc._log import logger

            logger.exception("a callback of a call raised an error")
