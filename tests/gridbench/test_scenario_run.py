"""Scenarios really run: what is kept, skipped, gone on with, and said."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from gridbench.process.inside import LOOKOUT
from gridbench.run.load import load_run
from gridbench.scenario.results import CASES, read_cases, read_results
from gridbench.scenario.run_case import RUNS_CASES
from running import DEADLINE, PROGRAM, Run, alive, cmdline, stranger, until

SMALL = ("--cores", "2", "--sizes", "10KB", "--time-scale", "1e-5", "--quick")
TWO_SIZES = (*SMALL, "--sizes", "0,10KB")


@pytest.mark.parametrize(("scenario", "cases"), [(1, 2), (2, 3), (3, 3), (4, 2), (5, 2), (6, 8)])
def test_each_scenario(gridbench: Run, tmp_path: Path, scenario: int, cases: int) -> None:
    options = TWO_SIZES if scenario == 1 else SMALL
    done = gridbench("scenario", scenario, *options, "--out", "out", timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    header, results = read_results(tmp_path / "out")
    assert (header.options["scenario"], header.options["time_scale"]) == (scenario, 1e-5)
    assert len(results) == cases
    # Others may use this machine as well; a note says so, and the figures are shown.
    assert {result.status for result in results} <= {"done", "invalid"}
    for result in results:
        assert result.total_s is not None
        assert result.ideal_s is not None
        assert result.total_s > result.ideal_s
        assert result.took_s > 0
        assert result.folder is not None
        record, table = load_run(result.folder)
        assert (record["status"], table.num_rows) == ("complete", result.tasks)
        assert record["setup"]["NNodes"] == result.cores == 2
        parts = [value for name, value in result.figures.items() if name.startswith("part_")]
        assert sum(parts) == pytest.approx(result.total_s, rel=1e-6)
    assert {result.bytes_shared for result in results} == ({0, 10240} if scenario == 1 else {0})
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"gridbench scenario {scenario}" in page
    assert "Task times are multiplied by 1e-05" in page
    assert "One host" in page
    assert f"Scenario {scenario}." in done.stdout
    assert "results: out" in done.stderr


def test_several_scenarios_and_engines_have_a_page_in_common(
    gridbench: Run, tmp_path: Path
) -> None:
    engines = ("--engine", "gridrpc-native", "--engine", "process-pool")
    done = gridbench("scenario", 1, 4, *SMALL, *engines, "--rounds", 2, "--out", "out")
    assert done.returncode == 0, done.stderr
    results = read_cases(tmp_path / "out" / "scenario-1")
    assert len(results) == 2 * 2
    assert {(result.engine, result.round) for result in results} == {
        (engine, number) for engine in ("gridrpc-native", "process-pool") for number in (0, 1)
    }
    assert len({result.folder for result in results}) == 4
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Engines side by side" in page
    assert 'href="scenario-4/report.html"' in page
    (tmp_path / "out" / "report.html").unlink()
    again = gridbench("report", "out")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "out" / "report.html").exists()
    (tmp_path / "none").mkdir()
    mixed = gridbench("report", "out", "none", "--out", "x.html")
    assert mixed.returncode == 2
    assert "cannot be in one report with others" in mixed.stderr


def test_a_dry_run_lists_all_and_runs_nothing(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench("scenario", 1, 3, "--dry-run", "--case-limit", "100")
    assert done.returncode == 0, done.stderr
    assert "scenario 1: 36 cases" in done.stdout
    # 1,000 and 10,000 tasks of 30 s on 100 cores.
    assert "scenario 3: 5 cases, 2 of them skipped" in done.stdout
    assert "skipped for" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_into_the_time_is_skipped(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench("scenario", 4, *SMALL, "--limit", "0.01", "--out", "out")
    assert done.returncode == 0, done.stderr
    results = read_cases(tmp_path / "out")
    assert len(results) == 2
    assert {result.status for result in results} == {"skipped"}
    assert all(result.reason.startswith("time: about") for result in results)
    assert all(result.total_s is None and result.folder is None for result in results)
    assert not (tmp_path / "out" / "runs").exists()
    # With more time, the same command runs them.
    again = gridbench("scenario", 4, *SMALL, "--out", "out")
    assert again.returncode == 0, again.stderr
    assert {r.status for r in read_cases(tmp_path / "out")} <= {"done", "invalid"}


def test_a_case_that_continues_for_too_long_is_ended(
    gridbench: Run, tmp_path: Path, faulty: dict[str, str]
) -> None:
    options = ("--engine", "idle", "--cores", "2", "--sizes", "0", "--time-scale", "0")
    done = gridbench("scenario", 1, *options, "--case-limit", "10", "--out", "out", env=faulty)
    assert done.returncode == 0, done.stderr
    (result,) = read_cases(tmp_path / "out")
    assert result.status == "skipped"
    assert "time: it was ended after the 10 s that it may take; 0 of 2 tasks" in result.reason


def test_failures_are_reported_and_the_others_continue(
    gridbench: Run, tmp_path: Path, faulty: dict[str, str]
) -> None:
    engines = ("--engine", "task3", "--engine", "lean", "--engine", "start")
    options = (*TWO_SIZES, *engines, "--cores", "4", "--rounds", "1", "--out", "out")
    done = gridbench("scenario", 4, *options, env=faulty)
    assert done.returncode == 1
    results = read_cases(tmp_path / "out")
    failed = {(r.engine, r.reason) for r in results if r.status == "failed"}
    assert any(e == "task3" and "tasks failed; the first of them, task 3" in w for e, w in failed)
    assert any(e == "start" and "the licence has expired" in why for e, why in failed)
    # The engine that cannot bear the libraries of the analysis does not see them in any case.
    assert {r.status for r in results if r.engine == "lean"} <= {"done", "invalid"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "the licence has expired" in page


def test_what_failed_is_tried_again_if_that_is_requested_or_others_may_be_the_reason(
    gridbench: Run, tmp_path: Path, faulty: dict[str, str]
) -> None:
    options = (*SMALL, "--engine", "start", "--out", "out")
    path = tmp_path / "out" / CASES

    def run(*more: str, again: bool = False) -> tuple[str, int]:
        """The output, and how many cases were tried. What was tried before was disturbed if it
        is to be tried `again`, and else not, whatever the tests beside this one did."""
        before = path.read_text().splitlines() if path.exists() else ["the header"]
        records = [json.loads(line) | {"again": again} for line in before[1:]]
        if records:
            path.write_text("\n".join([before[0], *map(json.dumps, records), ""]))
        done = gridbench("scenario", 4, *options, *more, env=faulty)
        assert done.returncode == 1
        return done.stderr, path.read_text().count("\n") - len(before)

    _, cases = run()
    assert cases == 2
    said, tried = run()
    assert tried == 0
    assert "2 cases failed before and are not tried again: start, 2 cores, " in said
    assert "; --retry-failed tries them" in said
    assert "the licence has expired" in (tmp_path / "out" / "report.html").read_text()
    assert run(again=True)[1] == 2
    said, tried = run("--retry-failed")
    assert tried == 2
    assert "failed before" not in said


@pytest.mark.parametrize("engine", ["start", "dead"])
def test_a_failure_while_others_are_at_work_is_not_the_engines(
    gridbench: Run, tmp_path: Path, faulty: dict[str, str], engine: str
) -> None:
    options = ("--sizes", "0", "--engine", engine, "--out", "out", "--accept-load")
    with stranger():
        done = gridbench("scenario", 4, *SMALL, *options, env=faulty)
    assert done.returncode == 1
    assert {(r.status, r.again) for r in read_cases(tmp_path / "out")} == {("failed", True)}


def test_a_case_that_somebody_interrupted_is_tried_again(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    words = ("scenario", "4", "--cores", "2", "--sizes", "0", "--time-scale", "1", "--out", "out")
    process = subprocess.Popen(
        [*PROGRAM, *words], env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    try:
        runs = tmp_path / "out" / "runs"
        until(lambda: list(runs.glob("*/*/run.json")))
        children = psutil.Process(process.pid).children()
        (child,) = [one for one in children if RUNS_CASES in cmdline(one) and one.name() != LOOKOUT]
        child.send_signal(signal.SIGINT)
        path = tmp_path / "out" / CASES
        until(lambda: path.exists() and path.read_text().count("\n") >= 2)
    finally:
        process.kill()
        process.wait()
    (result, *_) = read_cases(tmp_path / "out")
    assert (result.status, result.reason) == ("failed", "the run was interrupted")
    assert result.again


def test_more_than_fits_into_memory_is_skipped(
    gridbench: Run, tmp_path: Path, faulty: dict[str, str]
) -> None:
    size = psutil.virtual_memory().total
    done = gridbench(
        "scenario", 4, "--cores", "3", "--sizes", f"0,{size}B", "--time-scale", "0", "--quick",
        "--engine", "lean", "--out", "out", env=faulty,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = read_cases(tmp_path / "out")
    large = [result for result in results if result.bytes_in]
    assert len(large) == 2
    assert all(result.status == "skipped" for result in large)
    assert all("memory: the data does not fit" in result.reason for result in large)
    assert {r.status for r in results if not r.bytes_in} <= {"done", "invalid"}


class Running:
    """A scenario whose cases take about a second each."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.out = folder / "out"
        self.process = subprocess.Popen(
            [*PROGRAM, "scenario", "4", "--cores", "2", "--sizes", "0,10KB", "--time-scale",
             "0.01", "--out", "out"],
            env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until(lambda: self.lines() >= 3)
        self.started = psutil.Process(self.process.pid).children(recursive=True)

    def lines(self) -> int:
        path = self.out / CASES
        return path.read_text().count("\n") if path.exists() else 0


def test_a_killed_scenario_continues_where_it_stopped(
    gridbench: Run, tmp_path: Path, environment: dict[str, str]
) -> None:
    running = Running(tmp_path, environment)
    running.process.send_signal(signal.SIGKILL)
    running.process.communicate(timeout=DEADLINE)
    until(lambda: not any(alive(child.pid) for child in running.started))
    path = running.out / CASES
    before = path.read_bytes()
    path.write_bytes(before + b'{"scenario": 4')  # as if it was killed while writing
    done = gridbench(
        "scenario", 4, "--cores", "2", "--sizes", "0,10KB", "--time-scale", "0.01", "--out", "out"
    )
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(before)
    results = read_cases(running.out)
    assert len(results) == 6
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    finished = [(line["case"], line["status"]) for line in lines]
    assert all(finished.count(pair) == 1 for pair in finished if pair[1] == "done")


def test_an_interrupted_scenario_keeps_what_it_has(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    running = Running(tmp_path, environment)
    running.process.send_signal(signal.SIGINT)
    _, stderr = running.process.communicate(timeout=DEADLINE)
    assert running.process.returncode == 130
    assert "stopped: results are saved; --out out resumes" in stderr
    assert "Traceback" not in stderr
    until(lambda: not any(alive(child.pid) for child in running.started))
    results = read_cases(running.out)
    assert 2 <= len(results) < 6
    assert {result.status for result in results} <= {"done", "invalid"}
    assert (running.out / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["7"], "unknown scenario `7`"),
        (["1", "--cores", "-3"], "--cores: `-3` is not a whole number from 1"),
        (["1", "--sizes", "-1KB"], "--sizes: `-1KB` is below 0"),
        (["1", "--sizes", "5000GB"], "is more than a terabyte"),
        (["1", "--time-scale", "-1"], "--time-scale: must be from 0"),
        (["1", "--time-scale", "nan"], "--time-scale: must be from 0"),
        (["1", "--stddev", "lots"], "--stddev: `lots` is not a deviation"),
        (["1", "--limit", "0"], "--limit: must be from 0.001 s"),
        (["1", "--case-limit", "inf"], "--case-limit: `inf` is not a time"),
        (["1", "--engine", "none-such"], "unknown engine `none-such`"),
        (["1", "--engine", "loky", "--engine", "loky"], "occurs twice"),
        (["1", "--link", "1gbit"], "add --nodes K"),
        (["1", "--nodes", "2", "--link", "fast"], "--link: `fast` is not a rate"),
        (["1", "--nodes", "2", "--engine", "process-pool"], "cannot put its workers behind links"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    refused: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = refused("scenario", *arguments, "--out", "out")
    assert done.returncode == 2
    assert message in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tid sleep submit\n", "the file of cases is damaged: is not JSON"),
        (
            '{"kind": "gridbench micro", "format": 1}\n',
            "is not the header of results of a scenario",
        ),
        ("\n", "is not JSON"),
    ],
)
def test_a_foreign_file_is_left_alone(
    gridbench: Run, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / CASES
    path.write_text(text)
    for arguments in (("scenario", 1, *SMALL, "--out", "out"), ("report", "out")):
        done = gridbench(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert f"{CASES}:1" in done.stderr
    assert path.read_text() == text


def test_other_options_are_not_mixed(gridbench: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert gridbench("scenario", 1, *SMALL, "--limit", "0.01", "--out", "out").returncode == 0
    done = gridbench("scenario", 2, *SMALL, "--limit", "0.01", "--out", "out")
    assert done.returncode == 2
    assert "holds results of other options: scenario was `1`, and now is `2`" in done.stderr
    fresh = gridbench("scenario", 2, *SMALL, "--limit", "0.01", "--out", "out", "--fresh")
    assert fresh.returncode == 0, fresh.stderr
    assert {result.scenario for result in read_cases(tmp_path / "out")} == {2}
