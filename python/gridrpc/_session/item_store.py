"""Items of a session's map in batches, and their comparison."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from gridrpc._fingerprint import DIGEST
from gridrpc._journal import JournalFile, Stretch
from gridrpc.errors import JournalError

RESTART = 'Give the items that it was begun with, another key, or if_changed="restart"'


def other_item(key: str, number: int, folder: Path) -> JournalError:
    """The error for an item that differs from the stored one."""
    return JournalError(
        f"map `{key}` of the session has another item {number} (the first one is 0). {RESTART}",
        str(folder),
    )


def digest_of_batch(digests: Iterable[bytes]) -> bytes:
    """The digest of a batch, from those of its items."""
    return blake2b(b"".join(digests), digest_size=DIGEST).digest()


class ItemStore:
    """Items of a map in batches, as programs have sent them."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self.count = 0
        self.batches: list[Stretch] = []
        self._cached: tuple[Stretch | None, list[tuple[bytes, bytes]]] = None, []
        for batch in file.stretches():
            if batch.first != self.count:
                break
            self.append(batch)

    def write(self, items: list[tuple[bytes, bytes]]) -> Stretch:
        """Write the next batch to disk, as digests and pickles."""
        digest = digest_of_batch(digest for digest, _ in items)
        batch = self._file.returned(self.count, digest, items)
        # The number of an item that has run must not change.
        self._file.sync()
        return batch

    def append(self, batch: Stretch) -> None:
        """Add a batch that has been written."""
        self.batches.append(batch)
        self.count += batch.size

    def batch_of(self, number: int) -> Stretch:
        """The batch with an item."""
        return self.batches[bisect_right(self.batches, number, key=lambda one: one.first) - 1]

    def digests(self, batch: Stretch) -> list[bytes]:
        """The digests of the items of a batch."""
        return [digest for digest, _ in self._file.results(batch)]

    def difference(self, first: int, digests: list[bytes]) -> int | None:
        """The number of the first of these items that differs from the stored one."""
        at, end = first, min(first + len(digests), self.count)
        while at < end:
            batch = self.batch_of(at)
            stored = self.digests(batch)
            for number in range(at, min(end, batch.first + batch.size)):
                if digests[number - first] != stored[number - batch.first]:
                    return number
            at = batch.first + batch.size
        return None

    def item(self, number: int) -> bytes:
        """The pickle of an item. Only one thread may call this."""
        batch, items = self._cached
        if batch is None or not batch.first <= number < batch.first + batch.size:
            batch = self.batch_of(number)
            items = self._file.results(batch)
            self._cached = batch, items
        return items[number - batch.first][1]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
