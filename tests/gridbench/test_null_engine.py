"""The engine that does nothing, and what it tells of every run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gridbench.run import runner
from gridbench.run.client import Plan
from gridbench.run.runner import harness_seconds
from running import MakeSetup, Run


def test_it_ends_all_tasks_without_doing_them(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    setup = make_setup(tasks=50, nodes=4, sleep=100.0, task_kb=2, shared_kb=3, write_kb=1)
    done = gridbench("run", setup, "--engine", "null", "--out", "out")  # with its checksum pass
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["summary"]["ok"] == 50
    assert record["check"] == {"wanted": True, "tasks": 50, "wrong": 0}


def test_what_tasks_did_not_do_has_no_efficiency_in_the_terminal(
    gridbench: Run, make_setup: MakeSetup
) -> None:
    def efficiency(engine: str) -> str:
        done = gridbench("run", make_setup(sleep=0.1), "--engine", engine, "--out", engine)
        assert done.returncode == 0, done.stderr
        (line,) = (line for line in done.stdout.splitlines() if "Efficiency" in line)
        return line

    assert efficiency("null").split()[-1] == "–"
    assert "%" in efficiency("process-pool")


def test_each_run_tells_what_the_benchmark_costs(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    done = gridbench("run", make_setup(), "--engine", "process-pool", "--out", "out")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["harness_seconds"] > 0
    assert "with an engine that does nothing, is" in (tmp_path / "out/report.html").read_text()


def test_scenarios_tell_it_too(gridbench: Run, tmp_path: Path) -> None:
    options = ("--cores", "1", "--sizes", "0", "--time-scale", "0", "--out", "out")
    done = gridbench("scenario", 1, *options)
    assert done.returncode == 0, done.stderr
    assert "with an engine that does nothing, was" in (tmp_path / "out/report.html").read_text()


PLAN = Plan(
    workers=2,
    warm=False,
    sleeps=np.full(3, 1e6),
    task_bytes=1 << 40,
    shared_bytes=1 << 40,
    output_bytes=1 << 40,
    most_outstanding=2,
    start_timeout=60,
)


def test_it_grows_with_the_tasks_only() -> None:
    assert harness_seconds(PLAN) is not None


def test_a_pause_in_one_pass_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    took = iter((84e-6, 8e-6, None))
    monkeypatch.setattr(runner, "_pass", lambda _: next(took))
    assert harness_seconds(PLAN) == 8e-6
    monkeypatch.setattr(runner, "_pass", lambda _: None)
    assert harness_seconds(PLAN) is None
