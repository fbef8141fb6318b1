"""Ask the server of this folder for prices, and for the value of a book."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gridrpc

SERVER = f"gridrpc+unix://{Path('state/socket').resolve()}?trusted=true"

with gridrpc.Grid(servers=[SERVER]) as grid:
    closes = grid.submit(
        "market/query",
        "SELECT day, close FROM prices WHERE symbol = %s AND day < %s ORDER BY day",
        ["S001", "2025-01-04"],
    ).result()
    for day, close in zip(closes["day"], closes["close"], strict=True):
        print(day, close)

    highest = grid.submit(
        "market/query_files",
        "SELECT symbol, max(close) AS high FROM 'prices.parquet' GROUP BY symbol ORDER BY symbol",
    ).result()
    print("symbols in the file:", len(highest["symbol"]))

    call = grid.submit("market/revalue", "north", "2025-01-01", "2025-12-31")
    values = call.result()
    lowest = np.argmin(values["value"])
    print("lowest value:", values["day"][lowest], round(values["value"][lowest]))
    print("bytes of the result, less than 10,000:", call.profile.bytes_out < 10_000)
