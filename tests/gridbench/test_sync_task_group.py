"""The task group of a host prepares real processes, starts them together, reports their ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gridbench.hosts.host_group import HostClock, ask_clock, clock_between
from gridbench.sync.record import PROGRAM, HoldPoint, Phase, TaskRun
from gridbench.sync.task_group import HostOutcome, TaskGroup, TaskOrder
from running import alive, until

HOLD_POINTS: tuple[HoldPoint, ...] = ("entry", "exec")
SOON = 0.05


@pytest.fixture
def group() -> Iterator[TaskGroup]:
    group = TaskGroup(watched=("sh",))
    yield group
    group.close()


def order(worker: int, program: str, arguments: Sequence[str], folder: Path) -> TaskOrder:
    return TaskOrder(
        worker=worker, host="here", rank=worker, program=program, arguments=tuple(arguments),
        directory=str(folder), environment={"OWN": f"of {worker}"},
    )  # fmt: skip


def shell(worker: int, text: str, folder: Path) -> TaskOrder:
    return order(worker, "/bin/sh", ("-c", text), folder)


def run(group: TaskGroup, timeout: float = 30.0) -> HostOutcome:
    return group.run(time.monotonic_ns() + round(SOON * 1e9), timeout)


def only(done: HostOutcome) -> TaskRun:
    (run,) = done.tasks
    return run


@pytest.mark.parametrize("start", HOLD_POINTS)
def test_all_start_at_the_instant(group: TaskGroup, start: HoldPoint, tmp_path: Path) -> None:
    orders = [shell(n, "sleep 0.2; echo $OWN; echo bad >&2", tmp_path) for n in range(5)]
    assert group.prepare(orders, start) == {}
    at = time.monotonic_ns() + round(SOON * 1e9)
    done = group.run(at, 30)
    assert [one.status for one in done.tasks] == ["ok"] * 5
    for number, one in enumerate(done.tasks):
        assert one.began is not None
        assert one.ended is not None
        assert one.began >= 0
        assert one.ended - one.began > 0.19
        assert done.printed[number] == (f"of {number}\n".encode(), b"bad\n")
        assert one.start == start
        assert one.memory > 100_000
    assert done.use is not None
    assert done.use.whole is not None
    assert "sh" in done.use.whole.watched
    # Nothing of an earlier round is left.
    assert group.run(time.monotonic_ns(), 1).tasks == ()


def test_what_fails_is_reported(group: TaskGroup, tmp_path: Path) -> None:
    group.prepare([shell(0, "echo this is why >&2; exit 3", tmp_path)], "entry")
    failed = only(run(group))
    assert (failed.status, failed.exit, failed.why) == ("failed", 3, "exit status 3: this is why")
    group.prepare([shell(0, "kill -SEGV $$", tmp_path)], "entry")
    failed = only(run(group))
    assert (failed.status, failed.exit, failed.why) == ("failed", -11, "signal 11 ended it")


@pytest.mark.parametrize("start", HOLD_POINTS)
def test_one_that_takes_too_long_is_ended_with_its_children(
    group: TaskGroup, start: HoldPoint, tmp_path: Path
) -> None:
    text = "sleep 1000 & echo $! >child; echo said; wait"
    group.prepare([shell(0, text, tmp_path), shell(1, "true", tmp_path)], start)
    ran = run(group, timeout=0.5)
    slow, quick = ran.tasks
    assert (slow.status, slow.exit, ran.printed[0][0]) == ("timeout", -9, b"said\n")
    assert slow.why == "it was ended after 0.5 s"
    assert quick.status == "ok"
    child = int((tmp_path / "child").read_text())
    until(lambda: not alive(child))


def test_late_orders_are_reported(group: TaskGroup, tmp_path: Path) -> None:
    group.prepare([shell(0, "true", tmp_path)], "entry")
    done = group.run(time.monotonic_ns() - 10**9, 30)
    assert done.late >= 10**9
    assert only(done).status == "ok"


def test_what_cannot_be_run_does_not_hold_up_the_others(group: TaskGroup, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    orders = [
        order(0, "/no/such/program", (), tmp_path),
        order(1, "/bin/true", (), tmp_path / "file"),
        order(2, "/bin/true", (), tmp_path / "made" / "for it"),
    ]
    reasons = {0: "No such file or directory", 1: "File exists"}
    assert group.prepare(orders, "entry") == reasons
    assert [one.worker for one in run(group).tasks] == [2]


def test_programs_are_found_or_refused(group: TaskGroup, tmp_path: Path) -> None:
    here = str(tmp_path)
    (tmp_path / "text").write_text("no program")
    assert group.why_not(sys.executable, here) == ""
    assert group.why_not("sh", here) == ""
    assert group.why_not(PROGRAM, here) == ""
    assert "no folder of PATH" in group.why_not("no-such-program", here)
    assert group.why_not("./text", here) == "it may not be executed"
    assert group.why_not("./missing", here) == "there is no such file"


def test_built_in_tasks_report(group: TaskGroup, tmp_path: Path) -> None:
    arguments = ("write-read", "--worker", "0", "--of", "1", "--size", "1M", "--directory", ".")
    group.prepare([order(0, PROGRAM, arguments, tmp_path)], "entry")
    done = only(run(group))
    assert done.status == "ok", done
    assert [(phase.name, phase.bytes) for phase in done.phases] == [
        ("write", 1 << 20), ("read", 1 << 20),
    ]  # fmt: skip


def test_a_report_that_cannot_be_used_is_a_failure(group: TaskGroup, tmp_path: Path) -> None:
    group.prepare([shell(0, """echo '{"phases": [{"name": "x"}]}'""", tmp_path)], "entry")
    done = only(run(group))
    assert done.status == "failed"
    assert "phases[0].seconds is missing" in done.why
    good = """echo '{"phases": [{"name": "x", "seconds": 2.5}]}'"""
    group.prepare([shell(0, good, tmp_path)], "entry")
    assert only(run(group)).phases == (Phase(name="x", seconds=2.5),)


def test_only_the_end_of_a_long_output_comes_back(group: TaskGroup, tmp_path: Path) -> None:
    group.prepare([shell(0, "seq 1000000; seq 1000000 >&2", tmp_path)], "entry")
    for text in run(group).printed[0]:
        assert len(text) == 64 << 10
        assert text.endswith(b"1000000\n")


def test_tasks_that_nobody_lets_go_end_with_the_group(tmp_path: Path) -> None:
    group = TaskGroup()
    group.prepare([shell(0, "touch began", tmp_path)], "entry")
    pids = [held.task.pid for held in group._held]
    group.prepare([shell(1, "touch began", tmp_path)], "exec")
    pids += [held.task.pid for held in group._held]
    group.close()
    assert not any(map(alive, pids))
    assert not (tmp_path / "began").exists()


def test_a_clock_is_asked_several_times_and_the_shortest_answer_counts() -> None:
    ahead = 10**12
    clock = ask_clock(lambda: time.monotonic_ns() + ahead)
    assert abs(clock.offset - ahead) <= clock.error
    assert clock.error == (clock.trip + 1) // 2


def test_between_two_answers_both_errors_and_the_drift_count() -> None:
    found = clock_between(HostClock(100, 5, 10), HostClock(140, 8, 16))
    assert found == HostClock(120, 8 + 20, 10)
