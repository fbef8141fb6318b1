"""How items of `map` become calls: of Python functions, and of those of modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gridrpc import _native
from gridrpc._chunks import Parts, Rows, Stopped, as_rows, recovered
from gridrpc._grain import Costs
from gridrpc._options import DEFAULT
from gridrpc._pickling import MAX_BUFFERS, dumps
from gridrpc._references import has_state
from gridrpc._shared import dumps_collecting
from gridrpc._wrapped import result_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gridrpc._grain import Grain
    from gridrpc._grid import Grid
    from gridrpc._modules import ModuleFunction
    from gridrpc._native import Call, CallOptions


class MapOptions(NamedTuple):
    """What holds for all calls of one `map`. `single`: items are the only argument."""

    single: bool
    #: Those of each call; calls that ask for anything take one item each.
    call: CallOptions = DEFAULT
    #: Makes of an error what takes the place of the result; None: it is raised.
    stand_in: Callable[[BaseException], Any] | None = None
    #: The ranks of MPI that run each; calls on ranks take one item each, too. 0: no ranks.
    ranks: int = 0
    #: Whether results are to have the output of their calls beside them, if that is captured.
    keeps_output: bool = False


class Answer(NamedTuple):
    """What a chunk came to: results of its first items, and the error of the one behind them."""

    values: list[Any]
    error: BaseException | None


class Sender(Protocol):
    """Makes calls of items. An item is a tuple of arguments, or the only argument."""

    #: Whether a single item goes better in a call of its own than in a chunk.
    sends_singles: bool
    #: What is known of the function.
    costs: Costs

    def one(self, item: Any) -> Call[Any]:
        """Call the function with one item."""

    def result(self, call: Call[Any]) -> Any:
        """What `one` came to. Raises what ended the call."""

    def many(self, items: list[Any], grain: Grain) -> tuple[Call[Any] | None, int]:
        """Call it with the first of the items, and tell how many those are.

        None and 0: the first one cannot go in a chunk.
        """

    def answer(self, call: Call[Any]) -> Answer:
        """What `many` came to. Raises what ended the call as a whole."""


class PythonSender:
    """Calls a function on Python workers."""

    def __init__(
        self, grid: Grid, function: str | Callable[..., Any], options: MapOptions, chunked: bool
    ) -> None:
        self._grid = grid
        self._options = options
        # What a function carries with it is taken now, once, also if it changes later.
        changeable = not isinstance(function, str) and has_state(function)
        self.sends_singles = not (chunked and changeable)
        self._function = grid._functions.find(function) if self.sends_singles else None
        self._chunked = grid._functions.find_chunked(function) if chunked else None
        self._captures = grid._captures
        self.costs = Costs() if self._chunked is None else grid._functions.costs(self._chunked)

    def one(self, item: Any) -> Call[Any]:
        assert self._function is not None, "all items go in chunks otherwise"
        grid, options = self._grid, self._options
        if isinstance(item, Mapping) and not options.single:
            return grid._native.submit(grid, self._function, (), dict(item), options.call)
        args = (item,) if options.single else item
        return grid._native.submit(grid, self._function, args, {}, options.call)

    def result(self, call: Call[Any]) -> Any:
        value = call.result()
        return (call._captured or value) if self._options.keeps_output else value

    def many(self, items: list[Any], grain: Grain) -> tuple[Call[Any] | None, int]:
        assert self._chunked is not None, "all items go alone otherwise"
        head, buffers, blobs, count = self._pack(items, grain.budget(), grain.limit())
        grid = self._grid
        call = grid._native.submit_pickled(
            grid, self._chunked, head, buffers, blobs, self._options.call
        )
        return call, count

    def _pack(
        self, items: list[Any], budget: int, limit: int
    ) -> tuple[bytes, list[Any], list[int], int]:
        """Arguments of `Chunked` for the first of the items, and how many those are."""
        columns = [items] if self._options.single else [*map(list, zip(*items, strict=True))]
        together = [one for one in map(_together, columns) if one is not None]
        if len(together) == len(columns) and sum(size for _, size in together) <= budget:
            packed = [values for values, _ in together]
            return *dumps(((packed, limit), {})), [], len(items)
        parts, blobs = Parts(), dict[int, None]()
        size = 0
        for item in items:
            try:
                head, buffers, used = self._dumps((item,) if self._options.single else item)
            except Exception:
                if not parts:
                    raise
                break  # those before it go first
            size += len(head) + sum(buffer.raw().nbytes for buffer in buffers)
            if parts and (size > budget or len(parts.buffers) + len(buffers) > MAX_BUFFERS):
                break
            parts.add(head, buffers)
            blobs.update(dict.fromkeys(used))
        return *dumps(((parts, limit), {})), list(blobs), len(parts)

    def _dumps(self, args: tuple[Any, ...]) -> tuple[bytes, list[Any], list[int]]:
        if self._grid._refers:
            head, buffers, blobs, _ = dumps_collecting(args, self._grid._native)
            return head, buffers, blobs
        return *dumps(args), []

    def answer(self, call: Call[Any]) -> Answer:
        values, error = self._answer(call)
        if self._captures and not self._options.keeps_output:
            values = [*map(result_of, values)]
        return Answer(values, error)

    def _answer(self, call: Call[Any]) -> Answer:
        error: BaseException | None = None
        try:
            came = call.result()
        except Exception as lost:
            count, stored, error = _left(lost)
            came = recovered(memoryview(stored), count)
        if isinstance(came, Stopped):
            if came.error is not None:
                error = _native.raised(*came.error)
            came = came.results
        if not isinstance(came, Parts):
            return Answer(came, error)
        if self._options.stand_in is not None:
            return Answer(list(came.outcomes(self._options.stand_in)), error)
        values: list[Any] = []
        try:
            # Keeps those before an error.
            values.extend(came.values())
        except Exception as raised:
            error = raised
        return Answer(values, error)


def _left(error: Exception) -> tuple[int, Any, Exception | None]:
    """What is left of a chunk whose worker was lost: how many items had ended, their results, and
    the error of the item that was running, if one was. Raises errors of other kinds."""
    left = getattr(error, "_left", None)
    if left is None:
        raise error
    error._left = None  # type: ignore[attr-defined]  # errors are kept longer than results
    count, running, stored = left
    return count, stored, error if running else None


def _together(values: list[Any]) -> tuple[list[Any] | Rows, int] | None:
    """Arguments that can be pickled as one, and how many bytes they have."""
    size = _native.plain_bytes(values)
    if size >= 0:
        return values, size
    rows = as_rows(values)
    return None if rows is None else (rows, rows.array.nbytes)


class ModuleSender:
    """Calls a function of a module."""

    sends_singles = True

    def __init__(self, grid: Grid, function: ModuleFunction, options: MapOptions) -> None:
        self._grid = grid
        self._options = options
        self._function = function
        self.costs = function.costs

    def one(self, item: Any) -> Call[Any]:
        args, kwargs = ((item,) if self._options.single else item), {}
        if not self._options.single and isinstance(item, Mapping):
            args, kwargs = (), dict(item)
        options = self._options
        return self._function.submit_on(
            self._grid, args, kwargs, options.call, ranks=options.ranks, has_span=False
        )

    def result(self, call: Call[Any]) -> Any:
        return call.result()

    def many(self, items: list[Any], grain: Grain) -> tuple[Call[Any] | None, int]:
        options = self._options
        made = self._function.submit_many_on(self._grid, items, options.single, grain, options.call)
        return (None, 0) if made is None else made

    def answer(self, call: Call[Any]) -> Answer:
        try:
            values, raised = call.result()
        except Exception as lost:
            _, values, error = _left(lost)
            return Answer(values, error)
        if raised is None:
            return Answer(values, None)
        type_name, message = raised
        return Answer(values, _native.raised(type_name, message, "", b"", []))
