"""A map of a session: its items and results in files, and the state of each item."""

from __future__ import annotations

import os
import pickle
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Condition, Lock
from typing import Any, NamedTuple

from gridrpc._cancelled import CallCancelled
from gridrpc._journal import MOST, NO_DIGEST, IfChanged, Journal, JournalFile, Stretch
from gridrpc._session.item_store import ItemStore, other_item
from gridrpc._session.outcomes import Outcomes
from gridrpc._session.protocol import MapPlan, Message, pack
from gridrpc._session.task import Raised
from gridrpc.errors import GridClosed, JournalError, OutcomeUnknown, SessionError, StartError

#: Maximum size of a piece of results, unless a single result is larger, bytes.
PIECE = 4 << 20
#: Errors that stop a map, since all of its calls would fail.
ENDS_ALL = (StartError, GridClosed)


class Failure(NamedTuple):
    """Takes the place of the result of an item that failed."""

    error: BaseException


class _PlanUnpickler(pickle.Unpickler):
    """Loads plans, also those of versions with the module `kept`."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "gridrpc._session.kept" and name == "Plan":
            return MapPlan
        return super().find_class(module, name)


def removed(key: str) -> SessionError:
    """The error for a program that still uses a map."""
    return SessionError(
        f"map `{key}` was removed, or started over, by another program in the meantime"
    )


class StoredMap:
    """A map: programs add items and take results, and a thread of the `MapPool` runs it.

    It is the `Record` of the thread's `Map`, and the iterator over its items.
    """

    def __init__(self, folder: Path, key: str, plan: MapPlan, identity: str = "") -> None:
        self.key = key
        self.identity = identity
        self.plan = plan
        self._folder = folder
        #: Held while items or the plan are written.
        self._storing = Lock()
        #: Notified of all changes below.
        self.changed = Condition()
        self.is_closing = False
        #: Whether the run has to begin again, with the current plan; whether it takes no items.
        self.must_restart = self.is_paused = False
        #: Whether the run has to cancel its calls.
        self.is_cancelled = False
        self._halted: bytes | None = None
        self._journal = self._opened("journal")
        self.items = ItemStore(self._opened("items"))
        self._outcomes = Outcomes(folder)
        #: Items whose errors a program has received. They run again when they are sent again.
        self._delivered: set[int] = set()
        #: Items that may have run when an earlier process of the session ended.
        self._unknown: set[int] = set()
        #: Items to run first, and the number of the next of the others.
        self._again: deque[int] = deque()
        self._next = 0
        self._under_way: set[int] = set()
        #: Numbers of the items that the current run has taken.
        self._order = array("Q")
        self._load()

    def _opened(self, kind: str) -> JournalFile:
        # `accept` compares the function.
        journal = Journal(self._folder / f"{self.key}.{kind}", "keep")
        return JournalFile(journal, self.plan.fingerprint)

    def _load(self) -> None:
        count = self.items.count
        self._outcomes.extend(count)
        # In the order of arrival, which cursors refer to.
        for stretch in sorted(self._journal.stretches(), key=lambda one: one.offset):
            if stretch.first + stretch.size <= count:
                self._outcomes.add_results(stretch.first, stretch.size, stretch.offset)
        gaps = self._journal.unheard_of()
        self._add_unknown(n for gap in gaps for n in range(gap.start, min(gap.stop, count)))
        self._has_next()

    def _add_unknown(self, numbers: Iterable[int]) -> None:
        """Record OutcomeUnknown for items that may have run."""
        if self.plan.options.idempotent:
            return
        for number in numbers:
            self._unknown.add(number)
            error = OutcomeUnknown(
                f"map `{self.key}`, item {number} (the first one is 0): it was under way when the "
                "session ended, and may have run. Give `idempotent=True` to have such "
                "items run again, or `return_exceptions=True` to continue without them"
            )
            self._outcomes.add_error(number, _pickled(error))

    def save(self) -> None:
        """Write the plan to disk."""
        new = self._folder / f"{self.key}.new"
        with new.open("wb") as opened:
            pickle.dump(self.plan, opened)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(self._folder / f"{self.key}.function")

    @staticmethod
    def loaded(folder: Path, key: str, identity: str = "") -> StoredMap:
        """The map in the files of that key."""
        with (folder / f"{key}.function").open("rb") as opened:
            return StoredMap(folder, key, _PlanUnpickler(opened).load(), identity)

    @staticmethod
    def remove(folder: Path, key: str, *, keep_old: bool = False) -> None:
        """Remove the files of a map, or rename them to `*.old`."""
        for kind in ("function", "items", "journal"):
            file = folder / f"{key}.{kind}"
            if keep_old and file.exists():
                file.replace(folder / f"{key}.{kind}.old")
            else:
                file.unlink(missing_ok=True)

    # ---- Items from programs

    def accept(self, plan: MapPlan, if_changed: IfChanged) -> None:
        """Resume the map for a program that sends it again. Raises JournalError."""
        known = self.plan
        same = plan.fingerprint.digest == known.fingerprint.digest
        if not same and if_changed != "keep":
            change = known.fingerprint.change(plan.fingerprint)
            raise JournalError(
                f"map `{self.key}` of the session {change}. Give "
                'if_changed="keep" if its results are still right, or "restart" to start over',
                str(self._folder),
            )
        with self._storing, self.changed:
            self._refuse_removed()
            if not same or plan.settings != known.settings:
                plan.complete = known.complete
                self.plan = plan
                self.must_restart = True
                self.save()
            if self._halted is not None:
                self._halted = None
                self.must_restart = True
            again = self._delivered
            if plan.options.idempotent:
                again |= self._unknown
                self._unknown.clear()
            for number in sorted(again):
                self._outcomes.discard_error(number)
                if number < self._next:
                    self._again.append(number)
            again.clear()
            self.changed.notify_all()

    def _refuse_removed(self) -> None:
        if self.is_closing:
            raise removed(self.key)

    def add(self, first: int, items: list[tuple[bytes, bytes]]) -> None:
        """Add items from number `first` on, as digests and pickles.

        Compares those that another program has sent already. Raises JournalError.
        """
        with self._storing:
            self._refuse_removed()
            known = self.items.count - first
            if known < 0:
                raise ValueError(f"map `{self.key}` has {self.items.count} items, not {first}")
            differs = self.items.difference(first, [digest for digest, _ in items])
            if differs is not None:
                raise other_item(self.key, differs, self._folder)
            if not items[known:]:
                return
            batch = self.items.write(items[known:])
            with self.changed:
                self.items.append(batch)
                self._outcomes.extend(batch.size)
                self.changed.notify_all()

    def complete(self) -> None:
        """Record that a program has sent all items; another one may send more."""
        with self._storing, self.changed:
            self._refuse_removed()
            if not self.plan.complete:
                self.plan.complete = True
                self.save()
            self.changed.notify_all()

    # ---- Items for workers

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        """The next item to run. There may be more after StopIteration."""
        with self.changed:
            if self.is_paused or not self._has_next():
                raise StopIteration
            if self._again:
                number = self._again.popleft()
            else:
                number = self._next
                self._next += 1
        self._order.append(number)
        return self.items.item(number)

    def has_work(self) -> bool:
        """Whether there are items to run."""
        with self.changed:
            return not (self.is_closing or self.is_halted) and self._has_next()

    def can_park(self) -> bool:
        """Whether the files have all of the map, for a time in which it does not run."""
        with self.changed:
            outcomes = self._outcomes
            has_all = outcomes.returned == self.items.count or self._journal.is_settled
            return has_all and not (self.is_halted or outcomes.had_errors)

    def begin_run(self) -> MapPlan:
        """Begin with the first item that has no outcome. Returns the plan."""
        with self.changed:
            self._forget_run()
            self.must_restart = self.is_paused = self.is_cancelled = False
            return self.plan

    def end_run(self) -> None:
        """Record that the calls under way were cancelled."""
        with self.changed:
            self._add_unknown(sorted(self._under_way))
            self._under_way.clear()
            self._forget_run()
            self._has_next()

    def _forget_run(self) -> None:
        # Items that a run took and did not send have no outcome.
        self._next = 0
        self._again.clear()
        del self._order[:]

    def _has_next(self) -> bool:
        if self._again:
            return True
        while self._next < self.items.count and self._outcomes.has(self._next):
            self._next += 1
        return self._next < self.items.count

    # ---- Outcomes from workers

    def _runs(self, first: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Runs of consecutive numbers among the items that were taken `first` to `first + count`:
        where each run begins, the number of its first item, and its length."""
        order, at = self._order, 0
        while at < count:
            end = at + 1
            while end < count and order[first + end] == order[first + end - 1] + 1:
                end += 1
            yield at, order[first + at], end - at
            at = end

    def sending(self, first: int, items: list[Any]) -> None:
        """Record that these are about to be sent, or fewer."""
        for _, number, size in self._runs(first, len(items)):
            self._journal.sent(number, size)

    def sent(self, first: int, items: list[Any]) -> None:
        """Record that these are sent."""
        for _, number, size in self._runs(first, len(items)):
            self._under_way.update(range(number, number + size))

    def returned(self, first: int, values: list[Any], items: list[Any] | None) -> None:  # noqa: ARG002 - a `Record` has it
        """Record results."""
        for at, number, size in self._runs(first, len(values)):
            stretch = self._journal.returned(number, NO_DIGEST, values[at : at + size])
            with self.changed:
                self._outcomes.add_results(number, size, stretch.offset)
                self._under_way.difference_update(range(number, number + size))
                self.changed.notify_all()

    def failed(self, first: int, count: int) -> None:
        """Record that these failed."""
        for _, number, size in self._runs(first, count):
            self._journal.failed(number, size)
            self._under_way.difference_update(range(number, number + size))

    def withdrawn(self, first: int, count: int) -> None:
        """Record that these were cancelled before a worker received them."""
        with suppress(JournalError):  # then they count as items that may have run
            self.failed(first, count)

    def add_errors(self, first: int, values: list[Any]) -> None:
        """Record the errors among the outcomes of items that were taken from `first` on."""
        for at, value in enumerate(values, first):
            if not isinstance(value, Failure):
                continue
            if isinstance(value.error, ENDS_ALL):
                self.halt(value.error)
            else:
                _remove_notes(value.error)
                with self.changed:
                    self._outcomes.add_error(self._order[at], _pickled(value.error))
                    self.changed.notify_all()

    def cancel(self) -> bool:
        """Cancel the items that have no result. Returns whether there were any."""
        with self.changed:
            if self.is_halted or not (self._under_way or self._has_next()):
                return False
            self.halt(CallCancelled(f"map `{self.key}` of the session was cancelled"))
            self.is_cancelled = True
            return True

    def halt(self, error: BaseException) -> None:
        """Stop the map until a program sends it again."""
        with self.changed:
            if self._halted is None:
                self._halted = _pickled(error)
            self.changed.notify_all()

    @property
    def is_halted(self) -> bool:
        """Whether an error has stopped the map."""
        return self._halted is not None

    def sync(self) -> None:
        """Write results to disk."""
        self._journal.sync()

    # ---- Results for programs

    def take(self, cursor: int, upto: int | None, *, ordered: bool, wait: float) -> Message:
        """Results from `cursor` on: a number of an item if `ordered`, else a place in the order of
        arrival. Waits up to `wait` seconds for the first one. `upto`: excludes items from this
        number on.

        The message has the `numbers` of the items, the `cursor` of the next results, and which of
        the pickles are `errors`. If the map is `halted`, the only pickle is the error that did it.
        """
        with self.changed:
            self.changed.wait_for(lambda: self._has_news(cursor, ordered), wait)
        numbers: list[int] = []
        errors: list[int] = []
        contents: list[bytes] = []
        size = 0
        end = MOST if upto is None else upto
        while size < PIECE and (cursor < end or not ordered):
            with self.changed:
                if not self._outcomes.reaches(cursor, ordered=ordered):
                    break
                outcome = self._outcomes.at(cursor, ordered=ordered)
            if outcome is None:
                cursor += 1
                continue
            first = outcome.first
            if outcome.error is None:
                values = self._journal.results(Stretch(first, 0, NO_DIGEST, outcome.offset))
                if ordered:
                    values, first = values[cursor - first :], cursor
                cursor += len(values) if ordered else 1
            else:
                values = [self._outcomes.error(outcome.error)]
                cursor += 1
            del values[max(0, end - first) :]
            if values and outcome.error is not None:
                self._deliver(first)
                errors.append(len(contents))
            numbers += range(first, first + len(values))
            contents += values
            size += sum(map(len, values))
        halted = None if contents else self._halted
        fields = {"numbers": numbers, "errors": errors, "cursor": cursor}
        fields["halted"] = halted is not None
        return fields, pack(contents if halted is None else [halted])

    def _has_news(self, cursor: int, ordered: bool) -> bool:
        reaches = self._outcomes.reaches(cursor, ordered=ordered)
        return reaches or self._halted is not None or self.is_closing

    def _deliver(self, number: int) -> None:
        """Record that a program receives the error of an item."""
        with self.changed:
            if number not in self._unknown:
                self._delivered.add(number)

    def status(self) -> dict[str, Any]:
        """Progress in numbers of items, and the error that stopped the map."""
        with self.changed:
            return {
                "function": self.plan.fingerprint.name,
                "items": self.items.count,
                "complete": self.plan.complete,
                "results": self._outcomes.returned,
                "failed": self._outcomes.failed,
                "under_way": len(self._under_way),
                "halted": self._halted,
            }

    def stop(self) -> None:
        """Have the run cancel its calls. It may first wait for room in the queue of the grid."""
        with self.changed:
            self.is_closing = True
            self.changed.notify_all()

    def close(self) -> None:
        """Write everything to disk, and close the files."""
        with self._storing:
            self.is_closing = True
            try:
                self._journal.close()
            finally:
                self.items.close()
                self._outcomes.close()


def _remove_notes(error: BaseException) -> None:
    """Remove notes with numbers of items, as these are of the run; others stay."""
    notes = vars(error).pop("__notes__", ())
    for note in notes:
        if note.startswith(("gridrpc: the last of", "gridrpc: on rank")):
            error.add_note(note)


def _pickled(error: BaseException) -> bytes:
    """An error as programs receive it."""
    if isinstance(error, Raised):
        return pickle.dumps(error, 5)
    try:
        contents = pickle.dumps(error, 5)
        pickle.loads(contents)
    except Exception:  # whatever its own methods raise
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"), 5)
    return contents
