"""Models fitted to task logs, as systems have left them that are not there any more."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.model.fit import fit
from gridbench.model.model_kind import PLACE, observe_log, read_source
from gridbench.model.observation import Observation, Situation
from gridbench.model.pipeline import Stamps
from gridbench.model.terms import Shape, run
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.tasklog import TaskLogHeader, TaskLogWriter
from running import Run
from test_tasklog import SAMPLE

NETWORK = Shape(movement="network")
TRUE = {
    "start.constant": 4.2,
    "start.prepare": 0.15,
    "submit": 4e-4,
    "latency": 0.09,
    "retrieve": 3.5e-3,
    "in.way": 1e-8,
    "out.way": 1.5e-8,
    "shared.way": 9e-9,
}
"""A system such as Ninf-G with Grid Engine."""
MB = 2**20


def works() -> list[Situation]:
    """A grid that tells those terms apart."""
    found = []
    for cores in (5, 20, 60):
        for blocks, sleep in ((1, 2.0), (4, 1.0), (10, 0.25)):
            found.append(Situation(cores=cores, sleep=np.full(cores * blocks, sleep)))
        for size, blocks in ((MB, 3), (8 * MB, 1)):
            tasks = np.full(cores * blocks, 2.0)
            found.append(Situation(cores=cores, sleep=tasks, bytes_in=size))
            found.append(Situation(cores=cores, sleep=tasks, bytes_out=size))
            found.append(Situation(cores=cores, sleep=tasks, bytes_shared=size))
    return found


def follow(situation: Situation, values: Mapping[str, float] = TRUE) -> Stamps:
    """What the model says of it."""
    return run(NETWORK, values, PLACE, situation)


def write_log(
    path: Path,
    situation: Situation,
    stamps: Stamps,
    *,
    ahead: Floats | float = 0.0,
    lost: int = 0,
    step: float = 0.0,
    stamped: bool = True,
    oversleep: float = 0.0,
) -> Path:
    """As a log: clocks of the workers' hosts are `ahead`, the last tasks are lost, stamps are
    multiples of a step, and hosts have stamped their tasks or not."""
    sizes = (situation.bytes_in, situation.bytes_shared, situation.bytes_out)
    header = TaskLogHeader(situation.tasks, situation.cores, "x", *(size / 1024 for size in sizes))
    clocks = np.broadcast_to(np.asarray(ahead), situation.cores)

    def describe(time: float) -> float:
        return math.floor(time / step) * step if step else time

    with TaskLogWriter(path, header) as log:
        for tid in np.argsort(stamps.retrieve, kind="stable")[: situation.tasks - lost].tolist():
            worker = int(stamps.worker[tid])
            own = float(clocks[worker])
            log.row(
                tid + 1,
                float(situation.sleep[tid]) + oversleep * (tid % 2),
                describe(stamps.submit[tid]),
                describe(stamps.calc_in[tid] + own) if stamped else 0.0,
                describe(stamps.calc_out[tid] + own) if stamped else 0.0,
                describe(stamps.retrieve[tid]),
                f"n{worker}",
            )
    return path


def observed(path: Path) -> Observation:
    one = observe_log(path)
    assert isinstance(one, Observation), one
    return one


def test_a_log_tells_work_and_what_it_took(tmp_path: Path) -> None:
    sleep = np.full(40, 2.0)
    work = Situation(cores=10, sleep=sleep, bytes_in=MB, bytes_shared=3 * MB, bytes_out=512)
    stamps = follow(work)
    one = observed(write_log(tmp_path / "a.log", work, stamps, oversleep=2e-5))
    assert one.place == PLACE
    assert one.situation.cores == 10
    # The tasks really slept 2 s and some microseconds, and were to sleep 2 s.
    assert one.situation.sleep.tolist() == sleep.tolist()
    assert (one.situation.bytes_in, one.situation.bytes_shared) == (MB, 3 * MB)
    assert one.situation.bytes_out == 512
    assert not one.situation.warm
    assert one.measured.total == pytest.approx(stamps.total, abs=1e-6)
    assert one.measured.first_calc_in == pytest.approx(stamps.calc_in.min(), abs=1e-6)
    firsts = [stamps.calc_in[stamps.worker == worker].min() for worker in range(10)]
    assert one.measured.last_worker_calc_in == pytest.approx(max(firsts), abs=1e-6)


@pytest.mark.parametrize("slept", [12.55, 1234.0, 1236.0, 0.125, 30.0])
def test_equal_times_keep_the_digits_that_they_have(tmp_path: Path, slept: float) -> None:
    work = Situation(cores=2, sleep=np.full(4, slept))
    stamps = follow(work)
    one = observed(write_log(tmp_path / "a.log", work, stamps, oversleep=2e-4))
    assert one.situation.sleep.tolist() == [slept] * 4
    assert one.measured.total - one.ideal == pytest.approx(stamps.total - 2 * slept, abs=1e-6)


def test_uneven_times_stay_as_they_were_slept_in_the_order_of_submission(tmp_path: Path) -> None:
    work = Situation(cores=2, sleep=np.array([3.0, 1.0, 2.0, 1.5]))
    one = observed(write_log(tmp_path / "a.log", work, follow(work)))
    assert one.situation.sleep.tolist() == [3.0, 1.0, 2.0, 1.5]


def test_a_fit_to_logs_finds_the_system_and_predicts_other_work(tmp_path: Path) -> None:
    paths = [
        write_log(tmp_path / f"{number}.log", work, follow(work))
        for number, work in enumerate(works())
    ]
    source = read_source(paths)
    assert not source.left_out
    assert len(source.observations) == len(paths)
    assert set(source.by_place()) == {PLACE}
    found = fit(source.observations, shape=NETWORK, starts=0)
    assert found.place == PLACE
    other = Situation(cores=40, sleep=np.full(200, 1.0), bytes_in=4 * MB, bytes_out=2 * MB)
    assert run(found.shape, found.values, found.place, other).total == pytest.approx(
        follow(other).total, rel=0.03
    )
    assert found.values["in.way"] == pytest.approx(TRUE["in.way"], rel=0.1)
    assert found.values["out.way"] == pytest.approx(TRUE["out.way"], rel=0.1)


def test_clocks_of_hosts_say_when_workers_began_if_they_are_sure_enough(tmp_path: Path) -> None:
    work = Situation(cores=20, sleep=np.full(100, 2.0))
    stamps = follow(work)
    ahead = np.random.default_rng(3).uniform(-1, 1, 20)
    near = observed(write_log(tmp_path / "a.log", work, stamps, ahead=0.2 * ahead))
    assert near.measured.first_calc_in == pytest.approx(stamps.calc_in.min(), rel=0.03)
    assert near.measured.last_worker_calc_in == pytest.approx(stamps.calc_in.min(), rel=0.05)
    far = observed(write_log(tmp_path / "b.log", work, stamps, ahead=5 * ahead))
    assert math.isnan(far.measured.first_calc_in)
    assert math.isnan(far.measured.last_worker_calc_in)
    for one in (near, far):
        # What begins and ends on one clock is certain.
        assert one.measured.total == pytest.approx(stamps.total, abs=1e-6)
        assert one.measured.extra == pytest.approx(0, abs=1e-9)


def test_a_worker_that_is_there_long_before_all_others_says_nothing_of_theirs(
    tmp_path: Path,
) -> None:
    work = SimulatedWorkload(cores=10, tasks=40, sleep=2.0)
    stamps = simulate(work, system("symphony")).stamps
    situation = Situation(cores=10, sleep=np.full(40, 2.0))
    one = observed(write_log(tmp_path / "a.log", situation, stamps))
    # The first instance is there after 0.48 s, and all others after 5.08 s and more.
    assert stamps.calc_in.min() < 1
    assert math.isnan(one.measured.first_calc_in)
    assert one.measured.last_worker_calc_in == pytest.approx(5.58, abs=0.1)


def test_logs_without_stamps_of_hosts_still_tell_totals(tmp_path: Path) -> None:
    paths = []
    for number, work in enumerate(works()):
        path = tmp_path / f"{number}.log"
        paths.append(write_log(path, work, follow(work), stamped=number % 2 == 0))
    blind = observed(paths[1])
    assert blind.measured.total == pytest.approx(follow(works()[1]).total, abs=1e-6)
    assert math.isnan(blind.measured.first_calc_in)
    assert math.isnan(blind.measured.last_worker_calc_in)
    assert math.isnan(blind.measured.extra)
    found = fit(read_source(paths).observations, shape=NETWORK, starts=0)
    assert found.spread < 0.05
    assert found.values["in.way"] == pytest.approx(TRUE["in.way"], rel=0.2)


def test_stamps_of_whole_seconds_count_less_where_overhead_is_short(tmp_path: Path) -> None:
    work = Situation(cores=20, sleep=np.full(100, 2.0))
    exact = observed(write_log(tmp_path / "a.log", work, follow(work)))
    whole = observed(write_log(tmp_path / "b.log", work, follow(work), step=1.0))
    assert exact.uncertainty < 1e-6
    overhead = whole.measured.total - whole.ideal
    assert whole.uncertainty == pytest.approx(1 / math.sqrt(12) / overhead)


def test_a_log_that_lacks_tasks_is_left_out(gridbench: Run, tmp_path: Path) -> None:
    work = Situation(cores=2, sleep=np.full(10, 1.0))
    path = write_log(tmp_path / "a.log", work, follow(work), lost=3)
    assert observe_log(path) == "3 of its 10 tasks are missing"
    # The published lines are a part of a log.
    done = gridbench("model", str(SAMPLE))
    assert done.returncode == 2
    assert "1 run: 1,192 of its 1,200 tasks are missing" in done.stderr
    assert "give logs that have all of their tasks" in done.stderr


def test_a_log_without_header_is_refused(tmp_path: Path) -> None:
    work = Situation(cores=2, sleep=np.full(4, 1.0))
    path = write_log(tmp_path / "a.log", work, follow(work))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))
    with pytest.raises(InputError, match="number of cores and sizes of data are not known"):
        observe_log(path)


def test_a_log_whose_total_cannot_be_is_left_out(tmp_path: Path) -> None:
    work = Situation(cores=4, sleep=np.full(8, 100.0))
    path = write_log(tmp_path / "a.log", work, follow(work))
    path.write_text(path.read_text().replace("NNodes=4", "NNodes=2"))
    assert observe_log(path) == "its total is shorter than its tasks take on so many cores"


def test_old_logs_answer_for_other_work(gridbench: Run, tmp_path: Path) -> None:
    names = []
    for cores in (5, 20, 60):
        for blocks, sleep in ((1, 2.0), (2, 0.5), (4, 1.0), (6, 0.5), (10, 0.25)):
            work = Situation(cores=cores, sleep=np.full(cores * blocks, sleep))
            names.append(f"{cores}-{blocks}.log")
            write_log(tmp_path / names[-1], work, follow(work))
    done = gridbench("model", *names, "--out", "old.json", timeout=600)
    assert done.returncode == 0, done.stderr
    assert "log: the system that made these task logs, on a network" in done.stdout
    (saved,) = json.loads((tmp_path / "old.json").read_text())["models"]
    errors = {way["name"]: way["errors"] for way in saved["held_out"]}
    assert errors["random"]["total_median"] < 0.05
    options = ("--cores", "40", "--tasks", "200", "--sleep", "1", "--json")
    done = gridbench("simulate", "--profile", "old.json", "--engine", "log", *options)
    assert done.returncode == 0, done.stderr
    truth = follow(Situation(cores=40, sleep=np.full(200, 1.0))).total
    assert json.loads(done.stdout)["total_s"] == pytest.approx(truth, rel=0.05)
