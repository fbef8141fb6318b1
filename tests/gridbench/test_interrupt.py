"""Ctrl-C, SIGTERM and kill -9 on a real run: what was measured survives, no process does."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gridbench.errors import InputError
from gridbench.process.inside import LOOKOUT
from gridbench.run.journal import JOURNAL
from gridbench.run.load import load_run
from running import DEADLINE, PROGRAM, MakeSetup, Run, alive, until
from timelines import table_of


class Running:
    """A run that has done its short tasks and is in the middle of very long ones."""

    def __init__(self, setup: Path, out: Path, env: dict[str, str]) -> None:
        # Two tasks that end, and others that do not.
        lines = (setup.parent / "times").read_text().splitlines()
        (setup.parent / "times").write_text("\n".join(["0.01", "0.01", *lines[2:]]) + "\n")
        self.out = out
        # In a group of its own, as a terminal signals all processes of the group.
        self.process = subprocess.Popen(
            [*PROGRAM, "run", str(setup), "--engine", "process-pool", "--out", str(out)],
            env=env,
            cwd=setup.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until(lambda: self.rows() == 2)
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.workers = [one for one in family if one.name() != LOOKOUT]

    def rows(self) -> int:
        journal = self.out / JOURNAL
        return journal.read_text().count("\n") if journal.exists() else 0

    def wait(self) -> tuple[int, str]:
        _, stderr = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, stderr

    def nothing_left(self) -> None:
        assert self.workers
        until(lambda: not any(alive(worker.pid) for worker in self.workers))


@pytest.fixture
def running(make_setup: MakeSetup, tmp_path: Path, environment: dict[str, str]):  # type: ignore[no-untyped-def]
    run = Running(make_setup(tasks=10, nodes=3, sleep=500), tmp_path / "out", environment)
    yield run
    if run.process.poll() is None:
        run.process.kill()
        run.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("whole_group", [True, False])
def test_a_signal_ends_the_run_cleanly(
    running: Running, number: signal.Signals, whole_group: bool
) -> None:
    if whole_group and number == signal.SIGINT:
        import os

        os.killpg(running.process.pid, number)
    else:
        running.process.send_signal(number)
    status, stderr = running.wait()
    assert status == 128 + number
    assert "the run was interrupted" in stderr
    assert f"results: {running.out}" in stderr
    assert "Traceback" not in stderr
    running.nothing_left()

    record, table = load_run(running.out)
    assert (record["status"], record["valid"]) == ("interrupted", False)
    assert sorted(table.column("tid").to_pylist()) == [1, 2]
    assert (record["summary"]["ok"], record["summary"]["missing"]) == (2, 8)
    assert {path.name for path in running.out.iterdir()} == {
        "run.json",
        "tasks.log",
        "timeline.parquet",
        "report.html",
    }


def test_a_second_signal_ends_at_once(running: Running) -> None:
    # A stopped process gets both signals in one go when it continues.
    running.process.send_signal(signal.SIGSTOP)
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGTERM)
    running.process.send_signal(signal.SIGCONT)
    status, _ = running.wait()
    assert status in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    running.nothing_left()
    record, table = load_run(running.out)
    assert (record["status"], table.num_rows) == ("interrupted", 2)


def test_a_killed_run_can_still_be_read_and_reported(running: Running, gridbench: Run) -> None:
    running.process.kill()
    status, _ = running.wait()
    assert status == -signal.SIGKILL
    running.nothing_left()

    record, table = load_run(running.out)
    assert (record["status"], record["valid"]) == ("interrupted", False)
    assert sorted(table.column("tid").to_pylist()) == [1, 2]
    assert set(table.column("status").to_pylist()) == {"ok"}
    log = [line for line in (running.out / "tasks.log").read_text().splitlines() if line[0] != "#"]
    assert len(log) == 2
    assert gridbench("report", running.out).returncode == 0
    assert (running.out / "report.html").stat().st_size > 0


def test_a_killed_run_with_a_torn_last_line(running: Running) -> None:
    running.process.kill()
    running.wait()
    journal = running.out / JOURNAL
    whole = journal.read_bytes()
    first_line = whole.index(b"\n") + 1
    for end in range(len(whole)):
        journal.write_bytes(whole[:end])
        _, table = load_run(running.out)
        assert table.num_rows == (1 if end >= first_line else 0)
    # What a crash of the machine can leave at the end of a file.
    journal.write_bytes(whole + bytes(100))
    assert load_run(running.out)[1].num_rows == 2


def test_a_dead_worker_is_a_failed_task_not_a_hang(running: Running) -> None:
    # All but the engine's own process, which is the first.
    running.workers[1].kill()
    status, stderr = running.wait()
    assert status == 1
    assert "8 of 10 tasks failed" in stderr
    assert "BrokenProcessPool" in stderr
    running.nothing_left()
    record, table = load_run(running.out)
    assert (record["status"], record["valid"]) == ("complete", False)
    assert table.num_rows == 10


def test_a_run_cut_off_before_any_result_has_no_rows(
    make_setup: MakeSetup, tmp_path: Path, environment: dict[str, str]
) -> None:
    out = tmp_path / "out"
    setup = make_setup(tasks=3, sleep=500)
    process = subprocess.Popen(
        [*PROGRAM, "run", str(setup), "--engine", "process-pool", "--out", str(out)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until((out / JOURNAL).exists)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    record, table = load_run(out)
    assert (record["status"], table.num_rows) == ("interrupted", 0)


@pytest.mark.parametrize(
    ("name", "contents", "words"),
    [
        ("run.json", None, "cannot read the run's record"),
        ("run.json", b"", "is not JSON"),
        ("run.json", b'{"setup": {},\n "x": }', "is not JSON"),
        ("run.json", b"\xff\xfe\x00", "is not JSON text"),
        ("run.json", b"[]", "is not the record of a run"),
        ("run.json", b"[" * 100_000, "is not JSON text"),
        ("timeline.parquet", b"PAR1 and nothing more", "is not a timeline"),
        ("timeline.parquet", None, "holds neither timeline.parquet nor"),
    ],
)
def test_a_damaged_folder_is_reported(
    *,
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    name: str,
    contents: bytes | None,
    words: str,
) -> None:
    run = ("run", make_setup(), "--engine", "process-pool", "--out", "out")
    assert gridbench(*run).returncode == 0
    damaged = tmp_path / "out" / name
    if contents is None:
        damaged.unlink()
    else:
        damaged.write_bytes(contents)
    with pytest.raises(InputError) as caught:
        load_run(tmp_path / "out")
    assert words in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("rows", "host", "words"),
    [
        (400, "x" * 2_000_000, "its column host has a text of over 1024 bytes"),
        (3_000_000, "x" * 1000, "it unfolds to more than 1 GiB"),
    ],
)
def test_a_small_timeline_that_unfolds_to_a_large_one_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, host: str, words: str
) -> None:
    monkeypatch.setattr("gridbench.run.load._MOST_BYTES", 1 << 30)
    (tmp_path / "run.json").write_text('{"setup": {}}')
    one = table_of([{"host": host}]).to_pydict()
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(value))
        if name == "host"
        else pa.array(np.full(rows, value[0]))
        for name, value in one.items()
    }
    pq.write_table(pa.table(columns), tmp_path / "timeline.parquet")
    assert (tmp_path / "timeline.parquet").stat().st_size < 3_000_000
    with pytest.raises(InputError, match=re.escape(words)):
        load_run(tmp_path)
