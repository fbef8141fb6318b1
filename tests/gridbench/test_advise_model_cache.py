"""Models that are kept for the next advice, and how many runs are made for one."""

from __future__ import annotations

import json
import math
import os
import platform
import pwd
import time
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from gridbench.advise.calibration import Search, calibrating, covers, first_cases, most_telling
from gridbench.advise.model_cache import CachedModel, cache_path, forget, keep, load_cached, path_of
from gridbench.advise.search import best_split
from gridbench.advise.work import DivisibleWork
from gridbench.atomic_write import cache_file
from gridbench.errors import InputError
from gridbench.formats import longer, rough
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.observation import EnginePlace, Observation, Situation
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import ScenarioCase
from running import Run
from synthetic import MB, PLACE, observations, situations

WORK = DivisibleWork(seconds=1.0, cores=16, bytes_in=4 * MB)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def of(model: PipelineModel, place: EnginePlace) -> PipelineModel:
    return replace(model, fit=replace(model.fit, place=place))


def test_a_model_is_kept_with_its_runs(model: PipelineModel, cache: Path) -> None:
    runs = observations(situations()[:5])
    before = time.time()
    keep(model, runs)
    path = path_of(PLACE)
    assert path == cache / "gridbench/models/made-up@1@here@2.json"
    stored = load_cached(path)
    assert stored is not None
    assert before <= stored.made <= time.time()
    assert stored.model.fit.values == model.fit.values
    assert [one.measured for one in stored.observations] == [one.measured for one in runs]
    # Only runs that others did not disturb are kept.
    assert [(one.name, one.others) for one in stored.observations] == [
        (f"kept run {number}", 0.0) for number in range(1, 6)
    ]
    for one, other in zip(stored.observations, runs, strict=True):
        assert one.situation.sleep.tolist() == other.situation.sleep.tolist()
        assert replace(one.situation, sleep=other.situation.sleep) == other.situation
    forget(PLACE)
    assert load_cached(path) is None
    forget(PLACE)


def test_runs_with_other_tasks_or_unknown_figures_are_not_kept(
    model: PipelineModel, cache: Path
) -> None:
    assert not cache.exists()
    one, *_ = observations(situations()[:1])
    uneven = replace(one, situation=replace(one.situation, sleep=np.array([0.1, 0.2])))
    unknown = replace(one, measured=replace(one.measured, extra=math.nan))
    keep(model, [uneven, one, unknown])
    stored = load_cached(path_of(PLACE))
    assert stored is not None
    assert [run.measured for run in stored.observations] == [one.measured]


def test_another_version_or_machine_has_a_model_of_its_own() -> None:
    paths = {
        cache_path("ray", version, host, processors)
        for version in ("1", "2")
        for host in ("here", "../there")
        for processors in (2, 4)
    }
    assert len(paths) == 8
    assert len({path.parent for path in paths}) == 1


@pytest.mark.parametrize("text", ["", "{}", '{"kind": 1}', "[]", "\0", '{"runs": []}'])
def test_what_is_no_kept_model_is_as_none(text: str, model: PipelineModel) -> None:
    keep(model, [])
    path = path_of(PLACE)
    path.write_text(text)
    assert load_cached(path) is None


def test_a_file_under_the_name_of_another_is_not_taken(model: PipelineModel) -> None:
    keep(model, [])
    other = path_of(replace(PLACE, version="2"))
    path_of(PLACE).rename(other)
    assert load_cached(other) is None


def test_a_cache_that_cannot_be_written_is_no_error(model: PipelineModel, cache: Path) -> None:
    cache.write_text("a file")
    keep(model, [])
    assert load_cached(path_of(PLACE)) is None


@pytest.mark.parametrize(
    ("age", "message"),
    [(0.0, "1 s"), (600.0, "10 min"), (3 * 3600.0, "3 hours"), (50 * 3600.0, "2 days")],
)
def test_a_kept_model_tells_its_age(model: PipelineModel, age: float, message: str) -> None:
    said = CachedModel(model, (), made=1e9).describe(1e9 + age)
    assert said.startswith("This is from a model that was kept: of made-up 1 on here, fitted to")
    assert f"run {message} ago" in said
    assert "--renew" in said


def test_a_kept_model_is_used_at_once(model: PipelineModel, gridbench: Run) -> None:
    facts = find_participant("gridrpc-native").facts(4, warm=False)
    place = EnginePlace(
        engine="gridrpc-native",
        version=facts.description["version"],
        host=platform.node(),
        processors=len(os.sched_getaffinity(0)),
    )
    keep(of(model, place), observations(situations()[:5]))
    command = ("advise", "--work", "1s", "--cores", "16", "--task", "sleep", "--json")
    done = gridbench(*command, "--out", "advice")
    assert done.returncode == 0, done.stderr
    assert "calibrating" not in done.stderr
    advice = json.loads(done.stdout)
    assert "This is from a model that was kept: of gridrpc-native" in advice["origin"]
    assert advice["origin"] in advice["sentences"]


def test_a_model_covers_work_like_that_which_it_was_measured_for(model: PipelineModel) -> None:
    # It is of 1 to 16 cores, and up to 8 MB of each kind of data.
    assert covers(model, WORK)
    assert covers(model, replace(WORK, cores=5))
    assert not covers(model, replace(WORK, cores=40))
    assert not covers(model, replace(WORK, bytes_in_each=50 * MB))
    assert covers(model, replace(WORK, warm=True))
    cold = replace(model, ranges=replace(model.ranges, starts=("cold",)))
    assert not covers(cold, replace(WORK, warm=True))


def observed(case: ScenarioCase) -> Observation:
    """What a run of the case would have been, but for some noise."""
    situation = Situation(
        cores=case.cores,
        sleep=np.full(case.tasks, case.sleep),
        bytes_in=case.bytes_in,
        bytes_shared=case.bytes_shared,
        bytes_out=case.bytes_out,
    )
    return observations([situation], noise=0.02, seed=case.tasks)[0]


def test_calibration_ends_when_more_runs_do_not_change_the_answer(model: PipelineModel) -> None:
    search = Search(WORK, ())
    ran = []
    while case := search.next():
        ran.append(case)
        search.known.append(observed(case))
    assert ran[: len(first_cases(WORK))] == first_cases(WORK)
    assert len(set(ran)) == len(ran)
    assert len(ran) < len(calibrating(WORK))
    # Their advice is as good as what the true costs advise.
    found = best_split(model_of(search.known, test=False, few=True), WORK)
    best = best_split(model, WORK)
    assert model.total(WORK.divided(found.tasks, found.cores)) <= best.total * 1.1


def test_runs_that_are_known_are_not_made_again() -> None:
    cases = calibrating(WORK)
    search = Search(WORK, [observed(case) for case in cases[:-2]])
    assert search.left == cases[-2:]
    search = Search(WORK, [observed(case) for case in cases])
    assert search.next() is None


def test_runs_that_all_fail_come_to_an_end() -> None:
    search = Search(WORK, ())
    ran = []
    while case := search.next():
        ran.append(case)
    assert sorted(ran, key=repr) == sorted(calibrating(WORK), key=repr)


def test_the_next_run_has_the_data_that_the_work_has(model: PipelineModel) -> None:
    work = DivisibleWork(seconds=0.1, cores=16, bytes_out_each=8 * MB)
    cases = [
        replace(calibrating(work)[0], cores=16, tasks=16, bytes_in=0, bytes_out=size)
        for size in (0, 8 * MB)
    ]
    assert most_telling(model, work, best_split(model, work), cases)[0] == cases[1]


def test_beyond_what_was_measured_the_interval_is_wider(model: PipelineModel) -> None:
    def width(cores: int) -> float:
        one = model.predict(DivisibleWork(seconds=50.0 * cores, cores=cores).divided(cores, cores))
        return math.log((one.high - one.ideal) / (one.low - one.ideal))

    assert width(16) < width(32) < width(160)
    assert width(160) > width(16) + 2 * 1.645 * 0.25


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (1.2891, "1.3 s"),
        (0.99996, "1.0 s"),
        (0.0012345, "1.2 ms"),
        (0.099, "99 ms"),
        (0.8333, "830 ms"),
        (12345.0, "12,000 s"),
        (0.0, "0 s"),
        (4.2e-7, "0.42 µs"),
        (math.inf, "–"),
    ],
)
def test_expectations_have_two_digits(seconds: float, message: str) -> None:
    assert rough(seconds) == message


def test_how_much_longer_is_reported_as_people_say_it() -> None:
    assert longer(1.123, 1.0) == "12 % longer"
    assert longer(3.412, 1.0) == "3.4 times as long"
    assert longer(15.698, 1.0) == "16 times as long"


def test_a_model_that_is_kept_again_takes_the_place_of_the_one_before(model: PipelineModel) -> None:
    first, second, *_ = observations(situations())
    keep(model, [first])
    # That the client keeps few tasks out is kept as well.
    bounded = replace(second, situation=replace(second.situation, most_outstanding=3.0))
    keep(model, [bounded])
    stored = load_cached(path_of(PLACE))
    assert stored is not None
    (found,) = stored.observations
    assert found.measured == second.measured
    assert found.situation.most_outstanding == 3.0


@pytest.mark.parametrize("changed", [{"format": 2}, {"kind": "gridbench model"}])
def test_a_file_of_another_format_is_as_none(
    model: PipelineModel, changed: dict[str, object]
) -> None:
    keep(model, [])
    path = path_of(PLACE)
    record = json.loads(path.read_text())
    assert (record["kind"], record["format"]) == ("gridbench kept model", 1)
    assert load_cached(path) is not None
    path.write_text(json.dumps(record | changed))
    assert load_cached(path) is None


def test_a_model_with_figures_that_are_not_known_is_not_kept(model: PipelineModel) -> None:
    with pytest.raises(ValueError, match="JSON"):
        keep(replace(model, fit=replace(model.fit, spread=math.nan)), [])
    assert load_cached(path_of(PLACE)) is None


def test_a_user_without_a_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> NoReturn:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(InputError, match="set HOME or XDG_CACHE_HOME"):
        cache_file("models", "engine")
