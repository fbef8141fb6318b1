"""The journal of a run: one row for each task, as JSON lines that grow with every result.

Processes in environments of engines write it, which have little more than the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

JOURNAL = "timeline.journal.jsonl"
OK = "ok"
"""The status of a task that ended well; that of others says what happened."""
_ROWS_AT_ONCE = 50_000
_KINDS = (int, *[float] * 7, str, str, int, int, int, str, float)


class TimelineRow(NamedTuple):
    """The columns of `gridbench.timeline.SCHEMA`, in its order."""

    tid: int
    sleep: float
    slept: float
    submit: float
    queued: float
    calc_in: float
    calc_out: float
    retrieve: float
    worker: str
    host: str
    bytes_in: int
    bytes_shared: int
    bytes_out: int
    status: str
    clock_error: float = float("nan")

    def to_line(self) -> str:
        """One line of the journal; JSON has no NaN, so that becomes null."""
        values = [None if isinstance(value, float) and isnan(value) else value for value in self]
        return json.dumps(values) + "\n"


def read_journal(path: Path) -> Iterator[pa.Table]:
    """The rows of a journal in the timeline's schema, some ten thousand at a time.

    Reading ends at the first line that is not whole, the one at which the run was cut off.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        rows: list[list[object]] = []
        for line in file:
            row = _parse(line)
            if row is None:
                break
            rows.append(row)
            if len(rows) == _ROWS_AT_ONCE:
                yield _table(rows)
                rows = []
    yield _table(rows)


def _parse(line: str) -> list[object] | None:
    if not line.endswith("\n"):
        return None
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(values, list) and len(values) == len(TimelineRow._fields) - len(
        TimelineRow._field_defaults
    ):
        values += [None] * len(TimelineRow._field_defaults)  # an older run
    if not isinstance(values, list) or len(values) != len(TimelineRow._fields):
        return None
    for position, (kind, value) in enumerate(zip(_KINDS, values, strict=True)):
        if kind is float and value is None:
            values[position] = float("nan")
        elif kind is float and isinstance(value, int | float):
            values[position] = float(value)
        elif type(value) is not kind:
            return None
    return values


def _table(rows: list[list[object]]) -> pa.Table:
    import pyarrow as pa

    from gridbench.timeline import SCHEMA

    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)],
        schema=SCHEMA,
    )
