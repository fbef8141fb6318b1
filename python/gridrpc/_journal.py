"""The file in which `map` keeps its results as they come, so that a later run continues from there.

    b"gridrpc journal 1\\n", then records: a header of 48 bytes, and as many bytes as it says.

A record tells of items `first` to `first + count - 1`, that they were sent, have returned, or have
failed. It has two checksums (CRC-32), of the header and of what follows. Records are appended only;
what a crash leaves of the last one is cut off when the file is opened again. All else that is not a
whole record is damage: a record of items that were sent may be behind it, and they would run twice.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pickle
import stat
import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import Any, Literal, NamedTuple
from zlib import crc32

from gridrpc._fingerprint import Fingerprint
from gridrpc._paths import distrust_status
from gridrpc._room import make_room, release_room
from gridrpc.errors import JournalError

MAGIC = b"gridrpc journal 1\n"
_HEADER = struct.Struct("<4sIQQ16s")
_SUMS = struct.Struct("<II")
_BUFFERS = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
HEADER = _HEADER.size + _SUMS.size
FUNCTION, SENT, RETURNED, FAILED, SYNCED = b"func", b"sent", b"back", b"fail", b"sync"
NO_DIGEST = bytes(16)
#: Results are on disk after this time if more come, s; and as soon as there are so many bytes.
SYNC_EVERY = 1.0
SYNC_BYTES = 64 << 20
#: Pieces of memory that one system call writes, at most.
MOST_PARTS = os.sysconf("SC_IOV_MAX")
#: The file is read in pieces of so many bytes; longer contents are passed over when it is opened.
PIECE = 1 << 20
#: Room on the disk, beyond that for calls under way, that is there before items are sent, bytes.
ROOM = 128 << 10
#: The most room for the results of one call under way, which is that of those before, bytes.
MOST_ROOM = 1 << 20
#: Numbers of items are below this one.
MOST = 1 << 62
#: Calls among which one is looked for that has taken fewer items than were announced.
RECENT = 8
#: A crash of the machine may leave zeros, from the beginning of a block of so many bytes.
BLOCK = 512

IfChanged = Literal["stop", "keep", "restart"]


@dataclass(frozen=True)
class Journal:
    """Where `map` keeps its results, and what to do if the function has changed since then.

    `if_changed`: "stop" raises JournalError; "keep" accepts the results in the file, and continues;
    "restart" begins again, and renames the old file to `PATH.old`.
    """

    path: str | os.PathLike[str]
    if_changed: IfChanged = "stop"

    def __post_init__(self) -> None:
        if self.if_changed not in ("stop", "keep", "restart"):
            raise ValueError(
                f'`if_changed` is {self.if_changed!r}: give "stop", "keep" or "restart"'
            )


#: What a path may lead to that can be no journal.
SPECIAL = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Stretch(NamedTuple):
    """Items that have returned."""

    first: int
    size: int
    digest: bytes
    #: Of its record in the file.
    offset: int


class _Header(NamedTuple):
    kind: bytes
    items: int
    first: int
    length: int
    digest: bytes
    checksum: int


class JournalFile:
    """An open journal, which nobody else can open meanwhile.

    Raises JournalError when it is no journal, is in use, is of another function, or cannot be
    read or written.
    """

    def __init__(self, journal: Journal, function: Fingerprint) -> None:
        self.path = os.fspath(journal.path)
        self._firsts = array("Q")
        self._counts = array("Q")
        self._offsets = array("Q")
        self._digests = bytearray()
        #: Sent and not heard of: the number behind the last item, by that of the first.
        self._open: dict[int, int] = {}
        self._unheard_of: list[range] = []
        self._unsynced = 0
        self._synced_at = 0.0
        #: Where the room on the disk ends that is the file's.
        self._reserved = 0
        #: Bytes of all results.
        self._result_bytes = 0
        #: How many records of results there are.
        self._result_records = 0
        self._end = 0
        self._file = -1
        try:
            self._file = self._opened()
            self._end = self._read(function, journal.if_changed)
        except BaseException:
            self._let_go()
            raise

    def __del__(self) -> None:
        # Of a map that nobody has asked for results.
        self._let_go()

    def _let_go(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            if self._reserved > self._end:
                release_room(file, self._end, self._reserved)
            self._reserved = 0
            os.close(file)

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            # Not even to be opened: that may have effects.
            self._refuse_special(os.stat(self.path))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._error(f"cannot be opened: {error.strerror}") from error
        try:
            file = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise self._error(f"cannot be opened: {error.strerror}") from error
        try:
            status = os.fstat(file)
            self._refuse_special(status)
            if reason := distrust_status(status):
                raise self._error(
                    f"{reason}, and what it has is unpickled. Nothing has been changed in it. Take "
                    "that away by chmod or chown, or give another file"
                )
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise self._error(
                "is in use: another program, or another map of this one, writes to it"
            ) from None
        except OSError as error:
            os.close(file)
            raise self._error(f"cannot be locked: {error.strerror}") from error
        except JournalError:
            os.close(file)
            raise
        return file

    def _refuse_special(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            kind = SPECIAL.get(stat.S_IFMT(status.st_mode), "no file")
            raise self._error(f"cannot be opened: it is {kind}. Give the path of a file")

    def _error(self, what: str) -> JournalError:
        return JournalError(f"journal {self.path}: {what}", self.path)

    # ---- What is there

    def _read(self, function: Fingerprint, if_changed: IfChanged) -> int:
        """Take in what is there, cut off what is not whole, and return where the file ends."""
        size = os.fstat(self._file).st_size
        start = os.pread(self._file, len(MAGIC), 0)
        if start != MAGIC[: len(start)]:
            raise self._error("is another kind of file; nothing has been changed in it")
        if size < len(MAGIC):
            return self._begin(function)
        with io.BufferedReader(io.FileIO(self._file, closefd=False), PIECE) as reader:
            end = self._take_all(reader, size, function, if_changed)
        if end is None:
            os.rename(self.path, f"{self.path}.old")
            self._let_go()
            self._forget()
            self._file = self._opened()
            return self._begin(function)
        if end < size:
            if not self._is_torn(end, size):
                raise self._damaged(end)
            self._truncate(end)
        if end == len(MAGIC):
            return self._begin(function)
        self._sort()
        self._unheard_of = self._never_heard_of()
        self._open.clear()
        return end

    def _take_all(
        self,
        reader: io.BufferedReader[io.FileIO],
        size: int,
        function: Fingerprint,
        if_changed: IfChanged,
    ) -> int | None:
        """Read records; returns where the last whole one ends. None: all is to start over."""
        #: Long contents that have not been read and may not have reached the disk: their
        #: record, where they end, and their checksum.
        unread: list[tuple[int, int, int]] = []
        at = reader.seek(len(MAGIC))
        while True:
            header = self._parsed(reader.read(HEADER))
            if header is None or at + HEADER + header.length > size:
                break
            end = at + HEADER + header.length
            if header.kind == SYNCED:
                unread.clear()
            if header.length < PIECE:
                contents = reader.read(header.length)
                if crc32(contents) != header.checksum:
                    break
                if header.kind == FUNCTION and self._has_changed(
                    self._known(contents, at), function, if_changed
                ):
                    return None
            else:
                reader.seek(header.length, os.SEEK_CUR)
                unread.append((at, end, header.checksum))
            self._take(header, at)
            at = end
        for start, end, checksum in unread:
            if _checksum(reader, start + HEADER, end) != checksum:
                self._forget()
                return self._take_all(reader, start, function, if_changed)
        return at

    def _is_torn(self, at: int, size: int) -> bool:
        """Whether what is behind the last whole record is what a crash leaves of one that was being
        written: its beginning, perhaps with zeros for what did not reach the disk."""
        header = self._parsed(os.pread(self._file, HEADER, at))
        if size - at < HEADER or (header is not None and at + HEADER + header.length > size):
            return True
        end = self._without_zeros(at, size)
        zeros = -(-end // BLOCK) * BLOCK
        whole = at + HEADER + (0 if header is None else header.length)
        return end == at or zeros < min(whole, size)

    def _without_zeros(self, at: int, end: int) -> int:
        """Where these bytes end without the zeros at their end."""
        while end > at:
            start = max(at, end - PIECE)
            piece = os.pread(self._file, end - start, start).rstrip(b"\0")
            if piece:
                return start + len(piece)
            end = start
        return at

    def _damaged(self, at: int) -> JournalError:
        return self._error(
            f"is damaged at byte {at}; nothing has been changed in it. Restore it, or keep what is "
            f"before: truncate -s {at} {self.path}. Items that were sent later then run again"
        )

    @staticmethod
    def _parsed(header: bytes) -> _Header | None:
        if len(header) < HEADER:
            return None
        of_contents, of_header = _SUMS.unpack_from(header, _HEADER.size)
        if crc32(header[: _HEADER.size + 4]) != of_header:
            return None
        kind, items, first, length, digest = _HEADER.unpack_from(header)
        return _Header(kind, items, first, length, digest, of_contents)

    def _take(self, header: _Header, at: int) -> None:
        first, count = header.first, header.items
        if first + count > MOST:
            raise self._damaged(at)
        if header.kind == SENT:
            self._sending(first, count)
        elif header.kind in (RETURNED, FAILED):
            self._heard_of(first, count)
        if header.kind == RETURNED:
            self._firsts.append(first)
            self._counts.append(count)
            self._offsets.append(at)
            self._digests += header.digest
            self._results_came(header.length)

    def _results_came(self, size: int) -> None:
        self._result_bytes += size
        self._result_records += 1

    def _sending(self, first: int, count: int) -> None:
        # A call may have taken fewer items than were announced: it has not sent those from here on.
        for before in islice(reversed(self._open), RECENT):
            if before < first < self._open[before]:
                self._open[before] = first
                break
        self._open[first] = max(first + count, self._open.get(first, 0))

    def _heard_of(self, first: int, count: int) -> None:
        end, behind = self._open.pop(first, 0), first + count
        if behind < end:
            self._open[behind] = max(end, self._open.get(behind, 0))

    def _known(self, contents: bytes, at: int) -> Fingerprint:
        """What the file says of its function."""
        try:
            known = json.loads(contents)
            return Fingerprint(*(str(known[name]) for name in Fingerprint._fields))
        except (ValueError, LookupError, TypeError):
            raise self._damaged(at) from None

    def _has_changed(
        self, known: Fingerprint, function: Fingerprint, if_changed: IfChanged
    ) -> bool:
        """Whether it is of another function, and is to start over. Raises JournalError if not."""
        if known.digest == function.digest or if_changed == "keep":
            return False
        if if_changed == "restart":
            return True
        raise self._error(
            f'{known.change(function)}. Give gridrpc.Journal("{self.path}", if_changed="keep") '
            'in place of its path if its results are still right, or if_changed="restart" to start '
            "over"
        )

    def _forget(self) -> None:
        for column in (self._firsts, self._counts, self._offsets):
            del column[:]
        self._result_bytes = self._result_records = 0
        self._digests.clear()
        self._open.clear()

    def _sort(self) -> None:
        if self._overlapping() is None:
            return
        order = sorted(range(len(self._firsts)), key=self._firsts.__getitem__)
        digests = self._digests
        self._digests = bytearray().join(digests[16 * i : 16 * i + 16] for i in order)
        for name in ("_firsts", "_counts", "_offsets"):
            column = getattr(self, name)
            setattr(self, name, array("Q", (column[i] for i in order)))
        twice = self._overlapping()
        if twice is not None:
            raise self._damaged(max(self._offsets[twice - 1 : twice + 1]))

    def _overlapping(self) -> int | None:
        """The first results that are not behind those before."""
        behind = 0
        for i, (first, count) in enumerate(zip(self._firsts, self._counts, strict=True)):
            if first < behind:
                return i
            behind = first + count
        return None

    @property
    def kept(self) -> int:
        """How many items have returned in earlier runs."""
        return sum(self._counts)

    def stretches(self) -> Iterator[Stretch]:
        """What has returned in earlier runs, in the order of the items."""
        digests = self._digests
        for i, (first, count, offset) in enumerate(
            zip(self._firsts, self._counts, self._offsets, strict=True)
        ):
            yield Stretch(first, count, bytes(digests[16 * i : 16 * i + 16]), offset)

    @property
    def is_settled(self) -> bool:
        """Whether all items that were sent have been heard of since."""
        return not self._open

    def unheard_of(self) -> list[range]:
        """Items that earlier runs had sent when they ended, and that may have run or not."""
        return self._unheard_of

    def _never_heard_of(self) -> list[range]:
        found: list[range] = []
        for first, end in sorted(self._open.items()):
            at = max(first, found[-1].stop) if found else first
            found.extend(range(*gap) for gap in self._gaps(at, end))
        return found

    def _gaps(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        """What of these items has not returned."""
        index = max(bisect_right(self._firsts, at) - 1, 0)
        while at < end:
            while index < len(self._firsts) and self._firsts[index] + self._counts[index] <= at:
                index += 1
            first = self._firsts[index] if index < len(self._firsts) else end
            if at < first:
                yield at, min(first, end)
            at = first + self._counts[index] if index < len(self._firsts) else end

    def results(self, stretch: Stretch) -> list[Any]:
        """Those of the items of a stretch."""
        try:
            header = self._parsed(os.pread(self._file, HEADER, stretch.offset))
            length, checksum = (0, 0) if header is None else (header.length, header.checksum)
            contents = memoryview(bytearray(length))
            at = 0
            while at < length:
                got = os.preadv(self._file, [contents[at:]], stretch.offset + HEADER + at)
                if not got:
                    break
                at += got
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror}") from error
        if header is None or at < length or crc32(contents) != checksum:
            raise self._error(
                f"is damaged at byte {stretch.offset}: the results of items {stretch.first} to "
                f"{stretch.first + stretch.size - 1} cannot be read. Restore it, or start over"
            )
        try:
            (count,) = _BUFFERS.unpack_from(contents)
            at = _BUFFERS.size
            parts = []
            for _ in range(count + 1):
                (length,) = _LENGTH.unpack_from(contents, at)
                at += _LENGTH.size
                parts.append(contents[at : at + length])
                at += length
            values: list[Any] = pickle.loads(parts[0], buffers=parts[1:])
            if len(values) != header.items:
                raise ValueError(f"there are {len(values)} results")
        except Exception as error:  # whatever classes of the program raise
            raise self._error(
                f"the results of items {stretch.first} to {stretch.first + header.items - 1}, at "
                f"byte {stretch.offset}, cannot be read: {type(error).__name__}: {error}"
            ) from error
        return values

    # ---- What comes

    def sent(self, first: int, count: int) -> None:
        """These items are about to be sent. Raises JournalError if there may be no room for what
        results from them."""
        self._sending(first, count)
        self._reserve()
        self._append(SENT, first, count)

    def _reserve(self) -> None:
        """Have room for the results of the calls under way: what has run is to be recorded."""
        size = min(self._result_bytes // max(1, self._result_records), MOST_ROOM)
        least = self._end + len(self._open) * (size + 3 * HEADER)
        if least + ROOM // 2 <= self._reserved:
            return
        try:
            if make_room(self._file, self._end, least + ROOM):
                self._reserved = least + ROOM
        except OSError as error:
            raise self._error(
                f"cannot be written: {error.strerror}. There is no room for the results of further "
                "items, which are not sent. What it has stays, and the same program continues from "
                "there when that is mended"
            ) from error

    def failed(self, first: int, count: int) -> None:
        """These ended with an error, which the caller knows: they run again next time."""
        self._append(FAILED, first, count)
        self._heard_of(first, count)

    def returned(self, first: int, digest: bytes, values: list[Any]) -> Stretch:
        """Keep the results of the items from `first` on."""
        stretch = Stretch(first, len(values), digest, self._end)
        buffers: list[Any] = []
        head = _pickled(values, lambda buffer: buffers.append(buffer.raw()))
        parts = [_BUFFERS.pack(len(buffers)), _LENGTH.pack(len(head)), head]
        for buffer in buffers:
            parts += [_LENGTH.pack(buffer.nbytes), buffer]
        self._append(RETURNED, first, len(values), digest, parts)
        self._results_came(self._end - stretch.offset)
        self._heard_of(first, len(values))
        now = monotonic()
        if now - self._synced_at > SYNC_EVERY or self._unsynced > SYNC_BYTES:
            self._sync()
        return stretch

    def sync(self) -> None:
        """Have all of it on disk."""
        if self._unsynced:
            self._sync()

    def _begin(self, function: Fingerprint) -> int:
        try:
            os.pwrite(self._file, MAGIC, 0)
        except OSError as error:
            raise self._error(f"cannot be written: {error.strerror}") from error
        self._end = len(MAGIC)
        known = {"name": function.name, "digest": function.digest, "python": function.python}
        self._append(FUNCTION, 0, 0, NO_DIGEST, [json.dumps(known).encode()])
        return self._end

    def _append(
        self,
        kind: bytes,
        first: int,
        count: int,
        digest: bytes = NO_DIGEST,
        parts: list[Any] | None = None,
    ) -> None:
        parts = parts or []
        checksum = length = 0
        for part in parts:
            checksum = crc32(part, checksum)
            length += len(part)
        header = _HEADER.pack(kind, count, first, length, digest) + checksum.to_bytes(4, "little")
        header += crc32(header).to_bytes(4, "little")
        left = [memoryview(part) for part in (header, *parts) if len(part)]
        at = self._end
        try:
            while left:
                written = os.pwritev(self._file, left[:MOST_PARTS], at)
                at += written
                while left and written >= len(left[0]):
                    written -= len(left.pop(0))
                if written:
                    left[0] = left[0][written:]
        except OSError as error:
            self._truncate(self._end)
            raise self._error(
                f"cannot be written: {error.strerror}. What it has is kept, and the same program "
                "continues from there when that is mended"
            ) from error
        self._unsynced += at - self._end
        self._end = at

    def _truncate(self, end: int) -> None:
        try:
            os.ftruncate(self._file, end)
        except OSError as error:
            raise self._error(f"cannot be written: {error.strerror}") from error

    def _sync(self) -> None:
        try:
            os.fdatasync(self._file)
        except OSError as error:
            raise self._error(f"cannot be written to disk: {error.strerror}") from error
        self._synced_at = monotonic()
        with suppress(JournalError):  # it only saves time
            self._append(SYNCED, 0, 0)
        self._unsynced = 0

    def close(self) -> None:
        """Have all of it on disk, and let others open it."""
        if self._file < 0:
            return
        try:
            self.sync()
        finally:
            self._let_go()


def _checksum(reader: io.BufferedReader[io.FileIO], at: int, end: int) -> int:
    reader.seek(at)
    checksum = 0
    while at < end:
        piece = reader.read(min(PIECE, end - at))
        if not piece:
            break
        checksum = crc32(piece, checksum)
        at += len(piece)
    return checksum


def _pickled(values: list[Any], take: Callable[[pickle.PickleBuffer], object]) -> bytes:
    try:
        return pickle.dumps(values, 5, buffer_callback=take)
    except (pickle.PicklingError, AttributeError, TypeError):
        from gridrpc import _by_value

        return _by_value.dumps(values, None)
