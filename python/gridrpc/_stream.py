"""`Grid.stream`: the parts that a generator in a worker yields, while it runs."""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from gridrpc._cancelled import CallCancelled
from gridrpc._instances import Method, Producer, make
from gridrpc._modules import FINALIZE_TIME
from gridrpc._native import CallOptions
from gridrpc._options import DEFAULT
from gridrpc._pickling import dumps
from gridrpc._results import NOT_CAPTURED
from gridrpc._wrapped import name_of
from gridrpc.errors import DeadlineExceeded, GridClosed, ObjectLost, WorkerLost

if TYPE_CHECKING:
    from gridrpc._grid import Grid
    from gridrpc._native import Call, Function, Reserved

T = TypeVar("T")

#: Parts that a generator makes ahead of the loop, unless the caller says otherwise.
AHEAD = 8
#: How a stream ends that is given up, apart from errors of the generator itself.
_GIVEN_UP = (CallCancelled, DeadlineExceeded, GridClosed, ObjectLost, WorkerLost)


class Stream(Iterator[T], AsyncIterator[T], Generic[T]):
    """Parts of a generator that runs in a worker, for `for` and `async for`. See `Grid.stream`."""

    def __init__(
        self,
        grid: Grid,
        function: str | Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        buffer: int,
        timeout: float | None,
        server: str | None,
    ) -> None:
        if isinstance(buffer, bool) or not isinstance(buffer, int) or buffer < 0:
            raise ValueError(f"`buffer` is {buffer!r}: give a number of parts from 0 on")
        functions = grid._functions
        if not isinstance(function, str):
            functions.check_python(function, may_yield=True)
        self._grid = grid
        self._name = name_of(function)
        self._buffer = buffer
        self._timeout = timeout
        self._until = None if timeout is None else monotonic() + timeout
        #: What the generator wrote for the part that was taken last.
        self._output = "", ""
        #: One call for each part that is under way, in their order.
        self._calls: deque[Call[tuple[T] | None]] = deque()
        native = grid._native
        self._take = functions.method(f"{self._name}.take", Method("take"))
        # Made now, as a stream may be collected anywhere, also while something is being pickled.
        self._close = native.register(f"{self._name}.close", dumps(Method("close"))[0])
        self._on: Reserved | None = native.reserve(grid._server(server), True, False)
        try:
            making = native.register(self._name, functions.located(dumps(make)[0]))
            made_of = (function, args, kwargs)
            self._making = self._submit(making, (Producer, made_of, {}))
            self._fill(buffer)
        except BaseException:
            self._release()
            raise

    def __next__(self) -> T:
        call = self._first()
        if call is None:
            raise StopIteration
        if not call.wait(self._left()):
            raise self._too_late()
        part = self._part(call)
        if part is None:
            raise StopIteration
        return part[0]

    async def __anext__(self) -> T:
        from gridrpc._wakeup import LoopWakeup  # asyncio takes 40 ms: not before it is needed

        call = self._first()
        if call is None:
            raise StopAsyncIteration
        if not call.done():
            wakeup = LoopWakeup()
            wakeup.watch(call)
            if not await wakeup.wait(self._left()) and not call.done():
                raise self._too_late()
        part = self._part(call)
        if part is None:
            raise StopAsyncIteration
        return part[0]

    def __iter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    @property
    def stdout(self) -> str:
        """What the generator wrote to standard output for the part that was taken last.

        Of a grid with `output="captured"`, as `Call.stdout`. Raises ValueError for other grids.
        """
        return self._captured()[0]

    @property
    def stderr(self) -> str:
        """What the generator wrote to standard error, as `stdout`."""
        return self._captured()[1]

    def _captured(self) -> tuple[str, str]:
        if not self._grid._captures:
            raise ValueError(NOT_CAPTURED)
        return self._output

    def close(self) -> None:
        """End the generator and its worker. A second call does nothing.

        The generator gets GeneratorExit where it has yielded, and its `finally` blocks have 10 s.
        One that computes its next part gets it when it yields, if that is within the grid's
        `grace`; otherwise its worker is ended. Raises what the generator raises at its end.
        """
        on, closing = self._give_up()
        if on is None:
            return
        try:
            if closing is not None:
                error = closing.exception()
                if error is not None and not isinstance(error, _GIVEN_UP):
                    raise error
        finally:
            self._grid._native.release(on)

    async def aclose(self) -> None:
        """`close` for `contextlib.aclosing`: does not hold the event loop up."""
        import asyncio

        await asyncio.to_thread(self.close)

    def _submit(self, function: Function, args: tuple[Any, ...] = ()) -> Call[Any]:
        return self._grid._native.submit(self._grid, function, args, {}, DEFAULT, self._on)

    def _fill(self, count: int) -> ObjectLost | None:
        """Have so many parts under way. Returns why no more can be, if the worker was lost."""
        while len(self._calls) < count:
            try:
                self._calls.append(self._submit(self._take))
            except ObjectLost as error:
                return error
        return None

    def _first(self) -> Call[tuple[T] | None] | None:
        """The call of the next part; None: there are no more."""
        if self._on is None:
            return None
        self._grid._check_process()
        lost = self._fill(max(1, self._buffer))
        if not self._calls and lost is not None:
            self._release()
            raise _worker_lost(lost)
        # Parts from before a loss come first.
        return self._calls[0]

    def _part(self, call: Call[tuple[T] | None]) -> tuple[T] | None:
        """What a call that has ended came to."""
        self._calls.popleft()
        if self._grid._captures:
            error = call.exception()
            captured = call._captured or getattr(error, "_captured", None)
            self._output = (captured.stdout, captured.stderr) if captured else ("", "")
        try:
            part = call.result()
        except BaseException as error:
            # What keeps the generator from being made comes first.
            cause = self._making.exception() if self._making.done() else None
            self._release()
            if cause is not None and cause is not error:
                raise cause from None
            if isinstance(error, ObjectLost):
                raise _worker_lost(error) from None
            raise
        if part is None:
            self._release()
        else:
            self._fill(self._buffer)
        return part

    def _left(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - monotonic())

    def _too_late(self) -> TimeoutError:
        return TimeoutError(
            f"stream: the next part of {self._name} is not there {self._timeout} s after the start"
        )

    def _release(self) -> None:
        """Give the worker back; calls that have not ended are cancelled."""
        on, self._on = self._on, None
        self._calls.clear()
        if on is not None:
            self._grid._native.release(on)

    def _give_up(self) -> tuple[Reserved | None, Call[None] | None]:
        """Cancel what is under way, and have the generator end: its worker, and that call."""
        on, self._on = self._on, None
        calls = [*self._calls]
        self._calls.clear()
        if on is None or self._grid._forked:
            return None, None
        # The last one first: none of them is to begin meanwhile.
        for call in reversed(calls):
            call.cancel()
        grid = self._grid
        standing, _ = grid._native.standing(on, 0.0, self._name)
        if standing != "ready" or grid._closed or not self._making.done():
            return on, None
        options = CallOptions(deadline=FINALIZE_TIME)
        return on, grid._native.submit(grid, self._close, (), {}, options, on)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self.__dict__.get("_on") is None:
            return
        on, closing = self._give_up()
        if on is None:
            return
        if closing is not None:
            # Whoever drops a stream does not wait for it. No lock of `threading` is taken here,
            # which this thread may hold when the stream is collected.
            try:
                _thread.start_new_thread(_release_later, (self._grid, on, closing))
                return
            except RuntimeError:
                pass
        self._grid._native.release(on)

    def __repr__(self) -> str:
        state = "ended" if self._on is None else f"{len(self._calls)} parts under way"
        return f"<gridrpc.Stream of {self._name}: {state}>"


def _release_later(grid: Grid, on: Reserved, closing: Call[None]) -> None:
    """Give a worker back when its generator has ended."""
    error = closing.exception()
    grid._native.release(on)
    if error is not None and not isinstance(error, _GIVEN_UP):
        from gridrpc._log import logger

        logger.error("a generator has raised an error at its end", exc_info=error)


def _worker_lost(error: ObjectLost) -> WorkerLost:
    """The error for those who know of no object."""
    message, *how = error.args
    return WorkerLost(message.replace("the worker that held the object", "the worker", 1), *how)
