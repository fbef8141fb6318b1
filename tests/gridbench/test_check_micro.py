"""How `gridbench check` judges micro benchmarks: good ones keep all rules, and what a rule is
against breaks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import micro_results
from gridbench.micro.record import FORM, RESULTS, Completeness, MicroFigure, Ratio, Results
from judging import HEADER, judged, micro_folder, outcomes, points_of


def with_figure(**changes: Any) -> Callable[[Results], Results]:
    return lambda one: replace(one, figures=(replace(one.figures[0], **changes),))


def with_first_entry(**changes: Any) -> Callable[[Results], Results]:
    def change(one: Results) -> Results:
        first, *others = one.figures[0].entries
        return replace(
            one,
            figures=(replace(one.figures[0], entries=(replace(first, **changes), *others)),),
        )

    return change


def test_good_micro_benchmarks_keep_all_rules(tmp_path: Path) -> None:
    found = judged(micro_folder(tmp_path, points_of()))
    assert {one.outcome for one in found.values()} == {"kept"}, found
    assert found["equals were measured too"].told.startswith("in 1 figure with claims")


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        (
            "complete",
            lambda one: replace(one, extent=Completeness(points=4, planned=6, round=2, rounds=2)),
        ),
        ("figures follow from the values", with_first_entry(median=1.0)),
        ("figures follow from the values", with_first_entry(runs=3)),
        ("figures follow from the values", with_first_entry(values=(5.0, 5.0), median=5.0)),
        ("figures follow from the values", with_figure(noise=1.0)),
        ("figures follow from the values", with_figure(ratios={"ray": Ratio(claim="faster")})),
        ("equals were measured too", with_figure(noise=1.0)),
        ("who measured what, where", lambda one: replace(one, machine={})),
        ("who measured what, where", lambda one: replace(one, versions=HEADER.versions)),
        ("who measured what, where", lambda one: replace(one, ended="")),
    ],
)
def test_what_a_rule_of_micro_benchmarks_is_against_breaks_it(
    rule: str, change: Callable[[Results], Results], tmp_path: Path
) -> None:
    assert outcomes(micro_folder(tmp_path, points_of(), change))[rule] == "broken"


def test_a_round_that_failed_may_not_be_hidden(tmp_path: Path) -> None:
    failed = points_of(rounds=3, status="failed", why="it crashed", values={})
    found = judged(micro_folder(tmp_path / "one", failed))
    assert found["no failure is hidden"].outcome == "broken"
    assert found["no failure is hidden"].told.endswith("ray in null_call")
    # An engine that failed in all rounds is shown as failed.
    all_failed = [
        replace(point, status="failed", why="it crashed", values={})
        if point.engine == "ray"
        else point
        for point in points_of()
    ]
    shown = judged(micro_folder(tmp_path / "all", all_failed))["no failure is hidden"]
    assert (shown.outcome, shown.told) == ("kept", "1 value failed, and the figures say so")
    # And one that is left out is hidden.
    left_out = micro_folder(
        tmp_path / "none",
        all_failed,
        lambda one: with_figure(entries=one.figures[0].entries[:1])(one),
    )
    assert outcomes(left_out)["no failure is hidden"] == "broken"


def test_claims_need_two_undisturbed_rounds(tmp_path: Path) -> None:
    points = points_of(rounds=2, disturbed=True)
    claimed = with_figure(ratios={"gridrpc-python": Ratio(claim="faster")})
    found = judged(micro_folder(tmp_path, points, claimed))["claims were repeated undisturbed"]
    assert found.outcome == "broken"
    assert found.told == "undisturbed less than 2 times: ray in null_call 1 time"


def test_results_without_their_points_are_judged_as_far_as_that_goes(tmp_path: Path) -> None:
    folder = micro_folder(tmp_path, points_of())
    (folder / FORM.file).unlink()
    found = outcomes(folder / RESULTS)
    assert found.pop("no failure is hidden") == "not known"
    assert set(found.values()) == {"kept"}
    micro_folder(tmp_path / "other", points_of(), with_first_entry(median=1.0))
    (tmp_path / "other" / FORM.file).unlink()
    assert outcomes(tmp_path / "other")["figures follow from the values"] == "broken"


def test_what_older_results_do_not_say_is_not_known(tmp_path: Path) -> None:
    figures: tuple[MicroFigure, ...] = (
        micro_results.latency(),
        replace(micro_results.rate(), noise=1.0),
    )
    file = tmp_path / "old.json"
    file.write_text(json.dumps(micro_results.made(figures=figures, extent=None).to_record()))
    found = judged(file)
    assert found["complete"].outcome == "not known"
    assert found["equals were measured too"].outcome == "not known"
    assert found["equals were measured too"].told.endswith("no twin: map_rate")
