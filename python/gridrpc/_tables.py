"""Tables of parameters: pandas, polars and Arrow, lists of dicts, and files of CSV and Parquet."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

#: Values of a column, by the column's name.
Columns = dict[str, list[Any]]

_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|[+-]?inf", re.I
)
#: Suffixes of the files that can be read and written.
SUFFIXES = (".csv", ".parquet")


#: Types whose values are written as they are.
SCALARS = frozenset({int, float, str, bool, type(None)})


class Table(NamedTuple):
    """A table of any kind."""

    columns: Columns
    #: Number of rows.
    size: int
    #: Makes a table of the same kind, with further columns or other ones in their places.
    extended: Callable[[Columns], Any]
    #: The Arrow array of one of its columns.
    arrow: Callable[[str], Any]


def read(table: object) -> Table:
    """Read a table. Raises TypeError, ValueError, OSError, and ModuleNotFoundError for Parquet
    without pyarrow."""
    # A program that has a table of theirs has loaded them.
    pandas, polars, arrow = map(sys.modules.get, ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return _of_pandas(table)
    if polars is not None and isinstance(table, polars.DataFrame):
        return _of_polars(table)
    if arrow is not None and isinstance(table, arrow.Table):
        return _of_arrow(table)
    if isinstance(table, (str, os.PathLike)):
        path = os.fspath(table)
        if suffix_of(path) == ".csv":
            return _of_records(_records_of_csv(path))
        return _of_arrow(_parquet().read_table(path))
    if isinstance(table, Iterable) and not isinstance(table, (Mapping, bytes, bytearray)):
        return _of_records(list(table))
    raise TypeError(
        f"the table is of type {type(table).__name__}: give a DataFrame of pandas or polars, an "
        "Arrow table, a list of dicts, or the path of a CSV or Parquet file"
    )


def suffix_of(path: str) -> str:
    """The suffix that says the format of a file. Raises ValueError, and ModuleNotFoundError."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"`{path}` does not end in {' or '.join(SUFFIXES)}")
    if suffix == ".parquet":
        _parquet()
    return suffix


def write(path: str, table: Table, added: Columns) -> None:
    """Write a table with its further columns to a file, which is the old or the new one as a whole.

    Raises OSError.
    """
    folder = os.path.dirname(os.path.abspath(path))
    handle, new = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with open(handle, "wb") as file:
            if suffix_of(path) == ".csv":
                file.write(_csv({**table.columns, **added}).encode())
            else:
                _write_parquet(file, table, added)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(new, 0o666 & ~_umask())
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise


def _umask() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o077


def _of_pandas(frame: Any) -> Table:
    columns = _checked(list(frame.columns), lambda at: frame.iloc[:, at].tolist())

    def extended(added: Columns) -> Any:
        pd = sys.modules["pandas"]
        made = frame.copy()
        for name, values in added.items():
            made[name] = pd.Series(values, index=frame.index, dtype=None if values else object)
        return made

    def arrow(name: str) -> Any:
        return _pyarrow().Array.from_pandas(frame[name])

    return Table(columns, len(frame), extended, arrow)


def _of_polars(frame: Any) -> Table:
    columns = _checked(frame.columns, lambda at: frame.to_series(at).to_list())

    def extended(added: Columns) -> Any:
        return frame.with_columns([_polars_series(name, values) for name, values in added.items()])

    return Table(columns, frame.height, extended, lambda name: frame[name].to_arrow())


def _polars_series(name: str, values: list[Any]) -> Any:
    pl = sys.modules["polars"]
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        return pl.Series(name, _texts(values))


def _of_arrow(table: Any) -> Table:
    columns = _checked(table.column_names, lambda at: table.column(at).to_pylist())

    def extended(added: Columns) -> Any:
        made = table
        for name, values in added.items():
            at = made.column_names.index(name) if name in made.column_names else None
            if at is None:
                made = made.append_column(name, _array(values))
            else:
                made = made.set_column(at, name, _array(values))
        return made

    return Table(columns, table.num_rows, extended, table.column)


def _of_records(records: Sequence[Any]) -> Table:
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise TypeError(
                f"row {number} of the table is of type {type(record).__name__}: give dicts"
            )
    names = list(records[0]) if records else []
    for number, record in enumerate(records):
        if record.keys() != set(names):
            odd = sorted(map(str, record.keys() ^ set(names)))
            raise ValueError(
                f"row {number} of the table has other columns than row 0: `{odd[0]}` is in one of "
                "them only"
            )
    columns = _checked(names, lambda at: [record[names[at]] for record in records])

    def extended(added: Columns) -> Any:
        return [
            {**record, **{name: values[at] for name, values in added.items()}}
            for at, record in enumerate(records)
        ]

    return Table(columns, len(records), extended, lambda name: _array(columns[name]))


def _checked(names: Sequence[Any], column: Callable[[int], list[Any]]) -> Columns:
    """The columns of a table, whose names can be those of arguments."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"the table has a column named {name!r}: names of columns are texts")
        if names.count(name) > 1:
            raise ValueError(f"the table has several columns named `{name}`")
    return {name: column(at) for at, name in enumerate(names)}


def _records_of_csv(path: str) -> list[dict[str, Any]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            reader = csv.reader(file, strict=True)
            # With the number of the line on which each row ends.
            numbered = [(reader.line_num, row) for row in reader if row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"`{path}` is no CSV file: {error}") from error
    if not numbered:
        raise ValueError(f"`{path}` is empty: its first line has to name the columns")
    (_, names), *numbered = numbered
    for line, row in numbered:
        if len(row) != len(names):
            raise ValueError(
                f"`{path}`, line {line} has {len(row)} values, and the header names {len(names)} "
                "columns"
            )
    rows = [row for _, row in numbered]
    typed = _checked(names, lambda at: _typed([row[at] for row in rows]))
    return [dict(zip(typed, values, strict=True)) for values in zip(*typed.values(), strict=True)]


def _typed(texts: list[str]) -> list[Any]:
    """The values of a column of texts: numbers if all are, with None for those that are empty."""
    given = [text.strip() for text in texts if text.strip()]
    kind: Callable[[str], Any] | None = None
    if given and all(map(_INTEGER.fullmatch, given)):
        kind = int
    elif given and all(map(_NUMBER.fullmatch, given)):
        kind = float
    elif given and all(text.lower() in {"true", "false"} for text in given):
        kind = _truth
    if kind is None:
        return [text or None for text in texts]
    return [kind(text.strip()) if text.strip() else None for text in texts]


def number_of(text: str) -> float | None:
    """The number that a cell of a CSV file has, if it has one."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def _truth(text: str) -> bool:
    return text.lower() == "true"


def _csv(columns: Columns) -> str:
    text = io.StringIO()
    # Line ends as other programs of this system have them.
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    rows = zip(*columns.values(), strict=True)
    writer.writerows([*map(_plain, row)] for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """Arrays as lists of numbers, whose text has all elements and digits."""
    if type(value) in SCALARS:
        return value
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return value.tolist()
    return value


def _write_parquet(file: Any, table: Table, added: Columns) -> None:
    arrays = {name: table.arrow(name) for name in table.columns if name not in added}
    arrays |= {name: _array(values) for name, values in added.items()}
    order = {**table.columns, **added}
    _parquet().write_table(_pyarrow().table({name: arrays[name] for name in order}), file)


def _array(values: list[Any]) -> Any:
    """An Arrow array. Texts stand for values that Arrow has no type for."""
    pa = _pyarrow()
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array(_texts(values), pa.string())


def _texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else str(_plain(value)) for value in values]


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ModuleNotFoundError(
            "Parquet files need the package `pyarrow`: pip install pyarrow, or give a .csv file",
            name="pyarrow",
        ) from None
    return pyarrow


def _parquet() -> Any:
    _pyarrow()
    import pyarrow.parquet

    return pyarrow.parquet
