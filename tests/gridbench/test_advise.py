"""Advice, on models whose best split is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.advise.advice import advise
from gridbench.advise.calibration import calibrating
from gridbench.advise.document import document_of
from gridbench.advise.prose import sentences, warnings
from gridbench.advise.work import DivisibleWork, parse_time
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from gridbench.pages.render import page as html
from running import Run
from synthetic import MB

WORK = DivisibleWork(seconds=1.0, cores=16)


def test_no_other_split_is_much_better(model: PipelineModel) -> None:
    for work in (
        WORK,
        DivisibleWork(seconds=0.05, cores=16),
        DivisibleWork(seconds=20.0, cores=16, bytes_in_each=MB),
        DivisibleWork(seconds=2.0, cores=10, bytes_in=64 * MB, bytes_out=MB, bytes_shared=4 * MB),
        DivisibleWork(seconds=3.0, cores=7, warm=True),
    ):
        split = advise(model, work).split
        for cores in (1, work.cores // 2, work.cores):
            for tasks in (1, 2, 5, 10, 25, 50, 100):
                other = model.total(work.divided(tasks, cores))
                assert split.total <= other * 1.05, (work, tasks, cores)


def test_tasks_are_as_few_as_do_no_harm(model: PipelineModel) -> None:
    for seconds in (0.5, 2.0, 10.0):
        work = DivisibleWork(seconds=seconds, cores=16, bytes_in=64 * MB, bytes_out=16 * MB)
        split = advise(model, work).split
        totals = {
            blocks: model.total(work.divided(blocks * split.cores, split.cores))
            for blocks in (1, 2, 3, 4, 6, 10)
        }
        least = min(totals.values())
        assert split.total <= least * 1.03
        blocks = split.tasks // split.cores
        assert all(totals[one] > least * 1.03 for one in totals if one < blocks), totals


def test_short_work_is_cut_less_than_long_work(model: PipelineModel) -> None:
    short = advise(model, DivisibleWork(seconds=0.02, cores=16)).split
    long = advise(model, DivisibleWork(seconds=50.0, cores=16)).split
    assert short.cores < long.cores == 16
    assert short.tasks < long.tasks


def test_the_parts_add_up_to_the_total(model: PipelineModel) -> None:
    advice = advise(model, replace(WORK, bytes_in=8 * MB, bytes_out=MB, bytes_shared=MB))
    assert sum(part for _, part in advice.parts) == pytest.approx(advice.expected.total, rel=0.02)
    assert dict(advice.parts)["computing"] == pytest.approx(advice.expected.ideal)


def test_the_best_split_is_among_the_points(model: PipelineModel) -> None:
    advice = advise(model, WORK)
    (best,) = (point for point in advice.points if point.tasks == advice.split.tasks)
    assert best.prediction.total == advice.split.total
    assert {1, 10, 100, 1000} <= {point.tasks for point in advice.points}


def test_warm_workers_help_where_starting_them_is_the_limit(model: PipelineModel) -> None:
    advice = advise(model, DivisibleWork(seconds=0.1, cores=16))
    assert advice.limit[0] == "starting workers"
    assert advice.helps[0].what == "workers that are there already"
    reported = " ".join(sentences(advice))
    assert "The bottleneck is starting workers" in reported
    assert "What would help most: workers that are there already" in reported


def test_data_that_each_task_gets_is_better_shared(model: PipelineModel) -> None:
    advice = advise(model, DivisibleWork(seconds=5.0, cores=16, bytes_in_each=8 * MB))
    assert advice.sharing is not None
    assert advice.sharing.shared is not None
    assert advice.sharing.shared < advice.sharing.with_tasks
    reported = " ".join(sentences(advice))
    assert (
        "If the 8 MB that each task gets are the same for all, send them as shared data" in reported
    )
    assert advise(model, WORK).sharing is None


def test_advice_beyond_what_was_measured_says_so(model: PipelineModel) -> None:
    reported = warnings(advise(model, DivisibleWork(seconds=1e5, cores=200)))
    assert any("beyond what was measured" in text and "1 to 16" in text for text in reported), (
        reported
    )


def test_more_cores_than_processors_are_for_tasks_that_wait(model: PipelineModel) -> None:
    assert any("2 processors" in text for text in warnings(advise(model, WORK)))


def test_the_page_holds_advice_and_points(model: PipelineModel) -> None:
    advice = advise(model, replace(WORK, bytes_in=MB))
    page = html(document_of(advice))
    assert f"Divide the work into {advice.split.tasks:,} tasks" in page
    data = page.split('id="report-data">')[1].split("</script>")[0]
    best = json.loads(data)["charts"]["total"]["traces"][-1]
    assert best["x"] == [advice.split.tasks]


@pytest.mark.parametrize("cores", [1, 2, 100, 5000])
def test_runs_for_calibration_tell_all_terms(cores: int) -> None:
    work = DivisibleWork(seconds=9.0, cores=cores, bytes_in=MB, bytes_shared=MB, bytes_out_each=MB)
    cases = calibrating(work)
    assert len({case.cores for case in cases}) == 3
    for name in ("bytes_in", "bytes_shared", "bytes_out"):
        assert len({getattr(case, name) for case in cases} - {0}) >= 2, name
        moved = [case.tasks * (case.bytes_in + case.bytes_out) for case in cases]
        assert max(moved) <= 200 * MB + 4096 * 4000
    assert 18 <= len(cases) <= 30


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("100s", 100),
        ("100", 100),
        ("2.5 h", 9000),
        ("200ms", 0.2),
        ("1min", 60),
        (".5s", 0.5),
        ("1d", 86400),
    ],
)
def test_times_are_seconds_or_have_units(text: str, seconds: float) -> None:
    assert parse_time("--work", text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("-1s", "is not above 0"),
        ("5 parsecs", "is not a time"),
        ("1" + "0" * 40 + "s", "is not a time"),
        ("0s", "is not above 0"),
        ("1 year", "is not a time"),
        ("nan s", "is not a time"),
        ("1000000001s", "is not above 0 and up to"),
        ("99999999d", "is not above 0 and up to"),
        ("", "is not a time"),
    ],
)
def test_what_is_no_time_is_refused(text: str, what: str) -> None:
    with pytest.raises(InputError, match=f"--work: .*{what}"):
        parse_time("--work", text)


@pytest.mark.parametrize(
    "changed", [{"seconds": 0.0}, {"cores": 0}, {"bytes_in": -1.0}, {"bytes_out": 1e18}]
)
def test_absurd_work_is_refused(changed: dict[str, float]) -> None:
    with pytest.raises(InputError):
        replace(WORK, **changed)  # type: ignore[arg-type]


def test_the_command_tells_and_writes(model: PipelineModel, tmp_path: Path, gridbench: Run) -> None:
    save_models([model], tmp_path / "model.json")
    done = gridbench(
        *("advise", "--work", "1s", "--cores", "16", "--input", "1MB"),
        *("--from", "model.json", "--out", "advice"),
    )
    assert done.returncode == 0, done.stderr
    assert "Divide the work into" in done.stdout
    assert "The bottleneck is" in done.stdout
    assert (tmp_path / "advice" / "report.html").stat().st_size > 100_000
    again = gridbench(
        *("advise", "--work", "1s", "--cores", "16", "--json"),
        *("--from", "advice/model.json", "--out", "again"),
    )
    assert json.loads(again.stdout)["engine"] == "made-up"


def test_a_model_of_another_engine_is_not_taken(
    model: PipelineModel, tmp_path: Path, gridbench: Run
) -> None:
    save_models([model], tmp_path / "model.json")
    done = gridbench(
        *("advise", "--work", "1s", "--cores", "4", "--engine", "ray", "--from", "model.json")
    )
    assert done.returncode == 2
    assert "no model of the engine `ray`" in done.stderr
    assert "made-up 1 on here" in done.stderr


def test_an_engine_is_calibrated_by_itself(tmp_path: Path, gridbench: Run) -> None:
    command = ("advise", "--work", "1s", "--cores", "4", "--task", "sleep", "--out", "advice")
    done = gridbench(*command, "--json")
    assert done.returncode == 0, done.stderr
    assert "calibrating gridrpc-native: at most" in done.stderr
    advice = json.loads(done.stdout)
    assert (advice["engine"], advice["origin"]) == ("gridrpc-native", None)
    assert advice["expected"]["low"] > advice["expected"]["ideal"] >= 0.25
    assert (tmp_path / "advice" / "model.json").is_file()
    # Where others used the machine, nothing is claimed, and nothing kept.
    disturbed = advice["provisional"]
    assert len(list(tmp_path.glob("cache/gridbench/models/*.json"))) == int(not disturbed)
