"""Engines that do not start, break down, or leave something behind, here and in a process of
their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gridbench.engines.base import Description
from gridbench.engines.environments import MARKER, Environment
from gridbench.engines.functions import FunctionEngine
from gridbench.engines.registry import find_engine
from gridbench.process.children import Leftovers
from gridbench.run.client import Plan
from gridbench.run.exchange import EngineFailure
from gridbench.run.hosting import HostedClient
from gridbench.run.journal import JOURNAL, TimelineRow
from gridbench.run.load import load_run
from running import DEADLINE, PROGRAM, MakeSetup, Run, alive, until, went_well

ENGINE = "loky"


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables with which the engine has an environment that holds `faulty_loky`."""
    monkeypatch.setenv("GRIDBENCH_ENGINES", str(tmp_path / "engines"))
    own = Environment(ENGINE)
    site = own.folder / "lib" / "python3.11" / "site-packages"
    (own.folder / "bin").mkdir(parents=True)
    python = Path(own.command()[0])
    python.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{site}"\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    for one in own.required():
        info = site / f"{one.package}-{one.version}.dist-info"
        info.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {one.package}\nVersion: {one.version}\n"
        (info / "METADATA").write_text(metadata)
    shutil.copy(Path(__file__).with_name("faulty_loky.py"), site / "loky.py")
    shutil.copy(own.requirements, own.folder / MARKER)
    return {"GRIDBENCH_ENGINES": str(own.root), "FAULT": "none"}


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return record


@pytest.mark.parametrize(
    ("engine", "start", "words"),
    [
        ("hang", "cold", "has not started in 0.5 s: it is still starting its workers"),
        ("hang", "warm", "has not started in 0.5 s: it is still starting its workers"),
        ("idle", "cold", "has not started in 0.51 s: no task has come back"),
    ],
)
def test_one_that_does_not_start_is_given_up(
    *,
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    faulty: dict[str, str],
    engine: str,
    start: str,
    words: str,
) -> None:
    options = ("--engine", engine, "--engine", "ahead", "--start", start, "--start-timeout", "0.5")
    done = gridbench("run", make_setup(), *options, "--out", "out", env=faulty)
    assert done.returncode == 1
    assert f"{engine}: the engine failed: it {words}" in done.stderr
    assert "Traceback" not in done.stderr
    record = record_of(tmp_path / "out" / engine)
    assert (record["status"], record["valid"]) == ("failed", False)
    assert any(words in reason for reason in record["invalid_because"])
    # The next one is measured.
    assert record_of(tmp_path / "out" / "ahead")["status"] == "complete"


def test_an_engine_is_reported_how_long_it_may_take(
    gridbench: Run, make_setup: MakeSetup, faulty: dict[str, str]
) -> None:
    setup = make_setup(nodes=3)
    options = ("--engine", "patient", "--start-timeout", "77", "--out", "out")
    done = gridbench("run", setup, *options, env=faulty)
    assert "patient: the engine failed: RuntimeError: 3 workers have 77 s" in done.stderr


def test_workers_are_awaited_as_long_as_they_may_take() -> None:
    refusals: list[TimeoutError] = []

    class Silent(FunctionEngine):
        """Has workers that never take a task."""

        name = "silent"

        def describe(self) -> Description:
            return Description(self.name, "1")

        def start(self, workers: int) -> None:
            self._workers = workers

        def call(self, function: Any, /, *args: Any) -> Any: ...

        def close(self) -> None: ...

    def wait() -> None:
        engine = Silent()
        engine.patience = 0.1
        engine.start(2)
        try:
            engine.wait_ready()
        except TimeoutError as error:
            refusals.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(30)
    assert [str(error) for error in refusals] == ["only 0 of 2 workers came to a meeting"]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e10", "soon"])
def test_a_bad_time_limit_is_refused(refused: Run, make_setup: MakeSetup, seconds: str) -> None:
    done = refused("run", make_setup(), "--start-timeout", seconds)
    assert done.returncode == 2
    assert "--start-timeout" in done.stderr


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_what_an_engine_leaves_behind_is_ended_and_told(
    *,
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    faulty: dict[str, str],
    hosted: dict[str, str],
    where: str,
) -> None:
    if where == "here":
        done = gridbench("run", make_setup(), "--engine", "stray", "--out", "out", env=faulty)
    else:
        env = hosted | {"FAULT": "leaves a process"}
        done = gridbench("run", make_setup(), "--engine", ENGINE, "--out", "out", env=env)
    assert done.returncode == 0, done.stderr
    pid = int((tmp_path / "stray.pid").read_text())
    assert f"left behind 1 process, which was ended: sleep (process {pid})" in done.stderr
    assert not alive(pid)
    record = record_of(tmp_path / "out")
    # What was measured is right all the same.
    assert went_well(record)
    assert record["left_behind"] == [f"sleep (process {pid})"]


def test_helpers_of_this_python_are_not_left_behind(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path, faulty: dict[str, str]
) -> None:
    done = gridbench("run", make_setup(), "--engine", "tracker", "--out", "out", env=faulty)
    assert done.returncode == 0, done.stderr
    assert record_of(tmp_path / "out")["left_behind"] == []


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_run_elsewhere_leaves_the_same_record(
    *,
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    hosted: dict[str, str],
    start: str,
) -> None:
    setup = make_setup(tasks=20, nodes=4, sleep=0.02, task_kb=10, shared_kb=100, write_kb=3.5)
    options = ("--engine", ENGINE, "--start", start, "--out", "out")
    done = gridbench("run", setup, *options, env=hosted)
    assert done.returncode == 0, done.stderr
    record, table = load_run(tmp_path / "out")
    assert went_well(record)
    assert record["engine"]["configuration"]["max_workers"] == 4  # known only after the start
    assert record["environment"]["folder"] == str(tmp_path / "engines" / ENGINE)
    assert record["environment"]["packages"]["loky"]
    assert record["check"] == {"wanted": True, "tasks": 20, "wrong": 0}
    assert (record["ready_seconds"] is None) == (start == "cold")
    assert record["share_seconds"] >= 0
    assert sorted(table.column("tid").to_pylist()) == list(range(1, 21))
    assert set(table.column("status").to_pylist()) == {"ok"}
    assert set(table.column("bytes_shared").to_pylist()) == {100 * 1024}
    for row in table.to_pylist():
        assert 0 <= row["submit"] <= row["calc_in"] <= row["calc_out"] <= row["retrieve"]
    assert "loky: 20 of 20 done" in done.stderr


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("hangs", "the engine failed: it has not started in 3 s: it is still starting its"),
        ("crashes", "signal 11 (Segmentation fault)\n    the pool is starting\n    the licence"),
        ("exits", "its process ended with exit status 3\n    the pool is starting"),
        ("raises", "the engine failed: RuntimeError: out of luck"),
    ],
)
def test_one_that_breaks_down_elsewhere(
    *,
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    hosted: dict[str, str],
    fault: str,
    words: str,
) -> None:
    options = ("--engine", ENGINE, "--start-timeout", "3", "--out", "out")
    done = gridbench("run", make_setup(), *options, env=hosted | {"FAULT": fault})
    assert words in done.stderr
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert record_of(tmp_path / "out")["status"] == "failed"


@pytest.mark.usefixtures("hosted")
def test_closing_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", "does not close")
    plan = Plan(
        workers=2,
        warm=False,
        sleeps=np.zeros(5),
        task_bytes=1,
        shared_bytes=1,
        output_bytes=1,
        most_outstanding=9,
        start_timeout=10,
    )
    with Leftovers() as leftovers:
        client = HostedClient(find_engine(ENGINE), workers=2, warm=False)
        client.begin(plan, check=False)
        rows: list[TimelineRow] = []
        until(lambda: rows.extend(client.take(0.1)) or client.finished)
        assert [row.status for row in rows] == ["ok"] * 5
        assert client.close(0.5) == "the engine did not end its workers within 0.5 s"
        leftovers.end(client.process)
        assert client.process.returncode is not None


def test_one_that_cannot_be_loaded_is_refused_beforehand(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path, hosted: dict[str, str]
) -> None:
    env = hosted | {"FAULT": "cannot be imported"}
    done = gridbench("run", make_setup(), "--engine", ENGINE, "--out", "out", env=env)
    assert done.returncode == 2
    assert "`loky` cannot be loaded: ImportError: libpool.so.3: cannot open" in done.stderr
    assert "hint: install it again: `gridbench engines remove loky`" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("hosted")
def test_loading_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", "is imported forever")
    client = HostedClient(find_engine(ENGINE), workers=1, warm=False)
    try:
        with pytest.raises(EngineFailure, match=r"loading it has taken more than 0\.5 s"):
            client.facts(0.5)
        assert "did not end its workers within 0.1 s" in client.close(0.1)
    finally:
        client.process.kill()
        client.process.wait()


def test_ctrl_c_while_it_is_loaded(
    make_setup: MakeSetup, tmp_path: Path, environment: dict[str, str], hosted: dict[str, str]
) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "run", str(make_setup()), "--engine", ENGINE, "--out", "out"],
        env=environment | hosted | {"FAULT": "is imported forever"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    family = psutil.Process(process.pid)
    until(lambda: any("gridbench.run.host" in one.cmdline() for one in family.children()))
    loading = [one.pid for one in family.children(recursive=True)]
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert stderr.endswith("gridbench: interrupted\n")
    until(lambda: not any(map(alive, loading)))
    assert not (tmp_path / "out").exists()


class Running:
    """A run elsewhere that is in the middle of very long tasks."""

    def __init__(self, setup: Path, out: Path, env: dict[str, str]) -> None:
        (setup.parent / "times").write_text("0.01\n0.01\n" + "500\n" * 8)
        self.process = subprocess.Popen(
            [*PROGRAM, "run", str(setup), "--engine", ENGINE, "--out", str(out)],
            env=env,
            cwd=setup.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        journal = out / JOURNAL
        until(lambda: journal.exists() and journal.read_text().count("\n") == 2)
        self.pids = [one.pid for one in psutil.Process(self.process.pid).children(recursive=True)]
        self.pids.append(int((setup.parent / "stray.pid").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_and_what_was_measured_is_kept(
    *,
    make_setup: MakeSetup,
    tmp_path: Path,
    environment: dict[str, str],
    hosted: dict[str, str],
    number: signal.Signals,
) -> None:
    out = tmp_path / "out"
    env = environment | hosted | {"FAULT": "leaves a process"}
    running = Running(make_setup(tasks=10, nodes=3), out, env)
    os.killpg(running.process.pid, number)
    _, stderr = running.process.communicate(timeout=DEADLINE)
    assert "Traceback" not in stderr
    if number == signal.SIGKILL:
        assert running.process.returncode == -number
    else:
        assert running.process.returncode == 128 + number
        assert "the run was interrupted" in stderr
    assert len(running.pids) >= 2
    until(lambda: not any(map(alive, running.pids)))
    record, table = load_run(out)
    assert (record["status"], record["valid"]) == ("interrupted", False)
    assert sorted(table.column("tid").to_pylist()) == [1, 2]
