"""What `gridbench advise` does with a model that is there: its exit status, files and folders."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from gridbench.advise import command
from gridbench.advise.advice import advise
from gridbench.advise.command import AdviceRequest, find_model, give_advice
from gridbench.advise.model_cache import CachedModel
from gridbench.advise.options import AdviceParameters
from gridbench.advise.options import advise as advise_options
from gridbench.advise.trial import LeftOut, Trial, TriedSplit
from gridbench.advise.trying import TrialEffort
from gridbench.advise.work import DivisibleWork
from gridbench.errors import BusyMachine, InputError
from gridbench.machine.options import Policy
from gridbench.model.model import PipelineModel
from gridbench.model.observation import EnginePlace, Observation
from gridbench.model.saved import load_models, save_models
from gridbench.printing import Printing
from gridbench.shared_options import GridOptions
from synthetic import MB
from test_model_source import made_run

WORK = DivisibleWork(seconds=1.0, cores=8)


def _request(folder: Path, *models: PipelineModel, **more: Any) -> AdviceRequest:
    save_models(models, folder / "models.json")
    return AdviceRequest(
        work=WORK,
        printing=Printing(as_json=True),
        options=AdviceParameters(source=folder / "models.json", out=folder / "advice", force=True),
        **more,
    )


def _with(request: AdviceRequest, **options: Any) -> AdviceRequest:
    return replace(request, options=replace(request.options, **options))


def _of(model: PipelineModel, engine: str) -> PipelineModel:
    return replace(model, fit=replace(model.fit, place=replace(model.fit.place, engine=engine)))


def test_advice_is_given_by_a_model_in_a_file(
    model: PipelineModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert give_advice(_request(tmp_path, model)) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["maps"], reported["tried"], reported["within"], reported["origin"]) == (
        [],
        None,
        None,
        None,
    )
    assert reported["limits"] == max(reported["parts"], key=reported["parts"].get)
    (stored,) = load_models(tmp_path / "advice" / "model.json")
    assert stored.fit.values == model.fit.values
    assert "Divide the work into" in (tmp_path / "advice" / "report.html").read_text()


def test_advice_for_a_system_that_is_not_here_is_reported_and_has_its_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = AdviceRequest(
        work=replace(WORK, seconds=3600.0),
        options=AdviceParameters(profile="ninfg", maps=True, out=tmp_path / "advice", force=True),
    )
    assert give_advice(request) == 0
    reported = capsys.readouterr()
    assert "cores of ninfg, as tasks that wait." in " ".join(reported.out.split())
    assert f"results: {tmp_path / 'advice'}\n" in reported.err
    assert "ninfg on 8 cores, 32 tasks" in (tmp_path / "advice" / "report.html").read_text()
    assert give_advice(replace(request, printing=Printing(as_json=True))) == 0
    reported = json.loads(capsys.readouterr().out)
    assert ([one["name"] for one in reported["maps"]], reported["tried"]) == (["ninfg"], None)


def test_of_a_model_of_disturbed_runs_nothing_is_claimed(
    model: PipelineModel, tmp_path: Path
) -> None:
    request = _request(tmp_path, replace(model, disturbed=1))
    assert give_advice(request) == BusyMachine.exit_status == 3
    assert give_advice(replace(request, policy=Policy(accept=True))) == 0


def test_of_several_models_one_is_chosen(
    model: PipelineModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = _request(tmp_path, _of(model, "one"), _of(model, "other"))
    with pytest.raises(InputError, match="there are models of several engines or places: one 1 on"):
        give_advice(request)
    with pytest.raises(InputError, match="there is no model of the engine `ray`") as refused:
        give_advice(_with(request, engine="ray"))
    assert "there are: one 1 on here" in str(refused.value)
    # Without a result there is no folder.
    assert not (tmp_path / "advice").exists()
    assert give_advice(_with(request, engine="other", maps=True)) == 0
    reported = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in reported["maps"]] == ["one", "other"]
    assert "cores of other, as tasks that wait." in " ".join(reported["sentences"])
    with pytest.raises(InputError, match=r"there are no models\nhint: give another --from"):
        give_advice(_request(tmp_path))


def test_an_advice_is_not_replaced_unless_that_is_wanted(
    model: PipelineModel, tmp_path: Path
) -> None:
    request = _with(_request(tmp_path, _of(model, "one"), _of(model, "other")), force=False)
    assert give_advice(_with(request, engine="one")) == 0
    with pytest.raises(InputError, match=r"the output folder holds an advice already\n.*--force"):
        give_advice(_with(request, engine="other"))
    (stored,) = load_models(tmp_path / "advice" / "model.json")
    assert stored.name == "one"
    assert give_advice(_with(request, engine="other", force=True)) == 0
    (stored,) = load_models(tmp_path / "advice" / "model.json")
    assert stored.name == "other"


def test_a_folder_of_the_users_stays_if_nothing_comes_of_it(
    model: PipelineModel, tmp_path: Path
) -> None:
    (tmp_path / "advice").mkdir()
    with pytest.raises(InputError):
        give_advice(_with(_request(tmp_path, model), engine="ray"))
    assert (tmp_path / "advice").is_dir()


def test_servers_without_runs_on_them_are_refused(model: PipelineModel, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--grid and --server are where an engine is calibrated"):
        give_advice(_with(_request(tmp_path, model), where=GridOptions(servers=("ssh://node1",))))
    with pytest.raises(InputError, match="--grid and --server are where an engine is calibrated"):
        give_advice(
            _with(_request(tmp_path, model), where=GridOptions(grid=tmp_path / "grid.toml"))
        )


def test_where_the_results_are_is_reported(
    model: PipelineModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = replace(_request(tmp_path, model), printing=Printing())
    assert give_advice(request) == 0
    assert f"results: {tmp_path / 'advice'}\n" in capsys.readouterr().err


def test_a_model_is_fitted_to_the_runs_of_a_folder(
    model: PipelineModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fitted = []

    def model_of(runs: Sequence[Observation], *, test: bool) -> PipelineModel:
        assert not test, "no run is held out"
        fitted.append([Path(one.name).name for one in runs])
        return _of(model, runs[0].place.engine)

    monkeypatch.setattr(command, "model_of", model_of)
    for name, engine in (("a", "one"), ("b", "one"), ("c", "other")):
        made_run(tmp_path / "runs" / name, engine={"name": engine, "version": "1"})
    request = _with(_request(tmp_path, model), source=tmp_path / "runs", engine="one")
    assert give_advice(request) == 0
    assert fitted == [["a", "b"]]
    assert "fitting a model to 2 runs" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(InputError, match="there are models of several engines"):
        give_advice(_with(request, engine=None))
    assert fitted[1:] == [["a", "b"], ["c"]]
    assert "fitting a model to 1 run" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(InputError, match="there is no model of the engine `ray`") as refused:
        give_advice(_with(request, engine="ray"))
    assert refused.value.remedy.startswith("there are: one 1 on ")
    assert "; other 1 on " in refused.value.remedy


@pytest.fixture
def calibrated(model: PipelineModel, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The calibrations that the command requests. None of them runs."""
    requested: list[dict[str, Any]] = []

    def calibrate(engine: str, work: DivisibleWork, *_: object, **more: Any) -> PipelineModel:
        requested.append({"engine": engine, "work": work} | more)
        return model

    monkeypatch.setattr(command, "calibrate", calibrate)
    monkeypatch.setattr(command, "ProcessTemplate", lambda *_: nullcontext())
    monkeypatch.setattr(command, "settle", lambda *_, **__: SimpleNamespace(began="then"))
    return requested


def test_what_was_kept_is_used_if_it_covers_the_work_unless_it_is_to_be_renewed(
    model: PipelineModel, calibrated: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = CachedModel(model, (), made=time.time() - 600)
    monkeypatch.setattr(command, "_cached_model", lambda *_: stored)
    request, quiet = AdviceRequest(work=WORK), Console(quiet=True)
    found, origin = find_model(request, quiet)
    assert found == replace(
        model, made=time.strftime("%Y-%m-%dT%H:%M", time.localtime(stored.made))
    )
    assert "the last of which was run 10 min ago" in origin
    assert calibrated == []
    assert find_model(_with(request, renew=True), quiet)[1] == ""
    assert calibrated[0]["stored"] is None
    assert calibrated[0]["seen"] == "then"
    # More data than it was measured with adds runs to those that were kept.
    large = replace(
        request,
        options=replace(request.options, engine="other"),
        work=replace(WORK, bytes_in_each=50.0 * MB),
    )
    assert find_model(large, quiet)[1] == ""
    assert calibrated[1]["stored"] is stored
    assert (calibrated[0]["engine"], calibrated[1]["engine"]) == ("gridrpc-native", "other")


def _trial(*totals: float, **more: Any) -> Trial:
    """Of the advised split, which took so long each time, and another."""
    splits = (
        TriedSplit(tasks=8, cores=8, advised=True, expected=1.0, totals=totals),
        TriedSplit(tasks=10, cores=8, advised=False, expected=1.0, totals=totals),
    )
    return Trial(rounds=3, seed=1, tried=splits, **more)


def _tries(monkeypatch: pytest.MonkeyPatch, trial: Trial) -> list[Policy]:
    """Trying has come to this; tells how often the machine was looked at before."""
    looks: list[Policy] = []
    monkeypatch.setattr(command, "participant_of", lambda *_: SimpleNamespace())
    monkeypatch.setattr(command, "settle", lambda policy, _: looks.append(policy))
    monkeypatch.setattr(command, "try_out", lambda *_, **__: trial)
    return looks


FAILED = (LeftOut(tasks=10, cores=8, advised=False, reason="no luck"),)


@pytest.mark.parametrize(
    ("trial", "accept", "status"),
    [
        (_trial(0.2, 0.2, 0.2), False, 0),
        (_trial(0.2, 0.2, 0.2, failed=FAILED), False, 1),
        # Three undisturbed runs of each say something, and one says nothing.
        (_trial(0.2, 0.2, 0.2, runs=9, disturbed=3), False, 0),
        (_trial(0.2, runs=9, disturbed=3), False, 3),
        (_trial(0.2, runs=9, disturbed=3), True, 0),
    ],
)
def test_the_exit_status_says_how_trying_went(  # noqa: PLR0917
    model: PipelineModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trial: Trial,
    accept: bool,
    status: int,
) -> None:
    looks = _tries(monkeypatch, trial)
    request = _request(tmp_path, model, effort=TrialEffort(), policy=Policy(accept=accept))
    assert give_advice(request) == status
    assert looks == [request.policy]
    assert "200.0 ms" in (tmp_path / "advice" / "report.html").read_text()


def test_a_kept_model_that_runs_disagree_with_is_kept_no_longer(
    model: PipelineModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    forgotten: list[EnginePlace] = []
    monkeypatch.setattr(command, "forget", forgotten.append)
    monkeypatch.setattr(command, "find_model", lambda *_: (model, ""))
    given = _request(tmp_path, model, effort=TrialEffort())
    own = _with(given, source=None)
    reported = (
        "The runs disagree with the model: it is kept no longer, and the next advice measures"
        " again."
    )
    _tries(monkeypatch, _trial(1000.0, 1001.0, 1002.0))
    assert give_advice(own) == 0
    assert forgotten == [model.fit.place]
    assert reported in capsys.readouterr().err.splitlines()
    # A file of the user's is the user's.
    assert give_advice(given) == 0
    # And where they agree it stays.
    expected = advise(model, WORK).expected.total
    _tries(monkeypatch, _trial(*[expected] * 3))
    assert give_advice(own) == 0
    assert len(forgotten) == 1
    assert reported not in capsys.readouterr().err


def test_folders_are_made_for_the_results(model: PipelineModel, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert give_advice(_with(_request(tmp_path, model), out=folder)) == 0
    assert (folder / "report.html").is_file()


@pytest.mark.parametrize(
    ("options", "looks"),
    [("", True), ("--from x", False), ("--profile ninfg", False), ("--server ssh://a", False)],
)
def test_others_are_looked_at_from_the_beginning_where_something_is_measured_here(
    options: str, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[AdviceRequest] = []
    begun = object()

    def give(request: AdviceRequest) -> int:
        requested.append(request)
        return 0

    monkeypatch.setattr("gridbench.machine.load.begin_sample", lambda: begun)
    monkeypatch.setattr(command, "give_advice", give)
    given = ["--work", "60", "--cores", "2", *options.replace(" x", f" {__file__}").split()]
    assert CliRunner().invoke(advise_options, given).exit_code == 0
    assert requested[0].begun is (begun if looks else None)
