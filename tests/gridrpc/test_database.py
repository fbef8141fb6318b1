"""The example of a database: queries of a real PostgreSQL and of files through a server."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gridrpc
from gridbench_testbed.services import gfarm
from processes import LONG, until
from servers import Server, offering, serving

pytestmark = pytest.mark.skipif(
    bool(gfarm.why_no_postgres()), reason=gfarm.why_no_postgres() or "there is PostgreSQL"
)

EXAMPLE = Path(__file__).parents[2] / "examples/database"
SYMBOLS, DAYS = 5, 30
ALL_DAYS = ("2025-01-01", "2025-12-31")
FUNCTIONS = ["database:query", "database:query_files", "prices:revalue"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, with its library."""
    copied = tmp_path_factory.mktemp("database") / "example"
    shutil.copytree(EXAMPLE, copied, ignore=shutil.ignore_patterns("*.so", "state", "files"))
    subprocess.run(["make", "--quiet", "-C", copied], check=True, timeout=LONG)
    return copied


@pytest.fixture(scope="module")
def script(folder: Path) -> Iterator[ModuleType]:
    """The script load_prices.py as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        import load_prices

        yield load_prices


@pytest.fixture(scope="module")
def postgres(folder: Path) -> Iterator[gfarm.Postgres]:
    """A PostgreSQL with made-up prices."""
    rig = gfarm.Postgres()
    try:
        sizes = ["--symbols", str(SYMBOLS), "--days", str(DAYS)]
        subprocess.run(
            [sys.executable, folder / "load_prices.py", *sizes],
            env=os.environ | variables(rig), check=True, timeout=LONG,
        )  # fmt: skip
        yield rig
    finally:
        rig.close()


def variables(rig: gfarm.Postgres) -> dict[str, str]:
    """The variables of clients of a PostgreSQL."""
    return {"PGHOST": str(rig.socket_folder), "PGUSER": gfarm.USER, "PGDATABASE": "postgres"}


def serve(place: Path, folder: Path, workers: int) -> Any:
    config = f"[python.market]\nfunctions = {FUNCTIONS}\npath = '{folder}'\n"
    return serving(place, offering(workers=workers, python=True) + config)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, postgres: gfarm.Postgres
) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables(postgres).items():
            patch.setenv(name, value)
        with serve(tmp_path_factory.mktemp("server"), folder, 2) as server:
            yield server


@pytest.fixture
def grid(server: Server) -> Iterator[gridrpc.Grid]:
    with server.client(trusted=True) as grid:
        yield grid


@pytest.fixture(scope="module")
def tables(script: ModuleType) -> tuple[pa.Table, pa.Table]:
    """Prices and positions as the script makes them."""
    rng = np.random.default_rng(1)
    return script.make_prices(SYMBOLS, DAYS, rng), script.make_positions(SYMBOLS, rng)


def query(grid: gridrpc.Grid, *arguments: Any, **options: Any) -> Any:
    return grid.submit("market/query", *arguments, **options).result(LONG)


def query_files(grid: gridrpc.Grid, *arguments: Any, **options: Any) -> Any:
    return grid.submit("market/query_files", *arguments, **options).result(LONG)


def test_columns_come_as_arrays(grid: gridrpc.Grid, tables: tuple[pa.Table, pa.Table]) -> None:
    prices, _ = tables
    found = query(grid, "SELECT day, symbol, close FROM prices ORDER BY symbol, day")
    assert list(found) == ["day", "symbol", "close"]
    assert found["day"].dtype == "datetime64[D]"
    for name, column in found.items():
        np.testing.assert_array_equal(column, prices[name].to_numpy())


def test_parameters_are_bound(grid: gridrpc.Grid) -> None:
    select = "SELECT count(*) AS n FROM prices WHERE symbol = "
    assert query(grid, select + "%s", ["S001"])["n"] == [DAYS]
    assert query(grid, select + "%(symbol)s", {"symbol": "S001"})["n"] == [DAYS]
    assert query(grid, select + "any(%s)", [["S001", "S002"]])["n"] == [2 * DAYS]
    assert query(grid, select + "%s", ["' OR 'a' = 'a"])["n"] == [0]
    # Without parameters, % is the operator.
    assert query(grid, "SELECT 7 % 4 AS n")["n"] == [3]


def test_nulls_are_nan(grid: gridrpc.Grid) -> None:
    found = query(
        grid,
        "SELECT 1.5::numeric AS a, NULL::int AS b, NULL::date AS c, NULL::text AS d, 2::int2 AS e,"
        " NULL::bool AS f, '2025-01-01 12:00+02'::timestamptz AS g, NULL::float4 AS h",
    )
    assert [str(column.dtype) for column in found.values()] == [
        "float64", "float64", "datetime64[D]", "object", "int16", "object", "datetime64[us]",
        "float32",
    ]  # fmt: skip
    assert found["a"] == [1.5]
    assert np.isnan(found["b"]).all()
    assert np.isnat(found["c"]).all()
    assert found["d"] == [None]
    assert found["g"] == [np.datetime64("2025-01-01T10:00")]
    assert np.isnan(found["h"]).all()


@pytest.mark.parametrize("ask", [query, query_files])
def test_an_empty_result_has_arrays_of_length_0(grid: gridrpc.Grid, ask: Any) -> None:
    table = "prices" if ask is query else "'prices.parquet'"
    found = ask(grid, f"SELECT day, symbol, close FROM {table} WHERE symbol = 'none'")
    assert [(len(column), str(column.dtype)) for column in found.values()] == [
        (0, "datetime64[D]"), (0, "object"), (0, "float64"),
    ]  # fmt: skip


@pytest.mark.parametrize("ask", [query, query_files])
def test_arrow_tables(grid: gridrpc.Grid, tables: tuple[pa.Table, pa.Table], ask: Any) -> None:
    table = "prices" if ask is query else "'prices.parquet'"
    found = ask(grid, f"SELECT day, symbol, close FROM {table} ORDER BY symbol, day", arrow=True)
    assert found.equals(tables[0].cast(found.schema))
    assert found["close"].null_count == 1


def test_files_have_what_the_database_has(grid: gridrpc.Grid) -> None:
    group = "SELECT symbol, max(close) AS high, count(*) AS n FROM {} GROUP BY symbol ORDER BY 1"
    in_database = query(grid, group.format("prices"))
    in_file = query_files(grid, group.format("'prices.parquet'"))
    for name in ("symbol", "high", "n"):
        np.testing.assert_array_equal(in_database[name], in_file[name])
    select = "SELECT strike FROM 'positions.csv' WHERE book = ?"
    strikes = query(grid, "SELECT strike FROM positions WHERE book = 'south'")
    np.testing.assert_array_equal(query_files(grid, select, ["south"])["strike"], strikes["strike"])


def test_a_file_that_changes_is_read_again(grid: gridrpc.Grid, folder: Path) -> None:
    new = folder / "files/new.csv"
    new.write_text("a\n1\n")
    assert [query_files(grid, "FROM 'new.csv'")["a"].tolist() for _ in range(2)] == [[1], [1]]
    new.write_text("b,c\nx,2.5\n")
    assert query_files(grid, "FROM 'new.csv'")["c"] == [2.5]


def black_scholes(rows: dict[str, np.ndarray], years: np.ndarray, rate: float) -> np.ndarray:
    spot, strike, deviation = rows["close"], rows["strike"], rows["volatility"] * np.sqrt(years)
    normal = np.vectorize(lambda x: (1 + math.erf(x / math.sqrt(2))) / 2)
    d1 = (np.log(spot / strike) + rate * years) / deviation + deviation / 2
    return spot * normal(d1) - strike * np.exp(-rate * years) * normal(d1 - deviation)


@pytest.mark.parametrize("book", ["north", "south"])
def test_the_c_function_computes_what_numpy_computes(grid: gridrpc.Grid, book: str) -> None:
    found = grid.submit("market/revalue", book, *ALL_DAYS, rate=0.03).result(LONG)
    rows = query(
        grid,
        "SELECT * FROM positions JOIN prices USING (symbol) WHERE book = %s",
        [book],
    )
    years = (rows["maturity"] - rows["day"]).astype(float) / 365.25
    assert (years > 0).all()
    values = rows["quantity"] * black_scholes(rows, years, 0.03)
    days = np.unique(rows["day"])
    np.testing.assert_array_equal(found["day"], days)
    expected = [values[rows["day"] == day].sum() for day in days]
    np.testing.assert_allclose(found["value"], expected, rtol=1e-9, atol=1e-6)
    # The last price of `south` is missing.
    assert np.isnan(found["value"][-1]) == (book == "south")
    assert not np.isnan(found["value"][:-1]).any()


def test_a_call_that_has_expired_is_worth_its_payoff(
    grid: gridrpc.Grid, postgres: gfarm.Postgres
) -> None:
    postgres.sql(
        "INSERT INTO positions SELECT 'expired', symbol, 2, strike, day, 0.3 FROM prices,"
        " (VALUES (0), (1e6)) AS strikes (strike) WHERE symbol = 'S001' AND day = '2025-01-05'"
    )
    try:
        found = grid.submit("market/revalue", "expired", "2025-01-05", "2025-01-06").result(LONG)
        closes = query(
            grid,
            "SELECT close FROM prices WHERE symbol = 'S001'"
            " AND day IN ('2025-01-05', '2025-01-06') ORDER BY day",
        )
        np.testing.assert_allclose(found["value"], 2 * closes["close"])
    finally:
        postgres.sql("DELETE FROM positions WHERE book = 'expired'")


def test_an_unknown_book_has_no_days(grid: gridrpc.Grid) -> None:
    found = grid.submit("market/revalue", "nowhere", *ALL_DAYS).result(LONG)
    assert len(found["day"]) == len(found["value"]) == 0


def test_only_the_result_travels(grid: gridrpc.Grid) -> None:
    call = grid.submit("market/revalue", "north", *ALL_DAYS)
    values = call.result(LONG)
    size = sum(column.nbytes for column in values.values())
    assert size == 2 * 8 * DAYS
    assert size <= call.profile.bytes_out < size + 1000
    assert call.profile.bytes_in < 500
    # Its rows, which stay at the server.
    rows = grid.submit(
        "market/query",
        "SELECT day, quantity, close, strike, volatility FROM positions JOIN prices USING (symbol)"
        " WHERE book = 'north'",
    )
    count = len(rows.result(LONG)["day"])
    assert count == 10 * (SYMBOLS - 1) * DAYS
    assert rows.profile.bytes_out > 5 * 8 * count


@pytest.mark.parametrize(
    ("statement", "kind", "says"),
    [
        ("SELECT * FROM nowhere", LookupError, 'relation "nowhere" does not exist'),
        ("SELECT clos FROM prices", LookupError, r'column "clos" does not exist.*prices\.close'),
        ("SELEC 1", ValueError, 'syntax error at or near "SELEC"'),
        ("SELECT 1 / 0 AS a", ValueError, "division by zero"),
        ("SELECT 1 AS a, 2 AS a", ValueError, "several columns are named `a`"),
        ("SELECT ARRAY[1] AS a", ValueError, r"column `a` has the type int4\[\]: cast it"),
        ("INSERT INTO prices VALUES (now(), 'a', 1)", ValueError, "in a read-only transaction"),
        ("SET TRANSACTION READ WRITE", ValueError, "must be set before any query"),
        ("SET statement_timeout = 0", ValueError, "the statement returns no rows"),
        ("SELECT 1; DROP TABLE prices", ValueError, "cannot insert multiple commands"),
    ],
)
def test_errors_of_the_database(
    grid: gridrpc.Grid, statement: str, kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says) as raised:
        query(grid, statement)
    assert raised.type is kind
    assert query(grid, "SELECT 1 AS a")["a"] == [1]


@pytest.mark.parametrize(
    ("statement", "kind", "says"),
    [
        ("FROM 'nowhere.csv'", LookupError, r"nowhere\.csv.*\(files: .*prices\.parquet\)"),
        ("FROM nowhere", LookupError, "nowhere does not exist"),
        ("SELECT clos FROM 'prices.parquet'", LookupError, 'column "clos" not found'),
        ("FROM read_text('/etc/passwd')", LookupError, "Cannot access file"),
        ("FROM read_text('../server.toml')", LookupError, "Cannot access file"),
        ("COPY (SELECT 1) TO 'new.csv'", ValueError, "not a single SELECT"),
        ("SELECT 1; SELECT 2", ValueError, "not a single SELECT"),
        ("SET threads = 4", ValueError, "not a single SELECT"),
        ("SELEC 1", ValueError, "syntax error"),
        ("SELECT 1 AS a, 2 AS a", ValueError, "several columns are named `a`"),
    ],
)
def test_errors_of_files(
    grid: gridrpc.Grid, statement: str, kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says) as raised:
        query_files(grid, statement)
    assert raised.type is kind
    assert query_files(grid, "SELECT 1 AS a")["a"] == [1]


def test_queries_time_out(grid: gridrpc.Grid) -> None:
    with pytest.raises(TimeoutError, match=r"took longer than 0\.2 s"):
        query(grid, "SELECT pg_sleep(60)::text", timeout=0.2)
    with pytest.raises(TimeoutError, match=r"took longer than 0\.2 s"):
        query_files(grid, "SELECT count(*) FROM range(1000000000) a, range(1000) b", timeout=0.2)
    for ask in (query, query_files):
        with pytest.raises(ValueError, match="timeout is 0"):
            ask(grid, "SELECT 1 AS a", timeout=0)
        assert ask(grid, "SELECT 1 AS a", timeout=5)["a"] == [1]


def test_a_statement_changes_no_settings_of_later_ones(grid: gridrpc.Grid) -> None:
    for _ in range(4):
        query(grid, "SELECT set_config('statement_timeout', '1', false)")
    for _ in range(4):
        assert query(grid, "SHOW statement_timeout")["statement_timeout"] == ["30s"]


def test_each_worker_has_one_connection(grid: gridrpc.Grid, postgres: gfarm.Postgres) -> None:
    statements = ["SELECT pg_backend_pid() AS pid"] * 20
    pids = {int(found["pid"][0]) for found in grid.map("market/query", statements)}
    assert len(pids) <= 2
    connected = postgres.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        " AND pid <> pg_backend_pid()"
    )
    assert int(connected) <= 2


def test_a_lost_connection_is_made_again(grid: gridrpc.Grid, postgres: gfarm.Postgres) -> None:
    end_all = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    for _ in range(4):
        query(grid, "SELECT 1 AS a")
        assert int(postgres.sql(end_all)) > 0
        assert query(grid, "SELECT 1 AS a")["a"] == [1]
    running = grid.submit("market/query", "SELECT pg_sleep(60)::text")
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND {}"
    sleeping = sleeping.format("state = 'active' AND pid <> pg_backend_pid()")
    assert until(lambda: postgres.sql(sleeping) == "1")
    postgres.sql(end_all)
    with pytest.raises(ConnectionError, match=r"does not answer: .*administrator"):
        running.result(LONG)
    assert query(grid, "SELECT 1 AS a")["a"] == [1]


def test_a_role_reads_what_it_may_read(
    folder: Path, postgres: gfarm.Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.sql("CREATE TABLE secrets (a int)")
    postgres.sql("CREATE ROLE grid LOGIN")
    postgres.sql("GRANT SELECT ON prices, positions TO grid")
    for name, value in variables(postgres).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PGUSER", "grid")
    with serve(tmp_path, folder, 1) as server, server.client(trusted=True) as grid:
        assert len(query(grid, "SELECT * FROM prices")["close"]) == SYMBOLS * DAYS
        for statement in ("SELECT * FROM secrets", "SELECT pg_read_file('/etc/passwd')"):
            with pytest.raises(PermissionError, match="permission denied"):
                query(grid, statement)


def test_the_database_ends(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = gfarm.Postgres()
    try:
        for name, value in variables(rig).items():
            monkeypatch.setenv(name, value)
        with serve(tmp_path, folder, 1) as server, server.client(trusted=True) as grid:
            assert query(grid, "SELECT 1 AS a")["a"] == [1]
            rig.close()
            for _ in range(2):
                with pytest.raises(ConnectionError, match="PostgreSQL does not answer: connection"):
                    query(grid, "SELECT 1 AS a")
            with pytest.raises(ConnectionError, match="PostgreSQL does not answer"):
                grid.submit("market/revalue", "north", *ALL_DAYS).result(LONG)
            # Files need no database.
            assert query_files(grid, "SELECT 1 AS a")["a"] == [1]
    finally:
        rig.close()
