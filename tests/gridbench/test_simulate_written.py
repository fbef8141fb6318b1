"""What is written of a simulated run: a record and a log as of a real one, for the same work."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gridbench.errors import InputError
from gridbench.run.runner import RECORD_FORMAT
from gridbench.simulate import timeline
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.simulate.systems import System, Throttling
from gridbench.simulate.timeline import described, table_of, write_log
from gridbench.tasklog import read_task_log

KB = 1024.0
WORK = SimulatedWorkload(
    cores=2, tasks=4, sleep=1.5, stddev=0.25, bytes_in=3 * KB, bytes_shared=5 * KB, bytes_out=7 * KB
)


def test_the_record_is_that_of_a_cold_run_in_real_time_of_this_work() -> None:
    record = timeline._record(simulate(WORK, system("ninfg")))
    assert record["format"] == RECORD_FORMAT
    assert (record["status"], record["valid"], record["invalid_because"]) == ("complete", True, [])
    assert record["simulated"] is True
    assert (record["start"], record["time_scale"]) == ("cold", 1.0)
    assert record["engine"]["name"] == "ninfg, simulated"
    # Sizes are in KB, as in a set-up file.
    assert record["setup"] == {
        "NTasks": 4,
        "NNodes": 2,
        "InputFile": "input.4.1.5.0.25",
        "TaskDataSize": 3.0,
        "SharedDataSize": 5.0,
        "WriteDataSize": 7.0,
    }
    assert record["work"]["seed"] == 1
    assert record["started"] == record["ended"]
    json.dumps(record, allow_nan=False)


def test_times_without_spread_are_named_by_their_length_alone() -> None:
    even = simulate(replace(WORK, stddev=0.0), system("ninfg"))
    assert timeline._record(even)["setup"]["InputFile"] == "input.4.1.5"


def test_the_log_has_the_sizes_and_stamps_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = simulate(WORK, system("ninfg"))
    table = table_of(done)
    path = tmp_path / "tasks.log"
    # However many rows are written at once.
    for rows in (100_000, 3):
        monkeypatch.setattr(timeline, "_ROWS_AT_ONCE", rows)
        write_log(path, done, table)
        header, logged = read_task_log(path)
        assert (header.ntasks, header.nnodes, header.input_file) == (4, 2, "input.4.1.5.0.25")
        assert (header.task_kb, header.shared_kb, header.write_kb) == (3.0, 5.0, 7.0)
        assert logged["tid"].to_pylist() == table["tid"].to_pylist()
        for name in ("slept", "submit", "calc_in", "calc_out", "retrieve"):
            assert logged[name].to_pylist() == pytest.approx(table[name].to_pylist(), abs=1e-6)
        assert logged["host"].to_pylist() == table["host"].to_pylist()


def test_each_row_of_a_timeline_has_the_data_of_a_task() -> None:
    rows = table_of(simulate(WORK, system("ninfg"))).to_pylist()
    assert [row["tid"] for row in rows] == [1, 2, 3, 4]
    for row in rows:
        assert (row["bytes_in"], row["bytes_shared"], row["bytes_out"]) == (3072, 5120, 7168)
        assert row["status"] == "ok"
        assert row["slept"] == row["sleep"]
        assert row["host"] == row["worker"]
    assert {row["worker"] for row in rows} == {"w1", "w2"}


def _throttled(one: System) -> System:
    return replace(one, throttling=Throttling(memory=64.0, disk=2.0, slower=1.0))


def test_a_system_that_throttles_is_described_with_its_steps() -> None:
    reported = described(_throttled(system("symphony")))
    assert reported["throttling"] == {
        "memory": 64.0,
        "disk": 2.0,
        "slower": 1.0,
        "proactive": 0.5,
        "severe": 0.6,
        "critical": 0.75,
        "halt": 0.85,
        "until_done": False,
    }
    assert reported["measured_cores"] == 400
    assert reported["figures"][0]["value"] == 513
    assert reported["start_up"]["kind"] == "Waves"


def test_steps_of_throttling_may_fall_together_and_need_not_make_requests_slower() -> None:
    together = Throttling(memory=1.0, disk=1.0, slower=1.0, proactive=0.6, severe=0.6)
    assert together.level(0.59) == 0
    # Both are reached at once.
    assert together.level(0.6) == 2


def test_what_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object, path: Path) -> None:
        path.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    done = simulate(WORK, system("ninfg"))
    with pytest.raises(InputError, match="cannot write the results: No space left") as refused:
        timeline.write_folder(tmp_path, done, table_of(done))
    assert refused.value.file == tmp_path
    assert list(tmp_path.iterdir()) == []
