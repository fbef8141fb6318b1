"""A map of a session: its items and results, in files, and what is known of each item."""

from __future__ import annotations

import os
import pickle
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Condition, Lock
from typing import Any, Literal, NamedTuple

from gridrpc._fingerprint import DIGEST, Fingerprint
from gridrpc._journal import NO_DIGEST, IfChanged, Journal, JournalFile, Stretch
from gridrpc._native import CallOptions
from gridrpc._options import DEFAULT
from gridrpc._retries import NO_RETRIES, Retries
from gridrpc._session.outcomes import Outcomes
from gridrpc._session.task import Raised, Task
from gridrpc.errors import GridClosed, JournalError, OutcomeUnknown, SessionError, StartError

#: Results go to programs in pieces of so many bytes, unless one has more.
PIECE = 4 << 20
#: Errors that end a map, as they would end all of its calls.
ENDS_ALL = (StartError, GridClosed)


class Failure(NamedTuple):
    """Stands for the result of an item that has ended with an error."""

    error: BaseException


@dataclass
class Plan:
    """What a map runs, and how."""

    task: Task
    fingerprint: Fingerprint
    chunk: int | Literal["auto"]
    options: CallOptions = DEFAULT
    ranks: int = 0
    retries: Retries = NO_RETRIES
    #: The names of the errors with which the program wants calls to be tried again.
    retry_on: tuple[str, ...] = ()
    #: Whether a program has sent all of the items.
    complete: bool = False

    @property
    def how(self) -> tuple[object, ...]:
        """All but what is run."""
        return (self.chunk, self.options, self.ranks, self.retries, self.retry_on)


class Piece(NamedTuple):
    """Results from some place on: the number of a first item, and the results from there on; or an
    error as bytes. `cursor`: where the next piece begins."""

    results: list[tuple[int, list[bytes]]]
    errors: list[tuple[int, bytes]]
    cursor: int
    #: What has ended the map, if nothing more comes.
    halted: bytes | None


class KeptMap:
    """One map: programs add items and take results, and a thread runs it (running.py)."""

    def __init__(self, folder: Path, key: str, plan: Plan) -> None:
        self.key = key
        self.plan = plan
        self._folder = folder
        #: Held while something that a program has sent is stored.
        self._storing = Lock()
        #: Is told of all that follows.
        self.changed = Condition()
        self.count = 0
        self.is_closing = False
        #: Whether the thread is to end what is under way, and begin again by the plan as it is now.
        self.begins_anew = False
        self._halted: bytes | None = None
        self._journal, self._spool = self._opened(folder)
        self._outcomes = Outcomes(folder)
        #: Items whose errors a program was given, and that run again when they are sent again.
        self._told: set[int] = set()
        #: Items that may have run when an earlier process of the session ended.
        self._unknown: set[int] = set()
        #: Items to be run before all others, and the first of the others.
        self._again: deque[int] = deque()
        self._next = 0
        self._under_way: set[int] = set()
        #: By their numbers in the run: the items that were taken.
        self._order = array("Q")
        self._batches: list[Stretch] = []
        self._batch: tuple[Stretch | None, list[tuple[bytes, bytes]]] = None, []
        self._load()

    def _opened(self, folder: Path) -> tuple[JournalFile, JournalFile]:
        files = []
        for kind in ("journal", "items"):
            # That the function is the same has been seen to.
            journal = Journal(folder / f"{self.key}.{kind}", "keep")
            files.append(JournalFile(journal, self.plan.fingerprint))
        return files[0], files[1]

    def _load(self) -> None:
        for batch in self._spool.stretches():
            if batch.first != self.count:
                break
            self._add(batch)
        for stretch in self._journal.stretches():
            if stretch.first + stretch.size <= self.count:
                self._outcomes.came(stretch.first, stretch.size, stretch.offset)
        gaps = self._journal.unheard_of()
        self._note_unknown(n for gap in gaps for n in range(gap.start, min(gap.stop, self.count)))

    def _note_unknown(self, numbers: Iterable[int]) -> None:
        """These may have run, and nothing will be heard of them."""
        if self.plan.options.idempotent:
            return
        for number in numbers:
            self._unknown.add(number)
            error = OutcomeUnknown(
                f"map `{self.key}`, item {number} (the first one is 0): it was under way when the "
                "session ended, and may have run. Give `idempotent=True` to have such "
                "items run again, or `return_exceptions=True` to go on without them"
            )
            self._outcomes.fail(number, _as_bytes(error))

    def save(self) -> None:
        """Keep the plan, for a later process of the session."""
        file = self._folder / f"{self.key}.function"
        new = self._folder / f"{self.key}.new"
        with new.open("wb") as opened:
            pickle.dump(self.plan, opened)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(file)

    @staticmethod
    def loaded(folder: Path, key: str) -> KeptMap:
        """A map that an earlier process of the session had."""
        with (folder / f"{key}.function").open("rb") as opened:
            return KeptMap(folder, key, pickle.load(opened))

    @staticmethod
    def remove(folder: Path, key: str, *, keep_old: bool = False) -> None:
        """Remove the files of a map, or put them aside."""
        for kind in ("function", "items", "journal"):
            file = folder / f"{key}.{kind}"
            if keep_old and file.exists():
                file.replace(folder / f"{key}.{kind}.old")
            else:
                file.unlink(missing_ok=True)

    # ---- Items, from a program

    def accept(self, plan: Plan, if_changed: IfChanged) -> None:
        """Have a program that sends this map again go on with it. Raises JournalError."""
        known = self.plan
        if plan.fingerprint.digest != known.fingerprint.digest and if_changed != "keep":
            what = f"was begun with `{known.fingerprint.name}`"
            if plan.fingerprint.name != known.fingerprint.name:
                what += f", not with `{plan.fingerprint.name}`"
            else:
                what += ", which has changed since: its code, its defaults, or what it refers to"
            raise self._error(
                f'{what}. Give if_changed="keep" if its results are still right, or "restart" to '
                "begin anew"
            )
        same = plan.fingerprint.digest == known.fingerprint.digest
        with self._storing, self.changed:
            self._refuse_removed()
            if not same or plan.how != known.how:
                plan.complete = known.complete
                self.plan = plan
                self.begins_anew = True
                self.save()
            if self._halted is not None:
                self._halted = None
                self.begins_anew = True
            again = self._told
            if plan.options.idempotent:
                again |= self._unknown
                self._unknown.clear()
            for number in sorted(again):
                self._outcomes.run_again(number)
                if number < self._next:
                    self._again.append(number)
            again.clear()
            self.changed.notify_all()

    def _error(self, what: str) -> JournalError:
        return JournalError(f"map `{self.key}` of the session {what}", str(self._folder))

    def removed(self) -> SessionError:
        """The error for a program that still uses the map."""
        return SessionError(
            f"map `{self.key}` was removed, or begun anew, by another program in the meantime"
        )

    def _refuse_removed(self) -> None:
        if self.is_closing:
            raise self.removed()

    def add(self, first: int, items: list[tuple[bytes, bytes]]) -> None:
        """Items from `first` on: the digest of each, and its pickle. Those that another program has
        sent meanwhile are compared. Raises JournalError."""
        with self._storing:
            self._refuse_removed()
            known = self.count - first
            if known > 0:
                self._compare(first, [digest for digest, _ in items[:known]])
                items = items[known:]
            if not items:
                return
            digest = blake2b(b"".join(one for one, _ in items), digest_size=DIGEST).digest()
            batch = self._spool.returned(self.count, digest, items)
            # An item that has run is known again, whatever happens.
            self._spool.sync()
            with self.changed:
                self._add(batch)
                self.changed.notify_all()

    def _add(self, batch: Stretch) -> None:
        self._batches.append(batch)
        self._outcomes.extend(batch.size)
        self.count += batch.size

    def _compare(self, first: int, digests: list[bytes]) -> None:
        """Compare items from `first` on with those stored. Raises JournalError."""
        at, end = first, first + len(digests)
        while at < end:
            batch = self._batch_of(at)
            for number, (own, _) in enumerate(self._spool.results(batch), batch.first):
                if at <= number < end and digests[number - first] != own:
                    raise self._other_item(number)
            at = batch.first + batch.size

    def _other_item(self, number: int) -> JournalError:
        return self._error(
            f"has another item {number} (the first one is 0). Give the items that it was begun "
            'with, another key, or if_changed="restart"'
        )

    def check(self, digests: Iterator[bytes], have: int) -> int:
        """Compare the first `have` items with those of a program, by their digests, as many as it
        gives. Returns how many it gave. Raises JournalError."""
        given = 0
        for batch in list(self._batches):
            if batch.first >= have:
                break
            told = [one for _, one in zip(range(batch.size), digests, strict=False)]
            given += len(told)
            found = blake2b(b"".join(told), digest_size=DIGEST).digest()
            if len(told) == batch.size and found == batch.digest:
                continue
            for at, (own, _) in enumerate(self._spool.results(batch)):
                if at < len(told) and told[at] != own:
                    raise self._other_item(batch.first + at)
            if len(told) < batch.size:
                raise self._error(
                    f"has {self.count} items, but this program gives {given}. Give the items that "
                    'it was begun with, another key, or if_changed="restart"'
                )
        return given

    def complete(self) -> None:
        """There are no more items, unless a program gives more than this one."""
        with self._storing, self.changed:
            self._refuse_removed()
            if not self.plan.complete:
                self.plan.complete = True
                self.save()
            self.changed.notify_all()

    # ---- Items, to the workers

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        """The next item that is to be run. There may be more after StopIteration."""
        with self.changed:
            if self._again:
                number = self._again.popleft()
            else:
                while self._next < self.count and self._outcomes.has(self._next):
                    self._next += 1
                if self._next == self.count:
                    raise StopIteration
                number = self._next
                self._next += 1
        self._order.append(number)
        return self._item(number)

    def _item(self, number: int) -> bytes:
        batch, items = self._batch
        if batch is None or not batch.first <= number < batch.first + batch.size:
            batch = self._batch_of(number)
            items = self._spool.results(batch)
            self._batch = batch, items
        return items[number - batch.first][1]

    def _batch_of(self, number: int) -> Stretch:
        """The batch that has an item."""
        return self._batches[bisect_right(self._batches, number, key=lambda one: one.first) - 1]

    def wait_for_work(self) -> bool:
        """Wait until there is an item to be run. False: the map is to be closed."""
        with self.changed:
            while not self.is_closing and (self._halted is not None or not self._has_work()):
                self.changed.wait()
            # What an earlier run had taken and not sent is among those that have not come.
            self._next = 0
            self._again.clear()
            del self._order[:]
            self.begins_anew = False
            return not self.is_closing

    def _has_work(self) -> bool:
        if self._again:
            return True
        while self._next < self.count and self._outcomes.has(self._next):
            self._next += 1
        return self._next < self.count

    # ---- What becomes of them: the record of a `Map`

    def _runs(self, first: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Of items by their numbers in the run: stretches of neighbours, as the place among these,
        the number of the first, and how many."""
        order, at = self._order, 0
        while at < count:
            end = at + 1
            while end < count and order[first + end] == order[first + end - 1] + 1:
                end += 1
            yield at, order[first + at], end - at
            at = end

    def sending(self, first: int, count: int) -> None:
        """These are about to be sent, or fewer."""
        for _, number, size in self._runs(first, count):
            self._journal.sent(number, size)

    def sent(self, first: int, items: list[Any]) -> None:
        """These are sent."""
        for _, number, size in self._runs(first, len(items)):
            self._under_way.update(range(number, number + size))

    def returned(self, first: int, values: list[Any], items: list[Any] | None) -> None:  # noqa: ARG002 - a `Record` has it
        """These have returned."""
        for at, number, size in self._runs(first, len(values)):
            stretch = self._journal.returned(number, NO_DIGEST, values[at : at + size])
            with self.changed:
                self._outcomes.came(number, size, stretch.offset)
                self._under_way.difference_update(range(number, number + size))
                self.changed.notify_all()

    def failed(self, first: int, count: int) -> None:
        """These have ended with an error."""
        for _, number, size in self._runs(first, count):
            self._journal.failed(number, size)
            self._under_way.difference_update(range(number, number + size))

    def withdrawn(self, first: int, count: int) -> None:
        """These have been given up before a worker got them."""
        with suppress(JournalError):  # as far as that can be kept
            self.failed(first, count)

    def outcomes(self, first: int, values: list[Any]) -> None:
        """What came of items, by their numbers in the run: of interest are the errors."""
        for at, value in enumerate(values, first):
            if not isinstance(value, Failure):
                continue
            if isinstance(value.error, ENDS_ALL):
                self.halt(value.error)
            else:
                _keep_notes(value.error)
                with self.changed:
                    self._outcomes.fail(self._order[at], _as_bytes(value.error))
                    self.changed.notify_all()

    def lost(self) -> None:
        """What is under way has been given up."""
        with self.changed:
            self._note_unknown(sorted(self._under_way))
            self._under_way.clear()

    def halt(self, error: BaseException) -> None:
        """Run nothing more until a program sends the map again: that ends all of its calls."""
        with self.changed:
            if self._halted is None:
                self._halted = _as_bytes(error)
            self.changed.notify_all()

    @property
    def is_halted(self) -> bool:
        """Whether an error has ended the map."""
        return self._halted is not None

    def pause(self) -> None:
        """What has come is to be on disk while nothing else does."""
        self._journal.sync()

    # ---- Results, to a program

    def take(self, cursor: int, upto: int | None, *, ordered: bool, wait: float) -> Piece:
        """Results from `cursor` on: the number of an item, if they are to come in their order, else
        a place in what has come. Waits that long for the first of them, s; `upto`: of no items from
        that one on."""
        with self.changed:
            self.changed.wait_for(lambda: self._can_tell(cursor, ordered), wait)
        results: list[tuple[int, list[bytes]]] = []
        errors: list[tuple[int, bytes]] = []
        size = 0
        while size < PIECE:
            with self.changed:
                if not self._outcomes.is_there(cursor, ordered=ordered):
                    break
                found = self._outcomes.at(cursor, ordered=ordered)
            if found is None or found.error is not None:
                cursor += 1
                if found is not None and found.error is not None:
                    self._tell(found.first)
                    errors.append((found.first, self._outcomes.error(found.error)))
                continue
            first = found.first
            values = self._journal.results(Stretch(first, 0, NO_DIGEST, found.offset))
            if ordered:
                values, first = values[cursor - first :], cursor
            cursor += len(values) if ordered else 1
            if upto is not None:
                del values[max(0, upto - first) :]
            size += sum(map(len, values))
            if values:
                results.append((first, values))
        done = not results and not errors
        return Piece(results, errors, cursor, self._halted if done else None)

    def _can_tell(self, cursor: int, ordered: bool) -> bool:
        there = self._outcomes.is_there(cursor, ordered=ordered)
        return there or self._halted is not None or self.is_closing

    def _tell(self, number: int) -> None:
        """A program is told of an error."""
        with self.changed:
            if number not in self._unknown:
                self._told.add(number)

    def status(self) -> dict[str, Any]:
        """How far it is, in numbers of items."""
        with self.changed:
            return {
                "function": self.plan.fingerprint.name,
                "items": self.count,
                "complete": self.plan.complete,
                "results": self._outcomes.returned,
                "failed": self._outcomes.failed,
                "under_way": len(self._under_way),
                "halted": self._halted,
            }

    def close(self) -> None:
        """Have all of it on disk, and let others open it."""
        with self._storing:
            self.is_closing = True
            try:
                self._journal.close()
            finally:
                self._spool.close()
                self._outcomes.close()


def _keep_notes(error: BaseException) -> None:
    """Leave of the notes of an error those on attempts and ranks: the others have the item's number
    among those of the run, and where ranks raised what the error tells itself."""
    notes = vars(error).pop("__notes__", ())
    for note in notes:
        if note.startswith(("gridrpc: the last of", "gridrpc: on rank")):
            error.add_note(note)


def _as_bytes(error: BaseException) -> bytes:
    """An error as programs get it."""
    if isinstance(error, Raised):
        return pickle.dumps(error, 5)
    try:
        contents = pickle.dumps(error, 5)
        pickle.loads(contents)
    except Exception:  # whatever its own methods raise
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"), 5)
    return contents
