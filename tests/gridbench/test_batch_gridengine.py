"""The rig of a Grid Engine of its own does what its tests rely on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gridbench_testbed.batch.gridengine import GridEngine, why_not


@pytest.fixture(scope="module")
def grid_engine() -> Iterator[GridEngine]:
    if why := why_not():
        pytest.skip(why)
    with GridEngine(slots=20) as grid_engine:
        yield grid_engine


def until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def submit(grid_engine: GridEngine, *options: str) -> str:
    quiet = ("-terse", "-b", "y", "-o", "/dev/null", "-j", "y")
    said = grid_engine.run("qsub", *quiet, *options)
    return said.strip().partition(".")[0]


def test_arrays_and_parallel_jobs_run_in_its_slots(grid_engine: GridEngine, tmp_path: Path) -> None:
    job = submit(grid_engine, "-t", "1-30", "sleep", "60")
    running = [f"{job}.{task} r" for task in range(1, 21)]
    waiting = [f"{job}.{task} qw" for task in range(21, 31)]
    assert until(lambda: set(grid_engine.jobs()) == {*running, *waiting})
    grid_engine.cancel_all()
    assert grid_engine.jobs() == []
    said = tmp_path / "said"
    script = tmp_path / "script"
    script.write_text("echo $NSLOTS\n")
    to = ("-o", str(said), "-j", "y")
    grid_engine.run("qsub", "-sync", "y", *to, "-pe", "mp", "20", str(script))
    assert said.read_text().split() == ["20"]


def test_a_queue_can_be_held_and_one_is_closed(grid_engine: GridEngine) -> None:
    grid_engine.hold()
    held = submit(grid_engine, "-q", "all.q", "sleep", "60")
    closed = submit(grid_engine, "-q", "closed.q", "sleep", "60")
    time.sleep(2)
    assert sorted(grid_engine.jobs()) == sorted([f"{held} qw", f"{closed} qw"])
    grid_engine.resume()
    assert until(lambda: f"{held} r" in grid_engine.jobs())
    assert f"{closed} qw" in grid_engine.jobs()
    grid_engine.cancel_all()


def test_jobs_survive_a_master_that_is_started_again(grid_engine: GridEngine) -> None:
    job = submit(grid_engine, "sleep", "60")
    assert until(lambda: grid_engine.jobs() == [f"{job} r"])
    grid_engine.stop_master()
    grid_engine.start_master()
    assert grid_engine.jobs() == [f"{job} r"]
    grid_engine.cancel_all()


def test_two_do_not_know_of_each_other(grid_engine: GridEngine) -> None:
    with GridEngine(slots=2) as other:
        job = submit(other, "sleep", "60")
        assert until(lambda: other.jobs() == [f"{job} r"])
        assert grid_engine.jobs() == []
    assert not other.folder.exists()
