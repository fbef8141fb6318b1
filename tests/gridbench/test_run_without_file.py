"""`gridbench run` without a set-up file: engines and tasks of the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench.run.options import RunParameters
from gridbench.schema import read_parameters
from gridbench.workload.options import TasksOptions
from running import Run


@pytest.mark.parametrize(
    ("words", "setup", "engines"),
    [
        ((), None, ()),
        (("loky", "process-pool"), None, ("loky", "process-pool")),
        (("loky", "none.xml"), Path("none.xml"), ("loky",)),
        (("none.XML",), Path("none.XML"), ()),
        (("./a", "loky"), Path("a"), ("loky",)),
        (("tasks",), Path("tasks"), ()),
    ],
)
def test_words_are_a_file_or_engines(
    words: tuple[str, ...],
    setup: Path | None,
    engines: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").touch()
    parameters = RunParameters(named=words, engines=("null",))
    assert (parameters.setup(), parameters.all_engines()) == (setup, ("null", *engines))


def test_two_files_are_refused() -> None:
    with pytest.raises(InputError, match=r"`a[.]xml` and `b[.]xml` are both set-up files"):
        RunParameters(named=("a.xml", "loky", "b.xml")).setup()


def given(**values: object) -> RunParameters:
    return read_parameters(RunParameters, values)


def test_tasks_are_quick_by_default() -> None:
    workload = given(time_scale="0.5").workload()(3)
    assert (workload.setup.ntasks, workload.setup.nnodes) == (300, 3)
    assert set(workload.sleeps) == {0.005}
    assert workload.setup.path is workload.setup.times_path is None


def test_options_say_what_tasks_there_are() -> None:
    sizes = {"input_per_task": "1KB", "shared": "1MB", "output_per_task": "1B"}
    setup = given(tasks="7", task_time="2s", **sizes).workload()(2).setup
    assert (setup.ntasks, setup.task_bytes, setup.shared_bytes, setup.write_bytes) == (
        7, 1 << 10, 1 << 20, 1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"task_time": "-1"}, "--task-time: must be from 0 s to"),
        ({"task_time": "1e9"}, "--task-time: must be from 0 s to"),
        ({"input_per_task": "-1"}, "--input-per-task: `-1` is below 0"),
        ({"shared": "9000TB"}, "--shared: 9000TB is more than a terabyte"),
        ({"task": "no"}, "--task: `no` names nothing that a task can do"),
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        given(**values)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--tasks", {"tasks": "1"}),
        ("--task-time", {"task_time": "10ms"}),
        ("--shared", {"shared": "1"}),
        ("--output-per-task", {"output_per_task": "1"}),
    ],
)
def test_a_file_says_it_all(option: str, values: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"{option} and a set-up file") as caught:
        given(named=("a.xml",), **values).workload()
    assert f"leave out {option}, or a.xml" in caught.value.remedy


def test_no_check_is_an_answer() -> None:
    assert [given(check=value).check for value in (None, True, False)] == [True, True, False]


def test_too_many_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="are too many"):
        TasksOptions().workload(1_000_000, 1.0)


def test_engines_are_compared_without_a_file(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench(
        *("run", "--tasks", "8", "--task-time", "1ms", "--shared", "10KB", "--rounds", "1"),
        *("--accept-load", "--out", "out"),
    )
    assert done.returncode == 0, done.stderr
    for engine in ("gridrpc-native", "process-pool"):
        record = json.loads((tmp_path / "out" / engine / "run.json").read_text())
        assert record["setup"]["NTasks"] == 8
        assert record["setup"]["NNodes"] == len(os.sched_getaffinity(0))
        assert record["setup"]["SharedDataSize"] == 10
        assert (record["setup_file"], record["times_file"]) == (None, None)
        assert record["check"] == {"wanted": True, "tasks": 8, "wrong": 0}
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("lokyy",), "unknown engine `lokyy`\nhint: did you mean `loky`?"),
        (("",), "unknown engine ``"),
        (("loky", "--engine", "loky"), "the engine `loky` is named twice"),
        (("--cores", "0"), "--cores: `0` is not a whole number from 1 to 100,000"),
        (("--cores", "1e9"), "--cores: `1e9` is not a whole number"),
        (("--tasks", "-5"), "--tasks: `-5` is not a whole number"),
        (("--task-time", "soon"), "--task-time: `soon` is not a time"),
        (("x.xml", "--tasks", "5"), "--tasks and a set-up file cannot both be given"),
        (("none.xml",), "none.xml: cannot read the set-up file"),
    ],
)
def test_strange_words_are_refused_with_a_hint(
    refused: Run, words: tuple[str, ...], what: str
) -> None:
    done = refused("run", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"gridbench: error: {what}")
    assert "\nhint: " in done.stderr
