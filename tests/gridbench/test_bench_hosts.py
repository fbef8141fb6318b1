"""The benchmark of many machines: each part measures all that it shows, with small numbers."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from benchmarks.clusters.client import ClusterJob, ClusterNode
from benchmarks.curves import SvgLine, curves
from benchmarks.figures import Area, AreaCase, Extent, Row, Values
from benchmarks.hosts_peers import OURS, PEERS, RATE, missing, on_hosts
from benchmarks.measuring import measure
from benchmarks.programs import launch_with_benchmarks
from benchmarks.runner import AREAS
from benchmarks.table import markdown_of
from gridbench.bench.points import DataPoint, Points
from gridbench.engines.environments import Environment
from linking import left_of
from quiet import as_if_quiet
from running import BENCHMARKS, DEADLINE, Run, cmdline, until

#: Ray takes half a minute to start; it is measured by a test of its own.
_SLOW = "ray"
JOB = {"workers": 1, "size": 1_000_000, "calls": 1, "tasks": 1, "seconds": 0.01}


def _measured(area: Area) -> list[Row]:
    """The rows of one round, without those that need Ray."""
    cases = [case for case in area.cases if not case.name.endswith(_SLOW)]
    missing = {case.missing for case in cases if case.missing}
    if missing:
        pytest.skip("; ".join(sorted(missing)))
    samples = Points()
    measure(dataclasses.replace(area, cases=cases), 1, samples)
    samples = as_if_quiet(samples)
    rows = [row for row in area.rows(samples) if not row.what.endswith(_SLOW)]
    assert [row.problems for row in rows] == [[]] * len(rows)
    assert all(row.ours.values for row in rows)
    assert any(row.what.startswith("noise") for row in rows)
    if area.picture is not None:
        assert "not measured" not in area.picture(samples)
    return rows


@pytest.mark.parametrize("part", [part for part in AREAS["hosts"] if part != "peers"])
def test_every_row_of_a_part_is_measured(part: str) -> None:
    rows = _measured(AREAS["hosts"][part](Extent.TRIAL))
    assert [row.what for row in rows if row.target is not None and row.reached is None] == []


@pytest.mark.parametrize("peer", PEERS)
def test_other_engines_are_measured_on_the_same_hosts(
    peer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := missing(peer):
        pytest.skip(why)
    # What `ray.init` leaves in a user's home folder: a head of Ray asks for it.
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("that of another cluster")
    monkeypatch.setenv("HOME", str(tmp_path))
    area = AREAS["hosts"]["peers"](Extent.TRIAL)
    cases = [case for case in area.cases if case.name in (OURS, peer)]
    samples = Points()
    measure(dataclasses.replace(area, cases=cases), 1, samples)
    samples = as_if_quiet(samples)
    rows = [row for row in area.rows(samples) if row.what.endswith(f"peer: {peer}")]
    assert [row.problems for row in rows] == [[]] * 4
    assert all(row.reached is not None for row in rows)


def test_dask_keeps_the_copies_of_a_broadcast(tmp_path: Path, environment: dict[str, str]) -> None:
    if Environment("dask").state().kind != "installed":
        pytest.skip("Dask is not installed")
    here = [ClusterNode(name, "127.0.0.1", [], str(tmp_path / name)) for name in ("one", "two")]
    job = ClusterJob(client="127.0.0.1", ssh=[], nodes=here, **(JOB | {"workers": 2}))  # type: ignore[arg-type]
    job.save(tmp_path / "job")
    program = """
import sys, time
from benchmarks.clusters.dask_cluster import DaskCluster
from benchmarks.clusters.client import data_of, read_job
job = read_job(sys.argv[1])
engine = DaskCluster(job)
try:
    engine.start(job.all_workers)
    engine.wait_ready()
    data = engine.put(data_of(job))
    time.sleep(1)
    print(*map(len, engine._client.who_has(data).values()))
finally:
    engine.close()
"""
    # The scheduler's memory manager, if it runs, has looked for copies many times by then.
    often = {"DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__INTERVAL": "20ms"}
    dask = launch_with_benchmarks("dask")
    ran = subprocess.run(
        [*dask.command, "-c", program, str(tmp_path / "job")],
        env=environment | dask.variables | often,
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert ran.stdout == "4\n", ran.stderr


@pytest.mark.parametrize("peer", [OURS, *PEERS])
def test_an_engine_that_does_not_end_is_ended_with_its_hosts(peer: str) -> None:
    if why := missing(peer):
        pytest.skip(why)
    others = psutil.Process().children(recursive=True)
    job = JOB | {"tasks": 1, "seconds": 1000}
    with pytest.raises(RuntimeError, match=r"^did not end in 5 s$"):
        on_hosts(peer, 1, job, RATE, limit=5)
    assert left_of(os.getpid()) == []
    assert [one for one in psutil.Process().children(recursive=True) if one not in others] == []


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_benchmark_that_is_ended(
    end: signal.Signals, environment: dict[str, str]
) -> None:
    if why := missing(OURS):
        pytest.skip(why)
    bench = subprocess.Popen(
        [*BENCHMARKS, "hosts", "--quick", "--case", "peers"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def running(module: str) -> list[int]:
        family = psutil.Process(bench.pid).children(recursive=True)
        return [one.pid for one in family if any(module in word for word in cmdline(one))]

    until(lambda: running("benchmarks.clusters"))
    # What looks out for the end of gridbench has the same command line, and no children.
    (case,) = [pid for pid in running("gridbench.bench.child") if psutil.Process(pid).children()]
    assert left_of(case)
    before = psutil.Process(bench.pid).children(recursive=True)
    bench.send_signal(end)
    _, errors = bench.communicate(timeout=DEADLINE)
    assert bench.returncode == (-end if end == signal.SIGKILL else 128 + end)
    assert "Traceback" not in errors
    if end == signal.SIGKILL:  # what looks out for that is nobody's child
        until(lambda: not left_of(case))
    assert left_of(case) == []
    until(lambda: not any(one.is_running() for one in before))


def _never() -> Values:
    raise AssertionError("it was run")


def test_what_is_missing_is_reported_and_nothing_is_tried() -> None:
    case = AreaCase(name="x", function=_never, missing="no ssh\nhint: install it")
    samples = Points()
    measure(Area("a", "", (case,), lambda _: []), 2, samples)
    assert samples.of("x", "s").problem == "x, round 2: no ssh\nhint: install it"


def test_one_part_alone_leaves_a_record_and_a_page(benchmarks: Run, tmp_path: Path) -> None:
    files = ["--out", str(tmp_path / "o.json"), "--markdown", str(tmp_path / "o.md")]
    done = benchmarks("hosts", "--quick", "--case", "map", *files)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "o.json").read_text())
    assert list(record["areas"]) == ["hosts/map"]
    assert record["complete"] is True
    page = (tmp_path / "o.md").read_text()
    assert "| calls per second by map over TLS |" in page
    assert "not measured" not in page


def test_a_part_that_does_not_exist_is_reported(refused_benchmarks: Run) -> None:
    done = refused_benchmarks("hosts", "--case", "speed")
    assert done.returncode == 2
    assert "there is no case `speed`\nhint: the cases are null, argument, map," in done.stderr
    done = refused_benchmarks("hosts", "--full", "--quick")
    assert done.returncode == 2
    assert "--full and --quick exclude each other" in done.stderr


def test_a_page_shows_the_columns_that_are_used() -> None:
    samples = Points()
    for number in range(3):
        samples.add(
            DataPoint(
                workload="x", round=number, values={"ours": 2.0 * (number + 1), "limit": number + 1}
            )
        )
    row = Row(what="a|b", unit="s", ours=samples.of("x", "ours"), limit=samples.of("x", "limit"))
    assert markdown_of("Title", [row]) == (
        "## Title\n\n"
        "| what | ours: median (spread) | limit | ratio (spread) |\n"
        "|---|---:|---:|---:|\n"
        "| a\\|b | 4.000 s (2.000-6.000) | 2.000 s | 2× limit (2-2) |\n"
    )


def test_curves_are_a_picture_with_all_lines() -> None:
    lines = [
        SvgLine("a & b", [1, 10, 100], [0.1, float("nan"), 5], 0),
        SvgLine("c", [2], [3], 1, True),
    ]
    picture = ElementTree.fromstring(curves("Title", "x", "y", lines))
    texts = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert {"Title", "x", "y", "a & b", "c"} <= set(texts)
    assert "not measured" in curves("Title", "x", "y", [])
