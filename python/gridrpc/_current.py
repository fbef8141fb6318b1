"""Calls from inside functions: the grid that runs a function, as that function sees it.

A worker that waits for such a call runs it itself if no other has begun it and it may run there.
Otherwise the call gets an extra worker if all workers of its server wait. So nobody waits for a
worker that waits, however deep calls are nested.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gridrpc._pickling import dumps
from gridrpc._references import Captured, captured_by, has_state, importable_name
from gridrpc._wrapped import Located, check_kind, name_of, runnable
from gridrpc.errors import (
    DeadlineExceeded,
    GridError,
    LimitReached,
    ServerNotFound,
    WorkerLost,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gridrpc._native import Worker

T = TypeVar("T")

#: Requests to the client, by the numbers of crates/wire/src/nested_call.rs.
SUBMIT, WAIT, DONE, CANCEL = 0xFFFF, 0xFFFE, 0xFFFD, 0xFFFC

#: Options of `Grid.submit` that its calls cannot have.
NOT_HERE = {"cores", "memory", "resources", "expected", "ranks"}
#: The answer if there is no such server.
NO_SERVER = "no server"
#: The server that means the machine of the function.
LOCAL = "localhost"
#: Calls that a function may have under way. At the next one it waits for the oldest.
MOST_UNDER_WAY = 1000
#: Of those, calls of one `map`.
MOST_OF_MAP = 100
#: Seconds between looks at a call that is waited for with a time-out: the first and the longest.
FIRST_LOOK, LONGEST_LOOK = 0.001, 0.05


def current_grid() -> CurrentGrid:
    """The grid that runs this function, for calls that run in the same grid.

    Raises RuntimeError outside of functions that workers run, and in threads that such functions
    have started.
    """
    worker, call = _running()
    global _current
    if _current is None or _current._call != call:
        _current = CurrentGrid(worker, call)
    return _current


_current: CurrentGrid | None = None


def _running() -> tuple[Worker, int]:
    from gridrpc import _worker

    worker = _worker._worker
    call = None if worker is None else worker.current()
    if worker is None or call is None:
        raise RuntimeError("current_grid() is for functions that a grid runs, while they run")
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("only the thread that runs the function can make calls")
    return worker, call


class CurrentGrid:
    """The grid that runs a function, from `current_grid`, until that function has returned."""

    def __init__(self, worker: Worker, call: int) -> None:
        self._worker = worker
        self._call = call
        self._under_way: deque[NestedCall[Any]] = deque()
        #: Whether the function runs a call that stays on this machine, with all that it calls.
        self._is_local = False
        #: Pickles by the identity of their function; each with that, so that it stays what it is.
        self._pickles: dict[int, tuple[Any, Captured, bytes]] = {}

    def submit(
        self,
        fn: str | Callable[..., T],
        /,
        *args: Any,
        deadline: float | None = None,
        idempotent: bool = False,
        priority: int = 0,
        server: str | None = None,
        **kwargs: Any,
    ) -> NestedCall[T]:
        """Call `fn(*args, **kwargs)` on some worker of the grid.

        The options are those of `Grid.submit`, except those that say what a call needs: a function
        that waits keeps its place and all that it has taken of its host. `server` names a server
        or a host of the client's grid. `"localhost"` means the machine that runs this function:
        the call, its data and the calls that it makes itself stay there and do not pass the
        client. If a thousand calls are under way, this method waits for the oldest of them. Raises
        ServerNotFound, and TypeError for an option that it does not have.
        """
        for option in sorted(kwargs.keys() & NOT_HERE):
            raise TypeError(
                f"calls that functions make have no `{option}`: the function that waits for one "
                "keeps its place and what it has taken of its host, and two such functions could "
                "wait for each other. Have the client make the call, where `submit` has "
                f"`{option}`; an argument of that name is given by its position"
            )
        from gridrpc._worker import places, reloaded

        function = self._pickled(fn)
        form, body = ("named", b"") if function is None else ("pickled", function)
        name = (fn if isinstance(fn, str) else importable_name(fn)) if function is None else None
        if places or reloaded:
            # The worker that runs the call may not have them.
            located = Located(name or body, [*places], {**reloaded})
            form, body = "pickled", pickle.dumps(located, 5)
        head, buffers = dumps((args, kwargs))
        if deadline is not None and not 0 <= deadline < float("inf"):
            raise ValueError(
                f"a deadline of {deadline} s: give a finite number of seconds from 0 on"
            )
        after = "" if deadline is None else str(int(deadline * 1e9))
        place = self._place(server)
        texts = [form, name or name_of(fn), after, str(int(idempotent)), str(int(priority))]
        self._make_room()
        while not (answer := self._ask(SUBMIT, [*texts, place], [body, head, *buffers])[0]):
            if not self._under_way:
                raise GridError(
                    "too many calls wait for workers: `max_queued` and `max_queued_bytes` of the "
                    "grid bound how many may"
                )
            self._under_way.popleft()._settle()
        if answer[0] == NO_SERVER:
            raise ServerNotFound(answer[1])
        (number,) = answer
        call: NestedCall[T] = NestedCall(self, fn, int(number), place)
        self._under_way.append(call)
        return call

    def map(
        self, fn: str | Callable[..., T], /, *iterables: Iterable[Any], server: str | None = None
    ) -> Iterator[T]:
        """The results of `fn` for the items of `iterables`, in their order."""
        if not iterables:
            raise TypeError("map() needs at least one iterable")
        under_way: deque[NestedCall[T]] = deque()
        try:
            for args in zip(*iterables, strict=False):
                under_way.append(self.submit(fn, *args, server=server))
                if len(under_way) >= MOST_OF_MAP:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for call in under_way:
                call.cancel()

    def _place(self, server: str | None) -> str:
        if not self._is_local:
            return server or ""
        if server in {None, LOCAL}:
            return LOCAL
        raise ServerNotFound(
            f'there is no server "{server}" for a call that stays on its machine: the name that it '
            f'can use is "{LOCAL}"'
        )

    def _pickled(self, fn: str | Callable[..., Any]) -> bytes | None:
        """The pickle of a function that does not go by name."""
        if isinstance(fn, str):
            if "/" not in fn:
                raise ValueError(f"`{fn}` is not a function's name: write `module/function`")
            return None
        if not callable(fn):
            raise TypeError(f"an object of type {type(fn).__name__} cannot be called: {fn!r}")
        check_kind(fn)
        if importable_name(fn) is not None:
            return None
        from gridrpc._pickling import dumps_by_value

        if has_state(fn):
            return dumps_by_value(fn, in_band=True)[0]
        known = self._pickles.get(id(fn))
        if known is None or known[1].unchecked or not known[1].is_current(fn):
            captured = captured_by(fn)
            known = self._pickles[id(fn)] = fn, captured, dumps_by_value(fn, in_band=True)[0]
        return known[2]

    def _make_room(self) -> None:
        while self._under_way and self._under_way[0]._settled:
            self._under_way.popleft()
        if len(self._under_way) >= MOST_UNDER_WAY:
            self._under_way.popleft()._settle()

    def _ask(
        self, request: int, texts: list[str], sections: list[Any]
    ) -> tuple[list[str], list[Any]]:
        worker, call = _running()
        if call != self._call:
            raise RuntimeError("the function that has made this call has returned")
        try:
            return worker.ask(request, texts, sections)
        except RuntimeError as error:
            raise GridError(str(error)) from None

    def __repr__(self) -> str:
        return f"<gridrpc.CurrentGrid in worker {self._worker.number}>"


class NestedCall(Generic[T]):
    """A call that a function has made by `current_grid`, until that function has returned."""

    def __init__(
        self, grid: CurrentGrid, function: str | Callable[..., T], number: int, server: str
    ) -> None:
        self._grid = grid
        self._function = function
        # Requests go where the call was made.
        self._texts = [str(number), server]
        self._settled = False
        self._value: Any = None
        self._error: BaseException | None = None

    def result(self, timeout: float | None = None) -> T:
        """The result of the call; waits for it, at most `timeout` seconds.

        Without a `timeout`, this worker runs the call itself if no other worker has begun it.
        Raises the error that the function raised, TimeoutError, WorkerLost, DeadlineExceeded or
        CallCancelled.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        value: T = self._value
        return value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error that `result` would raise, or None. Raises TimeoutError as `result` does."""
        if not self._settled:
            if timeout is not None:
                self._look_until(time.monotonic() + timeout, timeout)
            self._settle()
        return self._error

    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._settled or self._tell(DONE)

    def cancel(self) -> bool:
        """Cancel the call. Returns False if it had ended before."""
        return not self._settled and self._tell(CANCEL)

    def _tell(self, request: int) -> bool:
        (answer,), _ = self._grid._ask(request, self._texts, [])
        return answer == "1"

    def _look_until(self, end: float, timeout: float) -> None:
        pause = FIRST_LOOK
        while not self.done():
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{name_of(self._function)} takes longer than {timeout} s")
            time.sleep(min(left, pause))
            pause = min(2 * pause, LONGEST_LOOK)

    def _settle(self) -> None:
        texts, sections = self._grid._ask(WAIT, self._texts, [])
        # From here on nobody else has it.
        self._settled = True
        kind, *more = texts
        try:
            if kind == "run":
                self._value = self._run(sections)
            elif kind == "returned":
                self._value = _loads(sections)
            elif kind == "raised":
                self._error = _raised(*more, sections=sections)
            else:
                self._error = _ended(name_of(self._function), kind, more)
        except (Exception, SystemExit) as error:
            self._error = error

    def _run(self, sections: list[Any]) -> T:
        from gridrpc._worker import find_named

        function = self._function
        called: Any = find_named(function) if isinstance(function, str) else function
        args, kwargs = _loads(sections)
        was_local = self._grid._is_local
        self._grid._is_local = was_local or self._texts[1] == LOCAL
        try:
            result: T = runnable(called)(*args, **kwargs)
        finally:
            self._grid._is_local = was_local
        return result

    def __reduce__(self) -> Any:
        raise TypeError("a call of a running function cannot be pickled: give its result")

    def __repr__(self) -> str:
        state = "settled" if self._settled else "under way"
        return f"<gridrpc.NestedCall of {name_of(self._function)}: {state}>"


def _loads(sections: list[Any]) -> Any:
    head, *buffers = sections
    return pickle.loads(head, buffers=buffers)


def _raised(type_name: str, message: str, trace: str, *, sections: list[Any]) -> BaseException:
    from gridrpc.errors import RemoteError, RemoteTraceback

    try:
        error = _loads(sections) if sections and len(sections[0]) else None
    except Exception:  # whatever its own __setstate__ or __init__ may raise
        error = None
    if not isinstance(error, BaseException):
        error = RemoteError(f"{type_name}: {message}")
        error.type_name, error.traceback = type_name, trace
    # Errors may refuse to be changed in the usual way.
    BaseException.__setattr__(error, "__cause__", RemoteTraceback(trace))
    return error


def _ended(name: str, kind: str, more: list[str]) -> BaseException:
    if kind == "cancelled":
        from gridrpc._cancelled import CallCancelled

        return CallCancelled(f"the call of {name} was cancelled")
    if kind == "limit":
        return LimitReached(f"the call of {name}: {more[0]}")
    if kind == "deadline":
        return DeadlineExceeded(f"the call of {name} missed its deadline")
    if kind == "lost":
        text, worker, pid, host, status, signal, out_of_memory, stderr = more
        return WorkerLost(
            f"a worker was lost that ran {name}: {text}",
            int(worker),
            int(pid),
            host,
            int(status) if status else None,
            int(signal) if signal else None,
            out_of_memory == "1",
            stderr,
        )
    return GridError(f"the call of {name} has ended: {' '.join(more)}")
