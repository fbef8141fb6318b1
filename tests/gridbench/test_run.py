"""Whole runs: the folder, the output, and the exit status."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from gridbench.engines.base import Task
from gridbench.run.client import inspect_length
from gridbench.run.exchange import Exchange
from gridbench.run.load import load_run
from running import REPOSITORY, MakeSetup, Run, went_well

POOL = ("--engine", "process-pool")


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return record


def log_rows(folder: Path) -> list[list[str]]:
    lines = (folder / "tasks.log").read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_run_leaves_a_full_record(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path, start: str
) -> None:
    setup = make_setup(tasks=20, nodes=4, sleep=0.02, task_kb=10, shared_kb=100, write_kb=3.5)
    done = gridbench("run", setup, *POOL, "--start", start, "--out", "out")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {
        "run.json",
        "tasks.log",
        "timeline.parquet",
        "report.html",
    }

    record, table = load_run(out)
    assert went_well(record)
    assert record["start"] == start
    assert record["engine"]["name"] == "process-pool"
    assert record["setup"]["NTasks"] == 20
    assert record["machine"]["memory"] > 0
    assert record["versions"]["python"]
    assert record["check"] == {"wanted": True, "tasks": 20, "wrong": 0}
    assert record["summary"]["ok"] == 20
    assert (record["ready_seconds"] is None) == (start == "cold")

    assert sorted(table.column("tid").to_pylist()) == list(range(1, 21))
    assert set(table.column("status").to_pylist()) == {"ok"}
    assert set(table.column("bytes_in").to_pylist()) == {10 * 1024}
    assert set(table.column("bytes_shared").to_pylist()) == {100 * 1024}
    assert set(table.column("bytes_out").to_pylist()) == {3584}
    assert pc.min(table.column("submit")).as_py() >= 0
    for before, after in (("submit", "calc_in"), ("calc_in", "calc_out"), ("calc_out", "retrieve")):
        assert pc.all(pc.less_equal(table.column(before), table.column(after))).as_py()
    assert pc.min(table.column("slept")).as_py() >= 0.02
    # Rows are in the order of retrieval, in the log too.
    retrieve = table.column("retrieve").to_pylist()
    assert retrieve == sorted(retrieve)
    assert [int(row[0]) for row in log_rows(out)] == table.column("tid").to_pylist()
    assert "NTasks=20 NNodes=4 InputFile=times" in (out / "tasks.log").read_text()

    assert "process-pool: 20 of 20 done" in done.stderr
    assert re.search(r"Tasks succeeded +20\b", done.stdout)
    assert f"results: {Path('out')}" in done.stderr


def test_several_engines_lie_side_by_side(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path, faulty: dict[str, str]
) -> None:
    engines = ("--engine", "process-pool", "--engine", "ahead", "--engine", "start")
    done = gridbench("run", make_setup(), *engines, "--out", "out", env=faulty)
    # One engine failed; the others are measured and compared all the same.
    assert done.returncode == 1
    out = tmp_path / "out"
    assert (out / "report.html").stat().st_size > 0
    for engine in ("process-pool", "ahead"):
        record, table = load_run(out / engine)
        assert (record["status"], table.num_rows) == ("complete", 8)
        assert (out / engine / "report.html").exists()
    assert record_of(out / "start")["status"] == "failed"
    assert "start: the engine failed: RuntimeError: the licence has expired" in done.stderr
    assert "Nothing can be claimed: not all runs of start are complete and valid." in done.stdout

    again = gridbench("report", "out", "--out", "again.html", env=faulty)
    assert again.returncode == 0, again.stderr


def test_no_engine_starts_with_the_libraries_for_showing_loaded(
    gridbench: Run, make_setup: MakeSetup, faulty: dict[str, str]
) -> None:
    engines = ("--engine", "ahead", "--engine", "lean")
    done = gridbench("run", make_setup(), *engines, "--out", "out", env=faulty)
    assert done.returncode == 0, done.stderr


def test_the_default_folder_is_named_after_the_time(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    assert gridbench("run", make_setup(), *POOL).returncode == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert record_of(folder)["status"] == "complete"


def test_sleeps_are_scaled_and_the_log_shows_the_time_slept(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    setup = make_setup(tasks=4, nodes=4, sleep=100)
    options = (*POOL, "--out", "out", "--time-scale", "0.0005")
    assert gridbench("run", setup, *options).returncode == 0
    _, table = load_run(tmp_path / "out")
    assert set(table.column("sleep").to_pylist()) == {0.05}
    for row in log_rows(tmp_path / "out"):
        assert 0.05 <= float(row[1]) < 100
    options = (*POOL, "--out", "zero", "--time-scale", "0")
    assert gridbench("run", setup, *options).returncode == 0


@pytest.mark.parametrize("scale", ["-1", "nan", "inf", "x", "1e9"])
def test_a_bad_time_scale_is_refused(refused: Run, make_setup: MakeSetup, scale: str) -> None:
    done = refused("run", make_setup(), *POOL, "--out", "out", "--time-scale", scale)
    assert done.returncode == 2
    assert "--time-scale" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_checksum_pass_can_be_left_out(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    done = gridbench("run", make_setup(), *POOL, "--no-check", "--out", "out")
    assert done.returncode == 0
    assert "checking data" not in done.stderr
    assert record_of(tmp_path / "out")["check"]["wanted"] is False


@pytest.mark.parametrize(
    ("engine", "status", "rows", "failed", "words"),
    [
        ("start", "failed", 0, 0, "the engine failed: RuntimeError: the licence has expired"),
        ("submit", "failed", 5, 0, "the engine failed: ConnectionError: the manager is gone"),
        ("collect", "failed", None, 0, "the engine failed: ConnectionError: the manager is gone"),
        ("twice", "failed", None, 0, "the engine failed: it returned task"),
        ("short", "complete", 8, 8, "8 of 8 tasks failed; the first of them, task "),
        ("task3", "complete", 8, 2, "2 of 8 tasks failed"),
        ("flip", "complete", 8, 0, "the checksum pass found 8 of 8 tasks wrong"),
        ("close", "complete", 8, 0, "the engine failed to close: RuntimeError: the door is stuck"),
    ],
)
def test_what_goes_wrong_is_reported_and_the_rest_is_kept(
    *,
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    faulty: dict[str, str],
    engine: str,
    status: str,
    rows: int | None,
    failed: int,
    words: str,
) -> None:
    setup = make_setup(tasks=8, nodes=2, task_kb=1, shared_kb=1, write_kb=1)
    done = gridbench("run", setup, "--engine", engine, "--out", "out", env=faulty)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    record, table = load_run(tmp_path / "out")
    assert (record["status"], record["valid"]) == (status, False)
    assert any(words in reason for reason in record["invalid_because"])
    assert rows is None or table.num_rows == rows
    statuses = table.column("status").to_pylist()
    assert sum(text != "ok" for text in statuses) == failed
    assert all("\n" not in text for text in statuses)
    # The log has the tasks that ran, the timeline all that ended.
    assert len(log_rows(tmp_path / "out")) == table.num_rows - failed


def test_an_engine_that_refuses_is_bad_input(
    gridbench: Run, make_setup: MakeSetup, faulty: dict[str, str]
) -> None:
    done = gridbench("run", make_setup(), "--engine", "refuse", "--out", "out", env=faulty)
    assert done.returncode == 2
    assert "refuse: 4 workers are too many\nhint: take one" in done.stderr


def test_which_part_of_the_data_was_altered_is_said(
    gridbench: Run, make_setup: MakeSetup, faulty: dict[str, str]
) -> None:
    run = ("run", "--engine", "flip")
    done = gridbench(*run, make_setup(shared_kb=1), "--out", "a", env=faulty)
    assert "the shared data did not arrive as it was sent" in done.stderr
    done = gridbench(*run, make_setup(write_kb=1), "--out", "b", env=faulty)
    assert "1 of 8 tasks wrong; the first, task 3: the output did not arrive" in done.stderr


def test_data_that_cannot_fit_is_refused(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path, faulty: dict[str, str]
) -> None:
    gigabytes = 1024.0**2
    for setup in (
        make_setup(nodes=8, task_kb=500 * gigabytes),
        make_setup(nodes=8, shared_kb=1000 * gigabytes),
        make_setup(nodes=8, write_kb=500 * gigabytes),
    ):
        done = gridbench("run", setup, *POOL, "--out", "out")
        assert done.returncode == 2
        assert (
            "setup.xml: the data does not fit into memory on engine `process-pool`" in done.stderr
        )
        assert "GB is available" in done.stderr
        assert "hint: lower" in done.stderr
    # What fits once need not fit once for each worker.
    done = gridbench("run", make_setup(shared_kb=1), "--engine", "hoard", "--out", "o", env=faulty)
    assert done.returncode == 2
    assert "the data does not fit into memory on engine `hoard`" in done.stderr
    assert not (tmp_path / "out").exists()


def test_more_workers_than_can_be_started_are_refused(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    def few_files() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))

    done = gridbench("run", make_setup(nodes=400), *POOL, "--out", "out", preexec_fn=few_files)
    assert done.returncode == 2
    assert "<NNodes> is 400, which needs about 1,300 open files" in done.stderr
    assert "hint: lower <NNodes>, or raise the limit" in done.stderr
    assert not (tmp_path / "out").exists()
    # Up to the hard limit the program helps itself.
    done = gridbench("run", make_setup(nodes=40), *POOL, "--out", "out", preexec_fn=few_files)
    assert done.returncode == 0, done.stderr


def test_no_more_tasks_are_out_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    # In this process, as the bound itself is what is looked at.
    monkeypatch.syspath_prepend(REPOSITORY / "examples" / "engines" / "thread_pool")
    from faulty_engines import Ahead

    engine = Ahead()
    engine.start(2)
    exchange = Exchange(
        engine,
        begin=lambda: None,
        tasks=(Task(tid, 0.001, np.zeros(1, np.uint8), 0) for tid in range(1, 101)),
        count=100,
        most_outstanding=7,
        inspect=inspect_length,
    )
    exchange.start()
    while not exchange.finished:
        exchange.take(0.1)
    engine.close()
    assert 2 < engine.most <= 7 + 1  # one may be noted before the one that made room is


# The output folder.


def test_an_older_run_is_replaced_only_by_force(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    setup, out = make_setup(), tmp_path / "out"
    out.mkdir()
    run = ("run", setup, *POOL, "--out", "out")
    assert gridbench(*run).returncode == 0  # an empty folder is fine
    before = (out / "run.json").read_bytes()
    done = gridbench(*run)
    assert done.returncode == 2
    assert "out: the output folder holds a run already" in done.stderr
    assert "--force" in done.stderr
    assert (out / "run.json").read_bytes() == before
    (out / "notes.txt").write_text("mine")
    assert gridbench(*run, "--force").returncode == 0
    assert (out / "run.json").read_bytes() != before
    assert (out / "notes.txt").read_text() == "mine"


def test_files_that_are_not_of_a_run_are_never_removed(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").write_text("mine")
    done = gridbench("run", make_setup(), *POOL, "--out", "out", "--force")
    assert done.returncode == 2
    assert "is not empty, and holds no run" in done.stderr
    assert (tmp_path / "out" / "report.html").read_text() == "mine"


def test_an_output_folder_that_cannot_be_used(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    for out in ("file", "file/below", "/proc/gridbench-run"):
        done = gridbench("run", make_setup(), *POOL, "--out", out)
        assert done.returncode == 2
        assert done.stderr.startswith(f"gridbench: error: {out}: ")
        assert "hint: choose another --out" in done.stderr


def test_a_folder_without_permission_is_refused(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    locked = tmp_path / "locked"
    if os.geteuid() == 0:  # who may write everywhere, but not where the kernel forbids it
        locked = Path("/sys/kernel/locked")
    else:
        locked.mkdir()
        locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = gridbench("run", make_setup(), *POOL, "--out", str(locked))
    assert done.returncode == 2
    assert re.search(
        r"cannot use the output folder: (Permission denied|Operation not p)", done.stderr
    )


def test_a_disk_that_fills_up_ends_the_run_and_keeps_what_was_there(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    def small_files() -> None:
        import resource

        # Writing beyond fails as on a full disk, and the record still fits.
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    setup = make_setup(tasks=2000, nodes=2, sleep=0)
    done = gridbench("run", setup, *POOL, "--out", "out", preexec_fn=small_files)
    assert done.returncode == 2
    assert "process-pool: out: cannot write the results: " in done.stderr
    assert "hint: what was written until then is kept" in done.stderr
    assert "Traceback" not in done.stderr
    record, table = load_run(tmp_path / "out")
    assert record["status"] in ("failed", "interrupted")
    assert 10 < table.num_rows < 2000
    assert table.column("tid").to_pylist()[0] >= 1


def test_an_engine_is_requested_once(gridbench: Run, make_setup: MakeSetup) -> None:
    done = gridbench("run", make_setup(), *POOL, *POOL, "--out", "out")
    assert done.returncode == 2
    assert "the engine `process-pool` occurs twice" in done.stderr
