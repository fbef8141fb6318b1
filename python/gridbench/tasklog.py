"""The task log: one line of text per task, the format that old runs are kept in.

    # NTasks=2 NNodes=2 InputFile=input.1 TaskDataSize=0.000000 SharedDataSize=... WriteDataSize=...
    #tid sleep time  submit time  calc-in time  calc-out time retrieve time  ch name
    1 1.000000 0.000100     0.010000     1.010000 1.010200      node1

Rows are in the order of retrieval. The format knows neither failed tasks nor workers nor
the time in the engine's queue; `timeline.parquet` does.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gridbench.errors import InputError
from gridbench.tasklog_writer import COLUMN_LINE, UNKNOWN_HOST, TaskLogHeader, TaskLogWriter
from gridbench.timeline import SCHEMA

__all__ = ["COLUMN_LINE", "UNKNOWN_HOST", "TaskLogHeader", "TaskLogWriter", "read_task_log"]

COLUMNS = ("tid", "sleep time", "submit time", "calc-in time", "calc-out time", "retrieve time")
"""The numeric columns; the compute host's name follows as the seventh."""

_CHUNK_BYTES = 8 << 20
_HEADER = re.compile(
    r"#\s*NTasks=(?P<ntasks>\d{1,15})\s+NNodes=(?P<nnodes>\d{1,15})\s+InputFile=(?P<input>.*?)\s+"
    r"TaskDataSize=(?P<task>\S+)\s+SharedDataSize=(?P<shared>\S+)\s+WriteDataSize=(?P<write>\S+)"
)
_LAST_SIZE = "WriteDataSize="
_LONGEST = 1e8
"""Seconds, three years: no run takes so long, and times of day counted from 1970 are larger."""
_HEADER_REMEDY = (
    "write it as `# NTasks=10 NNodes=2 InputFile=NAME TaskDataSize=0 SharedDataSize=0 "
    "WriteDataSize=0`, sizes in KB"
)
_FORMAT_REMEDY = (
    "each line needs seven columns: tid, sleep, submit, calc-in, calc-out, retrieve time, host"
)


def read_task_log(path: Path, *, with_header: bool = False) -> tuple[TaskLogHeader, pa.Table]:
    """Read a log as a table of `timeline.SCHEMA`, rows in the file's order.

    `sleep` and `slept` both hold the log's sleep time, `worker` the host's name, `queued` is
    NaN, and the byte counts come from the header. Negative intervals are kept: they are clock
    offsets. Warns (UserWarning) about a missing header, a last line that was cut off, lines that
    stand there twice, and one counts, and more tasks than the header announces.

    Raises InputError, with file and line, for anything that is not such a log; and for one without
    a header where it is to be `with_header`.
    """
    try:
        with path.open("rb") as file:
            header, rows = _read(path, file)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot read the task log: {reason}", file=path, remedy="give a readable file"
        ) from None
    if header is None and with_header:
        raise InputError(
            "has no header line, so that its number of cores and sizes of data are not known",
            file=path,
            remedy=_HEADER_REMEDY,
        )
    rows = _without_copies(path, rows)
    _refuse_doubled(path, rows)
    _refuse_dates(path, rows)
    table = rows.table
    if header is None:
        hosts = max(1, len(pc.unique(table["host"])))
        tasks = _numbered(table)
        how = "" if tasks == table.num_rows else " (as the tasks are numbered: some have no line)"
        warnings.warn(
            f"{path}: no header line `# NTasks=...`: taking NTasks={tasks}{how} and "
            f"NNodes={hosts} (the number of hosts), data sizes 0",
            stacklevel=2,
        )
        header = TaskLogHeader(tasks, hosts, "", 0.0, 0.0, 0.0)
    elif table.num_rows > header.ntasks:
        warnings.warn(
            f"{path}: {table.num_rows} tasks, though the header says NTasks={header.ntasks}",
            stacklevel=2,
        )
    return header, _timeline(header, table)


def _numbered(table: pa.Table) -> int:
    """How many tasks there were, by their numbers: where most of those from the first to the last
    are there, the others are missing; else numbers say nothing."""
    if not table.num_rows:
        return 0
    ends = pc.min_max(table["tid"]).as_py()
    count = int(ends["max"] - ends["min"]) + 1
    return count if table.num_rows < count <= 2 * table.num_rows else int(table.num_rows)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The numeric columns and the host, with the line of each row for messages."""

    table: pa.Table
    lines: npt.NDArray[np.int64]


def _read(path: Path, file: BinaryIO) -> tuple[TaskLogHeader | None, _Rows]:
    header: TaskLogHeader | None = None
    tables: list[pa.Table] = []
    numbers: list[npt.NDArray[np.int64]] = []
    anything = False
    begun = ""
    for first, texts, unfinished in _chunks(path, file):
        stored: list[list[str]] = []
        at: list[int] = []
        for number, text in enumerate(texts, first):
            before, begun = begun, ""
            if before and (whole := _continued(before, text)):
                text = whole  # noqa: PLW2901
            if text.startswith("#"):
                if header is None and "NTasks=" in text and (before or _LAST_SIZE in text):
                    header = _parse_header(path, number - bool(before), text)
                elif not before:
                    begun = text
                anything = True
                continue
            fields = text.split()
            if fields:
                stored.append(fields)
                at.append(number)
        if unfinished and at and at[-1] == first + len(texts) - 1:
            fault = _fault(stored[-1])
            if fault:
                stored.pop()
                anything = True
                warnings.warn(
                    f"{path}:{at.pop()}: the last line is cut off ({fault}); left out", stacklevel=4
                )
        if stored:
            tables.append(_convert(path, stored, at))
            numbers.append(np.array(at, dtype=np.int64))
    if header is None and "NTasks=" in begun:
        header = _parse_header(path, first + len(texts) - 1, begun)
    if not tables and header is None:
        what = "no task in this log" if anything else "the task log is empty"
        raise InputError(what, file=path, remedy="give a log with at least its header line")
    table = pa.concat_tables(tables) if tables else _to_table([])
    lines = np.concatenate(numbers) if numbers else np.array([], dtype=np.int64)
    return header, _Rows(table, lines)


def _continued(before: str, text: str) -> str:
    """A line of the log's head with the next, if that continues it, as in print; else empty."""
    rest = text.strip().lstrip("#").strip()
    goes_on = "NTasks=" in before or (rest and COLUMN_LINE.endswith(f" {rest}"))
    return f"{before.rstrip()} {rest}" if goes_on else ""


def _chunks(path: Path, file: BinaryIO) -> Iterator[tuple[int, list[str], bool]]:
    """Number of the first line, lines, and whether the last of them lacks its end."""
    first = 1
    while raw := file.readlines(_CHUNK_BYTES):
        if first == 1 and raw[0].startswith(b"\xef\xbb\xbf"):
            raw[0] = raw[0][3:]
        block = b"".join(raw)
        try:
            if b"\0" in block:
                raise ValueError
            texts = block.decode("utf-8").split("\n")
        except ValueError:
            bad = next(i for i, line in enumerate(raw) if not _is_text(line))
            raise InputError(
                "binary data: this is not a task log",
                file=path,
                line=first + bad,
                remedy="give a text file in the task log format, or the run's folder",
            ) from None
        unfinished = texts[-1] != ""
        if not unfinished:
            texts.pop()
        yield first, texts, unfinished
        first += len(texts)


def _is_text(line: bytes) -> bool:
    try:
        return "\0" not in line.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _parse_header(path: Path, line: int, text: str) -> TaskLogHeader:
    match = _HEADER.fullmatch(text.rstrip())
    if match is None:
        raise InputError(
            "the header line is not understood", file=path, line=line, remedy=_HEADER_REMEDY
        )
    sizes = []
    for name in ("task", "shared", "write"):
        try:
            size = float(match[name])
        except ValueError:
            size = math.nan
        # Above an exabyte it is no size, and a count of bytes would not fit its column.
        if not 0 <= size <= 2.0**50:
            raise InputError(
                f"not a data size in KB: `{match[name][:40]}`",
                file=path,
                line=line,
                remedy=_HEADER_REMEDY,
            )
        sizes.append(size)
    nnodes = int(match["nnodes"])
    if nnodes == 0:
        raise InputError("NNodes is 0", file=path, line=line, remedy="give at least one node")
    return TaskLogHeader(int(match["ntasks"]), nnodes, match["input"], *sizes)


def _fault(fields: list[str]) -> str:
    """Problem of a row's fields; empty if there is none."""
    if len(fields) != len(COLUMNS) + 1:
        return f"{len(fields)} columns instead of {len(COLUMNS) + 1}"
    if not re.fullmatch(r"\d{1,18}", fields[0], re.ASCII):
        return f"tid is not a whole number: `{fields[0][:40]}`"
    for name, text in zip(COLUMNS[1:], fields[1:], strict=False):
        try:
            value = pa.scalar(text).cast(pa.float64()).as_py()
        except pa.ArrowInvalid:
            return f"{name} is not a number: `{text[:40]}`"
        if not math.isfinite(value):
            return f"{name} is not a finite number: `{text[:40]}`"
    return ""


def _convert(path: Path, rows: list[list[str]], at: list[int]) -> pa.Table:
    """All rows at once; only if that fails is the guilty one looked for, in smaller and smaller
    halves, as looking at each number by itself is slow."""
    try:
        if any(len(row) != len(COLUMNS) + 1 for row in rows):
            raise ValueError
        return _to_table(rows)
    except (ValueError, pa.ArrowException):
        if len(rows) > 1:
            half = len(rows) // 2
            first = _convert(path, rows[:half], at[:half])
            return pa.concat_tables([first, _convert(path, rows[half:], at[half:])])
        raise InputError(
            _fault(rows[0]) or "not a row", file=path, line=at[0], remedy=_FORMAT_REMEDY
        ) from None


def _to_table(rows: list[list[str]]) -> pa.Table:
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * (len(COLUMNS) + 1)
    tid_text = pa.array(columns[0], pa.string())
    if not pc.all(pc.match_substring_regex(tid_text, r"^\d{1,18}$"), min_count=0).as_py():
        raise ValueError("tid")
    data: dict[str, pa.Array] = {"tid": tid_text.cast(pa.int64())}
    for name, texts in zip(COLUMNS[1:], columns[1:-1], strict=True):
        values = pa.array(texts, pa.string()).cast(pa.float64())
        if not pc.all(pc.is_finite(values), min_count=0).as_py():
            raise ValueError(name)
        data[name] = values
    data["host"] = pa.array(
        ["" if host == UNKNOWN_HOST else host for host in columns[-1]], pa.string()
    )
    return pa.table(data)


def _without_copies(path: Path, rows: _Rows) -> _Rows:
    """Without lines that say the same as an earlier one: nothing is lost with them."""
    columns = [rows.table[name].to_numpy(zero_copy_only=False) for name in ("tid", *COLUMNS[1:])]
    order = np.lexsort((*columns[1:], columns[0]))
    hosts = rows.table["host"].take(pa.array(order)).to_numpy(zero_copy_only=False)
    same = np.ones(max(0, len(order) - 1), dtype=np.bool_)
    for column in (*(column[order] for column in columns), hosts):
        same &= column[1:] == column[:-1]
    copies = order[1:][same]
    if not len(copies):
        return rows
    warnings.warn(
        f"{path}:{rows.lines[copies].min()}: {len(copies)} "
        f"{'line stands' if len(copies) == 1 else 'lines stand'} there twice; each counts once",
        stacklevel=3,
    )
    keep = np.ones(len(order), dtype=np.bool_)
    keep[copies] = False
    return _Rows(rows.table.filter(pa.array(keep)), rows.lines[keep])


def _refuse_dates(path: Path, rows: _Rows) -> None:
    submit = rows.table["submit time"].to_numpy()
    if len(submit) and submit.min() > _LONGEST:
        raise InputError(
            f"submit time {submit[0]:.6f} is a date: stamps are seconds from the moment at which"
            " the client asked for its workers",
            file=path,
            line=int(rows.lines[0]),
            remedy=f"take the time of that moment off all stamps; the first task was submitted at"
            f" {submit.min():.6f}",
        )


def _refuse_doubled(path: Path, rows: _Rows) -> None:
    tids = rows.table["tid"].to_numpy()
    order = np.argsort(tids, kind="stable")
    doubled = np.flatnonzero(tids[order][1:] == tids[order][:-1])
    if len(doubled) == 0:
        return
    # Name the first line, in the file's order, that repeats an earlier one.
    repeat = doubled[np.argmin(order[doubled + 1])]
    earlier, later = order[repeat], order[repeat + 1]
    raise InputError(
        f"task {tids[later]} occurs a second time; the first was on line {rows.lines[earlier]}",
        file=path,
        line=int(rows.lines[later]),
        remedy="they differ, so keep the line that is right; if this is a log of several runs, "
        f"split it where the second begins, such as by `split -l {rows.lines[later] - 1}`",
    )


def _timeline(header: TaskLogHeader, rows: pa.Table) -> pa.Table:
    count = rows.num_rows

    def constant(value: object, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), count)

    return pa.table(
        {
            "tid": rows["tid"],
            "sleep": rows["sleep time"],
            "slept": rows["sleep time"],
            "submit": rows["submit time"],
            "queued": constant(math.nan, pa.float64()),
            "calc_in": rows["calc-in time"],
            "calc_out": rows["calc-out time"],
            "retrieve": rows["retrieve time"],
            "worker": rows["host"],
            "host": rows["host"],
            "bytes_in": constant(round(header.task_kb * 1024), pa.int64()),
            "bytes_shared": constant(round(header.shared_kb * 1024), pa.int64()),
            "bytes_out": constant(round(header.write_kb * 1024), pa.int64()),
            "status": constant("ok", pa.string()),
            "clock_error": constant(math.nan, pa.float64()),
        },
        schema=SCHEMA,
    )
