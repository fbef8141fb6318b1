"""Load made-up prices and positions into PostgreSQL, and write them to files.

    python load_prices.py [--symbols N] [--days N]

Replaces the tables `prices` and `positions`, and the files prices.parquet and positions.csv in the
folder `files`. The same numbers give the same data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

FILES = Path(__file__).resolve().parent / "files"
FIRST_DAY = np.datetime64("2025-01-01")
TABLES = {
    "prices": "day date, symbol text, close float8, PRIMARY KEY (symbol, day)",
    "positions": "book text, symbol text, quantity float8, strike float8, maturity date, "
    "volatility float8",
}


def make_prices(symbols: int, days: int, rng: np.random.Generator) -> pa.Table:
    """Random walks of daily prices. The last symbol has no price on the last day."""
    steps = rng.normal(0.0003, 0.015, (symbols, days))
    closes = np.round(rng.uniform(20, 200, (symbols, 1)) * np.exp(steps.cumsum(axis=1)), 2)
    missing = np.zeros((symbols, days), bool)
    missing[-1, -1] = True
    return pa.table(
        {
            "day": np.tile(FIRST_DAY + np.arange(days), symbols),
            "symbol": np.repeat([f"S{number:03}" for number in range(symbols)], days),
            "close": pa.array(closes.ravel(), mask=missing.ravel()),
        }
    )


def make_positions(symbols: int, rng: np.random.Generator) -> pa.Table:
    """Ten calls on each symbol: in the book `north`, and those on the last one in `south`."""
    count = 10 * symbols
    return pa.table(
        {
            "book": np.where(np.arange(count) < count - 10, "north", "south"),
            "symbol": np.repeat([f"S{number:03}" for number in range(symbols)], 10),
            "quantity": rng.integers(-50, 100, count).astype(float),
            "strike": np.round(rng.uniform(20, 200, count), 2),
            "maturity": FIRST_DAY + rng.integers(100, 1000, count),
            "volatility": np.round(rng.uniform(0.1, 0.6, count), 3),
        }
    )


def load(connection: psycopg.Connection, name: str, table: pa.Table) -> None:
    """Replace a table of the database."""
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(f"CREATE TABLE {name} ({TABLES[name]})")
    with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(*table.to_pydict().values(), strict=True):
            copy.write_row(row)


def main() -> None:
    parser = argparse.ArgumentParser(description="Load made-up prices into PostgreSQL.")
    parser.add_argument("--symbols", type=int, default=40, help="number of symbols")
    parser.add_argument("--days", type=int, default=250, help="number of days")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    prices = make_prices(arguments.symbols, arguments.days, rng)
    positions = make_positions(arguments.symbols, rng)
    with psycopg.connect(client_encoding="utf8") as connection:
        load(connection, "prices", prices)
        load(connection, "positions", positions)
    FILES.mkdir(exist_ok=True)
    pa.parquet.write_table(prices, FILES / "prices.parquet")
    pa.csv.write_csv(positions, FILES / "positions.csv")
    print(f"{len(prices):,} prices and {len(positions):,} positions")


if __name__ == "__main__":
    main()
