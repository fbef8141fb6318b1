"""`Grid.map`: items to calls, one by one or in chunks, and results in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from gridrpc import _native
from gridrpc._grain import Grain
from gridrpc._native import Call
from gridrpc._senders import Sender
from gridrpc.errors import ArgumentError

if TYPE_CHECKING:
    from gridrpc._speculation import Speculation
    from gridrpc._wakeup import LoopWakeup

T = TypeVar("T")

#: Items taken at once when a chunk is put together; the last of them is looked at.
SLICE = 128
#: An item this large ends its chunk, bytes.
LARGE = 64 << 10
#: Types of items that never are.
SMALL = frozenset({int, float, bool, type(None)})


class Record(Protocol):
    """Receives what happens to items, by their number from 0."""

    def sending(self, first: int, items: list[Any]) -> None:
        """These are about to be sent, or fewer."""

    def sent(self, first: int, items: list[Any]) -> None:
        """These are sent."""

    def returned(self, first: int, values: list[Any], items: list[Any] | None) -> None:
        """These have returned. `items`: all of their call, unless it was one item's."""

    def failed(self, first: int, count: int) -> None:
        """These have ended with an error, which the caller gets."""

    def withdrawn(self, first: int, count: int) -> None:
        """These have been given up before a worker got them."""


class _Sent(NamedTuple):
    call: Call[Any]
    #: None: the call is that of a single item.
    items: list[Any] | None
    #: The number of its first item, from 0.
    first: int
    #: The item of a call of a single item that may be copied.
    item: Any = None

    @property
    def size(self) -> int:
        """How many items it has."""
        return 1 if self.items is None else len(self.items)


class _Refused(NamedTuple):
    """An item whose arguments do not fit, and that was not sent."""

    outcome: _Outcome
    #: Its number, from 0.
    first: int
    size: int = 1


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
        speculation: Speculation | None = None,
    ) -> None:
        self._items = items
        #: Copies of stragglers near the end, if there are to be any.
        self._speculation = speculation
        #: Numbers of the items whose calls have been copied.
        self.speculated: list[int] = []
        #: Receives what happens to each item.
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
        #: The number of the first item of the last group that was given.
        self._given_first = 0
        self._exhausted = False
        #: How many to take next: few where they are large.
        self._slice = 1
        #: What ended the items: what came before it is due first.
        self._failure: Exception | None = None
        self._sent: dict[int, _Sent] = {}
        self._token = 0
        #: Tokens, in the order of the items if that is to be kept, else as calls ended.
        self._due: deque[int] = deque()
        #: Whether calls report their end to `_watch`.
        self._is_watched = not ordered or record is not None or speculation is not None
        self._watch = _native.Watch()
        #: Tokens of the calls that a wake-up watches.
        self._heard: set[int] = set()
        #: By token: what has come before it was due, and is recorded.
        self._early: dict[int, _Outcome] = {}
        #: By token: items that were not sent, until they are due.
        self._refused: dict[int, _Refused] = {}

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

    def numbers(self, count: int) -> range:
        """The numbers of the items of the last group, which has so many."""
        return range(self._given_first, self._given_first + count)

    def cancel(self) -> None:
        """End the calls under way."""
        for token, sent in self._sent.items():
            sent.call.cancel()
            if self._record is None or token in self._early:
                continue
            if not sent.call._profile()["sent"]:
                self._record.withdrawn(sent.first, sent.size)
        if self._speculation is not None:
            self._speculation.cancel()
        self._sent.clear()
        self._refused.clear()

    def feed(self) -> bool:
        """Send items, also if there were no more before. False: no calls are under way."""
        self._exhausted = self._failure is not None
        return self._send_ahead()

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way, or items have been refused."""
        return bool(self._sent or self._refused)

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
        stand-ins: the number of a first item, and its outcome and those behind it."""
        tokens, self._due = self._due or self._watch.take(timeout), deque()
        for token in tokens:
            if token in self._refused:
                refused = self._refused.pop(token)
                yield refused.first, refused.outcome.values
            else:
                sent = self._sent.pop(token)
                yield sent.first, self._outcome(sent).values

    def _send_ahead(self) -> bool:
        """Have enough calls under way. False: nothing is due, and there are no more items."""
        while self._has_room() and self._send_next():
            # Results are recorded as they come, also while a long queue is filled.
            if self._record is not None and self._has_enough() and self._is_next_there():
                break
        return self.is_busy

    def _has_room(self) -> bool:
        unanswered = len(self._sent) - len(self._early)
        given = len(self._sent) + len(self._refused)
        return given < self._grain.ahead() and unanswered < self._grain.unanswered()

    def _has_enough(self) -> bool:
        """Whether no worker becomes idle while results are taken."""
        ended = len(self._early if self._ordered else self._due)
        return len(self._sent) - ended >= self._grain.enough()

    async def ready(self, wakeup: LoopWakeup) -> None:
        """Wait until the next group does not have to be waited for."""
        self._heard &= self._sent.keys()
        while self._send_ahead() and not self._is_next_there():
            # What has ended by now notifies nobody: others take its place first.
            self._send_ahead()
            only_next = not self._is_watched
            due = [self._due[0]] if only_next else self._sent.keys() - self._early.keys()
            for token in set(due) - self._heard:
                wakeup.watch(self._sent[token].call)
                self._heard.add(token)
            if self._is_next_there():
                return
            pause, left = self._pause(), self._left()
            if not await wakeup.wait(_least(pause, left)) and (pause is None or left == 0):
                raise self._too_late()

    def _is_next_there(self) -> bool:
        if self._due and self._due[0] in self._refused:
            return True
        if not self._is_watched:
            return self._sent[self._due[0]].call.done()
        ended = self._ended(0.0)
        if not self._ordered:
            self._due.extend(ended)
            return bool(self._due)
        self._keep_early(ended)
        return self._due[0] in self._early

    def _ended(self, timeout: float | None) -> list[int]:
        """Tokens of calls that have ended within that time; none: the time is up."""
        if self._speculation is None:
            return self._watch.take(timeout)
        until = None if timeout is None else monotonic() + timeout
        while True:
            self._copy_stragglers(self._speculation)
            left = None if until is None else max(0.0, until - monotonic())
            tokens = []
            for token in self._watch.take(_least(self._pause(), left)):
                if not self._speculation.knows(token):
                    tokens.append(token)
                elif (decided := self._speculation.decide(token)) is not None:
                    original, call = decided
                    self._sent[original] = self._sent[original]._replace(call=call)
                    tokens.append(original)
            if tokens or left == 0.0:
                return tokens

    def _pause(self) -> float | None:
        """Seconds until stragglers are to be looked for, if they are."""
        if self._speculation is None or not self._exhausted or self._pending:
            return None
        return self._speculation.pause()

    def _copy_stragglers(self, speculation: Speculation) -> None:
        if not self._exhausted or self._pending or not speculation.is_due():
            return
        running = {
            token: (sent.call, sent.item)
            for token, sent in self._sent.items()
            if token not in self._early and not sent.call.done()
        }
        copied = speculation.copy_stragglers(running, self._watch, self._token)
        self._token += len(copied)
        self.speculated += [self._sent[token].first for token in copied]

    def _outcome(self, sent: _Sent) -> _Outcome:
        """What a call that has ended came to."""
        call, items, first, _ = sent
        count = sent.size
        try:
            values, failure = (
                ([self._sender.result(call)], None) if items is None else self._sender.answer(call)
            )
        except Exception as error:
            _note(error, first, count)
            if self._record is not None:
                self._record.failed(first, count)
            if self._stand_in is None:
                return _Outcome([], error)
            return _Outcome([self._stand_in(error) for _ in range(count)])
        self._grain.learn(call._cost(), len(values))
        self._grain.follow(call._window)
        if self._speculation is not None:
            self._speculation.learn(call)
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
        """Send nothing more, and cancel what waits for a worker; what runs continues."""
        self._items = iter(())
        self._exhausted = True
        self._pending.clear()
        for sent in list(self._sent.values()):
            if not sent.call._profile()["sent"]:
                sent.call.cancel()

    def _next_outcome(self) -> _Outcome:
        if self._ordered:
            if self._due[0] not in self._refused:
                self._wait_for(self._due[0])
        elif not self._due:
            self._due.extend(self._ended(self._left()))
            if not self._due:
                raise self._too_late()
        token = self._due.popleft()
        if token in self._refused:
            outcome, self._given_first, _ = self._refused.pop(token)
            return outcome
        sent = self._sent.pop(token)
        self._given_first = sent.first
        return self._early.pop(token, None) or self._outcome(sent)

    def _wait_for(self, token: int) -> None:
        if not self._is_watched:
            if not self._sent[token].call.wait(self._left()):
                raise self._too_late()
            return
        while token not in self._early:
            # What comes meanwhile is not only kept here, but recorded.
            ended = self._ended(self._left())
            if not ended:
                raise self._too_late()
            self._keep_early(ended)
            # Workers continue, however long the one takes that is due.
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

    def _send(self, items: list[Any], size: int, number: int) -> _Sent | _Refused | None:
        """Send the first of the items, and take them away; `number`: of the first. None: that one
        cannot be sent, which ends the map."""
        call: Call[Any] | None = None
        reported = 0
        try:
            if size > 1 or not self._sender.sends_singles:
                chunk = items[:size]
                reported = len(chunk)
                if self._record is not None:
                    self._record.sending(number, chunk)
                call, count = self._sender.many(chunk, self._grain)
                if call is not None:
                    self._grain.sent(call._cost(), count)
                    del chunk[count:], items[:count]
                    if self._record is not None:
                        self._record.sent(number, chunk)
                    return _Sent(call, chunk, number)
            reported = max(reported, 1)
            if self._record is not None:
                self._record.sending(number, items[:1])
            call = self._sender.one(items[0])
            self._grain.sent(call._cost(), 1)
            if self._record is not None:
                self._record.sent(number, items[:1])
            item = items.pop(0)
            return _Sent(call, None, number, None if self._speculation is None else item)
        except Exception as error:
            if self._record is not None and call is None:
                self._record.withdrawn(number, reported)
            _note(error, number, 1)
            if self._stand_in is not None and call is None and isinstance(error, ArgumentError):
                del items[0]
                return _Refused(_Outcome([self._stand_in(error)]), number)
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

    def _keep(self, sent: _Sent | _Refused) -> int:
        token = self._token
        self._token += 1
        if isinstance(sent, _Refused):
            self._refused[token] = sent
            if not self._ordered:
                self._due.append(token)
            return token
        self._sent[token] = sent
        if self._is_watched:
            sent.call._watch(self._watch, token)
        return token


def _least(one: float | None, other: float | None) -> float | None:
    return min((time for time in (one, other) if time is not None), default=None)


def known_length(iterables: Iterable[Iterable[Any]]) -> int | None:
    """Largest number of items, if it is known."""
    lengths = [len(iterable) for iterable in iterables if isinstance(iterable, Sized)]
    return min(lengths, default=None)


def arguments(number: int, item: Any) -> tuple[Any, ...] | Mapping[str, Any]:
    """An item of `starmap`: positional arguments, or keyword arguments; `number` counts from 0."""
    if isinstance(item, Mapping):
        return item
    if isinstance(item, Sequence) and not isinstance(item, (str, bytes, bytearray)):
        return tuple(item)
    raise TypeError(
        f"item {number} of starmap() is of type {type(item).__name__}: give a tuple of arguments, "
        "or a dict of keyword arguments"
    )


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
