"""A run as a trace for Perfetto: every task once on its worker, and once in the client."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench.report.trace import write_trace
from running import REPOSITORY, MakeSetup, Run

LOG = REPOSITORY / "tests/gridbench/data/symphony_sample.log"


def test_every_task_is_there(gridbench: Run, make_setup: MakeSetup, tmp_path: Path) -> None:
    setup = make_setup(tasks=6, nodes=2, sleep=0.01)
    assert gridbench("run", setup, "--engine", "process-pool", "--out", "out").returncode == 0
    done = gridbench("report", "out", "--perfetto", "trace.json")
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    computing = [event for event in events if event["ph"] == "X"]
    assert sorted(event["name"] for event in computing) == [f"task {n}" for n in range(1, 7)]
    assert all(event["dur"] >= 10_000 for event in computing)
    begun = {event["id"]: event["ts"] for event in events if event["ph"] == "b"}
    ended = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    assert sorted(begun) == sorted(ended) == [1, 2, 3, 4, 5, 6]
    for event in computing:
        number = int(event["name"].split()[1])
        assert begun[number] <= event["ts"] <= event["ts"] + event["dur"] <= ended[number]
    # On one worker there is one task at a time.
    for worker in {(event["pid"], event["tid"]) for event in computing}:
        own = sorted((e["ts"], e["dur"]) for e in computing if (e["pid"], e["tid"]) == worker)
        assert all(one[0] + one[1] <= after[0] for one, after in pairwise(own))


def test_logs_have_traces_too(tmp_path: Path) -> None:
    write_trace([LOG], tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_trace_is_of_one_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of one run"):
        write_trace([LOG, LOG], tmp_path / "trace.json")


def test_where_it_cannot_be_written_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_trace([LOG], tmp_path / "none" / "trace.json")
