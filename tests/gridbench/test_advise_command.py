"""What `gridbench advise` does with a model that is there: its exit status, files and folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.advise import command
from gridbench.advise.command import Request, give_advice
from gridbench.advise.work import Work
from gridbench.errors import BusyMachine, InputError
from gridbench.machine.policy import Policy
from gridbench.model.model import Model
from gridbench.model.observation import Observation
from gridbench.model.saved import load_models, save_models
from gridbench.printing import Printing
from test_model_source import made_run

WORK = Work(seconds=1.0, cores=8)


def _request(folder: Path, *models: Model, **more: object) -> Request:
    save_models(models, folder / "models.json")
    return Request(
        work=WORK,
        source=folder / "models.json",
        folder=folder / "advice",
        printing=Printing(as_json=True),
        **more,  # type: ignore[arg-type]
    )


def _of(model: Model, engine: str) -> Model:
    return replace(model, fit=replace(model.fit, place=replace(model.fit.place, engine=engine)))


def test_advice_is_given_by_a_model_in_a_file(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert give_advice(_request(tmp_path, model)) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["maps"] == []
    (kept,) = load_models(tmp_path / "advice" / "model.json")
    assert kept.fit.values == model.fit.values
    assert "Divide the work into" in (tmp_path / "advice" / "report.html").read_text()


def test_of_a_model_of_disturbed_runs_nothing_is_claimed(model: Model, tmp_path: Path) -> None:
    request = _request(tmp_path, replace(model, disturbed=1))
    assert give_advice(request) == BusyMachine.exit_status == 3
    assert give_advice(replace(request, policy=Policy(accept=True))) == 0


def test_of_several_models_one_is_chosen(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = _request(tmp_path, _of(model, "one"), _of(model, "other"))
    with pytest.raises(InputError, match="there are models of several engines or places: one 1 on"):
        give_advice(request)
    with pytest.raises(InputError, match="there is no model of the engine `ray`") as refused:
        give_advice(replace(request, engine="ray"))
    assert "there are: one 1 on here" in str(refused.value)
    # Where nothing came of it there is no folder.
    assert not (tmp_path / "advice").exists()
    assert give_advice(replace(request, engine="other", maps=True)) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["maps"]] == ["one", "other"]
    assert "cores of other." in " ".join(told["sentences"])


def test_a_folder_of_the_users_stays_if_nothing_comes_of_it(model: Model, tmp_path: Path) -> None:
    (tmp_path / "advice").mkdir()
    with pytest.raises(InputError):
        give_advice(_request(tmp_path, model, engine="ray"))
    assert (tmp_path / "advice").is_dir()


def test_servers_without_runs_on_them_are_refused(model: Model, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--grid and --server are where an engine is calibrated"):
        give_advice(_request(tmp_path, model, servers=("ssh://node1",)))
    with pytest.raises(InputError, match="--grid and --server are where an engine is calibrated"):
        give_advice(_request(tmp_path, model, grid=tmp_path / "grid.toml"))


def test_where_the_results_are_is_told(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = replace(_request(tmp_path, model), printing=Printing())
    assert give_advice(request) == 0
    assert f"results: {tmp_path / 'advice'}\n" in capsys.readouterr().err


def test_a_model_is_fitted_to_the_runs_of_a_folder(
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fitted = []

    def model_of(runs: Sequence[Observation], **_: object) -> Model:
        fitted.append([Path(one.name).name for one in runs])
        return _of(model, runs[0].place.engine)

    monkeypatch.setattr(command, "model_of", model_of)
    for name, engine in (("a", "one"), ("b", "one"), ("c", "other")):
        made_run(tmp_path / "runs" / name, engine={"name": engine, "version": "1"})
    request = replace(_request(tmp_path, model), source=tmp_path / "runs", engine="one")
    assert give_advice(request) == 0
    assert fitted == [["a", "b"]]
    assert "fitting a model to 2 runs" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(InputError, match="there are models of several engines"):
        give_advice(replace(request, engine=None))
    assert fitted[1:] == [["a", "b"], ["c"]]
