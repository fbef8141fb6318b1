"""What has come of the items of a session's map, and where it is."""

from __future__ import annotations

import os
import tempfile
from array import array
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """What has come: the first item that it is of; where the results are in the journal; or which
    error it is, if it is one."""

    first: int
    offset: int
    error: int | None


class Outcomes:
    """An index with some bytes for each item. Whoever uses it sees to threads."""

    def __init__(self, folder: Path) -> None:
        #: As they came: the first item of each, and the place in the journal; for an error, its
        #: number among the errors, counted from -1 down.
        self._firsts = array("Q")
        self._offsets = array("q")
        #: By item: 1 + the place of what has come last of it; 0: nothing has.
        self._places = array("Q")
        #: Where each error is in the file, and its length; or the error, as there was no room.
        self._errors: list[tuple[int, int] | bytes] = []
        self._errors_end = 0
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed in `close`
        #: How many items have results, and how many errors.
        self.returned = self.failed = 0

    def extend(self, count: int) -> None:
        """There are so many items more."""
        self._places.frombytes(bytes(self._places.itemsize * count))

    def came(self, first: int, count: int, offset: int) -> None:
        """These have results, which are at that place of the journal."""
        self._add(first, count, offset)
        self.returned += count

    def fail(self, number: int, error: bytes) -> None:
        """This one has ended with an error."""
        at = self._errors_end
        try:
            if os.pwrite(self._file.fileno(), error, at) < len(error):
                raise OSError
            self._errors.append((at, len(error)))
            self._errors_end += len(error)
        except OSError:  # such as a full disk
            self._errors.append(error)
        self._add(number, 1, -len(self._errors))
        self.failed += 1

    def _add(self, first: int, count: int, offset: int) -> None:
        self._firsts.append(first)
        self._offsets.append(offset)
        place = len(self._firsts)
        for number in range(first, first + count):
            self._places[number] = place

    def run_again(self, number: int) -> None:
        """The error of this one counts no more."""
        self._places[number] = 0
        self.failed -= 1

    def has(self, number: int) -> bool:
        """Whether anything has come of an item."""
        return self._places[number] > 0

    def is_there(self, cursor: int, *, ordered: bool) -> bool:
        """Whether there is something at `cursor`: an item, or a place in what has come."""
        if ordered:
            return cursor < len(self._places) and self._places[cursor] > 0
        return cursor < len(self._firsts)

    def at(self, cursor: int, *, ordered: bool) -> Outcome | None:
        """What is there. None: an error of an item that has run again since, or is about to."""
        place = self._places[cursor] - 1 if ordered else cursor
        first, offset = self._firsts[place], self._offsets[place]
        if offset >= 0:
            return Outcome(first, offset, None)
        return Outcome(first, 0, -offset - 1) if self._places[first] == place + 1 else None

    def error(self, index: int) -> bytes:
        """An error as it was given."""
        error = self._errors[index]
        if isinstance(error, bytes):
            return error
        at, length = error
        return os.pread(self._file.fileno(), length, at)

    def close(self) -> None:
        """Errors are not kept."""
        self._file.close()
