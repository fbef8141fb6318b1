"""Records that are saved one by one as they come, and read back to continue.

The file's first line is the header, each further one a record, all of it JSON. A line is written
in one piece and flushed, so that a run that is cut off leaves at most a part of the last one.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from gridbench.errors import InputError
from gridbench.machine.judgement import disturbed
from gridbench.records import RecordError, from_record
from gridbench.results_folder import unusable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    class Identified(Protocol):
        """A record, or what is wanted, that is known by what it is of."""

        @property
        def identity(self) -> Hashable:
            """The same of a record and of what was wanted."""

    class Tried(Identified, Protocol):
        """A record of the outcome."""

        @property
        def status(self) -> str:
            """`done`, `failed`, or another word."""

        @property
        def load(self) -> dict[str, Any] | None:
            """What other programs did meanwhile."""

    class Attempt(DataclassInstance, Identified, Protocol):
        """A record whose place a later one of the same takes."""


FORMAT = 1

R = TypeVar("R", bound="DataclassInstance")
A = TypeVar("A", bound="Attempt")
W = TypeVar("W", bound="Identified")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What all records of a file have in common."""

    machine: dict[str, Any]
    versions: dict[str, str]
    options: dict[str, Any]
    started: str
    """ISO 8601."""
    seed: int
    """Of the order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[R]):
    """What kind of file it is."""

    kind: str
    """As its header says."""
    of: str
    """What was measured, in messages."""
    noun: str
    """What one record is called there."""
    record: type[R]


class PlannedCase:
    """A measurement before it is made: a dataclass whose fields are its resume key.

    Its record is a subclass that adds results, and has the same key.
    """

    __slots__ = ()

    @property
    def planned_fields(self) -> dict[str, Any]:
        """The fields of the planned case."""
        return {name: getattr(self, name) for name in _key_of(type(self))}

    def recorded_as(self, kind: type[R], **found: Any) -> R:
        """Its record, of the subclass `kind`, with what was found until now."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        return kind(**{**self.planned_fields, "at": at, **found})

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The resume key: the same of a planned case and of its record."""
        return self.key_without()

    def key_without(self, *names: str) -> tuple[Hashable, ...]:
        """The resume key without some fields, such as `repeat`, to group cases."""
        stored = (value for name, value in self.planned_fields.items() if name not in names)
        return tuple(map(_hashable, stored))


_keys: dict[type[Any], tuple[str, ...]] = {}


def _key_of(kind: type[Any]) -> tuple[str, ...]:
    if kind not in _keys:
        planned = next(one for one in kind.__mro__ if PlannedCase in one.__bases__)
        _keys[kind] = tuple(one.name for one in fields(planned))
    return _keys[kind]


def _hashable(value: Any) -> Hashable:
    match value:
        case dict():
            return tuple(sorted((name, _hashable(one)) for name, one in value.items()))
        case list():
            return tuple(map(_hashable, value))
        case _:
            assert isinstance(value, Hashable)
            return value


class RecordFile(Generic[R]):
    """A file of records that is open to be added to."""

    def __init__(self, path: Path, header: Header, records: list[R]) -> None:
        self.path = path
        self.header = header
        self.records = records
        """Those of earlier calls first."""
        self.earlier = len(records)
        """How many are of earlier calls."""
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise unusable(path.parent, error) from None

    def add(self, record: R) -> None:
        """Append and flush. Raises InputError when there is no room; what is there is kept."""
        self.records.append(record)
        _write(self._file.fileno(), self.path, asdict(record))

    @property
    def new(self) -> list[R]:
        """The records that were added since the file was opened."""
        return self.records[self.earlier :]

    def discard(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_records(
    path: Path, form: Form[R], header: Header, *, fresh: bool
) -> tuple[Header, list[R]]:
    """Header and records of the file, or of a new one with `header` if there is none or `fresh`.

    Raises InputError if its folder cannot be used, if the file is damaged, or if it is of another
    machine, version or choice of options.
    """
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        exists = path.exists() and path.stat().st_size > 0
    except OSError as error:
        raise unusable(folder, error) from None
    if exists and not fresh:
        before, records = load_records(path, form)
        _mend(path)
        _refuse_mixing(path, before, header)
        return before, records
    _begin(folder, path, form, header)
    return header, []


def load_records(path: Path, form: Form[R]) -> tuple[Header, list[R]]:
    """Header and records of a file, without a last line that was not written in full.

    Raises InputError that names the line that is damaged.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unusable(path, error) from None
    lines = data.split(b"\n")[:-1]
    if not lines:
        raise _damaged(path, form, 1, "the header is missing")
    return _header(path, form, lines[0]), list(_records(path, form, lines[1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsForm(Form[A]):
    """The form of a file that is all of a folder of results, beside what is made of it."""

    file: str
    """Its name."""
    command: str
    """That writes it."""

    def holds(self, source: Path) -> bool:
        """Whether there are results: a folder with them, or the file itself."""
        return (source / self.file).is_file() or (source.name == self.file and source.is_file())

    def open(self, folder: Path, header: Header, *, fresh: bool) -> RecordFile[A]:
        """The file in a folder, to be added to; see `open_records`."""
        path = folder / self.file
        header, records = open_records(path, self, header, fresh=fresh)
        return RecordFile(path, header, records)

    def read(self, source: Path) -> tuple[Header, list[A]]:
        """Header and the records that count of a folder or file, also while more are added.

        Raises InputError if there are none, or if the file is damaged.
        """
        if not self.holds(source):
            raise InputError(
                f"holds no {self.of}: there is no {self.file}",
                file=source,
                remedy=f"give the folder that `{self.command}` has written",
            )
        header, records = load_records(folder_of(source) / self.file, self)
        return header, self.counting(records)

    def counting(self, records: Iterable[A]) -> list[A]:
        """The records that count: the last of each identity."""
        return latest(records)


def folder_of(source: Path) -> Path:
    """The folder of the results that `source` stands for."""
    return source.parent if source.is_file() else source


def latest(records: Iterable[A]) -> list[A]:
    """The last record of each identity, in the order in which they first appear."""
    return list({one.identity: one for one in records}.values())


def missing(wanted: Iterable[W], records: Iterable[Tried]) -> list[W]:
    """What has no record that is done."""
    done = {one.identity for one in records if one.status == "done"}
    return [one for one in wanted if one.identity not in done]


def failed_before(wanted: Iterable[W], records: Iterable[Tried]) -> list[W]:
    """What has failed while no other programs disturbed it."""
    failed = {one.identity for one in records if one.status == "failed" and not disturbed(one)}
    return [one for one in wanted if one.identity in failed]


def _header(path: Path, form: Form[R], line: bytes) -> Header:
    record = _json(path, form, 1, line)
    if not isinstance(record, dict) or record.get("kind") != form.kind:
        raise _damaged(path, form, 1, f"is not the header of {form.of}")
    if record.get("format") != FORMAT:
        raise InputError(
            f"is in format {record.get('format')}, and this gridbench writes format {FORMAT}",
            file=path,
            line=1,
            remedy="choose another --out, or add --fresh to start over",
        )
    try:
        return from_record(Header, record)
    except RecordError as error:
        raise _damaged(path, form, 1, str(error)) from None


def _records(path: Path, form: Form[R], lines: list[bytes]) -> Iterator[R]:
    for number, line in enumerate(lines, 2):
        try:
            yield from_record(form.record, _json(path, form, number, line))
        except RecordError as error:
            raise _damaged(path, form, number, str(error)) from None


def _json(path: Path, form: Form[R], number: int, line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise _damaged(path, form, number, "is not JSON") from None


def _mend(path: Path) -> None:
    """Cut away a last line that was not written in full: the next one is not to continue it."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        try:
            os.truncate(path, whole)
        except OSError as error:
            raise unusable(path, error) from None


def _begin(folder: Path, path: Path, form: Form[R], header: Header) -> None:
    """A new file with nothing but the header; it replaces another only when it is complete."""
    new = path.with_suffix(".new")
    try:
        with new.open("wb", buffering=0) as file:
            _write(file.fileno(), path, {"format": FORMAT, "kind": form.kind} | asdict(header))
        new.replace(path)
    except OSError as error:
        raise unusable(folder, error) from None


def _write(descriptor: int, path: Path, record: dict[str, Any]) -> None:
    line = (json.dumps(record, allow_nan=False, default=os.fspath) + "\n").encode()
    end = os.lseek(descriptor, 0, os.SEEK_END)
    try:
        while line:
            line = line[os.write(descriptor, line) :]
    except OSError as error:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, end)
        raise InputError(
            f"cannot save a result: {error.strerror}",
            file=path,
            remedy="make room, and run the same again: it resumes",
        ) from None


def _refuse_mixing(path: Path, before: Header, now: Header) -> None:
    for what, one, other in (
        ("another machine", before.machine, now.machine),
        ("other versions", before.versions, now.versions),
        ("other options", before.options, now.options),
    ):
        names = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
        if names:
            name = min(names)
            raise InputError(
                f"holds results of {what}: {name} was `{one.get(name)}`,"
                f" and now is `{other.get(name)}`",
                file=path,
                remedy="choose another --out, or add --fresh to measure all of it again",
            )


def _damaged(path: Path, form: Form[R], line: int, what: str) -> InputError:
    return InputError(
        f"the file of {form.noun}s is damaged: {what}",
        file=path,
        line=line,
        remedy=f"all {form.noun}s depend on this line: measure again, with --fresh"
        if line == 1
        else f"remove this line to lose one {form.noun}, or measure again, with --fresh",
    )
