"""Predictions, what lies outside of the measured, and models as files."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridbench.errors import InputError
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.observation import Situation, range_of
from gridbench.model.saved import load, load_models, pipeline_models, save_models
from gridbench.records import RecordError
from synthetic import COPIES, MB, observations, situations

INSIDE = Situation(cores=8, sleep=np.full(16, 0.02), bytes_in=2 * MB)


@pytest.fixture(scope="module")
def bare() -> PipelineModel:
    """Of runs without shared data and warm starts."""
    some = [one for one in situations() if not (one.bytes_shared or one.warm)]
    return model_of(observations(some), test=False, shape=COPIES)


def test_a_prediction_has_an_interval_and_names_nothing_within_the_range(
    model: PipelineModel,
) -> None:
    found = model.predict(INSIDE)
    assert found.ideal < found.low < found.total < found.high < 2 * found.total
    assert found.extrapolated == ()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cores": 64, "sleep": np.full(128, 0.02)}, "cores: 64 is outside"),
        ({"sleep": np.full(1000, 0.02)}, "tasks: 1,000 is outside what was measured, 1 to 160"),
        ({"sleep": np.full(16, 1e-5)}, "time of a task: 10.00 µs is outside"),
        ({"bytes_in": 100.0 * MB}, "task data: 100 MB is outside"),
    ],
)
def test_what_lies_outside_is_named(
    model: PipelineModel, changed: dict[str, object], message: str
) -> None:
    outside = model.predict(replace(INSIDE, **changed)).extrapolated  # type: ignore[arg-type]
    assert any(text.startswith(message) for text in outside), outside


def test_less_data_and_longer_tasks_are_nothing_new(model: PipelineModel) -> None:
    measured = range_of([replace(one, bytes_in=one.bytes_in + MB) for one in situations()])
    easy = replace(INSIDE, sleep=np.full(16, 30.0), bytes_in=1.0)
    assert replace(model, ranges=measured).predict(easy).extrapolated == ()


def test_data_that_no_run_had_is_named(bare: PipelineModel) -> None:
    outside = bare.predict(replace(INSIDE, bytes_shared=5.0, warm=True)).extrapolated
    assert outside == ("no run had shared data, and this has 5 B", "no run had a warm start")


def test_a_model_is_the_same_when_read_again(bare: PipelineModel, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    save_models([bare], path)
    (again,) = load_models(path)
    assert again == replace(bare, fit=replace(bare.fit, covariance=again.fit.covariance))
    assert again.predict(INSIDE) == bare.predict(INSIDE)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-100], "is not a model"),
        (lambda text: text[:0] + "[]", "it is not a gridbench model"),
        (
            lambda text: text.replace('"gridbench model"', '"something"'),
            "it is not a gridbench model",
        ),
        (lambda text: text.replace('"format": 2', '"format": 9'), "its format is 9"),
        (lambda text: text.replace('"name": "submit"', '"name": "magic"'), "`magic`"),
        (lambda text: text.replace('"processors": 2', '"processors": 0'), "without processors"),
        (lambda text: text.replace('"processors": 2', '"processors": "two"'), "processors"),
    ],
)
def test_a_damaged_file_is_refused(
    model: PipelineModel, tmp_path: Path, damage: object, message: str
) -> None:
    path = tmp_path / "model.json"
    save_models([model], path)
    assert callable(damage)
    path.write_text(damage(path.read_text()))
    with pytest.raises(InputError, match=message):
        load_models(path)


@pytest.mark.parametrize("record", [[], "model", {"kind": "something", "format": 2}])
def test_what_is_kept_in_place_of_models_is_refused(record: object) -> None:
    with pytest.raises(RecordError, match="it is not a gridbench model"):
        pipeline_models(record)


def test_the_saved_form_tells_terms_and_range_to_readers(
    model: PipelineModel, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    save_models([model], path)
    text = path.read_text()
    # A figure on each line, in steps of one space.
    assert text.startswith('{\n "kind": "gridbench model",\n "format": 2,\n "models": [\n  {\n')
    assert text.endswith("}\n")
    (saved,) = json.loads(text)["models"]
    assert {"name", "unit", "meaning", "value", "low", "high", "determined"} == set(
        saved["terms"][0]
    )
    assert saved["measured"]["cores"] == {"low": 1, "high": 16}
    assert saved["place"]["engine"] == "made-up"


def _changed(model: PipelineModel, path: Path, **term: float) -> Path:
    """A file with the model, of whose first term some figures are others."""
    save_models([model], path)
    record = json.loads(path.read_text())
    record["models"][0]["terms"][0] |= term
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize(
    ("low", "value", "high", "fine"),
    [
        (0.0, 0.0, 0.0, True),
        (0.5, 0.5, 0.75, True),
        (0.5, 0.75, 0.75, True),
        (-0.1, 0.5, 0.75, False),
        (0.5, 0.4, 0.75, False),
        (0.5, 0.8, 0.75, False),
    ],
)
def test_a_cost_lies_in_its_interval_and_is_not_below_nothing(  # noqa: PLR0917
    model: PipelineModel, tmp_path: Path, low: float, value: float, high: float, fine: bool
) -> None:
    path = _changed(model, tmp_path / "model.json", low=low, value=value, high=high)
    if fine:
        (found,) = load_models(path)
        one = found.fit.estimates[0]
        assert (one.low, one.value, one.high) == (low, value, high)
    else:
        with pytest.raises(InputError, match=r"`start\.constant` is not in its interval"):
            load_models(path)


def test_a_covariance_is_of_as_many_terms_as_there_are(
    model: PipelineModel, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    save_models([model], path)
    record = json.loads(path.read_text())
    saved = record["models"][0]
    whole = saved["covariance"]
    for wrong in (whole[1:], [row[1:] for row in whole], [row[1:] for row in whole[1:]]):
        saved["covariance"] = wrong
        path.write_text(json.dumps(record))
        with pytest.raises(InputError, match="not of as many terms as it has"):
            load_models(path)


def test_a_machine_of_one_processor_is_one(model: PipelineModel, tmp_path: Path) -> None:
    place = replace(model.fit.place, processors=1)
    path = tmp_path / "model.json"
    save_models([replace(model, fit=replace(model.fit, place=place))], path)
    assert load_models(path)[0].fit.place == place


def test_a_file_that_does_not_tell_of_disturbed_runs_has_none(
    model: PipelineModel, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    save_models([replace(model, disturbed=3)], path)
    assert load_models(path)[0].disturbed == 3
    record = json.loads(path.read_text())
    assert record["format"] == 2
    del record["models"][0]["disturbed"]
    path.write_text(json.dumps(record))
    assert load_models(path)[0].disturbed == model.disturbed == 0


def test_figures_that_are_not_known_are_not_written(model: PipelineModel, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    unknown = replace(model, fit=replace(model.fit, spread=math.nan))
    with pytest.raises(ValueError, match="JSON"):
        save_models([unknown], path)
    assert not path.exists()


@pytest.mark.parametrize(("more", "message"), [(0, "is not a model"), (1, "it is too large")])
def test_a_file_of_more_than_64_megabytes_is_no_model(
    tmp_path: Path, more: int, message: str
) -> None:
    path = tmp_path / "model.json"
    with path.open("wb") as file:
        file.truncate(64 * MB + more)
    with pytest.raises(InputError, match=message) as refused:
        load_models(path)
    assert ("too large" in str(refused.value)) == bool(more)


def test_of_a_long_kind_the_beginning_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"kind": "gridbench model", "of": "x" * 30 + "y" * 30}))
    with pytest.raises(InputError, match=f"it is of {'x' * 30}{'y' * 10}, which are not known"):
        load(path)
