"""Advice on shared data: through the engine, or from a data grid."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path

import pytest

from crossover_results import (
    DISTURBED,
    EACH,
    ENGINES,
    GRID,
    MB,
    ONCE,
    header_of,
    measured,
    write_folder,
)
from gridbench.advise.advice import Advice, advise, crossover_here, crossover_in, from_where
from gridbench.advise.document import to_record
from gridbench.advise.prose import sentences
from gridbench.advise.work import DivisibleWork
from gridbench.datagrid.crossover.answer import (
    CrossoverModels,
    answer_of,
    cached_of,
    keep,
    load_cached,
)
from gridbench.datagrid.crossover.models import ComputeModel
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from running import Run
from synthetic import PLACE

WORK = DivisibleWork(seconds=20.0, cores=16, bytes_shared=100 * MB, warm=True)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def known(engine: ComputeModel, **more: object) -> CrossoverModels:
    """The crossover of an engine that the model of these tests is of."""
    answer = answer_of(measured({PLACE.engine: engine}))
    stored = cached_of(header_of(), answer, quiet=True)
    found = replace(stored.compute[PLACE.engine], version=PLACE.version, **more)  # type: ignore[arg-type]
    return replace(stored, compute={PLACE.engine: found})


def advice_of(
    model: PipelineModel, stored: CrossoverModels | None, work: DivisibleWork = WORK
) -> Advice:
    found = advise(model, work)
    return replace(found, from_where=from_where(stored, model.fit.place, work, found.split))


def describe(advice: Advice) -> str:
    return " ".join(one for one in sentences(advice) if "data grid" in one or "Hazelcast" in one)


def test_shared_data_that_is_handed_over_once_stays_so(model: PipelineModel) -> None:
    advice = advice_of(model, known(ONCE))
    found = advice.from_where
    assert found is not None
    cores, tasks = advice.split.cores, advice.split.tasks
    assert found.through == pytest.approx(ONCE.line(cores).at(100 * MB), rel=0.02)
    (grid,) = found.grids
    reading = GRID.reading(cores, tasks).at(100 * MB)
    assert grid.there_already == pytest.approx(reading, rel=0.1)
    assert grid.put_and_read == pytest.approx(0.05 + 1.0 + reading, rel=0.1)
    text = describe(advice)
    assert text.startswith(f"Shared data of 100 MB for {tasks} tasks on {cores} cores: through")
    assert "keep it as shared data." in text
    assert "was measured on client 1 s ago, with up to 256 MB for 16 readers." in text
    assert to_record(advice)["from_where"]["engine"] == PLACE.engine


def test_what_goes_with_each_task_is_better_in_the_data_grid(model: PipelineModel) -> None:
    stored = known(EACH, with_each_task=True)
    advice = advice_of(model, stored, replace(WORK, most_tasks=64))
    found = advice.from_where
    assert found is not None
    expected = EACH.line(advice.split.tasks).at(100 * MB)
    assert found.through == pytest.approx(expected, rel=0.02)
    assert ": take it from Hazelcast." in describe(advice)
    # Workers that are started get it in another way, which is unknown.
    assert advice_of(model, stored, replace(WORK, warm=False)).from_where is None


def test_data_that_is_there_anyway_may_be_sooner(model: PipelineModel) -> None:
    slow = ComputeModel(start=0.0, each=0.0, once=9e-9, reader=0.0)
    found = replace(known(slow), grids=known(ONCE).grids)
    text = describe(advice_of(model, found))
    assert "keep it as shared data, unless it is in the data grid anyway." in text


def test_times_that_are_about_the_same_decide_nothing(model: PipelineModel) -> None:
    advice = advice_of(model, known(ONCE))
    found = advice.from_where
    assert found is not None

    def verdict(put_and_read: float, through: float, there_already: float) -> str:
        grid = replace(found.grids[0], put_and_read=put_and_read, there_already=there_already)
        return describe(replace(advice, from_where=replace(found, through=through, grids=(grid,))))

    # A tenth decides.
    assert ": take it from Hazelcast." in verdict(10.0, 10.0 * 1.1, 9.5)
    assert ": either will do." in verdict(10.0, 10.9, 9.5)
    assert ": either will do." in verdict(9.8, 9.0, 9.0)
    assert ": keep it as shared data." in verdict(9.0 * 1.1, 9.0, 9.0)
    assert ": keep it as shared data." in verdict(11.0, 9.0 * 1.1, 9.0)
    assert ": keep it as shared data, unless it is in the data grid anyway." in verdict(
        9.9, 9.0, 8.0
    )


def test_more_than_was_measured_is_reported(model: PipelineModel) -> None:
    large = replace(WORK, bytes_shared=1024 * MB)
    assert "this is more than that, and may be far off" in describe(
        advice_of(model, known(ONCE), large)
    )


@pytest.mark.parametrize(("megabytes", "hinted"), [(0, False), (1, False), (63, False), (64, True)])
def test_without_measurements_only_large_data_are_worth_a_hint(
    model: PipelineModel, megabytes: int, *, hinted: bool
) -> None:
    advice = advice_of(model, None, replace(WORK, bytes_shared=megabytes * MB))
    assert bool(describe(advice)) == hinted
    if hinted:
        assert "`gridbench data crossover` does it" in describe(advice)


def test_the_crossover_of_another_version_of_the_engine_does_not_count(
    model: PipelineModel,
) -> None:
    stored = known(ONCE)
    other = {PLACE.engine: replace(stored.compute[PLACE.engine], version="2")}
    assert "was not measured" in describe(advice_of(model, replace(stored, compute=other)))
    # Nor does one of another engine, or of no data grid.
    assert "was not measured" in describe(advice_of(model, replace(stored, compute={})))
    assert "was not measured" in describe(advice_of(model, replace(stored, grids={})))


def test_what_was_measured_is_kept_beside_what_was_known_before() -> None:
    header = header_of()
    before = time.time()
    keep(header, answer_of(measured({"gridrpc-python": ONCE})))
    keep(header, answer_of(measured({"process-pool": EACH}, None)))
    found = load_cached("client", 2)
    assert found is not None
    assert set(found.compute) == {"gridrpc-python", "process-pool"}
    assert set(found.grids) == {"hazelcast"}
    assert found.compute["process-pool"].with_each_task
    assert before <= found.grids["hazelcast"].made <= time.time()
    assert found.compute["gridrpc-python"].model.once == pytest.approx(ONCE.once, rel=1e-6)
    assert load_cached("another", 2) is None
    assert load_cached("client", 4) is None


def test_what_others_disturbed_is_not_kept(cache: Path) -> None:
    found = [
        replace(one, load=DISTURBED) if one.engine == "process-pool" else one
        for one in measured(ENGINES)
    ]
    keep(header_of(), answer_of(found))
    stored = load_cached("client", 2)
    assert stored is not None
    assert set(stored.compute) == {"gridrpc-python"}
    keep(header_of(host="x"), answer_of([]))
    assert len(list(cache.rglob("*.json"))) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": 1, "format": 1}', "\0"])
def test_what_is_no_kept_crossover_is_as_none(text: str, cache: Path) -> None:
    keep(header_of(), answer_of(measured(ENGINES)))
    (path,) = cache.rglob("*.json")
    path.write_text(text)
    assert load_cached("client", 2) is None


def test_it_holds_for_workers_on_this_machine_alone() -> None:
    header = header_of()
    facts = {"host": platform.node(), "cores_usable": len(os.sched_getaffinity(0))}
    keep(replace(header, machine=header.machine | facts), answer_of(measured(ENGINES)))
    place = replace(PLACE, host=platform.node())
    found = crossover_here(place)
    assert found is not None
    assert set(found.compute) == set(ENGINES)
    assert crossover_here(replace(place, transport="links")) is None
    assert crossover_here(replace(place, host="another")) is None


def test_a_folder_has_to_tell_of_the_engine(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "results", measured(ENGINES))
    assert set(crossover_in(folder, WORK, "process-pool").compute) == set(ENGINES)
    # Whoever names a folder wants what it has, disturbed or not.
    disturbed = [replace(one, load=DISTURBED) for one in measured(ENGINES)]
    busy = write_folder(tmp_path / "busy", disturbed)
    assert set(crossover_in(busy, WORK, "process-pool").compute) == set(ENGINES)
    with pytest.raises(InputError, match="does not tell enough of the engine `ray`") as refused:
        crossover_in(folder, WORK, "ray")
    assert f"it has enough of {', '.join(ENGINES)}, and of hazelcast; measure" in str(refused.value)
    neither = write_folder(tmp_path / "neither", measured({}, None))
    with pytest.raises(InputError, match="it has enough of no engine, and of no data grid; meas"):
        crossover_in(neither, WORK, "ray")
    with pytest.raises(InputError, match="there is none"):
        crossover_in(folder, replace(WORK, bytes_shared=0.0), "process-pool")
    with pytest.raises(InputError, match="holds no crossover"):
        crossover_in(tmp_path, WORK, "process-pool")


def test_the_command_reads_a_folder(gridbench: Run, tmp_path: Path, model: PipelineModel) -> None:
    place = replace(PLACE, engine="gridrpc-python")
    save_models([replace(model, fit=replace(model.fit, place=place))], tmp_path / "model.json")
    folder = write_folder(tmp_path / "results", measured(ENGINES))
    command = ("advise", "--work", "20s", "--cores", "16", "--shared", "100MB", "--task", "sleep")
    options = ("--from", "model.json", "--crossover", str(folder), "--out", "advice")
    done = gridbench(*command, *options, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["from_where"]["grids"][0]["title"] == "Hazelcast"
    assert any("from Hazelcast" in one for one in record["sentences"])
    assert "from Hazelcast" in (tmp_path / "advice" / "report.html").read_text()
    refused = gridbench("advise", "--work", "2h", "--cores", "9", "--profile", "condor",
                  "--crossover", str(folder))  # fmt: skip
    assert refused.returncode == 2
    assert "--crossover is for an engine" in refused.stderr
