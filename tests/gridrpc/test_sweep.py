"""`Grid.sweep`: a table in, and the same table out with what came of its rows."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import stat
import subprocess
import sys
import time
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened
from hosts import on_hosts, rig_of, server
from processes import LONG, environment, start_script, until

ROWS = [{"spot": 100, "strike": k} for k in (90, 100, 110, 120)]


def price(spot: float, strike: float, rate: float = 0.0) -> float:
    if strike == 110:
        raise ValueError("no quote")
    return spot - strike * (1 - rate)


def greeks(spot: float, strike: float) -> dict[str, float]:
    return {"value": spot - strike, "delta": 0.5}


Greeks = namedtuple("Greeks", ["value", "delta"])


@dataclass
class Result:
    value: float
    delta: float


def named(spot: float, strike: float) -> Any:
    return Greeks(spot - strike, 0.5)


def typed(spot: float, strike: float) -> Any:
    return Result(spot - strike, 0.5)


def tables() -> list[Any]:
    return [ROWS, pd.DataFrame(ROWS), pa.Table.from_pylist(ROWS), iter(ROWS), "polars"]


def records(table: Any) -> list[dict[str, Any]]:
    """The rows of a result, with None for what is missing."""
    if isinstance(table, pd.DataFrame):
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
    elif isinstance(table, pa.Table):
        rows = table.to_pylist()
    elif isinstance(table, list):
        rows = table
    else:
        rows = table.to_dicts()
    return [{**row} for row in rows]


def column(table: Any, name: str) -> list[Any]:
    return [row[name] for row in records(table)]


@pytest.mark.parametrize("table", tables(), ids=["dicts", "pandas", "arrow", "iterator", "polars"])
def test_the_same_kind_of_table_comes_out(grid: Grid, table: Any) -> None:
    if isinstance(table, str):
        table = pytest.importorskip("polars").DataFrame(ROWS)
    made = grid.sweep(price, table, constants={"rate": 0.5})
    assert type(made) is (list if hasattr(table, "__next__") else type(table))
    rows = records(made)
    assert [row.pop("seconds") >= 0 for row in rows] == [True] * 4
    expected = [
        {"spot": 100, "strike": k, "result": 100 - k / 2, "status": "ok", "error": None}
        for k in (90, 100, 110, 120)
    ]
    expected[2].update(result=None, status="failed", error="ValueError: no quote")
    assert rows == expected


def test_a_table_is_not_changed_and_keeps_index_and_types(grid: Grid) -> None:
    frame = pd.DataFrame(ROWS, index=list("dcba")).assign(spot=np.float32(100))
    before = frame.copy()
    made = grid.sweep(price, frame)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(made[["spot", "strike"]], before)


@pytest.mark.parametrize("function", [greeks, named, typed])
def test_named_results_are_columns(grid: Grid, function: Any) -> None:
    made = grid.sweep(function, ROWS)
    assert list(made[0]) == ["spot", "strike", "value", "delta", "status", "error", "seconds"]
    assert column(made, "value") == [10, 0, -10, -20]


def test_results_take_no_name_that_is_in_use(grid: Grid) -> None:
    made = grid.sweep(lambda x: {"x": -x, "status": "fine", "y": 1}, [{"x": 2}, {"x": 3}])
    assert column(made, "x") == [2, 3]
    assert column(made, "result_x") == [-2, -3]
    assert column(made, "result_status") == ["fine", "fine"]
    assert column(made, "status") == ["ok", "ok"]


def test_rows_may_have_different_results(grid: Grid) -> None:
    made = grid.sweep(lambda n: {"a": n} if n % 2 else {"b": [n]}, pd.DataFrame({"n": range(4)}))
    assert column(made, "a") == [None, 1, None, 3]
    assert column(made, "b") == [[0], None, [2], None]
    arrow = grid.sweep(lambda n: n if n % 2 else "even", pa.table({"n": range(3)}))
    assert arrow["result"].to_pylist() == ["even", "1", "even"]


def root(x: float) -> float:
    return math.sqrt(x)


def test_other_columns_go_along_and_results_can_be_swept_again(grid: Grid) -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "x": [1.0, 4.0]})
    made = grid.sweep(root, frame, columns="x")
    assert list(made.columns) == ["id", "x", "result", "status", "error", "seconds"]
    again = grid.sweep(lambda x: -x, made, columns=["x"])
    assert list(again.columns) == list(made.columns)
    assert column(again, "result") == [-1, -4]


def test_a_table_without_rows(grid: Grid) -> None:
    made = grid.sweep(price, pd.DataFrame({"spot": [], "strike": []}))
    assert list(made.columns) == ["spot", "strike", "result", "status", "error", "seconds"]
    assert len(made) == 0


def test_lost_workers_cost_their_rows_only(own_grid: Grid) -> None:
    def work(n: int) -> int:
        if n == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    made = own_grid.sweep(work, [{"n": n} for n in range(20)])
    assert [row["n"] for row in made if row["status"] != "ok"] == [3]
    assert made[3]["error"].startswith("WorkerLost: ")
    assert made[3]["seconds"] is None
    assert [row["result"] for row in made if row["status"] == "ok"] == [*range(3), *range(4, 20)]


def test_options_are_those_of_map(grid: Grid) -> None:
    grid.wait_until_ready(60)
    made = grid.sweep(nap, [{"duration": s} for s in (0, 60)], deadline=2, chunk=1)
    assert column(made, "status") == ["ok", "failed"]
    assert made[1]["error"].startswith("DeadlineExceeded")
    with pytest.raises(TypeError):
        grid.sweep(price, ROWS, no_option=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="retries"):
        grid.sweep(price, ROWS, retries=-1)


def nap(duration: float) -> float:
    time.sleep(duration)
    return duration


def test_retries_are_inside_the_time(grid: Grid, tmp_path: Path) -> None:
    def flaky(n: int) -> int:
        mark = tmp_path / str(n)
        if not mark.exists():
            mark.touch()
            raise ConnectionError("once")
        return n

    made = grid.sweep(flaky, [{"n": 1}, {"n": 2}], retries=1, backoff=0.2)
    assert column(made, "status") == ["ok", "ok"]
    assert min(column(made, "seconds")) >= 0.2


def test_shared_data_is_a_constant(grid: Grid) -> None:
    curve = grid.share(np.arange(1000.0))
    days = [{"day": 3}, {"day": 7}]
    made = grid.sweep(lambda day, curve: float(curve[day]), days, constants={"curve": curve})
    assert column(made, "result") == [3.0, 7.0]


IDL = """
Module swept;
Define scale(IN double x, IN double factor, OUT double y[1], OUT double z[1])
{ y[0] = x * factor; z[0] = x; }
"""


def test_functions_of_modules(module_grid: Grid) -> None:
    made = module_grid.sweep("swept/scale", [{"x": x} for x in (1.0, 2.0)], constants={"factor": 3})
    assert column(made, "y") == [3.0, 6.0]
    assert column(made, "status") == ["ok", "ok"]
    assert column(made, "seconds") == [None, None]
    with pytest.raises(TypeError, match="needs `factor`"):
        module_grid.sweep("swept/scale", [{"x": 1.0}])
    with pytest.raises(TypeError, match=r"takes `x`, `factor`\. Rename it"):
        module_grid.sweep("swept/scale", [{"x": 1.0, "factor": 2.0, "out": None}])


MIXED = """
Module mixed;
Define half(IN double x, IN int n, OUT double value[1]) { value[0] = n * x / 2; }
Define crash(IN int n, OUT int r[1]) Idempotent
{ if (n == 1) *(volatile int *)0 = n; r[0] = n; }
Define ramp(IN int n, IN double x[n], OUT double y[3][n])
{ for (int i = 0; i < 3 * n; i++) y[i] = x[i % n] / 3; }
"""


@pytest.mark.parametrize("chunk", [1, 3])
def test_cells_that_do_not_fit_a_compiled_function_cost_their_rows(
    compile_idl: CompileIdl, tmp_path: Path, chunk: int
) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    cells = ["1.5,1", ",2", "N/A,3", "2.5,", "3.5,2.0", "4,2.5", "5%,1", "6,3"]
    source.write_text("x,n\n" + "\n".join(cells) + "\n")
    with opened(workers=1, worker="native", modules=[compile_idl(MIXED)]) as grid:
        for _ in range(2):  # those that failed are run again, and fail again
            made = grid.sweep("mixed/half", source, output=out, resume=True, chunk=chunk)
            assert column(made, "value") == [0.75, None, None, None, 3.5, None, None, 9.0]
        assert grid.stats().calls.submitted <= 3
    errors = {at: error for at, error in enumerate(column(made, "error")) if error}
    assert [*errors] == [1, 2, 3, 5, 6]
    for at, name in ((1, "x"), (2, "x"), (3, "n"), (5, "n"), (6, "x")):
        assert errors[at].startswith(f"ArgumentError: mixed/half: argument `{name}` has to be")
    assert column(made, "x")[:3] == ["1.5", None, "N/A"], "the table is not changed"


def test_whole_numbers_of_pandas_with_gaps_are_integers(compile_idl: CompileIdl) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "n": [1, None, 3]})
    with opened(workers=1, worker="native", modules=[compile_idl(MIXED)]) as grid:
        made = grid.sweep("mixed/half", frame)
    assert column(made, "value") == [0.5, None, 4.5]
    assert column(made, "status") == ["ok", "failed", "ok"]


def test_a_row_of_a_file_is_one_line(compile_idl: CompileIdl, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    with opened(workers=1, worker="native", modules=[compile_idl(MIXED)], retries=1) as grid:
        grid.sweep("mixed/crash", [{"n": n} for n in range(3)], output=out, chunk=3)
    lines = out.read_text().splitlines()
    assert [line.split(",")[2] for line in lines[1:]] == ["ok", "failed", "ok"]
    assert "SIGSEGV" in lines[2]


def test_arrays_in_files_have_all_elements_and_digits(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    rows = [{"x": [np.float64(0.1), 1.0]}, {"x": np.linspace(0.0, 1.0, 2_000)}]
    with opened(workers=1, worker="native", modules=[compile_idl(MIXED)]) as grid:
        made = grid.sweep("mixed/ramp", rows, output=out)
    with out.open(newline="") as file:
        read = list(csv.DictReader(file))
    for row, of_file, computed in zip(rows, read, made, strict=True):
        assert json.loads(of_file["x"]) == np.asarray(row["x"]).tolist()
        np.testing.assert_array_equal(json.loads(of_file["y"]), computed["y"])


def test_results_of_one_number_are_numbers_in_files(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    idl = """
Module single;
Define half(IN double x, OUT double value[1]) { value[0] = x / 2; }
Define copies(IN int n, IN double x, OUT double value[n])
{ for (int i = 0; i < n; i++) value[i] = x; }
"""
    with opened(workers=1, worker="native", modules=[compile_idl(idl)]) as grid:
        grid.sweep("single/half", [{"x": 3.0}], output=tmp_path / "half.csv")
        (row,) = grid.sweep("single/copies", [{"n": 1, "x": 3.0}])
    assert (tmp_path / "half.csv").read_text().splitlines()[1] == "3.0,1.5,ok,,"
    # The interface declares n elements, which happen to be one.
    assert row["value"].shape == (1,)


@pytest.mark.parametrize(
    ("function", "table", "how", "error", "text"),
    [
        (price, [{"spot": 1, "strke": 2}], {}, TypeError, "no argument `strke`.*`spot`, `strike`"),
        (
            price,
            [{"spot": 1}],
            {},
            TypeError,
            "needs `strike`, and the table has the columns `spot`",
        ),
        (price, ROWS, {"columns": ["spot", "no"]}, ValueError, "'no', and the table has"),
        (price, ROWS, {"columns": ["spot", "spot"]}, ValueError, "twice"),
        (price, ROWS, {"columns": []}, ValueError, "no columns that are arguments"),
        (price, ROWS, {"constants": {"spot": 1}}, ValueError, "which is a column"),
        (price, ROWS, {"constants": {"vol": 1}}, TypeError, "no argument `vol`"),
        (lambda x, /: x, [{"x": 1}], {}, TypeError, "no argument `x`"),
        (lambda status: status, [{"status": 1}], {}, ValueError, "rename it"),
        (price, [], {}, ValueError, "no columns"),
        (price, 5, {}, TypeError, "the table is of type int"),
        (price, b"x.csv", {}, TypeError, "the table is of type bytes"),
        (price, {"spot": [1]}, {}, TypeError, "the table is of type dict"),
        (price, [1, 2], {}, TypeError, "row 0 of the table is of type int"),
        (price, [{"spot": 1, "strike": 2}, {"spot": 1}], {}, ValueError, "row 1.*`strike`"),
        (price, [{1: 2}], {}, TypeError, "named 1"),
        (price, pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, ValueError, "several columns"),
        (price, ROWS, {"output": "out.xlsx"}, ValueError, "does not end in .csv or .parquet"),
        (price, ROWS, {"output": "no/out.csv"}, FileNotFoundError, "no folder"),
        (price, ROWS, {"resume": True}, ValueError, "needs `output`"),
        (price, "table.txt", {}, ValueError, "does not end in"),
        (price, "absent.csv", {}, FileNotFoundError, "absent.csv"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(  # noqa: PLR0917 - one case
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    function: Any, table: Any, how: Any, error: Any, text: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    before = grid.stats().calls.submitted
    with pytest.raises(error, match=text):
        grid.sweep(function, table, **how)
    assert grid.stats().calls.submitted == before
    assert list(tmp_path.iterdir()) == []


def test_csv_in_and_out(grid: Grid, tmp_path: Path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(
        "id,n,x,flag,empty\r\n007,1,1e3,true,\r\n008,-2,.5,False,\r\n\r\n009,3,nan,TRUE,\n"
    )
    seen = grid.sweep(
        lambda **row: repr(row), source, columns=["id", "n", "x", "flag", "empty"], output=out
    )
    assert column(seen, "result") == [
        "{'id': '007', 'n': 1, 'x': 1000.0, 'flag': True, 'empty': None}",
        "{'id': '008', 'n': -2, 'x': 0.5, 'flag': False, 'empty': None}",
        "{'id': '009', 'n': 3, 'x': nan, 'flag': True, 'empty': None}",
    ]
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["007", "008", "009"]
    assert [row["result"] for row in rows] == column(seen, "result")
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~umask()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def umask() -> int:
    old = os.umask(0o022)
    os.umask(old)
    return old


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"", "is empty"),
        (b"a,b\n\n1,2\n1\n", "line 4 has 1 values, and the header names 2"),
        (b'a,b\n1,"2\n', "is no CSV file"),
        (b"a\n\xff\n", "is no CSV file"),
        (b"a,a\n1,2\n", "several columns named `a`"),
    ],
)
def test_damaged_csv_is_refused(grid: Grid, tmp_path: Path, text: bytes, error: str) -> None:
    (tmp_path / "in.csv").write_bytes(text)
    with pytest.raises(ValueError, match=error):
        grid.sweep(price, tmp_path / "in.csv")


@pytest.mark.parametrize("make", [list, pd.DataFrame, pa.Table.from_pylist])
def test_parquet_out_and_in(grid: Grid, tmp_path: Path, make: Any) -> None:
    out = tmp_path / "out.parquet"
    made = grid.sweep(price, make(ROWS), output=out)
    assert pq.read_table(out).column_names == [*records(made)[0]]
    assert pq.read_table(out)["result"].to_pylist() == [10.0, 0.0, None, -20.0]
    again = grid.sweep(greeks, out, columns=["spot", "strike"])
    assert isinstance(again, pa.Table)
    assert again["value"].to_pylist() == [10, 0, -10, -20]


def test_the_output_cannot_be_the_input(grid: Grid, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("spot,strike\n1,2\n")
    (tmp_path / "link.csv").symlink_to("t.csv")
    with pytest.raises(ValueError, match="is the table itself"):
        grid.sweep(price, tmp_path / "t.csv", output=tmp_path / "link.csv")


def test_a_later_run_runs_what_is_missing_or_has_failed(grid: Grid, tmp_path: Path) -> None:
    log, bad, out = tmp_path / "log", tmp_path / "bad", tmp_path / "out.csv"
    bad.touch()

    def work(n: int) -> int:
        with log.open("a") as file:
            file.write(f"{n}\n")
        if n % 10 == 0 and bad.exists():
            raise RuntimeError("bad day")
        return n * n

    rows = [{"n": n} for n in range(50)]
    first = grid.sweep(work, rows, output=out, resume=True)
    assert [row["n"] for row in first if row["status"] == "failed"] == [0, 10, 20, 30, 40]
    log.unlink()
    bad.unlink()
    second = grid.sweep(work, rows, output=out, resume=True, progress="again")
    assert sorted(map(int, log.read_text().split())) == [0, 10, 20, 30, 40]
    assert column(second, "result") == [n * n for n in range(50)]
    assert column(second, "status") == ["ok"] * 50
    assert min(column(second, "seconds")) >= 0
    with pytest.raises(gridrpc.JournalError):
        grid.sweep(work, rows[::-1], output=out, resume=True)


INTERRUPTED = """
    import os, signal, sys, threading, time
    from pathlib import Path
    import gridrpc

    def work(n):
        Path(f"ran-{n}").touch()
        while n == 0 and not os.path.exists("go"):
            time.sleep(0.005)
        return 2 * n

    with gridrpc.Grid(2) as grid:
        try:
            made = grid.sweep(
                work, [{"n": n} for n in range(40)], output="out.csv", resume=True, idempotent=True
            )
        except KeyboardInterrupt as stopped:
            print(type(stopped).__name__, stopped)
            print(sum(row["status"] == "ok" for row in stopped.table))
            print(stopped.table[0]["status"])
        else:
            print([row["result"] for row in made] == [2 * n for n in range(40)])
    """


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    script = start_script(tmp_path, INTERRUPTED)
    assert until(lambda: len(list(tmp_path.glob("ran-*"))) == 40)
    # The first row is a straggler; all others have ended, or are about to.
    assert until(lambda: (tmp_path / "out.csv.journal").stat().st_size > 39 * 48)
    time.sleep(0.3)
    os.kill(script.pid, signal.SIGINT)
    out, errors = script.communicate(timeout=LONG)
    message, count, first = out.splitlines()
    assert message == f"SweepInterrupted {count} of 40 rows have ended, and are in out.csv", errors
    assert int(count) >= 35
    assert first == "not run"
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows].count("ok") == int(count)
    (tmp_path / "go").touch()
    for mark in tmp_path.glob("ran-*"):
        mark.unlink()
    again = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment(), capture_output=True,
        text=True, timeout=LONG, check=True,
    )  # fmt: skip
    assert again.stdout == "True\n"
    assert "ran-0" in {mark.name for mark in tmp_path.glob("ran-*")}
    assert len(list(tmp_path.glob("ran-*"))) <= 40 - int(count)


def test_rows_run_on_hosts(tmp_path: Path) -> None:
    with rig_of(2) as rig, on_hosts(tmp_path, server(rig, "node1", "node2")) as grid:
        made = grid.sweep(where, pd.DataFrame({"n": range(40)}), resume=tmp_path / "j", chunk=1)
        assert column(made, "n") == column(made, "value") == list(range(40))
        assert len(set(column(made, "host"))) == 2


def where(n: int) -> dict[str, Any]:
    time.sleep(0.02)
    return {"value": n, "host": os.uname().nodename}


def test_pandas_and_polars_are_not_loaded_for_other_tables(tmp_path: Path) -> None:
    script = (
        "import sys, gridrpc\n"
        "with gridrpc.Grid(1) as grid:\n"
        "    grid.sweep('math/hypot', [{'x': 1}], columns=['x'], output='o.csv')\n"
        "print([name for name in ('pandas', 'polars', 'pyarrow') if name in sys.modules])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=LONG,
        check=False,
    )  # fmt: skip
    assert ran.stdout == "[]\n", ran.stderr


def test_compiled_functions_resume(compile_idl: CompileIdl, tmp_path: Path) -> None:
    with opened(workers=1, worker="native", modules=[compile_idl(IDL)]) as grid:
        rows = [{"x": float(n), "factor": 2.0} for n in range(30)]
        for _ in range(2):
            made = grid.sweep("swept/scale", rows, resume=tmp_path / "j")
            assert column(made, "y") == [2.0 * n for n in range(30)]
        assert grid.stats().calls.submitted <= 30
