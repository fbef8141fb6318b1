"""The bottleneck, over the time of a task and its data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.advise.advice import COMPUTING, GROUPS, SIZES, TIMES, limits_map
from gridbench.advise.profiled import Profiled
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from gridbench.simulate.profiles import system
from running import Run
from synthetic import MB


def of(model: PipelineModel, engine: str) -> PipelineModel:
    place = replace(model.fit.place, engine=engine)
    return replace(model, fit=replace(model.fit, place=place))


def test_there_is_a_cell_for_each_time_and_size(model: PipelineModel) -> None:
    found = limits_map(model, 8, warm=True)
    assert (found.name, found.cores, found.tasks) == ("made-up", 8, 32)
    assert [(one.bytes_in, one.seconds) for one in found.cells] == [
        (size, seconds) for size in SIZES for seconds in TIMES
    ]
    assert {one.limits for one in found.cells} <= {COMPUTING, *(what for what, _ in GROUPS)}


def test_a_map_has_two_times_for_each_power_of_ten_and_a_size() -> None:
    assert [f"{one:g}" for one in TIMES] == [
        "0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30", "100",
    ]  # fmt: skip
    assert SIZES == (0, MB / 1024, MB / 102.4, MB / 10.24, MB, 10 * MB, 100 * MB)


def test_the_bottleneck_is_what_it_is_known_to_be() -> None:
    # 0.1 s for 10 MB, one after the other: 4 tasks for each of 10 cores.
    known = system("ninfg")
    one_by_one = 40 * known.parameters.to_workers.work(10 * MB)
    found = limits_map(Profiled(known), 10, warm=True)
    by = {(one.seconds, one.bytes_in): one for one in found.cells}
    computing = [one for one in TIMES if 4 * one > 2 * one_by_one]
    waiting = [one for one in TIMES if 4 * one < one_by_one / 3]
    assert computing
    assert waiting
    for seconds in computing:
        assert by[seconds, 10 * MB].limits == COMPUTING
    for seconds in waiting:
        assert by[seconds, 10 * MB].limits == "task data"
    assert by[100.0, 0].efficiency == pytest.approx(1.0, rel=0.01)
    assert by[1e-3, 100 * MB].efficiency < 0.01
    cold = limits_map(Profiled(known), 10, warm=False)
    start = {(one.seconds, one.bytes_in): one.limits for one in cold.cells}
    assert start[1e-3, 0] == "starting workers"


def test_shares_are_of_the_total(model: PipelineModel) -> None:
    for one in limits_map(model, 4, warm=False).cells:
        assert 1 / 6 <= one.share <= 1.001
        if one.limits == COMPUTING:
            assert one.share == pytest.approx(one.efficiency)
        else:
            assert one.efficiency <= 0.5


def test_cells_beyond_what_was_measured_are_marked(model: PipelineModel) -> None:
    by = {(one.seconds, one.bytes_in): one for one in limits_map(model, 8, warm=False).cells}
    assert by[0.1, MB].measured
    assert not by[0.1, 100 * MB].measured  # 8 MB at most


def test_more_cores_than_a_user_waits_for_are_not_looked_at() -> None:
    assert limits_map(Profiled(system("gridrpc")), 50_000, warm=True).cores == 1000


def test_the_command_maps_each_model_of_a_file(
    model: PipelineModel, tmp_path: Path, gridbench: Run
) -> None:
    save_models([of(model, "one"), of(model, "other")], tmp_path / "models.json")
    command = (
        "advise",
        "--work",
        "1s",
        "--cores",
        "8",
        "--task",
        "sleep",
        "--out",
        "advice",
        "--force",
    )
    done = gridbench(*command, "--from", "models.json", "--engine", "one", "--map", "--json")
    assert done.returncode == 0, done.stderr
    text = json.loads(done.stdout)
    assert [one["name"] for one in text["maps"]] == ["one", "other"]
    first = limits_map(model, 8, warm=False).to_dict()
    assert text["maps"][0]["cells"] == json.loads(json.dumps(first))["cells"]
    assert "other on 8 cores" in (tmp_path / "advice" / "report.html").read_text()
    plain = gridbench(*command, "--from", "models.json", "--engine", "one", "--json")
    assert json.loads(plain.stdout)["maps"] == []
