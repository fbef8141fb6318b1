"""How `python -m benchmarks.check` judges files of benchmarks: good ones keep all rules, and what a
rule is against breaks it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import Row
from benchmarks.runner import as_record
from gridbench.bench.points import DataPoint
from gridbench.statistics.series import Series
from judging import HEADER, judged, outcomes


def area_file(file: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> Path:
    """As `python -m benchmarks` leaves it, but for the change."""
    row = Row(
        what="null calls",
        unit="us",
        ours=Series({0: 2.0, 1: 3.0}),
        peer=Series({0: 4.0, 1: 9.0}),
        limit=Series({0: 1.0, 1: 1.0}),
    )
    points = [
        DataPoint(workload=name, round=number, values={"us": 1.0}, at="2031-05-04T10:31:00+0200")
        for name in ("calls", "peer")
        for number in range(2)
    ]
    record = {
        "machine": HEADER.machine,
        "versions": HEADER.versions,
        "extent": "usual",
        "complete": True,
        "areas": {"modules": {"title": "Modules", "rows": [as_record(row)]}},
        "points": [asdict(point) for point in points],
    }
    record = json.loads(json.dumps(record))
    change(record)
    file.write_text(json.dumps(record))
    return file


def first_row(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda record: record["areas"]["modules"]["rows"][0].update(changes)


def first_point(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda record: record["points"][0].update(changes)


def test_good_areas_keep_all_rules(tmp_path: Path) -> None:
    assert set(outcomes(area_file(tmp_path / "figures.json")).values()) == {"kept"}


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("complete", lambda record: record.update(complete=False)),
        ("no failure is hidden", first_point(status="failed", why="it crashed")),
        ("figures follow from the values", first_row(gridrpc={"median": 1.0, "values": [2.0]})),
        ("figures follow from the values", first_row(ratio_to_peer=0.1)),
        ("figures follow from the values", first_row(ratio_to_limit=1.0)),
        ("repeated", first_point(disturbed=True)),
        ("repeated", first_point(status="failed", why="it crashed")),
        ("who measured what, where", lambda record: record.update(versions={})),
    ],
)
def test_what_a_rule_of_areas_is_against_breaks_it(
    rule: str, change: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    assert outcomes(area_file(tmp_path / "figures.json", change))[rule] == "broken"


def test_a_failure_that_the_tables_tell_is_not_hidden(tmp_path: Path) -> None:
    def failed(record: dict[str, Any]) -> None:
        first_point(status="failed", why="it crashed")(record)
        first_row(problems=["calls, round 1: it crashed"])(record)

    found = judged(area_file(tmp_path / "figures.json", failed))["no failure is hidden"]
    assert (found.outcome, found.told) == ("kept", "1 run failed, and the tables say so")


def test_of_older_files_of_areas_less_is_known(tmp_path: Path) -> None:
    found = outcomes(area_file(tmp_path / "old.json", lambda record: record.pop("points")))
    assert found.pop("no failure is hidden") == "not known"
    assert found.pop("repeated") == "not known"
    assert set(found.values()) == {"kept"}


def check(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.check", "figures.json"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_program_judges_a_file(tmp_path: Path, environment: dict[str, str]) -> None:
    area_file(tmp_path / "figures.json")
    done = check(tmp_path, environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "All rules are kept." in done.stdout
    area_file(tmp_path / "figures.json", lambda record: record.update(complete=False))
    assert check(tmp_path, environment).returncode == 1


def test_a_damaged_file_of_areas_is_reported(tmp_path: Path, environment: dict[str, str]) -> None:
    area_file(tmp_path / "figures.json", lambda record: record.update(complete="yes"))
    done = check(tmp_path, environment)
    assert done.returncode == 2
    assert "is no file of `python -m benchmarks`, or it is damaged: complete" in done.stderr
