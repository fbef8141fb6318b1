"""Advice held against reality: which splits are run, what the answer says, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import pytest

from browsing import drawn, opened
from gridbench.advise.advice import COMPARED, Advice, advise, limits_map
from gridbench.advise.document import document_of
from gridbench.advise.trial import LeftOut, Trial, TriedSplit, trial_sentences, trial_warnings
from gridbench.advise.trying import candidates
from gridbench.advise.uneven import Uneven
from gridbench.advise.work import DivisibleWork
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from gridbench.pages.document import write_page
from gridbench.statistics.interval import ratio_bounds
from running import DEADLINE, PROGRAM, Run, alive, until
from synthetic import MB

ENGINE = "gridrpc-native"
FEW = ("--work", "0.02s", "--cores", "3", "--most-tasks", "12", "--task", "sleep")


def of(model: PipelineModel, *, engine: str = ENGINE, transport: str = "one host") -> PipelineModel:
    place = replace(model.fit.place, engine=engine, transport=transport)  # type: ignore[arg-type]
    return replace(model, fit=replace(model.fit, place=place))


@pytest.fixture(scope="module")
def model(model: PipelineModel) -> PipelineModel:
    """As if it were of an engine that there is."""
    return of(model)


@pytest.fixture
def saved(model: PipelineModel, tmp_path: Path) -> Path:
    """Its file."""
    save_models([model], tmp_path / "model.json")
    return tmp_path / "model.json"


def tried(tasks: int, *totals: float, cores: int = 4, advised: bool = False) -> TriedSplit:
    return TriedSplit(tasks=tasks, cores=cores, advised=advised, expected=1.0, totals=totals)


def trial(*splits: TriedSplit, left_out: tuple[LeftOut, ...] = ()) -> Trial:
    return Trial(rounds=3, seed=1, tried=splits, left_out=left_out)


@pytest.mark.parametrize(
    "work",
    [
        DivisibleWork(seconds=0.02, cores=16),
        DivisibleWork(seconds=50.0, cores=16),
        DivisibleWork(seconds=3.0, cores=1),
        DivisibleWork(seconds=2.0, cores=10, bytes_in=64 * MB, bytes_out=MB, bytes_shared=4 * MB),
    ],
)
def test_round_numbers_are_tried_beside_the_advised_split(
    model: PipelineModel, work: DivisibleWork
) -> None:
    advice = advise(model, work)
    found = candidates(advice)
    splits = [(one.case.tasks, one.case.cores) for one in found]
    assert splits == sorted(set(splits))
    advised = [(one.case.tasks, one.case.cores) for one in found if one.advised]
    assert advised == [(advice.split.tasks, advice.split.cores)]
    for tasks in COMPARED:
        # As many cores as advised, and all; never more than tasks.
        assert (tasks, min(tasks, advice.split.cores)) in splits
        assert (tasks, min(tasks, work.cores)) in splits
    for one in found:
        assert one.case.tasks * one.case.sleep == pytest.approx(work.seconds)
        assert one.case.tasks * one.case.bytes_in == pytest.approx(
            work.bytes_in, abs=one.case.tasks
        )
        assert one.case.bytes_shared == work.bytes_shared
    expected = {point.tasks: point.prediction.total for point in advice.points}
    for one in found:
        if one.case.cores == min(one.case.tasks, advice.split.cores):
            assert one.expected == pytest.approx(expected[one.case.tasks])


def test_medians_are_compared_and_the_noise_stands_beside() -> None:
    found = trial(tried(10, 1.1, 9.0, 1.0), tried(20, 1.2, 1.16, 1.15, advised=True))
    assert found.rival is not None
    assert (found.rival.tasks, found.best) == (10, 1.1)
    assert found.ratio == pytest.approx(1.16 / 1.1)
    assert found.noise == pytest.approx((9.0 - 1.0) / 1.1)
    # 1.15 is less than one of the runs that the other took.
    assert found.close == "not proved"
    first, second = trial_sentences(found)
    assert first == (
        "The advised 20 tasks on 4 cores took 1.160 s, 1.05 times as long as the best of the"
        " others, 10 tasks on 4 cores with 1.100 s."
    )
    assert "differ by up to 727 %; the ratio is from 0.13 to 1.20: whether" in second
    assert "within 5 % of the best is not proved" in second


def test_runs_that_were_made_again_decide() -> None:
    lucky = replace(tried(10, 1.0, 1.0, 1.0), again=(1.30, 1.31, 1.29, 1.30, 1.32, 1.30))
    advised = replace(
        tried(20, 1.30, 1.29, 1.31, advised=True), again=(1.3, 1.3, 1.31, 1.3, 1.3, 1.29)
    )
    found = trial(lucky, advised, tried(30, 1.1, 1.1, 1.1))
    # The first runs choose the rival, and the later ones are shown.
    assert (found.rival, found.best) == (lucky, 1.1)
    assert (lucky.median, lucky.smallest, lucky.largest) == (1.3, 1.29, 1.32)
    assert found.ratio == pytest.approx(1.0)
    assert found.noise == pytest.approx(0.03 / 1.30)
    assert found.close == "yes"
    first, second = trial_sentences(found)
    best = "the best of the others in the first runs, 10 tasks on 4 cores with 1.300"
    assert f"took 1.300 s, 1.00 times as long as {best}" in first
    assert second.startswith("Their figures are of 6 more runs of each. Runs of the same split")


def test_more_runs_tell_apart_what_few_do_not() -> None:
    few = (1.0, 1.0, 1.0, 1.3)
    slower = tuple(1.1 * one for one in few)
    assert trial(tried(1, *few), tried(8, *slower, advised=True)).close == "not proved"
    many = trial(tried(1, *few * 9), tried(8, *slower * 9, advised=True))
    assert many.close == "no"


@pytest.mark.parametrize(
    ("advised", "close", "reported"),
    [
        ((1.04, 1.05, 1.04), "yes", "the advice is within 5 % of the best"),
        ((1.04, 1.06, 1.04), "not proved", "whether the advice is within 5 % of the best is not"),
        ((1.30, 1.20, 1.25), "no", "the advice is more than 5 % off the best"),
        (
            (0.90, 0.91, 0.92),
            "yes",
            "0.91 times as long as the best of the others, 1 task on 4 cores with",
        ),
    ],
)
def test_close_is_within_5_percent(advised: tuple[float, ...], close: str, reported: str) -> None:
    found = trial(tried(1, 1.0, 1.0, 1.01), tried(8, *advised, advised=True))
    assert found.close == close
    assert reported in " ".join(trial_sentences(found))


def test_a_bound_of_exactly_5_percent_proves_nothing() -> None:
    assert ratio_bounds((1.05, 1.05, 1.3), (1.0, 1.0, 1.0)) == (1.05, 1.3)
    found = trial(tried(1, 1.0, 1.0, 1.0), tried(8, 1.05, 1.05, 1.3, advised=True))
    assert found.close == "not proved"
    found = trial(tried(1, 1.0, 1.0, 1.0), tried(8, 1.05, 1.0, 1.05, advised=True))
    assert found.close == "yes"


def test_two_runs_of_each_are_too_few_for_a_verdict() -> None:
    found = trial(tried(1, 1.0, 1.0), tried(8, 1.3, 1.3, advised=True))
    assert (found.bounds, found.close) == (None, None)
    assert "too few for a verdict" in trial_sentences(found)[1]


@pytest.mark.parametrize(("ours", "theirs"), [(3, 3), (6, 6), (4, 9)])
def test_bounds_of_a_ratio_hold_as_often_as_they_say(ours: int, theirs: int) -> None:
    random = np.random.default_rng(1)
    below = above = 0
    for _ in range(2000):
        one = (1.1 * np.exp(0.3 * random.standard_t(3, ours))).tolist()
        other = np.exp(0.3 * random.standard_t(3, theirs)).tolist()
        bounds = ratio_bounds(one, other)
        assert bounds is not None
        below += bounds[0] > 1.1
        above += bounds[1] < 1.1
    # 5 % at most; with few runs there are steps, and it is less.
    assert 20 <= below <= 125
    assert 20 <= above <= 125


def test_runs_that_all_lie_outside_contradict_the_model() -> None:
    found = trial(tried(8, 1.3, 1.25, 1.4, advised=True))
    assert found.contradicts(1.0, 1.2)
    assert found.contradicts(1.5, 1.6)
    assert not found.contradicts(1.0, 1.26), "one of them is inside"
    assert not found.contradicts(1.4, 1.5), "the longest is as long as it may be"
    assert not found.contradicts(1.0, 1.25), "the shortest is as short as it may be"
    assert not found.contradicts(1.3, 1.35), "they lie on both sides"
    assert not trial(tried(8, 1.3, 1.4, advised=True)).contradicts(1.0, 1.2), "they are few"
    assert not replace(found, accepted=True, disturbed=1).contradicts(1.0, 1.2)


def test_one_round_tells_no_noise() -> None:
    found = trial(tried(1, 1.0), tried(8, 1.3, advised=True))
    # Nothing can be claimed from it.
    assert (found.noise, found.close) == (None, None)
    assert found.claims, "that was not for other programs to decide"
    assert "Each was run only once" in trial_sentences(found)[1]


def test_without_the_advised_split_nothing_is_compared() -> None:
    reason = "time: 99.00 s expected, and 60.00 s are allowed"
    found = trial(tried(1, 1.0), left_out=(LeftOut(tasks=8, cores=4, advised=True, reason=reason),))
    assert (found.ratio, found.noise, found.close) == (None, None, None)
    assert trial_sentences(found) == [f"The advised split could not be tried: {reason}."]


def test_what_disturbs_the_comparison_is_reported() -> None:
    found = trial(tried(8, 1.0, advised=True))
    assert trial_sentences(found) == [
        "The advised 8 tasks on 4 cores took 1.000 s; no other split was tried."
    ]
    assert trial_warnings(found) == []
    (reported,) = trial_warnings(replace(found, runs=3, disturbed=1))
    assert reported.startswith("Other programs disturbed 1 of 3 runs")
    (first,) = trial_sentences(replace(found, runs=3, disturbed=1))
    assert first.startswith("Provisional: The advised 8 tasks on 4 cores took 1.000 s; ")
    two = trial(tried(1, 1.0, 1.0, 1.0), tried(8, 1.3, 1.3, 1.3, advised=True))
    both = replace(two, runs=4, disturbed=1)
    assert both.close == "no"
    assert trial_warnings(both)[0].startswith("Other programs disturbed 1 of 4 runs")
    accepted = replace(both, accepted=True)
    assert (accepted.close, accepted.claims) == (None, False)
    assert len(trial_sentences(accepted)) == 1
    # Disturbed runs that do not count, and accepting what did not happen, take nothing away.
    assert trial_sentences(both) == trial_sentences(two)
    assert trial_sentences(replace(two, accepted=True)) == trial_sentences(two)
    (reported,) = trial_warnings(replace(found, model_host="there"))
    assert "another machine, there" in reported
    failure = LeftOut(tasks=8, cores=4, advised=False, reason="out of luck")
    (reported,) = trial_warnings(replace(found, failed=(failure,)))
    assert reported == "A run of 8 tasks on 4 cores failed, and no more were made: out of luck."
    # Splits without a valid run are listed as left out.
    assert trial_warnings(replace(trial(), left_out=(failure,), failed=(failure,))) == []


def test_splits_are_really_run(saved: Path, tmp_path: Path, gridbench: Run) -> None:
    done = gridbench(
        *("advise", *FEW, "--from", saved, "--try", "--rounds", 1, "--json", "--out", "advice"),
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    assert "trying" in done.stderr
    advice = json.loads(done.stdout)
    found = advice["tried"]
    assert found["failed"] == []
    splits = {(one["tasks"], one["cores"]) for one in found["splits"]}
    own = (advice["advised"]["tasks"], advice["advised"]["cores"])
    assert {(1, 1), (10, 3), own} <= splits
    for one in found["splits"]:
        assert len(one["totals"]) == 1
        # The work itself takes that long, whatever else there is.
        assert min(one["totals"]) >= 0.02 / min(one["cores"], one["tasks"])
        assert one["smallest"] <= one["median"] <= one["largest"]
    assert (found["advised"]["tasks"], found["advised"]["cores"]) == own
    others = [one for one in found["splits"] if not one["advised"]]
    assert found["rival"] == min(others, key=lambda one: median(one["totals"]))
    # One run does not tell the noise: so these two are run again.
    ours, theirs = (found[name]["again"] for name in ("advised", "rival"))
    assert (len(ours), len(theirs)) == (2, 2)
    assert found["ratio"] == pytest.approx(median(ours) / median(theirs))
    assert [len(one["again"]) for one in found["splits"]].count(2) == 2
    left_out = {one["tasks"]: one["reason"] for one in found["left_out"]}
    assert set(left_out) == {25, 50, 100, 200, 400, 1000}
    assert left_out[25] == "the work cannot be divided into more than 12 tasks"
    page = (tmp_path / "advice" / "report.html").read_text()
    assert found["sentences"][0] in page
    assert "25 tasks on 3 cores: the work cannot be divided" in page
    group = _data(page)["charts"]["total"]["traces"][-1]  # type: ignore[index]
    assert group["x"] == sorted(tasks for tasks, _ in splits)


def test_what_takes_too_long_is_left_out(saved: Path, gridbench: Run) -> None:
    done = gridbench(
        *("advise", "--work", "100s", "--cores", "3", "--from", saved, "--out", "advice"),
        *("--try", "--try-limit", "0.5"),
    )
    assert done.returncode == 0, done.stderr
    assert "left out: 1 task on 1 core: time: 100." in done.stdout
    assert "The advised split could not be tried: time: " in done.stdout
    assert "500.0 ms are allowed" in done.stdout


def test_what_does_not_fit_into_memory_is_left_out(saved: Path, gridbench: Run) -> None:
    size = f"{psutil.virtual_memory().total}B"
    done = gridbench(
        *("advise", *FEW, "--input-per-task", size, "--from", saved, "--out", "advice"),
        *("--try", "--try-limit", "1e6", "--most-tasks", "1", "--json"),
    )
    assert done.returncode == 0, done.stderr
    reasons = [one["reason"] for one in json.loads(done.stdout)["tried"]["left_out"]]
    assert reasons[0].startswith("memory: ")


def test_failed_runs_are_reported_and_left_out(
    model: PipelineModel, tmp_path: Path, gridbench: Run, faulty: dict[str, str]
) -> None:
    save_models([of(model, engine="task3")], tmp_path / "model.json")
    done = gridbench(
        *("advise", *FEW, "--from", "model.json", "--try", "--rounds", "2", "--out", "advice"),
        env=faulty,
        timeout=DEADLINE,
    )
    assert done.returncode == 1, done.stderr
    assert "left out: 10 tasks on 3 cores: " in done.stdout
    assert "the first of them, task 3" in done.stdout
    # It was run once, and not again; one task has no third to fail.
    assert done.stdout.count("10 tasks on 3 cores") == 1
    assert "left out: 1 task on" not in done.stdout


def test_a_run_that_continues_for_too_long_is_ended(
    model: PipelineModel, tmp_path: Path, gridbench: Run, faulty: dict[str, str]
) -> None:
    save_models([of(model, engine="idle")], tmp_path / "model.json")
    done = gridbench(
        *("advise", *FEW, "--most-tasks", "1", "--from", "model.json", "--out", "advice"),
        *("--try", "--try-limit", "0.5"),
        env=faulty,
    )
    assert done.returncode == 1, done.stderr
    # Twice the limit, and time for processes to start.
    reason = "time: it was ended after the 11 s that it may take"
    assert f"left out: 1 task on 1 core: {reason}" in done.stdout
    assert f"The advised split could not be tried: {reason}." in " ".join(done.stdout.split())


def test_an_interrupt_ends_all_that_runs(
    saved: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        [*PROGRAM, "advise", "--work", "100s", "--cores", "2", "--most-tasks", "2", "--from",
         str(saved), "--try", "--out", "advice"],
        env=environment | {"TMPDIR": str(tmp_path / "temporary")}, cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    # The child that runs the case, the spawner and a worker.
    until(lambda: len(psutil.Process(process.pid).children(recursive=True)) >= 3)
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert stderr.endswith("gridbench: interrupted\n")
    assert "Traceback" not in stderr
    until(lambda: not any(alive(child.pid) for child in started))
    assert list((tmp_path / "temporary").iterdir()) == []
    # The advice itself had been given.
    assert "Divide the work into 2 tasks" in stdout
    assert (tmp_path / "advice" / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--try", "--rounds", "0"], "--rounds: `0` is no number of rounds"),
        (["--try", "--try-limit", "0"], "--try-limit must be a number of seconds above 0, not 0"),
        (["--try", "--try-limit", "nan"], "--try-limit: `nan` is not a time"),
        (["--rounds", "2"], "--rounds is for what is tried\nhint: add --try"),
        (["--try-limit", "2"], "--try-limit is for what is tried\nhint: add --try"),
    ],
)
def test_nonsense_is_refused(
    saved: Path, tmp_path: Path, refused: Run, options: list[str], message: str
) -> None:
    done = refused("advise", *FEW, "--from", saved, "--out", "advice", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "advice").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"transport": "links"}, "the model is of workers behind links"),
        ({"engine": "made-up"}, "unknown engine `made-up`"),
    ],
)
def test_an_engine_that_cannot_run_here_is_not_tried(
    model: PipelineModel, tmp_path: Path, gridbench: Run, changed: dict[str, str], message: str
) -> None:
    save_models([of(model, **changed)], tmp_path / "model.json")
    done = gridbench("advise", *FEW, "--from", "model.json", "--try", "--out", "advice")
    assert done.returncode == 2
    assert message in done.stderr
    assert "hint: " in done.stderr
    assert not (tmp_path / "advice").exists()
    # A folder of the user's stays.
    (tmp_path / "mine").mkdir()
    gridbench("advise", *FEW, "--from", "model.json", "--try", "--out", "mine")
    assert (tmp_path / "mine").is_dir()


def _data(page: str) -> dict[str, object]:
    data = json.loads(page.split('id="report-data">')[1].split("</script>", maxsplit=1)[0])
    assert isinstance(data, dict)
    return data


def some_trial(advice: Advice) -> Trial:
    """Each split took one and a half times what was expected."""
    return Trial(
        rounds=3,
        seed=1,
        tried=tuple(
            TriedSplit(
                tasks=one.case.tasks,
                cores=one.case.cores,
                advised=one.advised,
                expected=one.expected,
                totals=tuple(one.expected * factor for factor in (1.4, 1.5, 1.7)),
            )
            for one in candidates(advice)
        ),
    )


def test_what_was_measured_is_drawn(driver, model: PipelineModel, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    advice = advise(model, DivisibleWork(seconds=0.02, cores=16))
    assert advice.split.cores < 16
    found = some_trial(advice)
    path = tmp_path / "report.html"
    write_page(document_of(advice), path)
    opened(driver, path)
    before = drawn(driver)["total"]["marks"]
    write_page(document_of(advice, found), path)
    opened(driver, path)
    legend = driver.execute_script(
        "return [...document.querySelectorAll('.legendtext')].map(found => found.textContent)"
    )
    assert f"measured on up to {advice.split.cores} cores" in legend
    assert "measured on up to 16 cores" in legend
    assert drawn(driver)["total"]["marks"] >= before + 2 * len(found.tried)
    tables = driver.find_elements("css selector", "section table")
    assert any("off by" in one.text and "+50.0 %" in one.text for one in tables)


def test_uneven_work_is_tried_with_the_times_that_were_drawn(saved: Path, gridbench: Run) -> None:
    done = gridbench(
        *("advise", "--work", "0.4s", "--cores", "3", "--most-tasks", "3", "--task", "sleep"),
        *("--stddev", "400%", "--distribution", "log-normal", "--rounds", "1", "--json"),
        *("--from", saved, "--out", "advice", "--try", "--accept-load"),
    )
    assert done.returncode == 0, done.stderr
    splits = json.loads(done.stdout)["tried"]["splits"]
    heavy = Uneven(share=4.0, distribution="log-normal")
    assert heavy.times(0.4, 3, 0).max() > 0.2
    assert any(one["tasks"] == 3 for one in splits)
    for one in splits:
        # No run can end before its longest task has.
        longest = heavy.times(0.4, one["tasks"], 0).max()
        assert min(one["totals"]) >= longest - 1e-3


def test_the_tasks_of_a_log_are_tried_with_their_times(
    saved: Path, tmp_path: Path, gridbench: Run
) -> None:
    (tmp_path / "my.log").write_text(
        "# NTasks=3 NNodes=3 InputFile=mine TaskDataSize=0 SharedDataSize=0 WriteDataSize=0\n"
        "1 0.01 0.1 0.2 0.21 0.3 node1\n"
        "2 0.4 0.1 0.2 0.6 0.7 node2\n3 0.01 0.1 0.2 0.21 0.3 node3\n"
    )
    done = gridbench(
        *("advise", "--work-from", "my.log", "--cores", "3", "--task", "sleep", "--rounds", "1"),
        *("--from", saved, "--out", "advice", "--try", "--accept-load", "--json"),
    )
    assert done.returncode == 0, done.stderr
    splits = json.loads(done.stdout)["tried"]["splits"]
    assert splits
    # 0.14 s each, if the time was shared out evenly.
    assert all(one["median"] >= 0.4 for one in splits)


def test_with_a_time_in_mind_nothing_is_tried_on_more_cores(model: PipelineModel) -> None:
    work = DivisibleWork(seconds=4.0, cores=16)
    few = advise(model, work, limit=1.0)
    assert few.split.cores < 8
    assert {one.case.cores for one in candidates(few)} <= set(range(1, few.split.cores + 1))
    assert any(one.case.cores == 16 for one in candidates(advise(model, work)))


def test_the_map_is_drawn(driver, model: PipelineModel, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "report.html"
    found = limits_map(model, 8, warm=False)
    advice = advise(model, DivisibleWork(seconds=1.0, cores=8))
    write_page(document_of(advice, maps=[found]), path)
    opened(driver, path)
    assert drawn(driver)["limits-0"]["marks"] >= len(found.cells)
    legend = driver.execute_script(
        "return [...document.querySelectorAll('[data-name=limits-0] .legendtext')]"
        ".map(found => found.textContent)"
    )
    assert set(legend) == {one.limits for one in found.cells}
    text = driver.find_element("css selector", "body").text
    assert "Bottlenecks by task time and data" in text
    assert f"{ENGINE} on 8 cores, 32 tasks" in text


def test_the_benchmark_of_advice(saved: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pages.advice", "splits", "--from", saved,
         "--only", "2 s on 10", "--rounds", "2", "--try-limit", "0.4", "--out", "advice.json"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=DEADLINE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stored = json.loads((tmp_path / "advice.json").read_text())
    assert (stored["engine"], stored["complete"]) == (ENGINE, True)
    (work,) = stored["works"]
    assert all(len(one["totals"]) == 2 for one in work["tried"]["splits"])
    assert f"| {work['name']} | {work['advised']['tasks']} tasks on 10 |" in done.stdout
    assert "1 task on 1 core: time: " in done.stderr
    short, long = stored["short and long"]["works"]
    assert (short["tasks"], short["cores"]) != (long["tasks"], long["cores"])
    assert "for 10,000 s on 100 cores" in done.stdout
