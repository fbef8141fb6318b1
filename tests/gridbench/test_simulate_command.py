"""`gridbench simulate`: what it prints and writes, what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from browsing import drawn, opened
from gridbench.analysis.summary import summarise
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.printing import Printing
from gridbench.run.load import load_run
from gridbench.run.recorder import make_places
from gridbench.simulate import command
from gridbench.simulate.command import run_simulation
from gridbench.simulate.comparison import (
    FittedSystems,
    SimulatedFigure,
    against_published,
    against_runs,
)
from gridbench.simulate.options import SimulationParameters
from gridbench.simulate.profiles import SYSTEMS, system
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.simulate.sweep import parse_sweep
from gridbench.simulate.timeline import table_of, write_folder
from gridbench.tasklog import read_task_log
from running import Run
from synthetic import PLACE


def describe(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    values = json.loads(capsys.readouterr().out)
    assert isinstance(values, dict)
    return values


def test_a_simulation_is_reported_in_the_terminal(gridbench: Run) -> None:
    done = gridbench(
        "simulate",
        "--profile",
        "symphony",
        "--cores",
        "50",
        "--sleep",
        "2",
        "--input-per-task",
        "1MB",
    )
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "Platform Symphony",
        "500 tasks of 2 s on 50 cores, input 1MB",
        "efficiency",
        "Where the time goes",
        "What was busy",
        "What the total would be without",
        "Bottleneck:",
        "caution: Assumptions",
    ):
        assert words in done.stdout


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_all_values_come_as_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run_simulation(
            SimulationParameters(profile=name, cores=5, sleep=1.0), Printing(as_json=True)
        )
        == 0
    )
    values = describe(capsys)
    assert values["profile"] == name
    assert values["total_s"] >= values["ideal_s"] == 10.0
    assert values["limit"]


def test_a_folder_is_like_that_of_a_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    request = SimulationParameters(
        profile="ninfg",
        cores=4,
        tasks=12,
        sleep=1.0,
        input=10 * 1024,
        out=out,
    )
    assert run_simulation(request) == 0
    record, table = load_run(out)
    assert record["simulated"] is True
    assert record["setup"]["NTasks"] == table.num_rows == 12
    assert record["summary"] == summarise(table, 12, 4).to_dict()
    header, logged = read_task_log(out / "tasks.log")
    assert (header.ntasks, logged.num_rows) == (12, 12)
    assert "This run was simulated." in (out / "report.html").read_text()
    with pytest.raises(InputError, match="holds a run already"):
        run_simulation(request)


def test_a_sweep_makes_a_table_and_a_page(
    driver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep"
    request = SimulationParameters(
        profile="symphony", cores=1, sleep=1.0, input=1 << 20, sweep="cores=10,20,40", out=out
    )
    assert run_simulation(request) == 0
    printed = capsys.readouterr().out
    assert "cores" in printed
    assert "400" in printed
    values = json.loads((out / "sweep.json").read_text())
    assert values["complete"] is True
    assert [point["cores"] for point in values["points"]] == [10, 20, 40]
    assert [point["work"]["tasks"] for point in values["points"]] == [100, 200, 400]
    opened(driver, out / "sweep.html")
    found = drawn(driver)
    assert set(found) == {"efficiency", "parts", "total"}
    assert all(picture["marks"] > 3 for picture in found.values())


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("cores=10,20", "cores", [10, 20]),
        ("tasks-per-core=1,2,3", "tasks-per-core", [1, 2, 3]),
        ("sleep=0.5,1s", "sleep", [0.5, 1.0]),
        ("stddev=500ms,1min", "stddev", [0.5, 60.0]),
        ("stddev=0,50%", "stddev-share", [0.0, 0.5]),
        ("input=0,1KB,1MB", "input", [0, 1024, 1 << 20]),
        ("link=100mbit,1gbit", "link", [1e8, 1e9]),
    ],
)
def test_what_can_be_varied(text: str, name: str, values: list[float]) -> None:
    sweep = parse_sweep(text)
    assert (sweep.axis.name, list(sweep.values)) == (name, values)
    request = SimulationParameters(profile="gridrpc", cores=2, sweep=text)
    made = [command._varied(request, system("gridrpc"), sweep, value) for value in sweep.values]
    assert len({(work, on.link) for work, on in made}) == len(values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cores", "0"], "--cores: `0` is not"),
        (["--cores", "2000000"], "is not a whole number from 1 to 1,000,000"),
        (["--tasks", "0"], "--tasks: `0` is not"),
        (["--tasks", "100000000"], "is not a whole number from 1 to 10,000,000"),
        (["--tasks", "1", "--tasks-per-core", "2"], "cannot both be given"),
        (["--sleep", "-1"], "--sleep must be from 0"),
        (["--sleep", "nan"], "--sleep: `nan` is not a time"),
        (["--stddev", "inf"], "--stddev: `inf` is not a deviation"),
        (["--stddev", "-5%"], "--stddev: `-5%` is not a deviation"),
        (["--input-per-task", "-1"], "--input-per-task: `-1` is below 0"),
        (["--output-per-task", "9000TB"], "--output-per-task: 9000TB is more than a terabyte"),
        (["--output-per-task", "1XB"], "--output-per-task: `1XB` is not a size"),
        (["--shared", "2000GB"], "more than a terabyte"),
        (["--link", "0gbit"], "--link: 0gbit is not between"),
        (["--link", "fast"], "--link: `fast` is not a rate"),
        (["--start-up", "-5"], "--start-up must be from 0"),
        (["--profile", "gridserver"], "there is no profile `gridserver`"),
        (["--profile", "none.toml"], "cannot read the profile"),
        (["--profile", "none.json"], "cannot be read"),
        (["--sweep", "hosts=1,2"], "does not say what to vary"),
        (["--sweep", "cores=1,,2"], "is a list of values"),
        (["--sweep", "cores=many"], "--sweep: `many` is not a whole number from 1"),
        (["--sweep", "input=big"], "is not a size"),
        (["--sweep", "sleep=-1"], "--sweep: -1 is not from 0 to 1,000,000 s"),
        (["--sweep", "stddev=5,20%"], "--sweep: `5` is a time among shares of the mean"),
        (["--against", "nowhere"], "does not exist"),
        (["--out", "setup.xml"], "the output folder is a file"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], message: str, refused: Run, tmp_path: Path
) -> None:
    (tmp_path / "setup.xml").touch()
    done = refused("simulate", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_more_than_memory_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1,500 bytes for each task, with ten tasks for each core, and as many for each core.
    monkeypatch.setattr(command, "available_memory", lambda: 1_649_999_999)
    reported = (
        "1,000,000 tasks on 100,000 cores need about 1.537 GB of memory, and 1.537 GB are available"
    )
    with pytest.raises(InputError, match=reported):
        run_simulation(SimulationParameters(profile="gridrpc", cores=100_000))


@pytest.mark.parametrize("sweep", [None, "cores=5000,6000"])
def test_an_interrupted_simulation_ends_at_once_and_writes_nothing(
    sweep: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begin = command.Progress.begin

    def interrupted(self: command.Progress, title: str, tasks: int) -> None:
        begin(self, title, tasks)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(command.Progress, "begin", interrupted)
    out = tmp_path / "out"
    assert (
        run_simulation(SimulationParameters(profile="gridrpc", cores=5000, sweep=sweep, out=out))
        == 130
    )
    assert list(out.iterdir()) == []
    assert "interrupted" in capsys.readouterr().err


def test_a_sweep_replaces_only_a_sweep_and_only_if_told_to(tmp_path: Path) -> None:
    request = SimulationParameters(
        profile="gridrpc", cores=1, sleep=0.1, sweep="cores=1,2", out=tmp_path
    )
    assert run_simulation(replace(request, out=tmp_path / "new" / "below")) == 0
    assert (tmp_path / "new/below/sweep.json").exists()
    shutil.rmtree(tmp_path / "new")
    assert run_simulation(request) == 0
    before = (tmp_path / "sweep.json").read_text()
    longer = replace(request, sleep=0.2)
    with pytest.raises(InputError, match="is not empty") as refused:
        run_simulation(longer)
    assert "add --force to replace the sweep" in str(refused.value)
    assert (tmp_path / "sweep.json").read_text() == before
    assert run_simulation(replace(longer, force=True)) == 0
    assert (tmp_path / "sweep.json").read_text() != before
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match="is not empty") as refused:
        run_simulation(replace(longer, force=True))
    assert "--force" not in str(refused.value)


def test_a_sweep_that_is_interrupted_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = command.Progress.begin

    def interrupted(self: command.Progress, title: str, tasks: int) -> None:
        begin(self, title, tasks)
        if tasks == 20:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(command.Progress, "begin", interrupted)
    out = tmp_path / "out"
    assert (
        run_simulation(
            SimulationParameters(profile="gridrpc", cores=1, sweep="cores=1,2,3", out=out)
        )
        == 130
    )
    values = json.loads((out / "sweep.json").read_text())
    assert values["complete"] is False
    assert [point["cores"] for point in values["points"]] == [1]
    assert "interrupted; the last 2 are missing" in capsys.readouterr().err


def test_a_sweep_is_reported_as_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = SimulationParameters(
        profile="gridrpc", cores=1, sleep=0.1, sweep="cores=1,2", out=tmp_path / "out",
    )  # fmt: skip
    assert run_simulation(request, Printing(as_json=True)) == 0
    values = describe(capsys)
    assert (tmp_path / "out" / "sweep.json").read_text() == json.dumps(values, indent=2) + "\n"
    assert values["sweep"] == "cores"


# Against reality.


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder of runs on an engine; they were simulated, though their records do not say so."""
    folder = tmp_path / "results"
    for name, status in (("cold", "complete"), ("warm", "complete"), ("cut", "interrupted")):
        done = simulate(
            SimulatedWorkload(cores=4, tasks=20, sleep=0.1, stddev=0.02),
            system("gridrpc"),
            start_up=0.0 if name == "warm" else None,
        )
        place = make_places(folder / name, ["gridrpc-native"], [])["gridrpc-native"]
        write_folder(place, done, table_of(done))
        record = json.loads((place / "run.json").read_text())
        record["engine"]["name"] = "gridrpc-native"
        record |= {"status": status, "start": "warm" if name == "warm" else "cold"}
        (place / "run.json").write_text(json.dumps(record))
    return folder


def test_it_is_reported_which_run_is_simulated(results: Path) -> None:
    reported: list[tuple[str, int]] = []
    against_runs(results, system("gridrpc"), "gridrpc-native", lambda *what: reported.append(what))
    assert reported == [("cold", 20), ("warm", 20)]


def test_real_runs_are_simulated_and_compared(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = SimulationParameters(profile="gridrpc", cores=1, against=str(results))
    assert run_simulation(request, Printing(as_json=True)) == 0
    found = json.loads(capsys.readouterr().out)[0]
    # They were made by this simulator with these very times of tasks.
    assert [row["what"] for row in found["rows"]] == ["cold", "warm"]
    assert [row["error"] for row in found["rows"]] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert found["left_out"] == ["1 run: it is not complete or not valid"]


def test_comparisons_are_printed_for_people(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run_simulation(SimulationParameters(profile="gridrpc", cores=1, against=str(results))) == 0
    )
    printed = capsys.readouterr().out
    assert "gridrpc against gridrpc-native" in printed
    assert "where that is more than 20 % of the total" in " ".join(printed.split())
    assert "absolute error, total, median: 0.0 %" in printed
    assert "left out: 1 run: it is not complete or not valid" in printed


def test_runs_in_a_place_without_a_model_are_left_out(results: Path, model: PipelineModel) -> None:
    shutil.copytree(results / "warm", results / "again")
    elsewhere = replace(model, fit=replace(model.fit, place=replace(PLACE, transport="network")))
    with pytest.raises(InputError) as refused:
        against_runs(
            results,
            FittedSystems(Path("model.json"), [elsewhere]),
            "gridrpc-native",
            lambda _name, _tasks: pytest.fail("it is simulated"),
        )
    assert refused.value.what == (
        "holds no run of the engine `gridrpc-native` that can be used"
        "; 1 run: it is not complete or not valid"
        "; again: there is no model of its place; cold: there is no model of its place"
    )


def test_runs_of_no_such_engine_are_refused(results: Path) -> None:
    request = SimulationParameters(profile="gridrpc", cores=1, against=str(results), engine="ray")
    with pytest.raises(InputError) as caught:
        run_simulation(request)
    assert "there are runs of gridrpc-native" in str(caught.value)


def test_the_simulator_against_the_published_tables() -> None:
    into_nodes, back, symphony, ninfg = against_published(lambda *_: None)
    # What the documentation says of them.
    assert _largest_error(into_nodes.rows, "1 MB") < 0.1
    assert _largest_error(back.rows, "1 MB", "10 MB") < 0.3
    assert symphony.errors()["total, median"] < 0.01
    assert ninfg.errors()["total, median"] < 0.15


def _largest_error(rows: Sequence[SimulatedFigure], *sizes: str) -> float:
    found = [abs(row.error) for row in rows if row.what.split(",")[0] in sizes]
    assert len(found) >= 3
    return max(found)
