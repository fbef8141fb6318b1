"""`gridbench model` and `gridbench simulate --case` on results of every kind that has a model."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import crossover_results
import datagrid_cases
import sync_rounds
from gridbench.datagrid import model_kind as grids
from gridbench.errors import InputError
from gridbench.model.cost_model import TOTAL, CostModel, CostSubject
from gridbench.model.held_out import EACH
from gridbench.model.kind import kind_of, model_kinds
from gridbench.model.model import PipelineModel
from gridbench.model.saved import load, save, save_models
from gridbench.result_kind import all_kinds
from gridbench.simulate.sweep import predict
from gridbench.sync import model_kind as rounds
from running import Run


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three scenarios on three data grids, with cases that cannot serve."""
    folder = tmp_path_factory.mktemp("campaign")
    return datagrid_cases.write_folder(folder, datagrid_cases.campaign(repeats=2))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rounds of seven numbers of workers with three parameters."""
    return sync_rounds.write_folder(tmp_path_factory.mktemp("sweep"), sync_rounds.sweep())


@pytest.fixture(scope="module")
def grid_model(campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the models of one data grid."""
    chosen = [one for one in grids.read([campaign]).subjects if one.name == "hazelcast"]
    enough = [one for one in chosen if one.count > 6]
    path = tmp_path_factory.mktemp("grid") / "grid.json"
    save(grids, [one.fit(test=True) for one in enough], path)
    return path


def subjects(folder: Path) -> dict[str, CostSubject]:
    found = kind_of([folder]).read([folder]).subjects
    return {one.told: one for one in found if isinstance(one, CostSubject)}


def test_every_kind_of_results_says_whether_it_can_be_modelled() -> None:
    named = {kind.title: kind.model for kind in all_kinds()}
    without = {title for title, model in named.items() if model is None}
    assert without == {
        "gridbench micro",
        "gridbench data crossover",
        "gridbench compare",
        "gridbench linpack clients",
        "gridbench placement",
        "gridbench placement run",
        "gridbench ensemble",  # repeats a paper's runs, whose samples sleep as long as they did
    }
    names = [kind.name for kind in model_kinds()]
    assert sorted(names) == ["data-grid tasks", "remote Linpack", "synchronised rounds", "tasks"]


def test_cases_of_several_scenarios_are_of_one_model_if_only_its_parameters_differ(
    campaign: Path,
) -> None:
    found = subjects(campaign)
    one = found["Hazelcast 1.2, read, 3 members, 1 backup, on client"]
    # Four sizes of objects, and 1, 10 and 100 clients.
    assert {(p.values["clients"], p.values["size"]) for p in one.points} == {
        (10, 1024), (10, 102400), (10, 1048576), (10, 10485760), (1, 1024), (100, 1024),
    }  # fmt: skip
    assert {p.values["operations"] for p in one.points} == {100, 1000}
    # Updates of 3 members and of 4 are two subjects.
    assert "Hazelcast 1.2, update, 4 members, 1 backup, on client" in found


def test_what_cannot_serve_is_left_out_and_said(campaign: Path) -> None:
    left_out = grids.read([campaign]).left_out
    assert left_out == {"its rate was given, by an open loop": 3, "members were killed": 3}
    base = datagrid_cases.four()
    sleeping = replace(base, parameters=base.parameters | {"SleepTime": 0.5})
    failed = replace(base, parameters=base.parameters | {"NNodes": 4}, status="failed", why="no")
    folder = datagrid_cases.write_folder(campaign.parent / "none", [sleeping, failed])
    found = grids.read([folder])
    assert not found.subjects
    assert found.left_out == {
        "its tasks compute or sleep as well": 1,
        "it did not come to its end": 1,
    }
    assert "none of the cases can be used: 1 case: " in str(found.none_serves())
    empty = grids.read([datagrid_cases.write_folder(campaign.parent / "empty", [])])
    assert "none of the cases can be used: there are none" in str(empty.none_serves())


def test_the_time_of_a_task_is_that_of_the_case_over_the_tasks_of_a_client(tmp_path: Path) -> None:
    base = datagrid_cases.four()
    (one,) = subjects(datagrid_cases.write_folder(tmp_path, [base])).values()
    # 4 tasks of 10 reads by 2 clients took 2 s, so that 20 reads end in a second.
    assert one.points[0].values == {"clients": 2, "size": 1024, "operations": 10}
    assert one.points[0].repeats == ({"task": 1.0},)
    # Clients without a task are not there.
    few = replace(base, parameters=base.parameters | {"NNodes": 9})
    (one,) = subjects(datagrid_cases.write_folder(tmp_path / "few", [few])).values()
    assert one.points[0].values["clients"] == 4
    assert one.points[0].repeats == ({"task": 2.0},)


def test_disturbed_cases_serve_only_where_no_others_are_and_are_counted(tmp_path: Path) -> None:
    quiet = datagrid_cases.made(size=1, repeat=0)
    loud = replace(datagrid_cases.made(size=1, repeat=1, slow=9.0), load=datagrid_cases.DISTURBED)
    other = replace(datagrid_cases.made(size=100), load=datagrid_cases.DISTURBED)
    folder = datagrid_cases.write_folder(tmp_path, [quiet, loud, other])
    (one,) = subjects(folder).values()
    assert [len(point.repeats) for point in one.points] == [1, 1]
    assert one.uncounted == 1


def test_operations_in_another_proportion_are_another_subject(tmp_path: Path) -> None:
    base = datagrid_cases.four()
    mixed = {"ReadDataSize": 4.0, "UpdateDataSize": 2.0, "NRepeats": 5.0}
    folder = datagrid_cases.write_folder(
        tmp_path, [base, replace(base, parameters=base.parameters | mixed)]
    )
    assert [message.split(", ")[1] for message in subjects(folder)] == [
        "read",
        "2 reads and 1 update",
    ]


def test_rounds_of_each_parameter_are_of_one_model(sweep: Path) -> None:
    found = subjects(sweep)
    assert len(found) == 3
    one = found["metadata, parameter 4k, held at entry, on 8 hosts"]
    assert [point.values["workers"] for point in one.points] == [1, 2, 4, 7, 14, 28, 56]
    figures = one.points[3].repeats[0]
    assert figures["hold"] == 0.25
    first = next(r for r in sync_rounds.sweep() if (r.workers, r.parameter) == (7, "4k"))
    began = [task.began for task in first.tasks if task.began is not None]
    ended = [task.ended for task in first.tasks if task.ended is not None]
    assert figures["skew"] == pytest.approx(max(began) - min(began))
    assert figures["work"] == pytest.approx(max(ended) - max(began))


def test_rounds_whose_workers_divide_a_total_are_left_out(tmp_path: Path) -> None:
    folder = sync_rounds.write_folder(
        tmp_path, sync_rounds.sweep(parameters=("4k",)), arguments=["metadata", "--total", "20000"]
    )
    found = rounds.read([folder])
    assert not found.subjects
    assert found.left_out["its workers divide a total, so that with more each does less"] == 7


def test_a_model_of_a_data_grid_is_printed_saved_and_predicts(
    gridbench: Run, campaign: Path, tmp_path: Path
) -> None:
    done = gridbench("model", campaign, "--engine", "hazelcast", "--out", "grid.json")
    # Of one member, of four and of eight there is one case each.
    assert done.returncode == 1
    assert "Hazelcast 1.2, read, 3 members, 1 backup, on client" in done.stdout
    assert "1 case cannot tell so many costs apart" in done.stderr
    assert "3 cases left out: members were killed" in done.stderr
    assert "Ignite" not in done.stdout
    for words in ("operation", "byte", "/MB", "filled", "each case in turn", "95 % interval"):
        assert words in done.stdout
    case = ("--case", "clients=10,20", "--case", "size=10KB", "--case", "operations=1000")
    done = gridbench("simulate", "--profile", "grid.json", *case)
    assert done.returncode == 0, done.stderr
    assert "90 % range" in done.stdout
    assert "Predicted: the time of a task" in done.stdout
    assert "* Extrapolated" not in done.stdout
    done = gridbench("simulate", "--profile", "grid.json", *case, "--json")
    rows = json.loads(done.stdout)
    assert len(rows) == 2 * len(json.loads((tmp_path / "grid.json").read_text())["models"])
    assert all(0 < row["low_s"] < row["total_s"] < row["high_s"] for row in rows)


def test_json_has_terms_and_errors(gridbench: Run, sweep: Path) -> None:
    done = gridbench("model", sweep, "--json", "-q")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["kind"], record["of"]) == ("gridbench model", "synchronised rounds")
    one = record["models"][0]
    assert {term["part"] for term in one["estimates"]} == {"hold", "skew", "work"}
    assert one["measured"]["workers"] == {"low": 1, "high": 56}
    each = [way for way in one["held_out"] if (way["of"], way["what"]) == (TOTAL, EACH)]
    assert len(each[0]["errors"]) == one["cases"] == 7
    assert 0 <= each[0]["median"] <= each[0]["largest"]


def test_a_saved_model_is_the_same_when_read_again(grid_model: Path) -> None:
    kind, models = load(grid_model)
    assert kind.name == "data-grid tasks"
    again = grid_model.with_name("again.json")
    save(kind, models, again)
    assert load(again) == (kind, models)
    assert all(isinstance(one, CostModel) and one.held_out for one in models)


def test_tasks_are_predicted_by_the_same_option(model: PipelineModel, tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    save_models([model], path)
    requested = ["cores=4,8", "tasks=16", "sleep=0.02", "input=2MB"]
    rows = predict(path, requested, None, far=False).rows
    assert [row.case["cores"] for row in rows] == [4, 8]
    # What nobody asked for is not there.
    assert rows[0].case["shared"] == 0
    for row in rows:
        assert row.expected.low < row.expected.total < row.expected.high
        assert sum(row.expected.parts.values()) == pytest.approx(row.expected.total)
    # Tasks that take longer ask nothing of an engine that it was not seen to do.
    longer = [*requested[:2], "sleep=30"]
    assert predict(path, longer, None, far=False).rows[0].expected.outside == ()
    with pytest.raises(InputError, match="task data: 100 MB is outside what was measured"):
        predict(path, [*requested[:3], "input=100MB"], None, far=False)


def test_beyond_what_was_measured_is_said_and_far_beyond_is_refused(grid_model: Path) -> None:
    near = ["clients=500", "size=1KB", "operations=1000"]
    rows = predict(grid_model, near, None, far=False).rows
    assert rows[0].expected.outside == ("clients: 500 is outside what was measured, 1 to 100",)
    far = ["clients=5000", "size=1KB", "operations=1000"]
    with pytest.raises(InputError, match=r"1 to 100: more than 10 times as far") as caught:
        predict(grid_model, far, None, far=False)
    assert "--far" in caught.value.remedy
    assert predict(grid_model, far, None, far=True).rows[0].expected.outside


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (["clients=4"], "the model needs size"),
        (["workers=4"], "`workers=4` is not one of what decides about data-grid tasks"),
        (["clients"], "`clients` is not one of"),
        (["clients=4", "clients=5"], "clients is given twice"),
        (["clients=0"], "--case clients: `0` is not a whole number from 1"),
        (["size=much"], "`much` is not a size"),
        (["clients=4,"], "is a list of values"),
        (
            [
                "clients=" + ",".join(map(str, range(1, 101))),
                "operations=" + ",".join(map(str, range(100, 120))),
                "size=1KB",
            ],
            "more than 1,000 cases",
        ),
    ],
)
def test_cases_that_cannot_be_meant_are_refused(
    grid_model: Path, requested: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        predict(grid_model, requested, None, far=False)


def test_engines_that_a_file_does_not_have_are_named(grid_model: Path) -> None:
    with pytest.raises(InputError, match="no model of `redis`") as caught:
        predict(grid_model, ["clients=4"], "redis", far=False)
    assert "there are hazelcast" in caught.value.remedy


def test_folders_of_different_kinds_are_refused(campaign: Path, sweep: Path) -> None:
    message = (
        rf"{sweep.name}.*: holds synchronised rounds, and .*{campaign.name} holds data-grid tasks"
    )
    with pytest.raises(InputError, match=message):
        kind_of([campaign, sweep])


def test_results_without_a_model_are_refused(refused: Run, tmp_path: Path) -> None:
    found = crossover_results.measured({"process-pool": crossover_results.EACH})
    crossover_results.write_folder(tmp_path / "crossover", found)
    done = refused("model", "crossover")
    assert done.returncode == 2
    assert "results of gridbench data crossover, which has no model" in done.stderr


def test_models_of_another_kind_are_refused_by_those_who_need_tasks(
    refused: Run, grid_model: Path, tmp_path: Path
) -> None:
    shutil.copy(grid_model, tmp_path / "grid.json")
    done = refused("simulate", "--profile", "grid.json", "--cores", "4")
    assert done.returncode == 2
    assert "holds models of data-grid tasks, and only tasks can be simulated" in done.stderr
    assert "--case clients=... --case size=... --case operations=..." in done.stderr
    done = refused("advise", "--work", "1s", "--cores", "2", "--from", "grid.json")
    assert done.returncode == 2
    assert "it is of data-grid tasks, and not of tasks" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "cores=4"], "`gridrpc` is not a fitted model"),
        (["--profile", "own.toml", "--case", "cores=4"], "`own.toml` is not a fitted model"),
        (["--profile", "grid.json", "--case", "clients=4", "--cores", "4"], "--cores is not for"),
        (["--far"], "--far is for cases"),
        (["--profile", "none.json", "--case", "clients=4"], "none.json: cannot be read"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    refused: Run, arguments: list[str], message: str
) -> None:
    done = refused("simulate", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a model"),
        ("[]", "it is not a gridbench model"),
        ('{"kind": "gridbench model", "of": "magic"}', "it is of magic, which are not known"),
    ],
)
def test_files_that_are_no_models_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load(path)


def test_an_older_file_is_of_tasks(model: PipelineModel, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    save_models([model], path)
    assert "of" not in json.loads(path.read_text())
    kind, (one,) = load(path)
    assert kind.name == "tasks"
    assert isinstance(one, PipelineModel)
    assert one.values == model.values


def test_real_rounds_are_modelled_and_more_workers_predicted(gridbench: Run) -> None:
    done = gridbench(
        "sync", "-w", "1-5", "--rounds", "1", "--oversubscribe", "--accept-load", "--out", "null",
        "null",
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    done = gridbench("model", "null", "--out", "null.json", "-q")
    assert done.returncode == 0, done.stderr
    assert "null, held at entry, on " in done.stdout
    done = gridbench("simulate", "--profile", "null.json", "--case", "workers=3,10", "--json")
    few, many = json.loads(done.stdout)
    assert few["outside"] == []
    assert many["outside"] == ["workers: 10 is outside what was measured, 1 to 5"]
    assert few["parts_s"]["hold"] > 0
