"""`GRIDRPC_TRACE`: what calls of any program took, in the form of a run of gridbench."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gridbench.report.source import load_runs
from processes import until

FARM = """
import os, sys, time
import gridrpc


def work(number):
    if number == 3:
        raise ValueError("three is\\n not done")
    time.sleep(0.002)
    return b"x" * number


with gridrpc.Grid(workers=2) as grid:
    for call in [grid.submit(work, number) for number in range(10)]:
        call.exception()
    if "fork" in sys.argv:
        if os.fork() == 0:
            with gridrpc.Grid(workers=1) as other:
                other.submit(work, 1).result()
            os._exit(0)
        os.wait()
    if "wait" in sys.argv:
        print("there", flush=True)
        time.sleep(3600)
"""


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    path = tmp_path / "farm.py"
    path.write_text(FARM)
    return path


def start(farm: Path, *arguments: str, folder: Path | None = None) -> subprocess.Popen[str]:
    place = {"GRIDRPC_TRACE": str(folder or farm.parent / "trace")}
    return subprocess.Popen(
        [sys.executable, str(farm), *arguments],
        env=os.environ | place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(process: subprocess.Popen[str]) -> str:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return errors


def rows(folder: Path) -> list[list[Any]]:
    lines = (folder / "timeline.journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_each_call_has_a_line_and_the_folder_is_a_run(farm: Path) -> None:
    process = start(farm)
    finished(process)
    folder = farm.parent / "trace" / f"farm-{process.pid}"
    found = rows(folder)
    assert [row[0] for row in found] == list(range(1, 11))
    for row in found:
        submit, sent, calc_in, calc_out, retrieve = row[3:8]
        assert 0 <= submit <= sent <= calc_in <= calc_out <= retrieve
        assert row[2] == pytest.approx(calc_out - calc_in, abs=1e-9)
    status = sorted(row[13] for row in found)
    assert status == ["builtins.ValueError: three is not done", *["ok"] * 9]
    assert len({row[8] for row in found}) <= 2
    (run,) = load_runs([farm.parent / "trace"])
    assert (run.name, run.ntasks, run.kind.told) == ("farm", 10, "")
    assert run.record["status"] == "complete"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_a_folder_that_another_user_has_made_is_refused(tmp_path: Path) -> None:
    code = """
import os, gridrpc
place = f"{os.environ['GRIDRPC_TRACE']}/python-{os.getpid()}"
os.makedirs(place)
os.chown(place, 65534, -1)
os.symlink("/nowhere", place + "/timeline.journal.jsonl")
gridrpc.Grid(workers=1)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"GRIDRPC_TRACE": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "belongs to another user" in ran.stderr


def test_gridbench_makes_its_report(farm: Path) -> None:
    finished(start(farm))
    command = [sys.executable, "-m", "gridbench", "report", "trace"]
    done = subprocess.run(command, cwd=farm.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (farm.parent / "trace" / "report.html").read_text()
    assert "9 of 10 tasks on" in page
    assert "three is not done" in page


def test_gridbench_says_that_models_are_of_no_trace(farm: Path) -> None:
    finished(start(farm))
    command = [sys.executable, "-m", "gridbench", "model", "trace"]
    done = subprocess.run(command, cwd=farm.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "1 run: it is the trace of a program" in done.stderr
    assert "models take folders of gridbench run and scenario, and task logs" in done.stderr


def test_gridbench_judges_no_trace_by_the_rules_of_benchmarks(farm: Path) -> None:
    finished(start(farm))
    command = [sys.executable, "-m", "gridbench", "check", "trace"]
    done = subprocess.run(command, cwd=farm.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is the trace of a program, and the rules are those of benchmarks" in done.stderr


def test_a_program_that_is_killed_leaves_what_it_did(farm: Path) -> None:
    process = start(farm, "wait")
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (folder,) = (farm.parent / "trace").iterdir()
    record = json.loads((folder / "run.json").read_text())
    assert record["status"] == "running"
    # Lines that came within half a second of the first may be lost, and no others.
    assert len(rows(folder)) <= 10


def test_a_forked_child_has_a_trace_of_nobody_elses(farm: Path) -> None:
    process = start(farm, "fork")
    finished(process)
    folders = [path.name for path in (farm.parent / "trace").iterdir()]
    assert f"farm-{process.pid}" in folders
    assert len(rows(farm.parent / "trace" / f"farm-{process.pid}")) == 10


def test_a_folder_that_cannot_be_made_is_reported(farm: Path) -> None:
    process = start(farm, folder=farm / "below")  # which is below a file
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "NotADirectoryError" in errors
    assert "GRIDRPC_TRACE" in errors


def test_without_the_variable_nothing_is_written(farm: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GRIDRPC_TRACE"}
    subprocess.run([sys.executable, str(farm)], env=environment, cwd=farm.parent, check=True)
    until(lambda: [path.name for path in farm.parent.iterdir()] == ["farm.py"])
