"""A `map` with a journal: what it has is given at once, and the rest is sent and kept.

A `Map` sees only the items that are missing, and counts those; here they have the numbers that they
have among all items.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from gridrpc._fingerprint import digest_of, of_function
from gridrpc._journal import NO_DIGEST, Journal, JournalFile, Stretch
from gridrpc._modules import ModuleFunction
from gridrpc._wrapped import result_of
from gridrpc.errors import JournalError, OutcomeUnknown


class _Known(NamedTuple):
    """Items that are not sent, and how many are sent before them."""

    behind: int
    stretch: Stretch


class Resumed:
    """Items of a map, their results, and the journal of both. `single`: items are the only
    argument. `idempotent`: whether items that may have run before are sent; else OutcomeUnknown
    takes their place, or what `stand_in` makes of it.
    """

    def __init__(
        self,
        journal: Journal | str | os.PathLike[str],
        function: str | Callable[..., Any],
        items: Iterator[Any],
        *,
        single: bool,
        idempotent: bool,
        stand_in: Callable[[BaseException], Any] | None,
    ) -> None:
        self._journal = journal if isinstance(journal, Journal) else Journal(journal)
        self._single = single
        #: A function whose items name files: their contents belong to them.
        self._reader: ModuleFunction | None = None
        if isinstance(function, ModuleFunction) and function.reads_files:
            self._reader = function
        self._how_to_run_again = "Give `idempotent=True` to have such items run again"
        if isinstance(function, ModuleFunction):
            self._how_to_run_again = (
                "To have such items run again, add `Idempotent` to the definition in the IDL file, "
                'compile it, and give `journal=gridrpc.Journal(path, if_changed="keep")`'
            )
        self._items = items
        self._stand_in = stand_in
        self._file = JournalFile(self._journal, of_function(function))
        unknown = self._file.unheard_of()
        #: Not to be sent.
        self._unsent = [] if idempotent else unknown
        #: Not to be sent and not given yet.
        self._known: deque[_Known] = deque()
        #: By the number of a first item among those that are sent: how many known ones are before.
        self._shifts: list[tuple[int, int]] = [(0, 0)]
        #: Digests of calls under way, by their first item, and how many items they have.
        self._digests: dict[int, tuple[int, bytes]] = {}
        #: Of the last group: the number of its first item if its results were known.
        self._given_first: int | None = None
        self.kept = self._file.kept
        if self.kept or unknown:
            self._tell(sum(map(len, unknown)), idempotent)

    def _tell(self, unknown: int, idempotent: bool) -> None:
        said = f"gridrpc: journal {self._file.path}: {self.kept:,} items have their results"
        if unknown:
            said += f"; {unknown:,} were under way when the last run ended, and "
            said += "run again" if idempotent else "may have run: they are not sent again"
        print(said, file=sys.stderr)

    def missing(self) -> Generator[Any, None, None]:
        """The items that are to be sent."""
        at = sent = 0
        for stretch in merge(self._file.stretches(), self._unknown()):
            for item in islice(self._items, stretch.first - at):
                yield item
                at += 1
                sent += 1
            taken = list(islice(self._items, stretch.size))
            if at < stretch.first or len(taken) < stretch.size:
                raise self._changed(
                    f"there are {at + len(taken)} items, but it has results of items up to "
                    f"{stretch.first + stretch.size - 1}"
                )
            if stretch.digest != NO_DIGEST and self._digest(taken) != stretch.digest:
                which = f"item {stretch.first}"
                if stretch.size > 1:
                    which = f"one of items {stretch.first} to {stretch.first + stretch.size - 1}"
                files = "" if self._reader is None else ", or a file that it names,"
                raise self._changed(f"{which}{files} has changed (the first item is 0)")
            at += stretch.size
            self._known.append(_Known(sent, stretch))
            self._shifts.append((sent, at - sent))
        yield from self._items

    def _digest(self, items: list[Any]) -> bytes:
        return digest_of(items, () if self._reader is None else self._files(self._reader, items))

    def _files(self, reader: ModuleFunction, items: list[Any]) -> Iterator[Any]:
        for item in items:
            if self._single:
                yield from reader.files_of((item,), {})
            elif isinstance(item, Mapping):
                yield from reader.files_of((), item)
            else:
                yield from reader.files_of(item, {})

    def _unknown(self) -> Iterator[Stretch]:
        for gap in self._unsent:
            yield Stretch(gap.start, len(gap), NO_DIGEST, 0)

    def _changed(self, how: str) -> JournalError:
        path = self._file.path
        return JournalError(
            f"journal {path}: {how}. Give the items that it was begun with. To run all of them "
            "again, remove the journal or name another one",
            path,
        )

    def groups(
        self, sent: Generator[list[Any], None, None], ordered: bool
    ) -> Generator[list[Any], None, None]:
        """Results in groups: of `sent`, with those that were known in their places."""
        given = 0
        try:
            for group in sent:
                at = 0
                while self._known and (not ordered or self._known[0].behind < given + len(group)):
                    known = self._known.popleft()
                    upto = max(at, min(known.behind - given, len(group))) if ordered else at
                    if upto > at:
                        yield group[at:upto]
                    at = upto
                    yield self._of(known.stretch)
                    self._given_first = None
                given += len(group)
                yield group[at:]
            while self._known:
                yield self._of(self._known.popleft().stretch)
        finally:
            try:
                sent.close()
            finally:
                self._file.close()

    def _of(self, stretch: Stretch) -> list[Any]:
        self._given_first = stretch.first
        if stretch.digest != NO_DIGEST:
            return self._file.results(stretch)
        values = []
        for number in range(stretch.first, stretch.first + stretch.size):
            error = OutcomeUnknown(
                f"map, item {number} (the first one is 0): it was under way when the last run "
                f"ended, and may have run. {self._how_to_run_again}, or give "
                "`return_exceptions=True` to continue without them"
            )
            if self._stand_in is None:
                raise error
            values.append(self._stand_in(error))
        return values

    def numbers(self, sent: range) -> Iterable[int]:
        """The numbers, among all items, of those of the last group of a map without order."""
        if self._given_first is None:
            return map(self.number_of, sent)
        return range(self._given_first, self._given_first + len(sent))

    def number_of(self, sent: int) -> int:
        """The number of an item among all, by that among those that are sent."""
        return next(number for _, _, number in self._places(sent, 1))

    # ---- What a `Map` tells, in its numbers

    def _places(self, first: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Of items that are sent: which of them, how many, and the number of the first in all."""
        index = bisect_right(self._shifts, (first, sys.maxsize)) - 1
        done = 0
        while done < count:
            behind = self._shifts[index + 1][0] if index + 1 < len(self._shifts) else sys.maxsize
            part = min(count - done, behind - first - done)
            if part:
                yield done, part, first + done + self._shifts[index][1]
            done += part
            index += 1

    def sending(self, first: int, items: list[Any]) -> None:
        """These are about to be sent, or fewer."""
        for _, part, number in self._places(first, len(items)):
            self._file.sent(number, part)
            if self._reader is not None and len(items) == 1:
                # A file that changes later has not been sent.
                self._digests[number] = 1, self._digest(items)

    def sent(self, first: int, items: list[Any]) -> None:
        """These are sent."""
        if self._reader is not None:
            return
        for at, part, number in self._places(first, len(items)):
            own = items if part == len(items) else items[at : at + part]
            self._digests[number] = part, digest_of(own)

    def returned(self, first: int, values: list[Any], items: list[Any] | None) -> None:
        """These have returned. `items`: all of their call, unless it was one item's."""
        values = [*map(result_of, values)]
        for at, part, number in self._places(first, len(values)):
            count, digest = self._digests.pop(number)
            if part < count:
                assert items is not None, "of a call with several items"
                digest = digest_of(items[at : at + part])
            own = values if part == len(values) else values[at : at + part]
            self._file.returned(number, digest, own)

    def failed(self, first: int, count: int) -> None:
        """These have ended with an error, which the caller gets."""
        for _, part, number in self._places(first, count):
            self._digests.pop(number, None)
            self._file.failed(number, part)

    def withdrawn(self, first: int, count: int) -> None:
        """These have been given up before a worker got them."""
        with suppress(JournalError):  # as far as that can be kept
            self.failed(first, count)
