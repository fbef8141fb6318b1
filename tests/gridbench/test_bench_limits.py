"""What a benchmark keeps when something does not end: a case, an engine, or the benchmark."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import limit_cases
from benchmarks.cluster_tasks import on_cluster
from benchmarks.figures import Area, AreaCase, CaseValue, PlannedRow
from benchmarks.measuring import measure
from benchmarks.table import markdown_of
from gridbench.bench.client import LimitReached
from gridbench.bench.points import DataPoint, Points
from gridbench_testbed.batch import slurm
from running import BENCHMARKS, DEADLINE, until

_ROWS = [PlannedRow("x", "s", CaseValue("x", "s"), peer=CaseValue("peer", "s"))]


@pytest.fixture(autouse=True)
def _functions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))


@pytest.fixture
def temporary(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where processes have their temporary files, short enough for sockets in it."""
    if why := slurm.why_not():
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="limits-"))
    environment["TMPDIR"] = str(folder)
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _of_rigs(folder: Path) -> list[int]:
    """Daemons of rigs there, and all that these have started."""
    mark = f"GRIDBENCH_DAEMONS={folder}".encode()
    found = []
    for process in psutil.pids():
        try:
            if mark in Path(f"/proc/{process}/environ").read_bytes():
                found.append(process)
        except OSError:  # it has ended
            continue
    return found


def test_values_that_came_before_the_limit_are_kept() -> None:
    case = AreaCase(name="x", function=limit_cases.two_then_nothing, timeout=20.0)
    samples = Points()
    measure(Area("a", "", (case,), _ROWS, budget=DEADLINE), 3, samples)
    assert samples.of("x", "first").values == [1.0]
    assert samples.of("x", "second").values == [2.0]
    assert samples.of("x", "third").problem == "x, round 1: gave no result in 20 s"
    # Where there is a budget, it is not spent on the same again.
    assert list(samples.rounds_of("x")) == [0]


def test_a_case_that_reached_its_limit_is_marked_and_the_others_continue() -> None:
    cases = [
        AreaCase(name="peer", function=limit_cases.stuck),
        AreaCase(name="x", function=limit_cases.one),
    ]
    area = Area("a", "", cases, _ROWS, budget=DEADLINE)
    samples = Points()
    measure(area, 3, samples)
    assert samples.of("x", "s").values == [1.0] * 3
    page = markdown_of("T", area.rows(samples))
    assert "| x | 1.000 s (1.000-1.000) | did not end |" in page
    assert "- not measured: peer, round 1: did not end in 5 s: 3 of 7 done" in page


def test_a_budget_that_is_used_up_is_reported() -> None:
    cases = [
        AreaCase(name="x", function=limit_cases.one),
        AreaCase(name="y", function=limit_cases.one),
    ]
    area = Area("a", "", cases, (), budget=10.0)
    samples = Points()
    samples.add(DataPoint(workload="x", round=0, values={"s": 1.0}, seconds=11.0, at="then"))
    measure(area, 3, samples)
    assert list(samples.rounds_of("x")) == [0]
    assert samples.of("y", "s").problem == (
        "y, round 1: was not begun: the 10 s of its part were over"
    )


def test_an_engine_that_does_not_end_tells_how_far_it_came(temporary: Path) -> None:
    others = psutil.Process().children(recursive=True)
    with pytest.raises(LimitReached) as reached:
        on_cluster("emulated-slurm-native", 2, tasks=3, seconds=10 * DEADLINE, limit=20.0)
    assert str(reached.value).startswith("did not end in 20 s: of 3 tasks 3 had been submitted and")
    assert " 0 done; " in str(reached.value)
    assert _of_rigs(temporary) == []
    assert list(temporary.iterdir()) == []
    assert [one for one in psutil.Process().children(recursive=True) if one not in others] == []


def _bench(environment: dict[str, str], folder: Path, part: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*BENCHMARKS, "cluster", "--quick", "--case", part, "--out", "o.json"],
        env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_no_job_and_no_daemon_is_left_of_a_benchmark_that_is_ended(
    temporary: Path, tmp_path: Path, environment: dict[str, str], end: signal.Signals
) -> None:
    bench = _bench(environment, tmp_path, "slurm-tasks")
    until(lambda: any("slurmstepd" in _name(one) for one in _of_rigs(temporary)))
    bench.send_signal(end)
    output, errors = bench.communicate(timeout=DEADLINE)
    until(lambda: not _of_rigs(temporary))
    if end == signal.SIGINT:
        assert bench.returncode == 130
        assert "o.json resumes" in output
        assert "Traceback" not in errors
        assert [one.name for one in temporary.glob("gr*")] == []


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text()
    except OSError:
        return ""


def test_a_benchmark_that_was_cut_off_continues_where_it_was(
    temporary: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    def record() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((tmp_path / "o.json").read_text())
        return found

    first = _bench(environment, tmp_path, "start-workers")
    until(lambda: (tmp_path / "o.json").exists() and record()["points"])
    first.kill()
    first.communicate()
    stored = record()
    assert stored["complete"] is False
    until(lambda: not _of_rigs(temporary))
    second = _bench(environment, tmp_path, "start-workers")
    output, errors = second.communicate(timeout=DEADLINE)
    assert f"o.json: {len(stored['points'])} runs of a call that was cut off are kept" in errors
    for point in stored["points"]:
        assert f"{point['workload']}: done" not in errors
    whole = record()
    assert whole["complete"] is True
    assert [point for point in whole["points"] if point in stored["points"]] == stored["points"]
    assert len(whole["points"]) > len(stored["points"])
    assert "until all have done" in output
