"""`gridbench model` on real runs, and on folders that hold none or too few."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridbench.errors import InputError
from gridbench.model.model_kind import read_source
from gridbench.model.observation import Observation, RunTimes, observe, together
from running import MakeSetup, Run, accept
from synthetic import observations, situations


def run_some(
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    cores: tuple[int, ...],
    blocks: tuple[int, ...],
) -> None:
    for nodes in cores:
        for block in blocks:
            setup = make_setup(nodes=nodes, tasks=nodes * block, sleep=0.01)
            done = gridbench("run", setup, "--no-check", "--out", f"runs/{nodes}-{block}")
            assert done.returncode == 0, done.stderr
    accept(tmp_path / "runs")


def test_a_model_is_fitted_to_real_runs(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    run_some(gridbench, make_setup, tmp_path, (1, 2, 3, 4), (1, 2, 3, 5))
    done = gridbench("model", "runs", "--no-test", "--out", "model.json", timeout=600)
    assert done.returncode == 0, done.stderr
    assert "fit 1 of 1: to all runs" in done.stderr
    assert "gridrpc-native" in done.stdout
    assert "start.constant" in done.stdout
    (saved,) = json.loads((tmp_path / "model.json").read_text())["models"]
    assert saved["runs"] == saved["known"] == 16
    assert saved["place"]["most_waiting_bytes"] > 0
    found = {term["name"]: term["value"] for term in saved["terms"]}
    # No more than a run can take; on a busy machine the shortest may be shorter than it is fitted.
    longest = max(one.measured.total for one in read_source([tmp_path / "runs"]).observations)
    assert 0 < found["start.constant"] < longest


def test_too_few_runs_are_refused(gridbench: Run, make_setup: MakeSetup, tmp_path: Path) -> None:
    run_some(gridbench, make_setup, tmp_path, (2,), (1,))
    done = gridbench("model", "runs")
    assert done.returncode == 2
    assert "1 run is too few to fit a model to; missing are 12 more runs" in done.stderr
    done = gridbench("model", "runs", "--engine", "ray")
    assert done.returncode == 2
    assert "no run of the engine `ray` can be used" in done.stderr
    one = observe(tmp_path / "runs" / "2-1")
    assert isinstance(one, Observation)
    assert (one.situation.cores, one.situation.tasks, one.situation.warm) == (2, 2, False)
    assert one.measured.total > one.ideal == pytest.approx(0.01)


def test_a_folder_without_runs_is_refused(refused: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = refused("model", "empty")
    assert done.returncode == 2
    assert "empty: there are no runs in this folder" in done.stderr
    assert "does not exist" in refused("model", "nowhere").stderr


def test_where_no_run_can_serve_it_is_reported_why(refused: Run, tmp_path: Path) -> None:
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text('{"status": "interrupted", "valid": false}')
    for command in (["model", "cut"], ["advise", "--work", "1s", "--cores", "2", "--from", "cut"]):
        done = refused(*command)
        assert done.returncode == 2
        assert "none of the runs can be used: 1 run: it is not complete or not valid" in done.stderr
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.parametrize("text", ["{", "[]", '{"status": "complete", "valid": true}'])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    (tmp_path / "timeline.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"run\.json"):
        observe(tmp_path)


def test_a_run_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"status": "interrupted", "valid": false}')
    assert observe(tmp_path) == "it is not complete or not valid"


def test_runs_of_one_case_count_as_their_median() -> None:
    one = observations(situations()[:1])[0]
    totals = (one.ideal + 0.1, one.ideal + 0.2, one.ideal + 0.9)
    several = [replace(one, measured=replace(one.measured, total=total)) for total in totals]
    (merged,) = together(several)
    assert merged.measured == RunTimes(
        totals[1],
        one.measured.first_calc_in,
        one.measured.last_worker_calc_in,
        one.measured.extra,
    )
    assert merged.uncertainty == pytest.approx(np.std(np.log([1, 2, 9]), ddof=1) / math.sqrt(3))
    assert one.uncertainty == together([one])[0].uncertainty == 0
    # Only runs during which others left the machine alone count, if they are half of them.
    loads = (math.nan, 0.2, 0.01)
    loaded = [replace(run, others=load) for run, load in zip(several, loads, strict=True)]
    assert together(loaded[1:])[0].measured.total == totals[2]
    assert together(loaded[:2])[0].measured.total == pytest.approx(one.ideal + 0.15)
    assert together(loaded)[0].measured.total == totals[1]
    other = replace(one, place=replace(one.place, engine="another"))
    assert len(together([one, other])) == 2
