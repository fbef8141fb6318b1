"""A busy machine: who is seen, what is judged, what commands do about it, and what they say."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from gridbench.errors import BusyMachine
from gridbench.machine import judgement, load, quiet
from gridbench.machine.judgement import busy, disturbed_sentence, is_quiet, judged, tolerated
from gridbench.machine.load import (
    BusyProcess,
    ClockReading,
    Load,
    LoadSample,
    begin_sample,
    reading,
    take_sample,
)
from gridbench.machine.options import WAIT, Policy
from gridbench.machine.processes import mark, processes, whose
from gridbench.machine.quiet import settle
from gridbench.statistics.claims import excludes_equality
from running import _STRANGER, REPOSITORY, MakeSetup, Run, stranger

QUIET = LoadSample(Load(seconds=1, others=0.01), ())
BUSY = LoadSample(
    Load(seconds=1, others=1.5, stolen=0.25),
    (BusyProcess("cc1", 7, 0.9), BusyProcess("cc1", 8, 0.35)),
)


@pytest.fixture(autouse=True)
def no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """None but what a test gives."""
    monkeypatch.delenv("GRIDBENCH_ACCEPT_LOAD", raising=False)


@pytest.mark.parametrize(("processors", "limit"), [(1, 0.15), (2, 0.15), (7, 0.15), (64, 1.28)])
def test_one_rule_for_small_and_large_machines(processors: int, limit: float) -> None:
    assert tolerated(processors) == pytest.approx(limit)
    assert is_quiet(0.99 * limit / processors, processors)
    assert not is_quiet(1.01 * limit / processors, processors)
    assert not is_quiet(float("nan"), processors)


def test_what_cannot_be_told_apart_is_not_judged() -> None:
    few, many = tolerated() * 0.9, tolerated() * 2
    assert judged(Load(seconds=1, others=few, apart=True)) == "undisturbed"
    assert judged(Load(seconds=1, others=many)) == "disturbed"
    assert judged(Load(seconds=1, others=many, at_least=few, apart=True)) == "not known"
    assert judged(Load(seconds=1, others=many, at_least=many, apart=True)) == "disturbed"


def test_loads_are_differences_of_readings() -> None:
    before = ClockReading(at=10, not_idle=5, own=1, stolen=1, seen=50)
    load = ClockReading(at=12, not_idle=9, own=2, stolen=1.5, seen=52).load_since(before)
    assert load == Load(seconds=2, others=1.5, stolen=0.25, at_least=1.25)
    # Others that have ended are missing in what is seen, and clocks that tick tell no less.
    assert ClockReading(12, 9, 2, 1.0, 3).load_since(before).at_least == 0
    assert ClockReading(12, 7.02, 3, 1.0, 3).load_since(before).others == 0
    assert ClockReading(10, 5, 1).load_since(before).others == 0


def test_a_stranger_is_seen_and_a_child_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_MOST", 10_000)
    monkeypatch.setattr(load, "_LEAST", 0.0)
    with stranger() as pid:
        found = take_sample(0.5)
        known = whose(processes(), os.getpid())
    users = {user.pid: user for user in found.users}
    assert users[pid].processors > 0
    assert os.getpid() not in users
    assert pid in known.others
    assert os.getpid() in known.ours
    assert judged(found.load) == "disturbed"
    assert found.load.at_least > 0
    assert [user.processors for user in found.users] == sorted(
        (user.processors for user in found.users), reverse=True
    )


def test_a_look_tells_what_went_on_since_it_has_begun() -> None:
    with stranger():
        begun = begin_sample()
        time.sleep(0.5)
        before = time.monotonic()
        found = take_sample(0.0, begun)
    assert found.began == begun.reading
    assert found.load.seconds >= before - begun.reading.at
    assert found.load.at_least > 0


def test_what_a_batch_system_starts_for_us_is_ours() -> None:
    """Who has submitted a job passes on a mark; daemons pass on the rest of its environment."""
    mark()
    with stranger() as pid, stranger(env={**os.environ, "GRIDBENCH_MEASURES": "0.0"}) as other:
        known = whose(processes(), os.getpid())
        assert pid in known.ours
        assert other in known.others
        assert known.apart
        assert reading(os.getpid()).apart


def test_agents_that_come_by_ssh_are_unclear(tmp_path: Path) -> None:
    mark()
    (tmp_path / "gridrpc").symlink_to(sys.executable)
    (tmp_path / "agent").write_text(_STRANGER)
    environment = {**os.environ, "GRIDBENCH_MEASURES": ""}
    with stranger(tmp_path / "gridrpc", "agent", env=environment, cwd=tmp_path) as pid:
        known = whose(processes(), os.getpid())
    assert pid in known.unclear
    assert known.apart


def looks(monkeypatch: pytest.MonkeyPatch, *found: LoadSample) -> Iterator[LoadSample]:
    """What is seen, in turn; returns what is left of it."""
    left = iter(found)
    monkeypatch.setattr(quiet, "take_sample", lambda *_: next(left))
    monkeypatch.setattr(quiet, "mark", lambda: None)
    return left


def written() -> tuple[Console, StringIO]:
    out = StringIO()
    return Console(file=out, width=1000), out


def test_a_quiet_machine_is_reported_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    looks(monkeypatch, QUIET)
    console, out = written()
    assert settle(Policy(), console) is QUIET
    assert out.getvalue() == ""


def test_a_busy_one_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    left = looks(monkeypatch, BUSY, BUSY, QUIET, BUSY)
    console, out = written()
    assert settle(Policy(wait=float("inf")), console) is QUIET
    assert list(left) == [BUSY]
    assert out.getvalue().startswith("waiting until the machine is quiet; other programs use 1.50 ")


def test_one_that_stays_busy_stops_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    looks(monkeypatch, BUSY)
    with pytest.raises(
        BusyMachine, match=r"cc1 \(process 7\) 0\.90, .*hypervisor.* 0\.25"
    ) as found:
        settle(Policy(wait=0), written()[0])
    assert found.value.exit_status == 3
    assert "--accept-load" in found.value.remedy


def test_one_that_is_accepted_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    looks(monkeypatch, BUSY)
    console, out = written()
    assert settle(Policy(accept=True, wait=0), console) is BUSY
    assert f"--accept-load: {busy(BUSY)}. Results are provisional." in " ".join(
        out.getvalue().split()
    )


def test_only_what_claims_something_or_is_accepted_is_well() -> None:
    assert Policy().exit_status(claims=True) == 0
    assert Policy().exit_status(claims=False) == 3
    assert Policy(accept=True).exit_status(claims=False) == 0


@pytest.mark.parametrize(("seconds", "expected"), [(0.1, "disturbed"), (2.0, "undisturbed")])
def test_short_runs_are_judged_with_what_was_before(
    monkeypatch: pytest.MonkeyPatch, seconds: float, expected: str
) -> None:
    """Of less than half a second the clocks tell too little."""
    before = ClockReading(at=0, not_idle=0, own=0)
    begin = ClockReading(at=1, not_idle=1, own=0)
    end = ClockReading(at=1 + seconds, not_idle=1, own=0)
    moments = iter([begin, end])
    monkeypatch.setattr(judgement, "reading", lambda _: next(moments))
    seen = judgement.Watch(os.getpid(), before)
    seen.begin()
    assert (seen.load, seen.judgement, seen.told) == (None, "not known", "")
    seen.end()
    assert seen.judgement == expected
    record = seen.record()
    assert (record["before"]["others"], record["measured"]["others"]) == (1.0, 0.0)
    assert record["told"] == seen.told


def test_a_run_on_a_busy_machine_is_refused(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    with stranger():
        done = gridbench("run", make_setup(), "--wait-for-quiet=0", "--out", "out")
    assert done.returncode == 3
    assert done.stderr.startswith("gridbench: error: other programs use ")
    assert "hint: " in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_is_measured_on_a_busy_machine_does_not_count(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    with stranger():
        done = gridbench("run", make_setup(tasks=40, sleep=0.1), "--accept-load", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "--accept-load: other programs use " in done.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    load = record["load"]
    assert (record["valid"], load["judgement"]) == (False, "disturbed")
    assert record["invalid_because"] == [load["told"]]
    assert load["told"] == disturbed_sentence(Load(**load["judged"]))
    assert all(load[when]["others"] > load["tolerated"] for when in ("measured", "judged"))
    assert load["before"]["seconds"] > 0
    assert load["after"]["seconds"] > 0
    # The same words in the terminal and on the page.
    assert load["told"] in done.stderr
    assert load["told"] in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    "command",
    [
        ("advise", "--work", "1s", "--cores", "2"),
        ("micro", "null_call", "--engine", "process-pool", "--quick"),
        ("scenario", "3", "--quick"),
    ],
)
def test_all_that_measure_refuse_a_busy_machine(
    gridbench: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    with stranger():
        done = gridbench(*command, "--wait-for-quiet=0", "--out", "out")
    assert done.returncode == 3, done.stderr
    assert "gridbench: error: other programs use " in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.html"))


def test_what_is_refused_leaves_earlier_results_alone(benchmarks: Run, tmp_path: Path) -> None:
    before = '{"complete": true}'
    (tmp_path / "out.json").write_text(before)
    with stranger():
        done = benchmarks("journal", "--quick", "--wait-for-quiet=0", "--out", "out.json")
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "out.json").read_text() == before


@pytest.mark.parametrize(
    ("ratios", "claimed"),
    [((), False), ((2.0,), False), ((2.0, 1.1), True), ((0.5, 0.9), True), ((2.0, 1.0), False)],
)
def test_two_rounds_on_one_side_can_be_claimed(ratios: tuple[float, ...], claimed: bool) -> None:
    assert excludes_equality(ratios) is claimed


def test_nonsense_is_refused(gridbench: Run, make_setup: MakeSetup) -> None:
    done = gridbench("run", "--wait-for-quiet", make_setup())
    assert done.returncode == 2
    assert "is not a time: write --wait-for-quiet=60, or put it last" in done.stderr


def test_the_page_tells_the_rule_as_it_is() -> None:
    page = (REPOSITORY / "docs" / "busy-machine.md").read_text()
    assert f"{tolerated(2):.2f} of 2, {tolerated(64):.2f} of 64" in page
    assert f"waits for {WAIT:.0f} s" in page
    assert f"exit status {BusyMachine.exit_status}" in page
