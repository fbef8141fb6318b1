"""The table of results: a row for each measured value, whatever has measured it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.result_kind import FigureName, Measure, ResultRow, kind_of


def measures_of(source: Path) -> dict[FigureName, Measure]:
    """The valid values of each figure. InputError if there are none, with the reason."""
    kind = kind_of([source])
    found = measures(row for row in kind.rows(source) if row.valid)
    if not found:
        raise kind.nothing_valid(source)
    return found


def measures(rows: Iterable[ResultRow]) -> dict[FigureName, Measure]:
    """The values of each figure."""
    found: dict[FigureName, Measure] = {}
    for row in rows:
        before = found.get((row.engine, row.what), Measure((), row.unit, row.better))
        found[row.engine, row.what] = replace(before, values=(*before.values, row.value))
    return found


def records_of(sources: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """All rows of these sources; the parameters of a case follow the columns that all rows have."""
    for source in sources:
        kind = kind_of([source])
        for row in kind.rows(source):
            yield {
                "source": str(source),
                "benchmark": kind.title.removeprefix("gridbench "),
                "engine": row.engine,
                "figure": row.what,
                "metric": row.metric,
                "value": row.value,
                "unit": row.unit,
                "better": row.better,
                "repeat": row.repeat,
                "valid": row.valid,
                **row.parameters,
            }


def write_table(sources: Sequence[Path], out: Path) -> int:
    """Write all rows to a file, in the format of its suffix. Returns their number.

    InputError for another suffix, for results that cannot be read, and if there are none.
    """
    write = _WRITERS.get(out.suffix.lower())
    if write is None:
        raise InputError(
            f"the suffix `{out.suffix}` is no format of tables",
            file=out,
            remedy=f"choose one of {', '.join(_WRITERS)}",
        )
    records = list(records_of(sources))
    if not records:
        raise InputError("holds no measured value", file=sources[0])
    write(records, out)
    return len(records)


def _write_lines(records: Sequence[dict[str, Any]], out: Path) -> None:
    write_file(out, "".join(json.dumps(record) + "\n" for record in records))


def _write_csv(records: Sequence[dict[str, Any]], out: Path) -> None:
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, _names(records), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write_file(out, text.getvalue())


def _write_parquet(records: Sequence[dict[str, Any]], out: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: _column([one.get(name) for one in records]) for name in _names(records)}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    write_file(out, sink.getvalue().to_pybytes())


def _names(records: Sequence[dict[str, Any]]) -> list[str]:
    """All columns, in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record))


def _column(values: list[Any]) -> list[Any]:
    """Values of one type: benchmarks may give one name to a number and to a text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) < 2:
        return [float(v) if v is not None and float in kinds else v for v in values]
    return [None if value is None else str(value) for value in values]


_WRITERS: dict[str, Callable[[Sequence[dict[str, Any]], Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_lines,
}
