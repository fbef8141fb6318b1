"""`Grid.map`: items to calls, one by one or in chunks, and results in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from contextlib import closing, suppress
from itertools import chain, islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from gridrpc import _native
from gridrpc._grain import Grain
from gridrpc._native import Call
from gridrpc._senders import Sender

if TYPE_CHECKING:
    from gridrpc._bell import Bell

T = TypeVar("T")

#: Items taken at once when a chunk is put together; the last of them is looked at.
SLICE = 128
#: An item this large ends its chunk, bytes.
LARGE = 64 << 10
#: Types of items that never are.
SMALL = frozenset({int, float, bool, type(None)})


class Record(Protocol):
    """Is told what happens to items, by their number from 0."""

    def sending(self, first: int, count: int) -> None:
        """These are about to be sent, or fewer."""

    def sent(self, first: int, items: list[Any]) -> None:
        """These are sent."""

    def returned(self, first: int, values: list[Any], items: list[Any] | None) -> None:
        """These have returned. `items`: all of their call, unless it was one item's."""

    def failed(self, first: int, count: int) -> None:
        """These have ended with an error, of which the caller is told."""

    def withdrawn(self, first: int, count: int) -> None:
        """These have been given up before a worker got them."""


class Results(Iterator[T], Generic[T]):
    """Results of `map`, as they are asked for, by `for` or by `async for`."""

    def __init__(
        self, plan: Map, groups: Generator[list[T], None, None], total: int | None
    ) -> None:
        self._plan = plan
        #: How many there are to be, if that is known.
        self._total = total
        self._groups = groups
        # Goes through a group without the interpreter.
        self._values = chain.from_iterable(groups)

    def __iter__(self) -> Iterator[T]:
        return self._values

    def __next__(self) -> T:
        return next(self._values)

    async def __aiter__(self) -> AsyncIterator[T]:
        from gridrpc._bell import Bell  # asyncio takes 40 ms: not before it is needed

        bell = Bell()
        try:
            while True:
                await self._plan.ready(bell)
                group = next(self._groups, None)
                if group is None:
                    return
                for value in group:
                    yield value
        finally:
            self.close()

    def _repr_html_(self) -> str:
        # For notebooks.
        from gridrpc._notebook import results_html

        return results_html(self._plan, self._total)

    def close(self) -> None:
        """Give up what is under way; there are no more results."""
        self._values = chain.from_iterable(())
        self._groups.close()
        # By `async for`, calls are made before the first group is asked for.
        self._plan.cancel()


class _Sent(NamedTuple):
    call: Call[Any]
    #: None: the call is that of a single item.
    items: list[Any] | None
    #: The number of its first item, from 0.
    first: int

    @property
    def size(self) -> int:
        """How many items it has."""
        return 1 if self.items is None else len(self.items)


class _Outcome(NamedTuple):
    """What a call came to: results, and the error that is to be raised behind them."""

    values: list[Any]
    failure: BaseException | None = None
    #: Tokens of calls with the items that it has left.
    again: Sequence[int] = ()


class Map:
    """One run of `Grid.map`."""

    def __init__(
        self,
        items: Iterator[Any],
        sender: Sender,
        grain: Grain,
        *,
        ordered: bool,
        timeout: float | None,
        stand_in: Callable[[BaseException], Any] | None,
        record: Record | None = None,
    ) -> None:
        self._items = items
        #: Is told what happens to each item.
        self._record = record
        self._sender = sender
        self._grain = grain
        self._ordered = ordered
        self._timeout = timeout
        self._until = None if timeout is None else monotonic() + timeout
        #: Makes of an error what takes the place of the result; None: it is raised.
        self._stand_in = stand_in
        #: Taken and not yet sent.
        self._pending: list[Any] = []
        #: How many have been sent.
        self._number = 0
        #: How many results have been given.
        self.given = 0
        self._exhausted = False
        #: How many to take next: few where they are large.
        self._slice = 1
        #: What ended the items: what came before it is due first.
        self._failure: Exception | None = None
        self._sent: dict[int, _Sent] = {}
        self._token = 0
        #: Tokens, in the order of the items if that is to be kept, else as calls ended.
        self._due: deque[int] = deque()
        self._watch = _native.Watch()
        #: Tokens of the calls that a bell listens to.
        self._heard: set[int] = set()
        #: By token: what has come before it was due, and is recorded.
        self._early: dict[int, _Outcome] = {}

    def groups(self) -> Generator[list[Any], None, None]:
        """Results in groups; ends the calls under way when it is closed."""
        try:
            while self._send_ahead():
                values, failure, again = self._next_outcome()
                if self._ordered:
                    self._due.extendleft(reversed(again))
                self.given += len(values)
                yield values
                if failure is not None:
                    raise failure
            if self._failure is not None:
                raise self._failure
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End the calls under way."""
        for token, sent in self._sent.items():
            sent.call.cancel()
            if self._record is None or token in self._early:
                continue
            if not sent.call._profile()["sent"]:
                self._record.withdrawn(sent.first, sent.size)
        self._sent.clear()

    def feed(self) -> bool:
        """Send items, also if there were no more before. False: no calls are under way."""
        self._exhausted = self._failure is not None
        return self._send_ahead()

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way."""
        return bool(self._sent)

    @property
    def under_way(self) -> int:
        """How many calls are."""
        return len(self._sent)

    @property
    def failure(self) -> Exception | None:
        """What ended the items."""
        return self._failure

    def ended(self, timeout: float) -> Iterator[tuple[int, list[Any]]]:
        """What comes within that time, of a map whose order does not count and whose errors have
        stand-ins: the number of a first item, and what came of it and of those behind it."""
        for token in self._watch.take(timeout):
            sent = self._sent.pop(token)
            yield sent.first, self._outcome(sent).values

    def _send_ahead(self) -> bool:
        """Have enough calls under way. False: there are none, and no more items."""
        while self._has_room() and self._send_next():
            pass
        return bool(self._sent)

    def _has_room(self) -> bool:
        unanswered = len(self._sent) - len(self._early)
        return len(self._sent) < self._grain.ahead() and unanswered < self._grain.unanswered()

    async def ready(self, bell: Bell) -> None:
        """Wait until the next group does not have to be waited for."""
        self._heard &= self._sent.keys()
        while self._send_ahead() and not self._is_next_there():
            only_next = self._ordered and self._record is None
            due = [self._due[0]] if only_next else self._sent.keys() - self._early.keys()
            for token in set(due) - self._heard:
                bell.listen(self._sent[token].call)
                self._heard.add(token)
            if not self._is_next_there() and not await bell.wait(self._left()):
                raise self._too_late()
            if self._ordered and self._record is not None:
                self._keep_early(self._watch.take(0.0))

    def _is_next_there(self) -> bool:
        if self._ordered:
            return self._sent[self._due[0]].call.done()
        self._due.extend(self._watch.take(0.0))
        return bool(self._due)

    def _outcome(self, sent: _Sent) -> _Outcome:
        """What a call that has ended came to."""
        call, items, first = sent
        count = sent.size
        try:
            values, failure = (
                ([call.result()], None) if items is None else self._sender.answer(call)
            )
        except Exception as error:
            _note(error, first, count)
            if self._record is not None:
                self._record.failed(first, count)
            if self._stand_in is None:
                return _Outcome([], error)
            return _Outcome([self._stand_in(error) for _ in range(count)])
        self._grain.learn(call._cost(), len(values))
        if self._record is not None and values:
            self._record.returned(first, values, items)
        if failure is not None:
            if self._record is not None:
                self._record.failed(first + len(values), 1)
            _note(failure, first + len(values), 1)
            if self._stand_in is None:
                return _Outcome(values, failure)
            values.append(self._stand_in(failure))
        again: list[int] = []
        if items is not None and len(values) < count:
            again = self._send_again(items[len(values) :], first + len(values))
        return _Outcome(values, again=again)

    def give_up_waiting(self) -> None:
        """Send nothing more, and cancel what waits for a worker; what runs goes on."""
        self._items = iter(())
        self._exhausted = True
        self._pending.clear()
        for sent in list(self._sent.values()):
            if not sent.call._profile()["sent"]:
                sent.call.cancel()

    def _next_outcome(self) -> _Outcome:
        if self._ordered:
            self._wait_for(self._due[0])
        elif not self._due:
            self._due.extend(self._watch.take(self._left()))
            if not self._due:
                raise self._too_late()
        token = self._due.popleft()
        sent = self._sent.pop(token)
        return self._early.pop(token, None) or self._outcome(sent)

    def _wait_for(self, token: int) -> None:
        if self._record is None:
            if not self._sent[token].call.wait(self._left()):
                raise self._too_late()
            return
        while token not in self._early:
            # What comes meanwhile is not only kept here, but recorded.
            ended = self._watch.take(self._left())
            if not ended:
                raise self._too_late()
            self._keep_early(ended)
            # Workers go on, however long the one takes that is due.
            self._send_ahead()

    def _keep_early(self, ended: Iterable[int]) -> None:
        """Record what has come, and have it ready for when it is due."""
        for one in ended:
            values, failure, again = self._outcome(self._sent[one])
            behind = self._due.index(one) + 1
            for new in reversed(again):
                self._due.insert(behind, new)
            self._early[one] = _Outcome(values, failure)

    def _left(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - monotonic())

    def _too_late(self) -> TimeoutError:
        return TimeoutError(f"map: the next result is not there {self._timeout} s after the start")

    def _send_next(self) -> bool:
        """Make another call. False: there are no more items."""
        size = self._grain.size()
        self._take(size)
        if not self._pending:
            return False
        sent = self._send(self._pending, size, self._number)
        if sent is not None:
            self._number += sent.size
            token = self._keep(sent)
            if self._ordered:
                self._due.append(token)
        return True

    def _take(self, size: int) -> None:
        """Take items until so many are pending, or there are no more."""
        pending = self._pending
        had = len(pending)
        while len(pending) < size and not self._exhausted:
            wanted = min(len(pending) + self._slice, size)
            try:
                # Keeps those before an error.
                pending.extend(islice(self._items, wanted - len(pending)))
            except Exception as error:
                self._failure = error
            self._exhausted = len(pending) < wanted
            if pending and _is_large(pending[-1]):
                self._slice = 1
                break
            self._slice = min(2 * self._slice, SLICE)
        self._grain.taken(len(pending) - had)

    def _send(self, items: list[Any], size: int, number: int) -> _Sent | None:
        """Send the first of the items, and take them away; `number`: of the first. None: that one
        cannot be sent."""
        call: Call[Any] | None = None
        told = 0
        try:
            if size > 1 or not self._sender.sends_singles:
                chunk = items[:size]
                told = len(chunk)
                if self._record is not None:
                    self._record.sending(number, told)
                call, count = self._sender.many(chunk, self._grain)
                if call is not None:
                    self._grain.sent(call._cost(), count)
                    del chunk[count:], items[:count]
                    if self._record is not None:
                        self._record.sent(number, chunk)
                    return _Sent(call, chunk, number)
            told = max(told, 1)
            if self._record is not None:
                self._record.sending(number, 1)
            call = self._sender.one(items[0])
            self._grain.sent(call._cost(), 1)
            if self._record is not None:
                self._record.sent(number, items[:1])
            del items[0]
            return _Sent(call, None, number)
        except Exception as error:
            if self._record is not None and call is None:
                self._record.withdrawn(number, told)
            _note(error, number, 1)
            self._failure = error
            self._exhausted = True
            items.clear()
            return None

    def _send_again(self, items: list[Any], number: int) -> list[int]:
        """Send the items that a chunk has left when its time was up, before all others; `number`:
        of the first. Returns the tokens of their calls."""
        size = max(1, min(self._grain.size(), len(items) // self._grain.workers))
        tokens = []
        while items:
            sent = self._send(items, size, number)
            if sent is not None:
                number += sent.size
                tokens.append(self._keep(sent))
        return tokens

    def _keep(self, sent: _Sent) -> int:
        token = self._token
        self._token += 1
        self._sent[token] = sent
        if not self._ordered or self._record is not None:
            sent.call._watch(self._watch, token)
        return token


def known_length(iterables: Iterable[Iterable[Any]]) -> int | None:
    """How many items there will be at most, as far as that can be told."""
    lengths = [len(iterable) for iterable in iterables if isinstance(iterable, Sized)]
    return min(lengths, default=None)


def arguments(number: int, item: Any) -> tuple[Any, ...] | Mapping[str, Any]:
    """An item of `starmap`: positional arguments, or keyword arguments; `number` counts from 0."""
    if isinstance(item, Mapping):
        return item
    if isinstance(item, Sequence) and not isinstance(item, (str, bytes, bytearray)):
        return tuple(item)
    raise TypeError(
        f"item {number} of starmap() is a {type(item).__name__}: give a tuple of arguments, or a "
        "dict of keyword arguments"
    )


def shown(
    groups: Generator[list[T], None, None], total: int | None, label: str | bool
) -> Generator[list[T], None, None]:
    """The groups, with a bar on standard error that counts the results in them unless `label` is
    False; it is the name of the bar if it is a text."""
    if label is False:
        return groups
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ModuleNotFoundError(
            "a progress bar needs the package `tqdm`: pip install 'gridrpc[progress]'", name="tqdm"
        ) from None

    def counted() -> Generator[list[T], None, None]:
        name = None if label is True else label
        with closing(groups), tqdm(total=total, desc=name) as bar:
            for group in groups:
                bar.update(len(group))
                yield group

    return counted()


def _note(error: BaseException, first: int, count: int) -> None:
    """Have the error's traceback say which items it came with; `first` counts from 0."""
    which = f"item {first}" if count == 1 else f"items {first} to {first + count - 1}"
    with suppress(Exception):  # it may refuse to be changed
        error.add_note(f"gridrpc: map, {which} (the first one is 0)")


def _is_large(item: Any) -> bool:
    if type(item) in SMALL:
        return False
    if isinstance(item, tuple):
        return any(map(_is_large, item))
    size = getattr(item, "nbytes", None) or (len(item) if isinstance(item, (bytes, str)) else 0)
    return isinstance(size, int) and size > LARGE
