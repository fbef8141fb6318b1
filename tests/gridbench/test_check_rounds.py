"""How `gridbench check` judges synchronised rounds: good ones keep all rules, and what a rule is
against breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gridbench.sync.record import ERRORS, KEPT, Phase, Round
from judging import DISTURBED, judged, outcomes, printed, rounds_of, sync_folder


def changed(one: Round, **changes: Any) -> Round:
    """With the first task changed."""
    return replace(one, tasks=(replace(one.tasks[0], **changes), *one.tasks[1:]))


def test_good_rounds_keep_all_rules(tmp_path: Path) -> None:
    found = judged(sync_folder(tmp_path, rounds_of()))
    assert {one.outcome for one in found.values()} == {"kept"}, found
    reported = found["figures follow from what tasks printed"].told
    assert reported == "phases of 4 tasks, read again from what they printed"


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("complete", lambda one: replace(one, status="failed")),
        # The round says of itself that all is well.
        ("complete", lambda one: changed(one, status="failed")),
        ("complete", lambda one: changed(one, exit=1)),
        ("complete", lambda one: changed(one, ended=None)),
        ("complete", lambda one: replace(one, tasks=one.tasks[1:])),
        ("complete", lambda one: replace(one, tasks=(one.tasks[0], one.tasks[0]))),
        ("stamps are in order", lambda one: changed(one, began=-0.01)),
        ("stamps are in order", lambda one: changed(one, began=2.0)),
        ("phases fit into their tasks", lambda one: changed(one, ended=0.4)),
        (
            "figures follow from what tasks printed",
            lambda one: changed(one, phases=(Phase(name="write", seconds=0.25, bytes=1000),)),
        ),
        ("nothing else was at work", lambda one: replace(one, load=DISTURBED)),
        ("repeated", lambda one: replace(one, load=DISTURBED)),
        ("repeated", lambda one: replace(one, parameter=f"{one.repeat}")),
    ],
)
def test_what_a_rule_of_rounds_is_against_breaks_it(
    rule: str, change: Callable[[Round], Round], tmp_path: Path
) -> None:
    folder = sync_folder(tmp_path, [change(one) for one in rounds_of()])
    assert outcomes(folder)[rule] == "broken"


def test_rounds_that_do_not_count_are_left_out(tmp_path: Path) -> None:
    three = rounds_of(3)
    three[1] = replace(three[1], load=DISTURBED)
    found = judged(sync_folder(tmp_path, three))
    assert {one.outcome for one in found.values()} == {"kept"}
    reported = found["nothing else was at work"].told
    assert reported == "nothing disturbed 2 rounds; 1 more do not count, and are left out"


def test_the_clocks_allow_for_what_they_do_not_know(tmp_path: Path) -> None:
    early = [changed(one, began=-0.01, clock_error=0.02) for one in rounds_of()]
    assert outcomes(sync_folder(tmp_path, early))["stamps are in order"] == "kept"


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        (printed() + ERRORS + printed(9.0), "kept"),
        (printed(0.25), "broken"),
        (b"", "broken"),
        (b"x" * KEPT, "not known"),
    ],
)
def test_what_tasks_printed_is_read_again(output: bytes, outcome: str, tmp_path: Path) -> None:
    folder = sync_folder(tmp_path, rounds_of(), output)
    assert outcomes(folder)["figures follow from what tasks printed"] == outcome


@pytest.mark.parametrize("output", ["", "output/none.txt", "../outside.txt"])
def test_what_is_not_kept_of_rounds_is_not_known(output: str, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_bytes(printed())
    rounds = [replace(changed(one, output=output), load=None) for one in rounds_of()]
    found = outcomes(sync_folder(tmp_path / "rounds", rounds))
    assert found.pop("figures follow from what tasks printed") == "not known"
    assert found.pop("nothing else was at work") == "not known"
    assert set(found.values()) == {"kept"}


def test_no_rounds_are_not_complete(tmp_path: Path) -> None:
    assert outcomes(sync_folder(tmp_path, []))["complete"] == "broken"
