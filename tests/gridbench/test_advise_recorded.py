"""Advice for the tasks of a log: how many of them to put together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from gridbench.advise.advice import DIFFERENCES, advise
from gridbench.advise.options import AdviceParameters
from gridbench.advise.prose import sentences
from gridbench.advise.search import predict, total_of
from gridbench.advise.uneven import read_log
from gridbench.advise.work import DivisibleWork
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from running import REPOSITORY, MakeSetup, Run
from synthetic import MB

TIMES = (4.0, 1.0, 1.0, 2.0, 0.0, 3.0, 1.0, 8.0)


def log(
    path: Path, times: Sequence[float], *, sleep: bool = True, tasks: int | None = None, kb: int = 0
) -> Path:
    """A log of tasks of these times, the last first, as if each had a core of its own."""
    announced = len(times) if tasks is None else tasks
    lines = [
        f"# NTasks={announced} NNodes=9 InputFile=mine TaskDataSize={kb} SharedDataSize={3 * kb}"
        f" WriteDataSize={2 * kb}"
    ]
    lines += [
        # What slept took a little longer than that.
        f"{tid} {seconds * sleep:.6f} 0.1 0.2 {0.2 + took:.6f} {0.3 + took:.6f} node1"
        for tid, seconds in reversed(list(enumerate(times, 1)))
        for took in [seconds * (1 + 0.1 * sleep)]
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def requested(path: Path, *, cores: int = 4, most_tasks: int = 100_000) -> DivisibleWork:
    return AdviceParameters(work_from=path, cores=cores, most_tasks=most_tasks).to_work()


@pytest.mark.parametrize("sleep", [True, False])
def test_a_log_tells_times_in_the_order_of_tasks(tmp_path: Path, sleep: bool) -> None:
    work = requested(log(tmp_path / "my.log", TIMES, sleep=sleep, kb=1024))
    assert work.seconds == pytest.approx(20.0)
    assert (work.bytes_in, work.bytes_shared, work.bytes_out) == (8 * MB, 3 * MB, 16 * MB)
    assert work.most_tasks == 8
    (alone,) = work.drawn(8, 4)
    assert alone.sleep == pytest.approx(TIMES)
    (pairs,) = work.drawn(4, 4)
    assert pairs.sleep == pytest.approx((5.0, 3.0, 3.0, 9.0))
    assert pairs.bytes_in == 2 * MB
    short = requested(log(tmp_path / "short.log", [0.25, 0.5], sleep=sleep))
    assert short.seconds == pytest.approx(0.75)
    (three,) = work.drawn(3, 4)  # of 2, 3 and 3 tasks
    assert three.sleep == pytest.approx((5.0, 3.0, 12.0))


def test_the_log_in_the_documentation_is_one(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "advice.md").read_text()
    text = page.split("```text\n# NTasks")[1].split("```")[0]
    (tmp_path / "tasks.log").write_text(f"# NTasks{text}")
    found = read_log(tmp_path / "tasks.log")
    assert found.recorded.times(found.seconds, 4, 0) == pytest.approx((1.25, 4.5, 0.75, 2.0))
    # Of work that takes twice as long, each piece does.
    assert found.recorded.times(2 * found.seconds, 2, 0) == pytest.approx((11.5, 5.5))
    assert (found.bytes_in, found.bytes_out) == (400 * 1024, 20 * 1024)


def test_the_folder_of_a_run_is_a_log_too(
    tmp_path: Path, gridbench: Run, make_setup: MakeSetup
) -> None:
    setup = make_setup(tasks=4, nodes=2, write_kb=1)
    (tmp_path / "times").write_text("0.01\n0.03\n0.02\n0.01\n")
    assert gridbench("run", setup, "--out", "runs/one").returncode == 0
    found = read_log(tmp_path / "runs")
    assert found.recorded.pieces == 4
    assert found.bytes_out == 4 * 1024
    times = found.recorded.times(found.seconds, 4, 0)
    assert np.all(times >= (0.01, 0.03, 0.02, 0.01))
    assert np.argmax(times) == 1
    copytree(tmp_path / "runs" / "one", tmp_path / "runs" / "other")
    with pytest.raises(InputError, match="holds 2 runs, and a work is one"):
        read_log(tmp_path / "runs")


@pytest.mark.parametrize(
    ("times", "tasks", "what"),
    [
        (TIMES, 9, "1 of its 9 tasks have no result"),
        ((0.0, 0.0), None, "does not say how long its tasks computed"),
    ],
)
def test_a_log_that_tells_too_little_is_refused(
    tmp_path: Path, times: Sequence[float], tasks: int | None, what: str
) -> None:
    with pytest.raises(InputError, match=f"my.log.*{what}"):
        read_log(log(tmp_path / "my.log", times, tasks=tasks))


def test_times_below_0_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.log"
    text = log(path, (1.0, 2.0), sleep=False).read_text()
    path.write_text(text.replace("0.2 2.2", "0.2 0.1"))
    with pytest.raises(InputError, match="does not say how long"):
        read_log(path)


def test_what_a_log_tells_cannot_be_given_besides(tmp_path: Path) -> None:
    log(tmp_path / "my.log", TIMES)
    given = AdviceParameters(cores=4, work_from=tmp_path / "my.log")
    for wrong, what in (
        (replace(given, work="1s"), "--work and --work-from cannot both"),
        (replace(given, work_from=None), "there is no work"),
        (replace(given, shared=MB), "--shared and --work-from cannot both"),
        (replace(given, stddev="50%"), "--stddev and --work-from cannot both"),
        # Of several the first is named.
        (replace(given, shared=MB, stddev="50%"), "^--shared and --work-from"),
    ):
        with pytest.raises(InputError, match=what):
            wrong.to_work()


def test_a_work_of_one_time_has_the_sizes_of_its_options() -> None:
    given = AdviceParameters(
        work="2s", cores=4, input=1, input_per_task=2, shared=3, output=4, output_per_task=5,
        most_tasks=100, start="warm", task="spin",
    )  # fmt: skip
    assert given.to_work() == DivisibleWork(
        seconds=2.0, cores=4, bytes_in=1, bytes_in_each=2, bytes_shared=3, bytes_out=4,
        bytes_out_each=5, warm=True, most_tasks=100, body="spin",
    )  # fmt: skip
    # No task can have less than a piece.
    uneven = replace(given, stddev="50%")
    assert replace(uneven, pieces=10).to_work().most_tasks == 10
    assert replace(uneven, pieces=1000).to_work().most_tasks == 100
    assert uneven.to_work().most_tasks == 100


def test_tasks_are_put_together_where_that_is_better(model: PipelineModel, tmp_path: Path) -> None:
    # A millisecond each: handling them takes longer than the work.
    short = advise(model, requested(log(tmp_path / "short.log", [0.001] * 3000), cores=16))
    assert short.split.tasks < 1000
    assert "Put its 3,000 tasks together to" in sentences(short)[0]
    # Their deviation is then relative to their mean, which is far from a second.
    times = np.random.default_rng(2).lognormal(-7.0, 1.0, 3000)
    uneven = advise(model, requested(log(tmp_path / "uneven.log", times.tolist()), cores=16))
    together = uneven.work.drawn(uneven.split.tasks, 1)[0].sleep
    share = f"{together.std() / together.mean():.0%}".replace("%", " %")
    message = f"together in their order to {uneven.split.tasks:,}, by {share}"
    assert message in " ".join(sentences(uneven))
    long = advise(model, requested(log(tmp_path / "long.log", [5.0] * 15), cores=16))
    assert (long.split.tasks, long.split.cores) == (15, 15)
    assert "Leave its 15 tasks as they are, of 5.000 s on average" in sentences(long)[0]


def test_works_of_the_same_log_can_be_compared_and_shown(tmp_path: Path) -> None:
    work, again = (requested(log(tmp_path / "my.log", TIMES)) for _ in range(2))
    assert work == again
    assert len({work, again}) == 1
    # Not with all times.
    assert "array" not in repr(work.uneven)


def test_no_split_is_much_better(model: PipelineModel, tmp_path: Path) -> None:
    times = np.random.default_rng(5).lognormal(-3.0, 1.0, 400)
    work = requested(log(tmp_path / "my.log", times.tolist()), cores=16)
    split = advise(model, work).split
    for cores in (1, 4, 8, 16):
        for tasks in (16, 32, 48, 100, 160, 240, 400):
            assert split.total <= total_of(model, work, tasks, cores) * 1.05, (tasks, cores)


def test_the_longest_first_helps_where_it_came_last(model: PipelineModel, tmp_path: Path) -> None:
    work = requested(log(tmp_path / "my.log", [*[1.0] * 12, 6.0]))
    advice = advise(model, work)
    # The last core gets 6 s when others have worked for 3 s; or 6 s beside them.
    assert advice.expected.total == pytest.approx(9.0, rel=0.02)
    helps = {one.what: one.total for one in advice.helps}
    assert helps["the longest of 13 tasks first"] == pytest.approx(6.0, rel=0.02)
    assert dict(advice.parts)[DIFFERENCES] == pytest.approx(9.0 - 18.0 / 4)
    assert advice.expected == predict(model, work, advice.split.tasks, advice.split.cores)
    assert advice.expected.ideal == 9.0
    message = " ".join(sentences(advice))
    assert "The 13 tasks of my.log deviate by 96 %" in message


def test_a_work_of_pieces_can_be_asked_for_within_a_time(
    model: PipelineModel, tmp_path: Path
) -> None:
    work = requested(log(tmp_path / "my.log", [1.0] * 12), cores=16)
    found = advise(model, work, limit=3.5).within
    assert found is not None
    assert found.likely is not None
    assert found.likely.cores == 4


def test_the_command_takes_a_log(model: PipelineModel, tmp_path: Path, gridbench: Run) -> None:
    save_models([model], tmp_path / "model.json")
    log(tmp_path / "my.log", TIMES)
    command = ("advise", "--work-from", "my.log", "--cores", "4", "--task", "sleep")
    done = gridbench(*command, "--from", "model.json", "--out", "advice", "--json")
    assert done.returncode == 0, done.stderr
    message = json.loads(done.stdout)
    share = float(np.std(TIMES) / np.mean(TIMES))
    assert message["work"]["uneven"] == {
        "source": "my.log",
        "pieces": 8,
        "share": pytest.approx(share),
        "longest_first": False,
    }
    assert "as in my.log" in (tmp_path / "advice" / "report.html").read_text()
    assert gridbench("advise", "--cores", "4", "--from", "model.json").returncode == 2
