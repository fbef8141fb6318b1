"""Results of each kind are judged by rules of their own, wherever they lie, and a page gives the
reasons of all rules."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.check import RULES
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from gridbench.result_kind import RUNS, all_kinds, model_rules, module_of, rules_of
from gridbench.rules import Rules
from judging import (
    DISTURBED,
    crossover_folder,
    data_folder,
    micro_folder,
    points_of,
    rounds_of,
    sync_folder,
)
from running import REPOSITORY, Run


def test_all_results_below_a_folder_are_judged(gridbench: Run, tmp_path: Path) -> None:
    sync_folder(tmp_path / "all" / "rounds", rounds_of())
    data_folder(tmp_path / "all" / "deep" / "data")
    micro_folder(tmp_path / "all" / "micro", points_of())
    done = gridbench("check", "all")
    assert done.returncode == 0, done.stdout
    assert "All rules are kept." in done.stdout
    crossover_folder(tmp_path / "all" / "crossover", version="")
    found = gridbench("check", "all", "all/rounds", "--json")
    assert found.returncode == 1
    document = json.loads(found.stdout)
    assert {key: list(own) for key, own in document.items() if own} == {
        "crossovers": ["all/crossover"],
        "cases": ["all/deep/data"],
        "micro": ["all/micro"],
        "rounds": ["all/rounds"],
    }
    assert document["all"] == []
    last = document["crossovers"]["all/crossover"][-1]
    assert (last["rule"], last["outcome"]) == ("who measured what, where", "broken")


def test_foreign_files_below_a_folder_are_left_out(gridbench: Run, tmp_path: Path) -> None:
    micro_folder(tmp_path / "all" / "micro", points_of())
    foreign = tmp_path / "all" / "a" / "results.json"
    foreign.parent.mkdir()
    foreign.write_text('{"suite": "another"}')
    done = gridbench("check", "all")
    assert done.returncode == 0, done.stderr
    assert "All rules are kept." in done.stdout
    warning = "all/a/results.json: is not the results of micro benchmarks"
    assert done.stderr.startswith(f"gridbench: warning: left out: {warning}\nhint: ")
    for named in ("all/a", "all/a/results.json"):
        refused = gridbench("check", named)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"gridbench: error: {warning}\n")
    shutil.rmtree(tmp_path / "all" / "micro")
    assert gridbench("check", "all").returncode == 2


def test_text_from_outside_is_shown_as_it_is(gridbench: Run, tmp_path: Path) -> None:
    rounds = [
        replace(one, parameter="[red]\x1b[31m", load=DISTURBED) for one in rounds_of(repeats=1)
    ]
    sync_folder(tmp_path / "rounds", rounds)
    reported = gridbench("check", "rounds", env={"COLUMNS": "300"}).stdout
    assert "programs disturbed: 2 workers, [red]?[31m, round 1" in reported


def all_rules() -> dict[str, Rules[Any]]:
    """By the heading of the page."""
    kinds = {kind.title: rules_of(kind) for kind in all_kinds()}
    return {
        "Runs of tasks and scenarios": rules_of(module_of(RUNS)),
        "Models": model_rules(),
        "Micro benchmarks": kinds["gridbench micro"],
        "Synchronised rounds": kinds["gridbench sync"],
        "Data grids": kinds["gridbench data"],
        "Crossover": kinds["gridbench data crossover"],
        "Commands": kinds["gridbench compare"],
        "Remote Linpack": kinds["gridbench linpack"],
        "Many clients of Linpack": kinds["gridbench linpack clients"],
        "Placement": kinds["gridbench placement"],
        "Real servers of placement": kinds["gridbench placement run"],
        "Ensembles": kinds["gridbench ensemble"],
        "Benchmarks of gridrpc itself": RULES,
    }


def test_all_rules_have_their_reasons() -> None:
    page = (REPOSITORY / "docs/rules.md").read_text(encoding="utf-8")
    reported = {}
    for section in page.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        rows = [row.split("|")[1].strip() for row in text.splitlines() if row.startswith("| ")]
        reported[heading] = rows[1:]
    known = all_rules()
    assert reported == {name: [*rules.each, *rules.across] for name, rules in known.items()}
    keys = [rules.key for rules in known.values() if rules is not RULES]
    assert f"({', '.join(f'`{key}`' for key in keys)})" in " ".join(page.split())


def test_scenarios_are_judged_by_their_runs() -> None:
    titles = {kind.title: rules_of(kind).key for kind in all_kinds()}
    assert titles["gridbench scenario"] == titles["gridbench run"] == "runs"


def test_models_of_advice_are_judged(gridbench: Run, tmp_path: Path, model: PipelineModel) -> None:
    for name, disturbed in (("quiet", 0), ("busy", 3)):
        (tmp_path / "all" / name).mkdir(parents=True)
        dated = replace(model, made="2031-02-03T04:05", disturbed=disturbed)
        save_models([dated], tmp_path / "all" / name / "model.json")
    done = gridbench("check", "all/quiet")
    assert done.returncode == 0, done.stdout
    assert "All rules are kept." in done.stdout
    done = gridbench("check", "all", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)["models"]
    assert {Path(place).name: own[0]["outcome"] for place, own in found.items()} == {
        "busy": "broken",
        "quiet": "kept",
    }
    assert "other programs disturbed 3 of 39 runs" in done.stdout
