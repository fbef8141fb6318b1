"""Results are judged by rules: each one is kept by a good run, and broken by what it is against."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gridbench.report import rules
from gridbench.report.rules import RULES, ReportCase, read_case
from gridbench.results.check import check_results
from gridbench.rules import Finding
from gridbench.run.load import load_run
from running import MakeSetup, Run

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the real run; each test gets a copy."""
    return tmp_path_factory.mktemp("measured") / "good"


@pytest.fixture
def good(gridbench: Run, make_setup: MakeSetup, tmp_path: Path, measured: Path) -> Path:
    """The folder of a real run, whose record says that nothing else was at work."""
    if not measured.exists():
        setup = make_setup(tasks=8, nodes=2, sleep=0.02, task_kb=1, write_kb=1)
        done = gridbench("run", setup, "--engine", "process-pool", "--out", measured)
        assert done.returncode == 0, done.stderr
        # Other tests may run beside this one.
        quiet = {"judgement": "undisturbed", "told": ""}
        record(load=quiet, harness_seconds=1e-9, valid=True, invalid_because=[])(measured)
    return Path(shutil.copytree(measured, tmp_path / "good"))


def record(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        path = folder / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def column(name: str, value: Callable[[np.ndarray[Any, Any]], Any]) -> Change:
    def change(folder: Path) -> None:
        path = folder / "timeline.parquet"
        table = pq.read_table(path)
        new = value(table.column(name).to_numpy(zero_copy_only=False).copy())
        at = table.schema.get_field_index(name)
        pq.write_table(table.set_column(at, name, pa.array(new, table.schema.types[at])), path)

    return change


def shorter_log(folder: Path) -> None:
    path = folder / "tasks.log"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))


def fewer_rows(folder: Path) -> None:
    path = folder / "timeline.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)


def together(cases: list[ReportCase]) -> Finding:
    (found,) = RULES.judge_together(cases)
    return found


def by_name(findings: list[Finding]) -> dict[str, str]:
    return {one.rule: one.outcome for one in findings}


def test_a_good_run_keeps_all_rules(good: Path) -> None:
    found = RULES.judge(read_case(good))
    assert [one.rule for one in found] == list(RULES.each)
    assert {one.outcome for one in found} == {"kept"}, found


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("complete", record(status="interrupted")),
        ("complete", fewer_rows),
        ("data arrived as sent", record(check={"wanted": False, "tasks": 0, "wrong": 0})),
        ("data arrived as sent", record(check={"wanted": True, "tasks": 8, "wrong": 1})),
        ("data arrived as sent", record(check={"wanted": True, "tasks": 7, "wrong": 0})),
        ("figures follow from the stamps", record(summary=None)),
        ("figures follow from the stamps", column("retrieve", lambda values: values + 1.0)),
        ("both records agree", shorter_log),
        ("stamps are in order", column("retrieve", lambda values: values - 0.5)),
        ("tasks took their time", column("slept", lambda values: values / 2)),
        ("one task at a time on a worker", column("worker", lambda v: np.full(len(v), "1"))),
        (
            "one task at a time on a worker",
            column("worker", lambda v: np.arange(len(v)).astype(str)),
        ),
        ("nothing else was at work", record(load={"judgement": "disturbed", "told": "others"})),
        ("the benchmark is not what is measured", record(harness_seconds=1.0)),
        ("who measured what, where", record(versions={})),
        ("who measured what, where", record(engine={"name": "process-pool", "version": ""})),
    ],
)
def test_what_a_rule_is_against_breaks_it(good: Path, rule: str, change: Change) -> None:
    change(good)
    assert by_name(RULES.judge(read_case(good)))[rule] == "broken"


def test_what_is_not_recorded_is_not_known(good: Path) -> None:
    record(load=None, harness_seconds=None)(good)
    found = by_name(RULES.judge(read_case(good)))
    assert found.pop("nothing else was at work") == "not known"
    assert found.pop("the benchmark is not what is measured") == "not known"
    assert set(found.values()) == {"kept"}


def test_each_engine_runs_each_workload_twice(good: Path) -> None:
    case = read_case(good)

    def of(engine: str, nodes: int = 2) -> ReportCase:
        setup = case.record["setup"] | {"NNodes": nodes}
        engines = case.record["engine"] | {"name": engine}
        return replace(case, record=case.record | {"setup": setup, "engine": engines})

    assert together([of("a"), of("a")]).outcome == "kept"
    few = together([of("a"), of("b"), of("a")])
    assert few.outcome == "broken"
    assert "b 1 time (8 tasks that sleep, 2 workers, ideal time 80.00 ms" in few.told
    assert "a 2" not in few.told
    # Another workload repeats nothing.
    others = together([of("a", nodes) for nodes in range(2, 7)])
    assert others.outcome == "broken"
    assert others.told.count("a 1 time") == 3
    assert others.told.endswith("; 2 more")


def test_the_command_tells_and_exits(good: Path, gridbench: Run, tmp_path: Path) -> None:
    once = gridbench("check", "good")
    assert once.returncode == 1
    assert "run less than 2 times: process-pool 1 time" in once.stdout
    assert "1 rule broken" in once.stdout
    for number in (2, 3):
        shutil.copytree(good, tmp_path / "all" / f"{number}")
    shutil.move(good, tmp_path / "all" / "1")
    done = gridbench("check", "all")
    assert done.returncode == 0, done.stdout
    assert "All rules are kept." in done.stdout
    found = json.loads(gridbench("check", "all", "--json").stdout)
    assert len(found["runs"]) == 3
    assert found["all"][0]["outcome"] == "kept"


def test_each_run_is_read_once(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read: list[Path] = []

    def counting(folder: Path) -> Any:
        read.append(folder)
        return load_run(folder)

    monkeypatch.setattr(rules, "load_run", counting)
    # It was run once, however often it is named.
    assert check_results([good, good.parent], as_json=True) == 1
    assert read == [good]
    assert json.loads(capsys.readouterr().out)["all"][0]["outcome"] == "broken"


def test_an_engine_that_does_nothing_is_caught(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    setup = make_setup(tasks=8, nodes=2, sleep=0.02)
    assert gridbench("run", setup, "--engine", "null", "--out", "out").returncode == 0
    assert by_name(RULES.judge(read_case(tmp_path / "out")))["tasks took their time"] == "broken"


def test_folders_without_a_run_are_reported(gridbench: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = gridbench("check", "empty")
    assert done.returncode == 2
    assert "holds no run" in done.stderr
