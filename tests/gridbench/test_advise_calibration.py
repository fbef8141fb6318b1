"""What comes of calibrating runs that went well, failed or were disturbed: no engine runs here."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from rich.console import Console

from gridbench.advise import calibration
from gridbench.advise.model_cache import CachedModel
from gridbench.advise.work import DivisibleWork
from gridbench.engines.servers import Servers
from gridbench.errors import BusyMachine, InputError
from gridbench.machine.options import Policy
from gridbench.model.observation import Observation, RunTimes, Situation
from gridbench.process.child import ProcessTemplate
from gridbench.scenario.grids import ScenarioCase
from synthetic import PLACE

WORK = DivisibleWork(seconds=1.0, cores=4)
BEFORE = Observation("before", PLACE, Situation(cores=1, sleep=np.ones(1)), RunTimes(2, 1, 1, 0))


@dataclass(frozen=True)
class Fitted:
    """Stands for a model: the names of the runs that it was fitted to."""

    runs: tuple[str, ...]
    disturbed: int = 0


@dataclass
class Made:
    """Input of the calibration, and what it did."""

    outcomes: Sequence[str]
    """Of the runs: quiet, disturbed, or what went wrong."""
    fewest: int = 1
    """Runs that a model can be fitted to."""
    counted: list[str] = field(default_factory=list)
    """Runs that the search got."""
    kept: list[tuple[Fitted, list[str]]] = field(default_factory=list)
    limits: set[float] = field(default_factory=set)
    """Seconds that runs might take."""
    fits: list[dict[str, object]] = field(default_factory=list)
    """How models were fitted."""
    printed: str = ""

    @property
    def left(self) -> list[ScenarioCase]:
        """Cases to be run."""
        sizes = {"bytes_in": 0, "bytes_shared": 0, "bytes_out": 0}
        return [
            ScenarioCase(scenario=0, cores=1, tasks=number, sleep=1.0, **sizes)
            for number in range(1, len(self.outcomes) + 1)
        ]


Calibrate = Callable[..., Fitted]


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch) -> Calibrate:
    """Calibrates with runs whose outcomes are given."""

    def calibrate(
        made: Made,
        *,
        accept: bool = False,
        stored: bool = False,
        servers: Servers | None = None,
        width: int = 200,
    ) -> Fitted:
        outcomes = iter(made.outcomes)
        cases = iter(made.left)

        class Search:
            def __init__(
                self, _work: DivisibleWork, known: Sequence[Observation], _most: object
            ) -> None:
                self.left = made.left
                self.known = self
                self.values = {"submit": 1e-5}
                assert [one.name for one in known] == (["before"] if stored else [])

            def append(self, one: Observation) -> None:
                made.counted.append(one.name)

            def next(self) -> ScenarioCase | None:
                return next(cases, None)

        class Runs:
            def __init__(self, *_: object, **__: object) -> None:
                pass

            def __enter__(self) -> Runs:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def run(self, case: ScenarioCase, *, limit: float, **_: object) -> object:
                made.limits.add(limit)
                found = next(outcomes)
                sound = found in ("quiet", "disturbed")
                return SimpleNamespace(
                    problem="" if sound else found,
                    disturbed=found == "disturbed",
                    folder=Path(f"run {case.tasks}"),
                )

        def observe(folder: Path, *, disturbed: bool) -> Observation:
            del disturbed
            return Observation(str(folder), PLACE, BEFORE.situation, BEFORE.measured)

        def model_of(found: Sequence[Observation], **how: object) -> Fitted:
            made.fits.append(how)
            if len(found) < made.fewest:
                raise InputError("too few")
            return Fitted(tuple(one.name for one in found))

        participant = SimpleNamespace(name="made-up", facts=lambda *_, **__: None)
        monkeypatch.setattr(calibration, "Search", Search)
        monkeypatch.setattr(calibration, "CaseRunner", Runs)
        monkeypatch.setattr(calibration, "observe", observe)
        monkeypatch.setattr(calibration, "model_of", model_of)
        monkeypatch.setattr(calibration, "among", lambda one, _: one)
        monkeypatch.setattr(calibration, "find_participant", lambda _: participant)
        monkeypatch.setattr(
            calibration,
            "keep",
            lambda model, found: made.kept.append((model, [one.name for one in found])),
        )
        printed = io.StringIO()
        before = CachedModel(cast(Any, None), (BEFORE,), 0.0) if stored else None
        try:
            model = calibration.calibrate(
                "made-up", WORK, Console(file=printed, width=width), Policy(accept=accept),
                cast(ProcessTemplate, None), stored=before, servers=servers,
            )  # fmt: skip
        finally:
            made.printed = printed.getvalue()
        return cast(Fitted, model)

    return calibrate


def test_a_model_is_fitted_to_all_runs_and_kept(calibrated: Calibrate) -> None:
    made = Made(["quiet", "quiet"])
    model = calibrated(made)
    assert model == Fitted(("run 1", "run 2"))
    assert made.kept == [(model, ["run 1", "run 2"])]
    assert made.counted == ["run 1", "run 2"]
    assert made.printed.splitlines() == [
        "calibrating made-up: at most 2 short runs",
        "made-up: fitting a model to 2 runs",
    ]


def test_runs_that_were_kept_are_fitted_to_as_well(calibrated: Calibrate) -> None:
    made = Made(["quiet"])
    assert calibrated(made, stored=True) == Fitted(("before", "run 1"))
    assert made.kept[0][1] == ["before", "run 1"]


def test_a_model_of_servers_is_not_kept(calibrated: Calibrate) -> None:
    made = Made(["quiet"])
    servers = cast(Servers, SimpleNamespace(workers=4))
    assert calibrated(made, servers=servers) == Fitted(("run 1",))
    assert made.kept == []


def test_runs_that_failed_are_reported_and_left_out(calibrated: Calibrate) -> None:
    made = Made(["no luck", "quiet"])
    assert calibrated(made).runs == ("run 2",)
    assert "a run was left out: " in made.printed
    assert ": no luck\n" in made.printed
    made = Made(["no luck", "nor here"])
    with pytest.raises(InputError, match=r"`made-up` could not be calibrated: .*: no luck"):
        calibrated(made)
    assert made.kept == []


def test_disturbed_runs_are_reported_and_do_not_count(calibrated: Calibrate) -> None:
    made = Made(["disturbed", "quiet"])
    model = calibrated(made)
    assert model == Fitted(("run 2",))
    assert made.counted == ["run 2"]
    assert made.kept == [(model, ["run 2"])]
    assert "disturbed 1 of 2 calibrating runs" in made.printed


@pytest.mark.parametrize(
    ("outcomes", "fewest"),
    [
        (["disturbed", "quiet", "disturbed"], 1),
        (["disturbed"], 1),
        # Half of them were not, but these are too few to fit a model to.
        (["disturbed", "quiet", "quiet"], 3),
    ],
)
def test_if_most_were_disturbed_there_is_no_model_unless_that_is_accepted(
    outcomes: list[str], fewest: int, calibrated: Calibrate
) -> None:
    made = Made(outcomes, fewest)
    with pytest.raises(BusyMachine, match="Nothing can be claimed"):
        calibrated(made)
    assert made.kept == []
    made = Made(outcomes, fewest)
    model = calibrated(made, accept=True)
    assert len(model.runs) == len(outcomes)
    assert model.disturbed == outcomes.count("disturbed")
    assert made.kept == []
    assert sorted(made.counted) == sorted(model.runs)


def test_a_few_that_were_disturbed_are_not_fitted_to_even_if_that_is_accepted(
    calibrated: Calibrate,
) -> None:
    made = Made(["disturbed", "quiet", "quiet"])
    model = calibrated(made, accept=True)
    assert model == Fitted(("run 2", "run 3"))
    assert made.kept == [(model, ["run 2", "run 3"])]
    # They counted for which run came next.
    assert made.counted == ["run 1", "run 2", "run 3"]


def test_a_user_waits_for_no_run_and_no_search_that_takes_long(calibrated: Calibrate) -> None:
    made = Made(["quiet"])
    calibrated(made)
    assert made.limits == {60.0}
    # Nothing is held out; a few runs that were chosen do, and the search begins in two places
    # besides the guesses.
    # The search has fitted models on the way.
    begin = {"submit": 1e-5}
    assert made.fits == [{"test": False, "few": True, "starts": 2, "begin": begin}]


def test_what_went_wrong_is_one_line_as_it_was_said(calibrated: Calibrate) -> None:
    made = Made(["it ended [bold]badly[/bold], as nobody had expected it to", "disturbed", "quiet"])
    calibrated(made, width=40)
    lines = made.printed.splitlines()
    assert [line for line in lines if line.startswith("a run was left out: ")] == [
        "a run was left out: 1 core, 1 task of 1 s: it ended [bold]badly[/bold], as nobody had"
        " expected it to"
    ]
    assert len([line for line in lines if "disturbed 1 of 2 calibrating runs" in line]) == 1
