"""Values of books of options, from prices in the database, as a function of a gridrpc server."""

from __future__ import annotations

import ctypes
from pathlib import Path

import database
import numpy as np
from numpy.ctypeslib import load_library, ndpointer

_STATEMENT = """
    SELECT day, quantity, close AS spot, strike, (maturity - day) / 365.25::float8 AS years,
           volatility
    FROM positions JOIN prices USING (symbol)
    WHERE book = %(book)s AND day BETWEEN %(first)s::date AND %(last)s::date
"""

_doubles = ndpointer(np.float64, ndim=1, flags="C")
_days = ndpointer(np.int64, ndim=1, flags="C")
_revalue = load_library("revalue", Path(__file__).resolve().parent).revalue
_revalue.argtypes = [ctypes.c_int64, _days, *[_doubles] * 5, ctypes.c_double, _doubles]
_revalue.restype = None


def revalue(
    book: str, first: str, last: str, *, rate: float = 0.02, timeout: float = 30.0
) -> database.Columns:
    """The value of a book on each day from `first` to `last`; NaN where a price is missing.

    Rows of the database go to the C function in this process, without a copy. A book without
    positions has no days.
    """
    dates = {"first": first, "last": last}
    rows = database.query(_STATEMENT, {"book": book, **dates}, timeout=timeout)
    days, day = np.unique(rows.pop("day"), return_inverse=True)
    values = np.zeros(len(days))
    _revalue(len(day), day, *rows.values(), rate, values)
    return {"day": days, "value": values}
