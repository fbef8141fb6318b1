"""What tasks do: they sleep, keep a processor busy, or call a user's function."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridbench.advise.advice import advise
from gridbench.advise.prose import warnings
from gridbench.advise.work import DivisibleWork
from gridbench.analysis.summary import ideal_time
from gridbench.engines.names import default_engine
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.model.observation import Observation, observe
from gridbench.run.load import load_run
from gridbench.workload.body import body
from gridbench.workload.options import parse_body
from gridbench.workload.task import run_task
from gridbench.workload.workload import Kind, kind_of
from running import MakeSetup, Run, accept

USERS = """
def digits(seconds, data, shared):
    assert len(data) == 10240 and len(shared) == 2048, (len(data), len(shared))
    return sum(i * i for i in range(int(seconds * 1000)))


def fails(seconds, data, shared):
    raise ValueError(f"nothing to do for {seconds:g} s")


nothing = 3
"""


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A folder with a user's module."""
    (tmp_path / "pricing.py").write_text(USERS)
    return tmp_path


def columns(folder: Path, *names: str) -> list[Any]:
    _, table = load_run(folder)
    return [table.column(name).to_numpy() for name in names]


def test_spinning_uses_that_much_time_of_a_processor() -> None:
    before = time.thread_time()
    result = run_task(0.02, None, None, 0, "spin")
    assert time.thread_time() - before >= 0.02
    assert result.slept >= 0.02


def test_sleeping_uses_next_to_none() -> None:
    before = time.thread_time()
    run_task(0.2, None, None, 0)
    assert time.thread_time() - before < 0.1


def test_a_function_of_a_folder_gets_seconds_and_data(users: Path) -> None:
    data, shared = np.zeros(10240, np.uint8), np.zeros(2048, np.uint8)
    assert body(f"{users}/pricing:digits")(0.005, data, shared) == 30


def test_the_option_names_a_function_for_all_processes(
    users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(users)
    assert parse_body("spin") == "spin"
    assert parse_body("pricing:digits") == f"{users}/pricing:digits"
    assert parse_body("os.path:join") == f"{users}/os.path:join"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names nothing"),
        ("pricing", "names nothing"),
        ("pricing:", "names nothing"),
        ("pricing:di gits", "names nothing"),
        ("pricing:digit", "has no attribute 'digit'"),
        ("pricings:digits", "No module named 'pricings'"),
        ("pricing:nothing", "is not a function"),
        ("x" * 1000, "names nothing"),
    ],
)
def test_what_is_no_function_is_refused_before_anything_runs(
    users: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(users)
    with pytest.raises(InputError) as caught:
        parse_body(text)
    assert message in caught.value.what
    assert len(caught.value.what) < 500


@pytest.mark.parametrize("engine", ["gridrpc-native", "gridrpc-python", "process-pool", "loky"])
def test_tasks_that_compute_share_the_processors(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path, engine: str
) -> None:
    processors = len(os.sched_getaffinity(0))
    workers = 2 * processors
    setup = make_setup(tasks=4 * processors, nodes=workers, sleep=0.02, write_kb=1)
    done = gridbench("run", setup, "--engine", engine, "--task", "spin", "--out", "out")
    assert done.returncode == 0, done.stderr
    sleep, slept = columns(tmp_path / "out", "sleep", "slept")
    assert np.all(slept >= sleep)  # no time of a processor passes faster than time
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["task"] == "spin"
    # Twice as many workers do not halve it.
    assert record["summary"]["ideal"] == pytest.approx(0.02 * 4)
    assert f"that compute on {processors} processor" in (tmp_path / "out/report.html").read_text()
    accept(tmp_path / "out")
    why = observe(tmp_path / "out")
    assert isinstance(why, str)
    assert "share processors" in why


@pytest.mark.parametrize("engine", ["gridrpc-python", "process-pool", "loky"])
def test_a_users_function_does_the_tasks(
    gridbench: Run, make_setup: MakeSetup, users: Path, engine: str
) -> None:
    setup = make_setup(tasks=6, nodes=2, sleep=5.0, task_kb=10, shared_kb=2, write_kb=1)
    options = ("--engine", engine, "--task", "pricing:digits")
    done = gridbench("run", setup, *options, "--out", "out")
    assert done.returncode == 0, done.stderr
    sleep, slept = columns(users / "out", "sleep", "slept")
    # The time that it takes is its own: 5 s are only what it was given.
    assert np.all(np.isnan(sleep))
    assert np.all(slept < 5)
    page = (users / "out/report.html").read_text()
    assert "6 tasks that call pricing:digits" in page


@pytest.mark.usefixtures("users")
def test_what_a_users_function_raises_is_reported(gridbench: Run, make_setup: MakeSetup) -> None:
    setup = make_setup(tasks=3, nodes=2, sleep=0.5)
    options = ("--engine", "gridrpc-python", "--task", "pricing:fails")
    done = gridbench("run", setup, *options, "--out", "out")
    assert done.returncode == 1
    assert "3 of 3 tasks failed" in done.stderr
    assert "ValueError: nothing to do for 0.5 s" in done.stderr


def test_native_workers_run_no_python(gridbench: Run, make_setup: MakeSetup, users: Path) -> None:
    task = ("--task", "pricing:digits", "--engine", "gridrpc-native")
    done = gridbench("run", make_setup(), *task, "--out", "out")
    assert done.returncode == 2
    assert "`gridrpc-native` cannot run tasks that do `pricing:digits`" in done.stderr
    assert "give --task sleep or spin" in done.stderr
    assert not (users / "out").exists()


def test_scenarios_are_of_such_tasks_and_say_so(gridbench: Run, tmp_path: Path) -> None:
    options = ("--cores", "2", "--sizes", "0", "--time-scale", "1e-4", "--task", "spin")
    done = gridbench("scenario", 4, *options, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "tasks that compute on" in (tmp_path / "out/report.html").read_text()
    other = gridbench("scenario", 4, *options[:-1], "sleep", "--out", "out")
    assert other.returncode == 2
    assert "other options" in other.stderr or "task" in other.stderr


def test_the_ideal_time_is_that_of_the_processors() -> None:
    times = np.full(8, 1.0)
    assert ideal_time(times, 8) == 1
    assert ideal_time(times, 8, 2) == 4
    assert ideal_time(times, 2, 4) == 4
    assert ideal_time(np.array([3.0, 1.0]), 2, 2) == 3


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"machine": {"cores_usable": 2}}, Kind("sleep")),
        ({"machine": {"cores_usable": 2}, "task": "spin"}, Kind("spin", 2)),
        ({"machine": {"cores_usable": 2}, "task": "spin", "grid": {"servers": 1}}, Kind("spin")),
        ({"machine": {"cores_usable": 2}, "task": "/a/b:c"}, Kind("/a/b:c")),
        ({"source": "task log"}, Kind("")),
        ({"machine": None, "task": "spin"}, Kind("spin")),
    ],
)
def test_records_tell_the_kind(record: dict[str, Any], kind: Kind) -> None:
    assert kind_of(record) == kind


def test_work_that_computes_gets_no_more_cores_than_there_are_processors(
    model: PipelineModel,
) -> None:
    work = DivisibleWork(seconds=9.0, cores=100, body="spin")
    limited = work.on_processors(2)
    assert (limited.cores, limited.cores_asked) == (2, 100)
    assert replace(work, body="sleep").on_processors(2).cores == 100
    advice = advise(model, limited)
    assert advice.split.cores <= 2
    assert advice.expected.total >= 4.5
    assert any("cannot use more than the 2 processors" in text for text in warnings(advice))


def test_a_run_whose_workers_have_a_processor_each_serves_a_model(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    setup = make_setup(tasks=3, nodes=1, sleep=0.01)
    assert gridbench("run", setup, "--task", "spin", "--out", "out").returncode == 0
    accept(tmp_path / "out")
    assert isinstance(observe(tmp_path / "out"), Observation)


def test_functions_run_on_an_engine_that_runs_them() -> None:
    assert default_engine("sleep") == default_engine("spin") == "gridrpc-native"
    assert default_engine("users:digits") == "gridrpc-python"
