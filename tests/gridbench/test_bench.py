"""The instrument behind `python -m benchmarks`: that it measures, pairs, judges and cleans up."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from rich.console import Console

from benchmarks import libraries, maps, runner
from benchmarks.figures import Area, AreaCase, Row, Target, Values
from benchmarks.measuring import measure
from benchmarks.runner import as_record
from benchmarks.table import markdown_of, print_area
from gridbench.bench.points import DataPoint, Points
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.process.memory import footprint, tree
from gridbench.statistics.series import Series
from quiet import as_if_quiet
from running import BENCHMARKS, Run

MB = 1_000_000


@pytest.fixture(scope="module")
def measured_grain() -> tuple[Area, Points]:
    area = maps.grain_area_of(uniform=300, uneven=60)
    samples = Points()
    measure(area, 2, samples)
    samples = as_if_quiet(samples)
    return area, samples


def test_an_area_measures_every_row_in_every_round(measured_grain: tuple[Area, Points]) -> None:
    area, samples = measured_grain
    rows = area.rows(samples)
    assert [row.problems for row in rows] == [[]] * len(rows)
    for row in rows:
        assert len(row.ours.values) == 2
        assert min(row.ours.values) > 0
        assert (row.peer is None) == math.isnan(row.ratio_to_peer)
        assert (row.reached is None) == (row.target is None)
    assert sum(row.target is not None for row in rows) == 4


def test_automatic_chunks_are_compared_with_the_best_fixed_ones(
    measured_grain: tuple[Area, Points],
) -> None:
    area, samples = measured_grain
    (row, *_) = area.rows(samples)
    slowest = max(samples.of(area.cases[0].name, str(size)).median for size in (1, 10, 5_000))
    assert row.peer is not None
    assert row.peer.median <= slowest


def test_the_table_shows_all_columns_that_are_used(measured_grain: tuple[Area, Points]) -> None:
    area, samples = measured_grain
    console = Console(width=200, record=True, file=io.StringIO())
    print_area(console, area.title, area.rows(samples))
    text = console.export_text()
    for part in ("what", "ours", "peer", "ratio", "target", "reached"):
        assert part in text
    assert "limit" not in text
    assert "<= 1.1× peer" in text
    assert "not measured" not in text
    narrow = Console(width=80, record=True, file=io.StringIO())
    print_area(narrow, area.title, area.rows(samples))
    text = narrow.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "target <= 1.1× peer; reached " in " ".join(text.split())


def test_libraries_are_compared_with_the_pools_that_they_know() -> None:
    area = libraries.area_of(small=200, searched=1, size=1_000_000, calls=200, rounds=1)
    samples = Points()
    measure(area, 1, samples)
    samples = as_if_quiet(samples)
    rows = area.rows(samples)
    assert [row.problems for row in rows] == [[]] * len(rows)
    assert all(row.reached is not None for row in rows)


def test_a_journal_is_written_and_read() -> None:
    area = maps.journal_area_of(20_000)
    samples = Points()
    measure(area, 1, samples)
    samples = as_if_quiet(samples)
    rows = area.rows(samples)
    assert [row.problems for row in rows] == [[]] * len(rows)
    # A pickled list of numbers, its record, and that of the items that were sent.
    assert 1 < rows[-1].ours.median < 50


def test_large_inputs_are_watched_from_outside() -> None:
    values = maps.watch(workers=2, tasks=4, size=40 * MB)
    assert values["peak"] > 40 * MB
    assert values["seconds"] > 0


def test_the_footprint_counts_shared_pages_once_and_unmapped_segments_too() -> None:
    here = [os.getpid()]
    before = footprint(here)
    segment = os.memfd_create("gridbench-test")
    try:
        os.posix_fallocate(segment, 0, 30 * MB)
        assert footprint(here) - before > 29 * MB
    finally:
        os.close(segment)
    data = np.full(60 * MB, 1, np.uint8)
    alone = footprint(here)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        assert tree(os.getpid()).count(child) == 1
        assert footprint([*here, child]) - alone < 30 * MB
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert data[0] == 1


def _doubled(value: float) -> Values:
    if value < 0:
        raise ValueError("too small")
    time.sleep(value)
    return {"s": 2 * value}


def test_a_run_that_fails_is_reported_and_the_others_count(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))  # where `_doubled` is
    bad = AreaCase(name="bad", function=_doubled, arguments={"value": -1})
    good = AreaCase(name="good", function=_doubled, arguments={"value": 0.01}, most_runs=1)
    slow = AreaCase(
        name="slow", function=_doubled, arguments={"value": 60.0}, timeout=1.0, most_runs=1
    )
    samples = Points()
    before = set(psutil.Process().children(recursive=True))
    measure(Area("x", "", (bad, good, slow), ()), 2, samples)
    assert samples.of("good", "s").values == [0.02]
    assert "ValueError: too small" in samples.of("bad", "s").problem
    assert "slow, round 1: gave no result in 1 s" in samples.of("slow", "s").problem
    row = Row(
        what="x",
        unit="s",
        ours=samples.of("good", "s"),
        peer=samples.of("bad", "s"),
        target=Target(1.0, of_peer=True),
    )
    assert row.reached is None
    assert "bad, round 2" in row.problems[0]
    assert as_record(row)["ratio_to_peer"] is None
    assert set(psutil.Process().children(recursive=True)) <= before


def test_what_failed_before_a_call_was_cut_off_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))  # where `_doubled` is
    bad = AreaCase(name="bad", function=_doubled, arguments={"value": -1})
    good = AreaCase(name="good", function=_doubled, arguments={"value": 0.01})
    areas = {"x": {"": lambda _: Area("x", "", (bad, good), ())}}
    monkeypatch.setattr(runner, "AREAS", areas)
    file = tmp_path / "out.json"
    request = runner.AreaRequest(
        areas=["x"], runs=1, out=file, policy=Policy(accept=True, wait=0), printing=Printing()
    )

    def why(request: runner.AreaRequest, *, disturbed: bool = False) -> str:
        """The reason after a call, which found the file as one that was cut off has left it."""
        if file.exists():
            record = json.loads(file.read_text()) | {"complete": False}
            for point in record["points"]:
                point["disturbed"] = disturbed
                point["why"] = point["why"] and "as it was"
            file.write_text(json.dumps(record))
        runner.run_areas(request)
        (reason,) = filter(None, (one["why"] for one in json.loads(file.read_text())["points"]))
        assert isinstance(reason, str)
        return reason

    assert "too small" in why(request)
    capsys.readouterr()
    assert why(request) == "as it was"
    message = "1 run failed before and is not tried again: bad, round 1; --retry-failed tries it"
    assert message in capsys.readouterr().err
    assert "too small" in why(request, disturbed=True)
    assert "failed before" not in capsys.readouterr().err
    assert "too small" in why(replace(request, retry_failed=True))


def test_ratios_pair_the_rounds_that_both_have() -> None:
    ours, peer = Series({0: 1.0, 1: 10.0, 2: 3.0}), Series({0: 2.0, 1: 20.0})
    assert ours.ratio_to(peer) == 0.5
    assert math.isnan(ours.ratio_to(Series({})))
    assert ours.difference_to(peer).by_round == peer.difference_to(ours).by_round == {0: 2, 1: 2}


def test_a_ratio_is_claimed_from_undisturbed_rounds_alone() -> None:
    def row(*ours: float, disturbed: int | None = None) -> Row:
        samples = Points()
        for number, value in enumerate(ours):
            samples.add(
                DataPoint(
                    workload="ours", round=number, values={"s": value}, seconds=1.0,
                    disturbed=number == disturbed,
                )
            )  # fmt: skip
            samples.add(DataPoint(workload="peer", round=number, values={"s": 2.0}))
        return Row(what="x", unit="s", ours=samples.of("ours", "s"), peer=samples.of("peer", "s"))

    assert row(1.0, 1.5).claimed
    assert row(1.0, 1.5, 9.0, disturbed=2).claimed
    assert "not claimed" not in markdown_of("x", [row(1.0, 1.5)])
    for unsure in (row(1.0), row(1.0, 3.0), row(1.0, 1.5, disturbed=0)):
        assert not unsure.claimed
        assert ", not claimed" in markdown_of("x", [unsure])


@pytest.mark.parametrize(
    ("target", "ours", "reached"),
    [
        (Target(2.0), 2.0, True),
        (Target(2.0), 2.1, False),
        (Target(0.2, of_peer=True), 2.0, True),
        (Target(0.2, of_peer=True), 2.1, False),
        (Target(10, at_least=True, of_peer=True), 99.0, False),
        (Target(10, at_least=True, of_peer=True), 100.0, True),
        (Target(1.0), math.nan, None),
    ],
)
def test_what_counts_as_reached(target: Target, ours: float, reached: bool | None) -> None:
    measured = Series({} if math.isnan(ours) else {0: ours})
    row = Row(what="x", unit="s", ours=measured, peer=Series({0: 10.0}), target=target)
    assert row.reached is reached
    disturbed = replace(measured, disturbed=frozenset({0}))
    assert replace(row, ours=disturbed).reached is None


def test_bad_input_is_reported_before_anything_runs(refused_benchmarks: Run) -> None:
    done = refused_benchmarks("speed")
    assert done.returncode == 2
    assert done.stderr == (
        "gridbench: error: there is no area `speed`\n"
        "hint: the areas are grain, modules, large, libraries, journal, starts, hosts, cluster,"
        " sync, data, server, linpack\n"
    )
    done = refused_benchmarks("grain", "--out", "none/x.json")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "gridbench: error: none/x.json: cannot write the results: No such file"
    )


@pytest.fixture
def bench_of_large(tmp_path: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*BENCHMARKS, "large", "--runs", "1", "--out", "out.json"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_behind_when_it_is_ended(
    bench_of_large: subprocess.Popen[str], tmp_path: Path, end: signal.Signals
) -> None:
    family = _wait_for_family(bench_of_large.pid, 6)
    bench_of_large.send_signal(end)
    output, errors = bench_of_large.communicate(timeout=30)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive
    if end == signal.SIGINT:
        assert bench_of_large.returncode == 130
        assert "stopped: what was measured stands above" in output
        assert "Traceback" not in errors
        record = json.loads((tmp_path / "out.json").read_text())
        assert record["complete"] is False
        assert record["machine"]["cores"] > 0


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"mine": 1}', '{"complete": false, "points": [1]}', '{"complete": false}', "\xff"],
)
def test_a_file_that_is_not_of_a_benchmark_is_not_replaced(
    refused_benchmarks: Run, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "out.json"
    path.write_text(text, encoding="latin-1")
    done = refused_benchmarks("journal", "--quick", "--out", path, "--accept-load")
    assert done.returncode == 2
    assert "is no file of `python -m benchmarks`, or it is damaged" in done.stderr
    assert "--fresh" in done.stderr
    assert path.read_text(encoding="latin-1") == text


def _wait_for_family(pid: int, number: int) -> list[psutil.Process]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        family = psutil.Process(pid).children(recursive=True)
        if len(family) >= number:
            return list(family)
        time.sleep(0.05)
    raise AssertionError(f"fewer than {number} processes came up")
