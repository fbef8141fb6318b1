"""Columns of a timeline as NumPy arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


def seconds(table: pa.Table, name: str) -> Floats:
    """A column of stamps or durations, shape (rows,), seconds; missing and infinite become NaN."""
    column = table[name].cast(pa.float64()).fill_null(float("nan"))
    values = np.array(column.to_numpy(), dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def succeeded(table: pa.Table) -> Booleans:
    """Which tasks ended well, shape (rows,)."""
    return np.asarray(pc.equal(table["status"].fill_null(""), "ok").to_numpy(), dtype=np.bool_)


def text(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of strings without nulls."""
    return table[name].cast(pa.string()).fill_null("")


def numbered(table: pa.Table, name: str) -> tuple[list[str], Integers]:
    """The different values of a column of strings, and the number of each row's among them."""
    codes = text(table, name).combine_chunks().dictionary_encode()
    return codes.dictionary.to_pylist(), np.array(codes.indices, dtype=np.int64)
