"""Every engine that gridbench knows, installed and run: real workers, and every byte checked.

`make engines` installs them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tomllib
from pathlib import Path

import psutil
import pyarrow.compute as pc
import pytest

import linking
from gridbench.ensemble.record import FORM
from gridbench.run.journal import JOURNAL
from gridbench.run.load import load_run
from running import DEADLINE, PROGRAM, REPOSITORY, MakeSetup, Run, alive, until, went_well

NAMES = sorted(
    tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"][
        "gridbench.engines"
    ]
)
#: HTCondor is no part of `make test`: `make test-htcondor` runs these.
ENGINES = [
    pytest.param(name, marks=[pytest.mark.htcondor] if "htcondor" in name else [])
    for name in NAMES
    if name != "null"  # which does no task: see test_null_engine.py
]


@pytest.mark.parametrize("engine", ENGINES)
def test_tasks_get_their_data_and_give_their_output(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path, engine: str
) -> None:
    # Some start a batch job for each task, and once more to check its bytes.
    tasks = 6 if engine.endswith(("-jobs", "-array")) else 20
    setup = make_setup(tasks=tasks, nodes=2, sleep=0.05, task_kb=100, shared_kb=300, write_kb=3.5)
    options = ("--engine", engine, "--start", "warm", "--out", "out")
    done = gridbench("run", setup, *options, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    record, table = load_run(tmp_path / "out")
    assert went_well(record)
    assert record["check"] == {"wanted": True, "tasks": tasks, "wrong": 0}
    assert record["left_behind"] == []
    assert record["engine"]["name"] == engine
    assert record["engine"]["version"]
    assert sorted(table.column("tid").to_pylist()) == list(range(1, tasks + 1))
    assert set(table.column("status").to_pylist()) == {"ok"}
    assert set(table.column("bytes_in").to_pylist()) == {100 * 1024}
    assert set(table.column("bytes_shared").to_pylist()) == {300 * 1024}
    assert set(table.column("bytes_out").to_pylist()) == {3584}
    # Two worked, or each task had a process of its own.
    assert len(set(table.column("worker").to_pylist())) >= 2
    for row in table.to_pylist():
        assert 0 <= row["submit"] <= row["calc_in"] <= row["calc_out"] <= row["retrieve"]
        assert row["slept"] >= 0.05


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_ends_all_that_the_engine_has_started(
    make_setup: MakeSetup, tmp_path: Path, environment: dict[str, str], engine: str
) -> None:
    setup, out = make_setup(tasks=6, nodes=2), tmp_path / "out"
    (tmp_path / "times").write_text("0.01\n0.01\n" + "500\n" * 4)
    process = subprocess.Popen(
        [*PROGRAM, "run", str(setup), "--engine", engine, "--out", str(out)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    journal = out / JOURNAL
    until(
        lambda: (
            process.poll() is not None
            or (journal.exists() and journal.read_text().count("\n") == 2)
        )
    )
    assert process.poll() is None, process.communicate()
    pids = [one.pid for one in psutil.Process(process.pid).children(recursive=True)]
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, stderr
    assert "the run was interrupted" in stderr
    assert "Traceback" not in stderr
    assert len(pids) >= 2
    assert not any(map(alive, pids))
    record, table = load_run(out)
    assert (record["status"], record["valid"]) == ("interrupted", False)
    # The interrupt may meet a task that is just being submitted: that one has failed.
    ended = table.filter(pc.equal(table.column("status"), "ok"))
    assert sorted(ended.column("tid").to_pylist()) == [1, 2]


@pytest.mark.skipif(bool(linking.why_not()), reason=linking.why_not())
@pytest.mark.parametrize("engine", ["dask", "hyperqueue", "mpi", "parsl"])
def test_workers_are_in_a_network_namespace(gridbench: Run, tmp_path: Path, engine: str) -> None:
    ran = gridbench(
        "ensemble", "--layouts", "presto3", "--processors", "2", "--samples", "2", "--time-scale",
        "0.01", "--batch-systems", "none", "--engines", engine, "--accept-load", "--out", "out",
        timeout=DEADLINE,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (run,) = FORM.read(tmp_path / "out")[1]
    assert (len(run.rows), run.wrong) == (4, 0)
    # Arguments and results pass the link, which delays them.
    assert min(row.started - row.submitted for row in run.rows) >= 1.5e-3
    assert min(row.ended - row.computed for row in run.rows) >= 1.5e-3
