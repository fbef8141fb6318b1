"""`Grid.map`: items to calls, one by one or in chunks, and results in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sized
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeVar

from gridrpc import _native
from gridrpc._grain import Grain
from gridrpc._native import Call
from gridrpc._senders import Sender

T = TypeVar("T")

#: Items taken at once when a chunk is put together; the last of them is looked at.
SLICE = 128
#: An item this large ends its chunk, bytes.
LARGE = 64 << 10
#: Types of items that never are.
SMALL = frozenset({int, float, bool, type(None)})


class Results(Iterator[T], Generic[T]):
    """Results of `map`, as they are asked for."""

    def __init__(self, groups: Iterator[Iterable[T]]) -> None:
        self._groups = groups
        # Goes through a group without the interpreter.
        self._values = chain.from_iterable(groups)

    def __iter__(self) -> Iterator[T]:
        return self._values

    def __next__(self) -> T:
        return next(self._values)

    def close(self) -> None:
        """Give up what is under way; there are no more results."""
        self._values = chain.from_iterable(())
        self._groups.close()  # type: ignore[attr-defined] # it is a generator


class _Sent(NamedTuple):
    call: Call[Any]
    #: None: the call is that of a single item.
    items: list[Any] | None
    #: The number of its first item, from 0.
    first: int


class Map:
    """One run of `Grid.map`."""

    def __init__(
        self, items: Iterator[Any], sender: Sender, grain: Grain, *, ordered: bool
    ) -> None:
        self._items = items
        self._sender = sender
        self._grain = grain
        self._ordered = ordered
        #: Taken and not yet sent.
        self._pending: list[Any] = []
        #: How many have been sent.
        self._number = 0
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

    def groups(self) -> Iterator[Iterable[Any]]:
        """Results in groups; ends the calls under way when it is closed."""
        try:
            while True:
                while len(self._sent) < self._grain.ahead() and self._send_next():
                    pass
                if not self._sent:
                    break
                call, items, first = self._next_ended()
                if items is None:
                    try:
                        value = call.result()
                    except Exception as error:
                        _note(error, first, 1)
                        raise
                    self._grain.learn(call._cost(), 1)
                    del call
                    yield (value,)
                    continue
                try:
                    values, failure = self._sender.answer(call)
                except Exception as error:
                    _note(error, first, len(items))
                    raise
                self._grain.learn(call._cost(), len(values))
                del call
                if failure is None and len(values) < len(items):
                    self._send_again(items[len(values) :], first + len(values))
                del items
                yield values
                if failure is not None:
                    _note(failure, first + len(values), 1)
                    raise failure
            if self._failure is not None:
                raise self._failure
        finally:
            for sent in self._sent.values():
                sent.call.cancel()

    def _next_ended(self) -> _Sent:
        if self._ordered:
            token = self._due.popleft()
            self._sent[token].call.wait()
        else:
            if not self._due:
                self._due.extend(self._watch.take())
            token = self._due.popleft()
        return self._sent.pop(token)

    def _send_next(self) -> bool:
        """Make another call. False: there are no more items."""
        size = self._grain.size()
        self._take(size)
        if not self._pending:
            return False
        sent = self._send(self._pending, size, self._number)
        if sent is not None:
            self._number += 1 if sent.items is None else len(sent.items)
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
        try:
            if size > 1 or not self._sender.sends_singles:
                chunk = items[:size]
                call, count = self._sender.many(chunk, self._grain)
                if call is not None:
                    self._grain.sent(call._cost(), count)
                    del chunk[count:], items[:count]
                    return _Sent(call, chunk, number)
            call = self._sender.one(items[0])
            self._grain.sent(call._cost(), 1)
            del items[0]
            return _Sent(call, None, number)
        except Exception as error:
            _note(error, number, 1)
            self._failure = error
            self._exhausted = True
            items.clear()
            return None

    def _send_again(self, items: list[Any], number: int) -> None:
        """Send the items that a chunk has left when its time was up, before all others; `number`:
        of the first."""
        size = max(1, min(self._grain.size(), len(items) // self._grain.workers))
        tokens = []
        while items:
            sent = self._send(items, size, number)
            if sent is not None:
                number += 1 if sent.items is None else len(sent.items)
                tokens.append(self._keep(sent))
        if self._ordered:
            self._due.extendleft(reversed(tokens))

    def _keep(self, sent: _Sent) -> int:
        token = self._token
        self._token += 1
        self._sent[token] = sent
        if not self._ordered:
            sent.call._watch(self._watch, token)
        return token


def known_length(iterables: Iterable[Iterable[Any]]) -> int | None:
    """How many items there will be at most, as far as that can be told."""
    lengths = [len(iterable) for iterable in iterables if isinstance(iterable, Sized)]
    return min(lengths, default=None)


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
