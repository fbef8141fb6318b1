"""Queries of PostgreSQL, and of Parquet and CSV files, as functions of a gridrpc server.

Both functions return the columns of the result as NumPy arrays by name, or as an Arrow table. They
raise `LookupError`, `TimeoutError`, `ConnectionError`, `PermissionError` or `ValueError`: errors
that a client has without the packages of the databases.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa

#: The folder of the files that `query_files` reads.
FILES = Path(__file__).resolve().parent / "files"

_SELECT = duckdb.StatementType.SELECT

Parameters = Sequence[Any] | Mapping[str, Any]
Columns = dict[str, np.ndarray]

_ARROW_TYPES = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "numeric": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
}

#: The connection of this worker.
_connection: psycopg.Connection | None = None


def query(
    statement: str, parameters: Parameters = (), *, timeout: float = 30.0, arrow: bool = False
) -> Columns | pa.Table:
    """Run one statement in a read-only transaction of PostgreSQL.

    `%s` and `%(name)s` stand for parameters. The query ends with `TimeoutError` after `timeout`
    seconds.
    """
    _check(timeout)
    try:
        table = _select(statement, parameters, timeout)
    except psycopg.errors.QueryCanceled:
        raise _too_slow(timeout) from None
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
        raise LookupError(_message(error)) from None
    except psycopg.OperationalError as error:
        raise ConnectionError(f"PostgreSQL does not answer: {_message(error)}") from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionError(_message(error)) from None
    except psycopg.Error as error:
        raise ValueError(_message(error)) from None
    return table if arrow else _arrays(table)


def query_files(
    statement: str, parameters: Parameters = (), *, timeout: float = 30.0, arrow: bool = False
) -> Columns | pa.Table:
    """Run one SELECT of DuckDB over Parquet and CSV files of the folder FILES.

    A file is a table: `FROM 'prices.parquet'`. `?` and `$name` stand for parameters. The query ends
    with `TimeoutError` after `timeout` seconds.
    """
    _check(timeout)
    connection = _duckdb()
    timer = threading.Timer(timeout, connection.interrupt)
    try:
        if [one.type for one in connection.extract_statements(statement)] != [_SELECT]:
            raise ValueError("the statement is not a single SELECT")
        for file in FILES.iterdir():
            if file.name in statement:
                connection.execute(f"""CREATE OR REPLACE VIEW "{file.name}" AS FROM '{file}'""")
        timer.start()
        table = connection.sql(statement, params=parameters).to_arrow_table()
    except duckdb.InterruptException:
        raise _too_slow(timeout) from None
    except (duckdb.CatalogException, duckdb.IOException, duckdb.PermissionException) as error:
        files = ", ".join(sorted(file.name for file in FILES.iterdir()))
        raise LookupError(f"{_first_line(error)} (files: {files})") from None
    except duckdb.Error as error:
        kind = LookupError if "not found in FROM clause" in str(error) else ValueError
        raise kind(_first_line(error)) from None
    finally:
        timer.cancel()
    return table if arrow else _arrays(table)


def _select(statement: str, parameters: Parameters, timeout: float) -> pa.Table:
    connection = _begin(timeout)
    try:
        # The binary format allows one statement only.
        cursor = connection.cursor(binary=True)
        cursor.execute(statement, parameters or None)
        if cursor.description is None:
            raise ValueError("the statement returns no rows: use SELECT")
        types = [_arrow_type(connection, column) for column in cursor.description]
        rows = cursor.fetchall()
        names = [column.name for column in cursor.description]
    finally:
        # Settings that the statement changed go as well.
        with suppress(psycopg.Error):
            connection.rollback()
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table(
        [_arrow_array(values, kind) for values, kind in zip(columns, types, strict=True)],
        names=names,
    )


def _begin(timeout: float) -> psycopg.Connection:
    """Begin a transaction. Connects again if the database has closed the connection since the last
    call."""
    global _connection
    if _connection is not None:
        with suppress(psycopg.OperationalError):
            return _limited(_connection, timeout)
        _connection.close()
        _connection = None
    # All else is as PGHOST, PGDATABASE and so on say.
    connection = psycopg.connect(client_encoding="utf8", connect_timeout=5)
    connection.read_only = True
    _connection = connection
    return _limited(connection, timeout)


def _limited(connection: psycopg.Connection, timeout: float) -> psycopg.Connection:
    milliseconds = str(max(round(1000 * timeout), 1))
    connection.execute("SELECT set_config('statement_timeout', %s, true)", [milliseconds])
    return connection


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """The connection of this worker: in memory, with access to FILES and nothing else."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"SET allowed_directories = ['{FILES}']")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _arrow_type(connection: psycopg.Connection, column: psycopg.Column) -> pa.DataType:
    known = connection.adapters.types.get(column.type_code)
    # An array type is found by the type of its elements.
    if known and known.oid == column.type_code and known.name in _ARROW_TYPES:
        return _ARROW_TYPES[known.name]
    raise ValueError(
        f"column `{column.name}` has the type {column.type_display}: cast it, as to text"
    )


def _arrow_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_float64(kind):  # `numeric` comes as decimal numbers
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, kind)


def _arrays(table: pa.Table) -> Columns:
    """Columns as arrays: NULL is NaN in numbers, NaT in dates and times, and else None."""
    twice = [name for name in table.column_names if table.column_names.count(name) > 1]
    if twice:
        raise ValueError(f"several columns are named `{twice[0]}`: rename them by AS")
    return {name: _array(table[name]) for name in table.column_names}


def _array(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy()


def _check(timeout: float) -> None:
    if not 0 < timeout <= 86_400:
        raise ValueError(f"timeout is {timeout}: it must be above 0, and at most 86,400 s")


def _too_slow(timeout: float) -> TimeoutError:
    return TimeoutError(
        f"the query took longer than {timeout:g} s: select less, or raise `timeout`"
    )


def _first_line(error: duckdb.Error) -> str:
    return str(error).partition("\n")[0]


def _message(error: psycopg.Error) -> str:
    parts = (error.diag.message_primary or str(error).strip(), error.diag.message_hint)
    return ". ".join(part for part in parts if part)
