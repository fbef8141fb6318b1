"""The runs that a model is fitted to: of single runs and of scenarios, and which of them serve."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gridbench.errors import InputError
from gridbench.model.model_kind import read_source
from gridbench.model.observation import observe
from gridbench.scenario.results import FORM, CaseResult
from gridbench.simulate.profiles import system
from gridbench.simulate.simulation import SimulatedWorkload, simulate
from gridbench.simulate.timeline import table_of, write_folder
from scenario_results import all_done, header_of

WORK = SimulatedWorkload(cores=4, tasks=8, sleep=0.1, bytes_in=1024.0)


def made_run(folder: Path, **changed: object) -> Path:
    """A folder like that of a run on this machine, with some of the record changed."""
    folder.mkdir(parents=True)
    done = simulate(WORK, system("gridrpc"))
    write_folder(folder, done, table_of(done))
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | changed))
    return folder


def _scenario(folder: Path, cases: Sequence[CaseResult]) -> Path:
    written = FORM.open(folder, header_of(1), fresh=False)
    for case in cases:
        written.add(case)
    written.close()
    return folder


def test_runs_of_a_scenario_have_the_links_of_their_cases(tmp_path: Path) -> None:
    first, second, third, *_ = all_done(1)
    links: dict[str, Any] = {"transport": "links", "nodes": 3, "link_rate": 1e8}
    folder = tmp_path / "scenario"
    for name in ("one", "two", "lost"):
        made_run(folder / name)
    _scenario(
        folder,
        [
            replace(first, folder=Path("one"), load={"others": 0.25}, **links),
            replace(second, folder=Path("two"), status="invalid", reason="overloaded: 30 %"),
            replace(third, folder=None, status="skipped", reason="time"),
        ],
    )
    found = read_source([folder])
    (one,) = found.observations
    assert one.name == str(folder / "one")
    assert (one.place.transport, one.place.nodes, one.place.link_rate) == ("links", 3, 1e8)
    assert one.others == 0.25
    assert found.left_out == {"invalid: overloaded": 1}
    # What is not in the results of its scenario was not finished; a run beside it was.
    made_run(tmp_path / "alone")
    both = read_source([tmp_path])
    assert {Path(run.name).name for run in both.observations} == {"one", "alone"}
    assert {len(runs) for runs in both.by_place().values()} == {1}
    # Nothing is counted twice.
    assert len(read_source([tmp_path, folder]).observations) == 2


def test_results_that_were_copied_without_their_runs_are_counted_as_such(tmp_path: Path) -> None:
    first, *_ = all_done(1)
    _scenario(tmp_path / "kept", [replace(first, folder=Path("runs/one"))])
    found = read_source([tmp_path / "kept"])
    assert found.left_out == {
        "only its figures were kept, and a model is fitted to stamps of tasks": 1
    }


def test_runs_that_cannot_serve_are_counted_by_why(tmp_path: Path) -> None:
    made_run(tmp_path / "a", status="interrupted")
    made_run(tmp_path / "b", valid=False)
    made_run(tmp_path / "c", valid=False, load={"judgement": "disturbed"})
    found = read_source([tmp_path])
    assert found.observations == ()
    assert sum(found.left_out.values()) == 3
    assert found.left_out["it is not complete or not valid"] == 2
    assert isinstance(found.none_serves(), InputError)


def test_folders_without_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no runs in this folder"):
        read_source([tmp_path])
    with pytest.raises(InputError, match="does not exist"):
        read_source([tmp_path / "none"])


def test_what_a_record_says_of_amade_run(tmp_path: Path) -> None:
    one = observe(made_run(tmp_path / "one"))
    assert not isinstance(one, str)
    situation = one.situation
    assert (situation.cores, situation.tasks, situation.warm) == (4, 8, False)
    assert situation.sleep.tolist() == [0.1] * 8
    assert (situation.bytes_in, situation.bytes_shared, situation.bytes_out) == (1024, 0, 0)
    assert situation.ideal == pytest.approx(0.2)
    assert one.measured.total > 0.2
    assert one.place.kept_from == 0
    assert one.place.most_waiting_bytes is None
    changed = {
        "start": "warm",
        "data": {"most_outstanding_tasks": 3},
        "load": {"judged": {"others": 0.5}, "processors": 4},
        "engine": {
            "name": "made-up",
            "version": 2,
            "configuration": {
                "max_queued_bytes": 7, "shared_threshold": 5, "keep_free": 9,
                "servers": ["a", "b"],
            },
        },
    }  # fmt: skip
    other = observe(made_run(tmp_path / "two", **changed))
    assert not isinstance(other, str)
    assert (other.situation.warm, other.situation.most_outstanding) == (True, 3)
    assert other.others == 0.125
    place = other.place
    assert (place.engine, place.version, place.transport, place.nodes) == (
        "made-up", "2", "links", 2,
    )  # fmt: skip
    assert (place.most_waiting_bytes, place.kept_from, place.keep_free) == (7, 5, 9)


def test_shared_data_that_goes_with_each_task_is_data_of_tasks(tmp_path: Path) -> None:
    done = simulate(replace(WORK, bytes_shared=2048.0), system("gridrpc"))
    folder = made_run(tmp_path / "one")
    write_folder(folder, done, table_of(done))
    record = json.loads((folder / "run.json").read_text())
    shared = observe(folder)
    assert not isinstance(shared, str)
    assert (shared.situation.bytes_in, shared.situation.bytes_shared) == (1024, 2048)
    record["engine"]["configuration"] = {"shared_data": "argument of each task"}
    (folder / "run.json").write_text(json.dumps(record))
    each = observe(folder)
    assert not isinstance(each, str)
    assert (each.situation.bytes_in, each.situation.bytes_shared) == (3072, 0)


@pytest.mark.parametrize(("processors", "serves"), [(3, False), (4, True)])
def test_runs_whose_tasks_share_processors_cannot_serve(
    tmp_path: Path, processors: int, serves: bool
) -> None:
    machine = {"host": "here", "cores_usable": processors}
    one = observe(made_run(tmp_path / "one", task="spin", machine=machine))
    assert isinstance(one, str) != serves
    if isinstance(one, str):
        assert one.startswith("its tasks compute and share processors")
    else:
        assert (one.place.processors, one.place.nodes, one.place.host) == (4, 1, "here")


def test_a_run_without_all_of_its_tasks_cannot_serve(tmp_path: Path) -> None:
    setup = {"NTasks": 9, "NNodes": 4}
    assert observe(made_run(tmp_path / "one", setup=setup)) == "not all of its tasks ended well"
    assert not isinstance(observe(made_run(tmp_path / "two", setup=setup | {"NTasks": 8})), str)


def test_a_disturbed_run_serves_only_who_asks_for_it(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "one", valid=False, load={"judgement": "disturbed"})
    assert observe(folder) == "disturbed"
    assert not isinstance(observe(folder, disturbed=True), str)
    # One that was cut off as well serves nobody.
    cut = made_run(tmp_path / "two", status="interrupted", load={"judgement": "disturbed"})
    assert observe(cut, disturbed=True) == "it is not complete or not valid"
