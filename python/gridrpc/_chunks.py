"""Chunks of `map`: many items in one call, and what a worker makes of them.

Items are kept apart wherever that can be noticed. Plain values travel as lists, and small arrays of
one shape as rows of one; anything else is pickled by itself, so that an object that is given twice
arrives as two, as it does in calls of their own. An error ends a chunk behind the results of the
items before it.
"""

from __future__ import annotations

import pickle
import sys
from itertools import islice, repeat, starmap
from pickle import loads
from time import monotonic_ns

from gridrpc import _native
from gridrpc._pickling import dumps
from gridrpc._wrapped import Wrapped, output_before

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Description = tuple[str, str, str, bytes, list[Any]]

#: Modules between the loop of a worker and the function that it calls.
OWN = frozenset(
    {
        "gridrpc._worker",
        "gridrpc._wrapped",
        "gridrpc._scratch",
        "gridrpc._session.task",
        __name__,
    }
)
FOREVER = 1 << 63
#: Results that are pickled one by one end their chunk at this size, bytes.
MOST_RESULT_BYTES = 1 << 20


class Parts:
    """Values pickled one by one. `counts`: how many of the buffers each has; empty: none."""

    __slots__ = ("buffers", "counts", "heads")

    def __init__(
        self,
        heads: list[bytes] | None = None,
        counts: list[int] | None = None,
        buffers: list[Any] | None = None,
    ) -> None:
        self.heads = [] if heads is None else heads
        self.counts = [] if counts is None else counts
        self.buffers = [] if buffers is None else buffers

    def __reduce__(self) -> tuple[type[Parts], tuple[list[bytes], list[int], list[Any]]]:
        return Parts, (self.heads, self.counts if self.buffers else [], self.buffers)

    def __len__(self) -> int:
        return len(self.heads)

    def add(self, head: bytes, buffers: list[pickle.PickleBuffer]) -> None:
        """Append a pickled value."""
        self.heads.append(head)
        self.counts.append(len(buffers))
        self.buffers.extend(buffers)

    def values(self) -> Iterator[Any]:
        """The values, each unpickled when it is taken."""
        if not self.buffers:
            yield from map(loads, self.heads)
            return
        for head, buffers in self._pieces():
            yield loads(head, buffers=buffers)

    def outcomes(self, stand_in: Callable[[BaseException], Any]) -> Iterator[Any]:
        """The values; for one that cannot be unpickled, what stands in for the error."""
        for head, buffers in self._pieces():
            try:
                yield loads(head, buffers=buffers)
            except Exception as error:
                yield stand_in(error)

    def _pieces(self) -> Iterator[tuple[bytes, list[Any]]]:
        buffers = iter(self.buffers)
        for head, count in zip(self.heads, self.counts or repeat(0)):  # noqa: B905 - may be infinite
            yield head, list(islice(buffers, count))


#: Bytes of an array that goes as a row of another, at most: to pickle larger ones takes no longer.
SMALL_ARRAY = 2048
#: Kinds of elements that a row has as the array had them.
NUMBERS = "biufc"


class Rows:
    """Arrays of one shape and type, as rows of one array; whoever takes one has it to himself."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __reduce__(self) -> tuple[type[Rows], tuple[Any]]:
        return Rows, (self.array,)

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return (row.copy() for row in self.array)


def as_rows(values: list[Any]) -> Rows | None:
    """Small arrays of numbers that differ in nothing else as rows of one; None: they are others."""
    numpy = sys.modules.get("numpy")
    first = values[0]
    if numpy is None or type(first) is not numpy.ndarray:
        return None
    kind, shape = first.dtype, first.shape
    if (
        kind.kind not in NUMBERS
        or not kind.isnative
        or not shape
        or first.nbytes > SMALL_ARRAY
        or not all(
            type(value) is numpy.ndarray
            and value.dtype == kind
            and value.shape == shape
            and value.flags.c_contiguous
            for value in values
        )
    ):
        return None
    return Rows(numpy.stack(values))


class Stopped:
    """Outcome of an unfinished chunk: the results of its first items.

    `error`: of the item behind them; None if time was up, and the others have to be sent again.
    """

    __slots__ = ("error", "results")

    def __init__(self, results: list[Any] | Parts, error: Description | None) -> None:
        self.results = results
        self.error = error

    def __reduce__(self) -> tuple[type[Stopped], tuple[list[Any] | Parts, Description | None]]:
        return Stopped, (self.results, self.error)


class Chunked(Wrapped):
    """Calls a function with each item of a chunk."""

    def __call__(
        self, items: list[list[Any] | Rows] | Parts, limit: int
    ) -> list[Any] | Parts | Stopped:
        """Results of the items: columns of plain arguments, or pickled tuples of arguments.

        `limit`: after so many ns no further item is begun; 0: all are run.
        """
        # Until the first item begins, the call does not count as begun.
        so_far = _so_far()
        function = self.resolved()
        if isinstance(items, Parts):
            count = len(items)
            calls: Iterator[Any] = starmap(function, items.values())
        else:
            count = len(items[0])
            calls = map(function, *items)
        plain: list[Any] = []
        done: list[Any] | Parts = plain
        error = None
        try:
            started = monotonic_ns()
            if so_far.run(calls, plain, count, limit) is False:
                last = plain.pop()
                done = Parts()
                for result in plain:
                    done.add(*dumps(result))
                until = started + limit if limit else FOREVER
                _run_packing(calls, last, done, count, until, so_far)
        except SystemExit:
            raise
        except BaseException as raised:
            error = describe(raised)
        return done if len(done) == count else Stopped(done, error)


def _so_far() -> _native.Items:
    """What counts the items of the call that this worker runs, and keeps their results."""
    from gridrpc import _worker

    return _native.Items() if _worker._worker is None else _worker._worker.items()


def _run_packing(  # noqa: PLR0917 - what a loop of its caller has
    calls: Iterator[Any], result: Any, done: Parts, count: int, until: int, so_far: _native.Items
) -> None:
    """Append results, `result` first, until there are as many as items or it is late, pickling each
    at once: the function may change the object later."""
    size = 0
    while True:
        head, buffers = dumps(result)
        done.add(head, buffers)
        size += len(head) + sum(buffer.raw().nbytes for buffer in buffers)
        has_room = so_far.keep(head, buffers)
        if len(done) == count or not has_room or monotonic_ns() >= until:
            return
        if until < FOREVER and size > MOST_RESULT_BYTES:
            return
        so_far.begin()
        result = next(calls)


#: What stands before a result that is kept, by its kind: see crates/python/src/items.rs.
_CONSTANTS: dict[int, bool | None] = {0: None, 1: False, 2: True}
_NUMBERS = {3: "<q", 4: "<d"}
_TEXT, _BYTES, _SCALAR, _PICKLE = range(5, 9)


def recovered(stored: memoryview, count: int) -> list[Any] | Parts:
    """The results of the first `count` items of a chunk whose worker was lost behind them."""
    from struct import unpack_from

    values: list[Any] = []
    parts: Parts | None = None
    at = 0

    def take(length: int) -> memoryview:
        nonlocal at
        at += length
        return stored[at - length : at]

    for _ in range(count):
        (kind,) = take(1)
        if kind in _CONSTANTS:
            values.append(_CONSTANTS[kind])
        elif kind in _NUMBERS:
            values += unpack_from(_NUMBERS[kind], take(8))
        elif kind in {_TEXT, _BYTES}:
            content = bytes(take(*unpack_from("<I", take(4))))
            values.append(content.decode() if kind == _TEXT else content)
        elif kind == _SCALAR:
            import numpy

            name = bytes(take(take(1)[0])).decode()
            values.append(numpy.frombuffer(take(take(1)[0]), name)[0])
        else:
            if parts is None:
                # Plain results were before it.
                parts = Parts()
                for value in values:
                    parts.add(*dumps(value))
            length, buffers = unpack_from("<II", take(8))
            lengths = unpack_from(f"<{buffers}Q", take(8 * buffers))
            head = bytes(take(length))
            parts.add(head, [pickle.PickleBuffer(bytearray(take(one))) for one in lengths])
    return values if parts is None else parts


def describe(error: BaseException) -> Description:
    """Type, message and trace of an error, and its pickle, as far as they can be sent."""
    import traceback

    # Without our own frames. Set in this way, as errors may refuse to be changed.
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") in OWN:
        frames = frames.tb_next
    BaseException.with_traceback(error, frames)
    trace = "".join(traceback.format_exception(error)).rstrip()
    try:
        message = str(error)
    except Exception:  # an error may well have a broken __str__
        message = ""
    head = b""
    parts: list[Any] = []
    output = output_before(error)
    raised = _Raised(BaseException.with_traceback(error, None))
    try:
        head, parts = dumps(raised if output is None else _native.CapturedResult(raised, *output))
    except Exception:  # whatever its own __reduce__ may raise: the text has to do
        if output is not None:
            head, parts = dumps(_native.CapturedResult(None, *output))
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}"
    name, message, trace = map(_sendable, (name, message, trace))
    return name, message, trace, head, parts


class _Raised:
    """Stands for an error, which is made again even if its class takes other arguments."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> Any:
        error = self._error
        kind = type(error)
        made: Any = error.__reduce_ex__(5)
        if not isinstance(made, tuple) or made[0] is not kind or len(made) > 3:
            return _itself, (error,)
        state = made[2] if len(made) == 3 else None
        if isinstance(state, dict) and kind.__str__ in STANDARD_TEXTS:
            state = {name: value for name, value in state.items() if _can_be_pickled(value)}
        return rebuilt, (kind, made[1], error.args, state)


#: Of classes whose text does not depend on attributes.
STANDARD_TEXTS = frozenset({BaseException.__str__, OSError.__str__, KeyError.__str__})


def _itself(error: BaseException) -> BaseException:
    return error


def rebuilt(
    kind: type[BaseException], made_of: tuple[Any, ...], args: tuple[Any, ...], state: Any
) -> BaseException:
    """An error of a worker, with its class, its arguments and its attributes."""
    try:
        error = kind(*made_of)
    except Exception:  # its constructor takes others than it passes on to its base class
        native: Any = next(base for base in kind.__mro__ if base.__module__ == "builtins")
        error = native.__new__(kind, *made_of)
        native.__init__(error, *made_of)
    # Set in this way, as errors may refuse to be changed.
    BaseException.__dict__["args"].__set__(error, args)
    if state is not None:
        error.__setstate__(state)
    return error


def _can_be_pickled(value: Any) -> bool:
    try:
        dumps(value)
    except Exception:
        return False
    return True


def _sendable(text: str) -> str:
    """Text without lone surrogates, as file names that are no UTF-8 have them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
