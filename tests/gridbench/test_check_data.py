"""How `gridbench check` judges data grids and the crossover: good ones keep all rules, and what a
rule is against breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import datagrid_cases
from gridbench.datagrid.record import DataGridCase as DataCase
from gridbench.datagrid.record import WarmUp, Windows
from judging import DISTURBED, QUIET, crossover_folder, data_case, data_folder, judged, outcomes


def test_good_cases_keep_all_rules(tmp_path: Path) -> None:
    found = judged(data_folder(tmp_path))
    assert {one.outcome for one in found.values()} == {"kept"}, found


def lost(case: DataCase) -> DataCase:
    assert case.checked is not None
    return replace(case, checked=replace(case.checked, found=999, missing=1))


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("complete", lambda one: replace(one, status="failed", why="no member joined")),
        ("data were right", lost),
        ("data were right", lambda one: replace(one, wrong=1)),
        ("figures follow from the stamps", lambda one: replace(one, seconds=1.0)),
        (
            "figures follow from the stamps",
            lambda one: replace(one, counts=replace(one.counts, reads=80)),
        ),
        (
            "figures follow from the stamps",
            lambda one: replace(one, windows=Windows(operations=(3,) * 20, errors=(0,) * 20)),
        ),
        ("figures follow from the stamps", lambda one: replace(one, latencies=())),
        ("nothing else was at work", lambda one: replace(one, load=DISTURBED)),
        ("warm and steady", lambda one: replace(one, warm_up=None)),
        ("warm and steady", lambda one: replace(one, warm_up=WarmUp(seconds=1.0, steady=False))),
        ("long enough to judge", lambda one: replace(one, windows=Windows(operations=(40,)))),
        ("repeated", lambda one: replace(one, warm_up=None)),
        ("who measured what, where", lambda one: replace(one, version="")),
    ],
)
def test_what_a_rule_of_data_grids_is_against_breaks_it(
    rule: str, change: Callable[[DataCase], DataCase], tmp_path: Path
) -> None:
    assert outcomes(data_folder(tmp_path, change))[rule] == "broken"


def test_what_is_not_recorded_of_a_data_grid_is_not_known(tmp_path: Path) -> None:
    found = outcomes(data_folder(tmp_path, lambda one: replace(one, load=None, checked=None)))
    assert found.pop("data were right") == "not known"
    assert found.pop("nothing else was at work") == "not known"
    assert set(found.values()) == {"kept"}


def test_wrong_data_of_a_run_that_does_not_count_are_reported(tmp_path: Path) -> None:
    cases = [data_case(repeat=n) for n in range(3)]
    cases[2] = lost(cases[2])
    found = outcomes(datagrid_cases.write_folder(tmp_path, cases))
    assert found.pop("data were right") == "broken"
    assert set(found.values()) == {"kept"}


def test_a_loss_that_had_to_be_is_no_wrong(tmp_path: Path) -> None:
    cases = [
        lost(datagrid_cases.killed((2,) * 20, repeat=n, load=QUIET, backups=0)) for n in range(2)
    ]
    found = judged(datagrid_cases.write_folder(tmp_path, cases))
    assert found["data were right"].outcome == "kept"
    assert found["data were right"].told.endswith("what was lost is what had to be")
    assert found["long enough to judge"].outcome == "kept"


def test_a_good_crossover_keeps_all_rules(tmp_path: Path) -> None:
    assert set(outcomes(crossover_folder(tmp_path)).values()) == {"kept"}


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("complete", {"status": "failed", "why": "no memory"}),
        ("complete", {"status": "skipped", "why": "no memory"}),
        ("nothing else was at work", {"load": DISTURBED}),
        ("repeated", {"load": DISTURBED}),
        ("repeated", {"repeat": 0}),
        ("who measured what, where", {"version": ""}),
    ],
)
def test_what_a_rule_of_the_crossover_is_against_breaks_it(
    rule: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    assert outcomes(crossover_folder(tmp_path, **changes))[rule] == "broken"
