"""Two results are compared: what is better, worse or undecided, and the exit status."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench.micro.record import Results
from gridbench.result_kind import FigureName, Measure
from gridbench.results.table import Compared, compared, describe, failing, measures_of, parse_share
from micro_results import made
from running import MakeSetup, Run, accept
from scenario_results import all_done, write_folder


def one(before: tuple[float, ...], after: tuple[float, ...], better: str = "less") -> Compared:
    sides = (Measure(values, "s", better) for values in (before, after))  # type: ignore[arg-type]
    return Compared("engine", "what", *sides)


@pytest.mark.parametrize(
    ("before", "after", "better", "verdict"),
    [
        ((1.0, 1.1), (1.2, 1.3), "less", "worse"),
        ((1.0, 1.1), (1.2, 1.3), "more", "better"),
        ((1.2, 1.3), (1.0, 1.1), "less", "better"),
        ((1.0, 1.2), (1.1, 1.3), "less", "no difference"),
        ((1.0, 1.0), (1.0, 1.0), "less", "no difference"),
        ((1.0,), (5.0, 5.0), "less", "too few"),
        # Four of the 25 pairs may say the contrary, and no more.
        ((1.0, 1.1, 1.2, 1.3, 2.35), (2.0, 2.1, 2.2, 2.3, 2.4), "less", "worse"),
        ((1.0, 1.1, 1.2, 1.3, 2.45), (2.0, 2.1, 2.2, 2.3, 2.4), "less", "no difference"),
        ((0.0, 0.0), (1.0, 1.0), "less", "worse"),
        ((0.0, 0.0), (0.0, 0.0), "less", "no difference"),
    ],
)
def test_a_difference_is_claimed_by_ranks(
    before: tuple[float, ...], after: tuple[float, ...], better: str, verdict: str
) -> None:
    assert one(before, after, better).verdict == verdict


def test_a_loss_is_a_loss_whichever_way_is_better() -> None:
    assert one((1.0, 1.0), (1.5, 1.5)).loss == pytest.approx(0.5)
    assert one((1.0, 1.0), (0.5, 0.5), "more").loss == pytest.approx(0.5)
    assert one((1.0, 1.0), (0.5, 0.5)).loss == pytest.approx(-0.5)


def test_only_what_can_be_claimed_fails() -> None:
    clear, unclear = one((1.0, 1.01), (1.1, 1.11)), one((1.0, 3.0), (2.0, 9.0))
    assert failing([clear, unclear], 0.05) == [clear]
    assert failing([clear, unclear], 0.2) == []


def test_what_only_one_has_is_left_out_and_nothing_in_common_is_reported() -> None:
    here = {("a", "x"): Measure((1.0,)), ("a", "y"): Measure((1.0,))}
    there = {("a", "x"): Measure((2.0,)), ("a", "y"): Measure((1.0,), "MB")}
    assert [found.what for found in compared(here, there)] == ["x"]
    with pytest.raises(InputError, match="no measurement in common"):
        compared(here, {("b", "x"): Measure((1.0,))})


def test_the_sentence_counts() -> None:
    worse, better = one((1.0, 1.0), (1.2, 1.2)), one((1.0, 1.0), (0.5, 0.5))
    few = one((1.0,), (1.0,))
    assert describe([worse, better, few]) == (
        "Of 3 figures: 1 worse, by up to 20.0 %, 1 better, by up to 50.0 %; 1 measured too seldom"
        " to tell."
    )
    assert describe([few]) == (
        "Provisional: of 1 figure, none differs; a claim takes 2 values of each side."
    )
    assert describe([one((1.0,), (1.5,))]).startswith(
        "Provisional: of 1 figure, 1 worse, by up to 50"
    )


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), (" 12.5 % ", 0.125)])
def test_shares_are_read(text: str, share: float) -> None:
    assert parse_share("--fail-above", text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "x", "-5%", "5%%", "nan", "1e5", "٥%" * 30])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_share("--fail-above", text)


def runs(gridbench: Run, setup: Path, folder: str) -> None:
    for number in (1, 2):
        options = ("--engine", "process-pool", "--no-check", "--out", f"{folder}/{number}")
        done = gridbench("run", setup, *options)
        assert done.returncode == 0, done.stderr
    accept(setup.parent / folder)


def test_slower_runs_fail_a_build(gridbench: Run, make_setup: MakeSetup, tmp_path: Path) -> None:
    setup = make_setup(tasks=2, nodes=2, sleep=0.05)
    runs(gridbench, setup, "before")
    (tmp_path / "times").write_text("6.0\n" * 2)  # the list that the set-up names
    runs(gridbench, setup, "now")
    done = gridbench("report", "before", "now", "--fail-above", "5%")
    assert done.returncode == 1
    assert "process-pool: 2 tasks that sleep, 2 workers, cold start" in done.stdout
    assert "1 worse" in done.stdout
    assert "is tolerated" in done.stderr
    other = gridbench("report", "now", "before", "--fail-above", "5%", "--out", "both.html")
    assert other.returncode == 0, other.stderr
    assert "1 better" in other.stdout
    assert (tmp_path / "both.html").is_file()


def test_micro_benchmarks_have_a_page_of_their_comparison(gridbench, driver, tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(made().to_record()))
    done = gridbench("report", "first", "second", "--out", "page.html")
    assert done.returncode == 0, done.stderr
    driver.get((tmp_path / "page.html").as_uri())
    text = driver.find_element("tag name", "body").text
    assert "A ratio is the median" in text
    assert "Of " in text or "Provisional" in text


def test_disturbed_values_of_micro_benchmarks_do_not_count(tmp_path: Path) -> None:
    def figures(**changes: object) -> Results:
        whole = made()
        return replace(
            whole,
            figures=tuple(
                replace(one, entries=tuple(replace(e, **changes) for e in one.entries if e.values))
                for one in whole.figures
            ),
        )

    def measures(results: Results) -> dict[FigureName, Measure]:
        (tmp_path / "results.json").write_text(json.dumps(results.to_record()))
        return measures_of(tmp_path)

    all_of_them = measures(figures(disturbed_runs=0))
    some = measures(figures(disturbed_runs=3, undisturbed=(7.0, 8.0)))
    assert some.keys() == all_of_them.keys()
    assert {one.values for one in some.values()} == {(7.0, 8.0)}
    with pytest.raises(InputError, match="has no value that counts"):
        measures(figures(disturbed_runs=5))


def test_json_has_all_figures_of_a_result(gridbench: Run, tmp_path: Path) -> None:
    write_folder(tmp_path / "six", 6, all_done(6))
    message = json.loads(gridbench("report", "six", "--json").stdout)
    figures = {one["what"]: one for one in message["figures"]}
    assert len(figures) == len(all_done(6))
    one = figures["scenario 6, 100-cores-1-tasks-100s, cold"]
    total = next(case.total_s for case in all_done(6) if case.tasks == 1 and not case.bytes_in)
    assert (one["engine"], one["unit"], one["better"]) == ("gridrpc-native", "s", "less")
    assert one["values"] == [total]
    # Also what does not count, as of disturbed runs, is there.
    assert len(message["results"]["cases"]) == len(all_done(6))


def test_results_of_two_kinds_have_nothing_in_common(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    (tmp_path / "micro").mkdir()
    (tmp_path / "micro" / "results.json").write_text(json.dumps(made().to_record()))
    runs(gridbench, make_setup(tasks=2, nodes=2), "runs")
    done = gridbench("report", "runs", "micro")
    assert done.returncode == 2
    assert "no measurement in common" in done.stderr


def test_scenarios_without_a_valid_case_are_reported_with_why(
    gridbench: Run, tmp_path: Path
) -> None:
    busy = [
        replace(result, status="invalid", reason="disturbed: other programs used 1.9 processors")
        for result in all_done(3)[:4]
    ]
    busy[3] = replace(busy[3], status="failed", reason="it broke: badly")
    write_folder(tmp_path / "busy", 3, busy)
    write_folder(tmp_path / "good", 3, all_done(3))
    done = gridbench("report", "good", "busy")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        "gridbench: error: busy: has no case that counts, and so nothing to compare: of 4 cases,"
        " 3 disturbed by other programs, 1 failed as it broke"
    )
    assert len(done.stderr.splitlines()) == 2


def test_damaged_results_are_reported(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"kind": ')
    with pytest.raises(InputError):
        measures_of(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(InputError):
        measures_of(tmp_path)
