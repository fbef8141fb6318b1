"""The table of results: a row for each measured value."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pyarrow.parquet as pq
import pytest

from gridbench.errors import InputError
from gridbench.results.table import measures_of, records_of, write_table
from micro_results import made
from scenario_results import all_done, write_folder
from sync_rounds import DISTURBED, four
from sync_rounds import write_folder as write_rounds

Run = Callable[..., CompletedProcess[str]]


def test_all_formats_have_the_same_rows(tmp_path: Path) -> None:
    write_folder(tmp_path / "six", 6, all_done(6))
    write_rounds(tmp_path / "sync", [four(), replace(four(), repeat=1, load=DISTURBED)])
    sources = [tmp_path / "six", tmp_path / "sync"]
    rows = list(records_of(sources))
    names = list(dict.fromkeys(name for row in rows for name in row))
    for suffix in (".jsonl", ".csv", ".parquet"):
        assert write_table(sources, tmp_path / f"values{suffix}") == len(rows)
    lines = (tmp_path / "values.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows
    with (tmp_path / "values.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert list(written[0]) == names
    assert [float(row["value"]) for row in written] == [row["value"] for row in rows]
    table = pq.read_table(tmp_path / "values.parquet")
    assert table.column_names == names
    assert table["value"].to_pylist() == [row["value"] for row in rows]
    assert table["workers"].to_pylist() == [row.get("workers") for row in rows]


def test_a_row_has_the_parameters_of_its_case(tmp_path: Path) -> None:
    cases = all_done(6)
    write_folder(tmp_path, 6, cases)
    rows = list(records_of([tmp_path]))
    assert len(rows) == len(cases)
    for row, case in zip(rows, cases, strict=True):
        assert row["benchmark"] == "scenario"
        assert (row["engine"], row["value"], row["unit"]) == (case.engine, case.total_s, "s")
        assert (row["tasks"], row["cores"], row["bytes_in"]) == (
            case.tasks, case.cores, case.bytes_in,
        )  # fmt: skip


def test_invalid_values_are_in_the_table_and_in_no_comparison(tmp_path: Path) -> None:
    rounds = [replace(four(), repeat=n, load=DISTURBED if n else four().load) for n in range(3)]
    folder = write_rounds(tmp_path, rounds)
    rows = [row for row in records_of([folder]) if row["metric"] == "start skew"]
    assert [(row["repeat"], row["valid"]) for row in rows] == [(0, True), (1, False), (2, False)]
    assert len(measures_of(folder)["4 workers", "start skew"].values) == 1


def test_disturbed_values_of_micro_benchmarks_are_marked(tmp_path: Path) -> None:
    whole = made()
    figure = whole.figures[0]
    entry = replace(figure.entries[0], values=(3.0, 1.0, 1.0), disturbed_runs=2, undisturbed=(1.0,))
    changed = replace(whole, figures=(replace(figure, entries=(entry,)),))
    (tmp_path / "results.json").write_text(json.dumps(changed.to_record()))
    rows = list(records_of([tmp_path]))
    assert [(row["value"], row["valid"]) for row in rows] == [
        (3.0, False), (1.0, True), (1.0, False),
    ]  # fmt: skip


def test_the_program_writes_a_table(gridbench: Run, tmp_path: Path) -> None:
    write_folder(tmp_path / "six", 6, all_done(6))
    done = gridbench("report", "six", "--table", "values.parquet")
    assert done.returncode == 0, done.stderr
    assert "table: values.parquet" in done.stdout
    assert pq.read_table(tmp_path / "values.parquet").num_rows == len(all_done(6))
    refused = gridbench("report", "six", "--table", "values.xls")
    assert refused.returncode == 2
    assert "the suffix `.xls` is no format of tables" in refused.stderr
    assert ".parquet, .csv, .jsonl" in refused.stderr
    both = gridbench("report", "six", "--table", "values.csv", "--out", "page.html")
    assert both.returncode == 2


def test_damaged_results_have_no_table(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(InputError):
        write_table([tmp_path], tmp_path / "values.csv")
    assert not (tmp_path / "values.csv").exists()
