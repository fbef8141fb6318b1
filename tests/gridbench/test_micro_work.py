"""Tasks that do something, on any engine: `gridbench micro work --task`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridbench.bench.client import EngineClient
from gridbench.micro.measures.tasks import work_alone
from running import Run

BODY = """
import os

def cost(seconds, data, shared):
    open(os.path.join(os.path.dirname(__file__), f"ran-{os.getpid()}"), "w").close()
"""


@pytest.mark.parametrize("body", ["sleep", "spin"])
def test_one_process_tells_what_is_possible(body: str) -> None:
    client = EngineClient(name="", place="", workers=2, budget=0.05, patience=1.0)
    found = work_alone(client, body, 0.01).values
    assert found["count"] >= 16
    assert found["per_second"] <= 2 / 0.01


def test_a_users_function_is_measured_on_engines(gridbench: Run, tmp_path: Path) -> None:
    (tmp_path / "prices.py").write_text(BODY)
    engines = ("--engine", "gridrpc-python", "--engine", "process-pool")
    arguments = ("work", "--quick", *engines, "--rounds", "1", "--out", str(tmp_path / "out"))
    done = gridbench("micro", *arguments, "--task", "prices:cost")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "results.json").read_text())
    (figure,) = record["figures"]
    assert figure["title"] == "tasks that call prices:cost, on 2 workers"
    assert {entry["engine"] for entry in figure["entries"]} == {"gridrpc-python", "process-pool"}
    assert figure["limits"][0]["median"] > 0
    # In the clients, and in workers of both engines.
    assert len(list(tmp_path.glob("ran-*"))) >= 6


def test_other_tasks_are_other_results(gridbench: Run) -> None:
    first = ("micro", "work", "--quick", "--engine", "process-pool", "--rounds", "1")
    assert gridbench(*first).returncode == 0
    done = gridbench(*first, "--task", "spin")
    assert done.returncode == 2
    assert "holds results of other options: task was `sleep`, and now is `spin`" in done.stderr
