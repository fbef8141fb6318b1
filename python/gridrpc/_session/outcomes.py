"""Index of the results and errors of a session's map."""

from __future__ import annotations

import os
import tempfile
from array import array
from pathlib import Path
from typing import IO, NamedTuple


class Outcome(NamedTuple):
    """Results of items from `first` on, at an offset of the journal, or the error of one item."""

    first: int
    offset: int
    #: The index of the error; None: they are results.
    error: int | None


class Outcomes:
    """Index with some bytes for each item. It is not thread-safe."""

    def __init__(self, folder: Path) -> None:
        #: In the order of arrival: first item and offset in the journal. The offset of an error is
        #: its index, counted from -1 down.
        self._firsts = array("Q")
        self._offsets = array("q")
        #: By item: 1 + the place of its last outcome in these arrays, or 0.
        self._places = array("Q")
        #: Offset and length of each error in the file, or the error if the file has no room.
        self._errors: list[tuple[int, int] | bytes] = []
        self._errors_end = 0
        #: The file of the errors, if there are any.
        self._file: IO[bytes] | None = None
        self._folder = folder
        #: Number of items with results, and with errors.
        self.returned = self.failed = 0

    def extend(self, count: int) -> None:
        """Add items without an outcome."""
        self._places.frombytes(bytes(self._places.itemsize * count))

    def add_results(self, first: int, count: int, offset: int) -> None:
        """Add results at an offset of the journal."""
        self._add(first, count, offset)
        self.returned += count

    def add_error(self, number: int, error: bytes) -> None:
        """Add the error of an item."""
        at = self._errors_end
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed in `close`
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

    @property
    def had_errors(self) -> bool:
        """Whether there were errors, which are in no other file."""
        return bool(self._errors)

    def discard_error(self, number: int) -> None:
        """Have an item without an outcome again."""
        self._places[number] = 0
        self.failed -= 1

    def has(self, number: int) -> bool:
        """Whether an item has an outcome."""
        return self._places[number] > 0

    def reaches(self, cursor: int, *, ordered: bool) -> bool:
        """Whether there is an outcome at `cursor`: of that item, or in the order of arrival."""
        if ordered:
            return cursor < len(self._places) and self._places[cursor] > 0
        return cursor < len(self._firsts)

    def at(self, cursor: int, *, ordered: bool) -> Outcome | None:
        """The outcome at `cursor`. None: an error that has been discarded since."""
        place = self._places[cursor] - 1 if ordered else cursor
        first, offset = self._firsts[place], self._offsets[place]
        if offset >= 0:
            return Outcome(first, offset, None)
        return Outcome(first, 0, -offset - 1) if self._places[first] == place + 1 else None

    def error(self, index: int) -> bytes:
        """An error by its index."""
        error = self._errors[index]
        if isinstance(error, bytes):
            return error
        assert self._file is not None
        at, length = error
        return os.pread(self._file.fileno(), length, at)

    def close(self) -> None:
        """Discard the errors; results stay in the journal."""
        if self._file is not None:
            self._file.close()
