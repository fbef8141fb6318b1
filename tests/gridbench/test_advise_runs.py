"""Runs one after the other, for advice: what is made of what each has measured."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from gridbench.advise import runs as made
from gridbench.advise.runs import SCENARIO, CaseRun, CaseRunner, _analysed, _looks
from gridbench.machine.load import ClockReading, Load
from gridbench.model.observation import Observation, observe
from gridbench.process.child import ProcessTemplate
from gridbench.progress import Steps
from gridbench.run.load import read_record
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.run_case import RUNS_CASES, CaseAnswer, CaseOrder, CaseOutcome, run_case

ENGINE = "gridrpc-native"
CASE = ScenarioCase(
    scenario=SCENARIO, cores=2, tasks=6, sleep=0.01, bytes_in=0, bytes_shared=0, bytes_out=0
)
QUIET = Load(seconds=0.5, others=0.0)
BUSY = Load(seconds=0.5, others=1.0, at_least=1.0)
BEGAN = ClockReading(at=100.0, not_idle=5.0, own=1.0)


def ran(folder: Path, load: Load | None = QUIET, took: float = 0.3) -> CaseRun:
    """A short run that went well, while others did what `load` says."""
    status = "invalid" if load == BUSY else "done"
    answer = CaseAnswer(status=status, reason="it was busy" * (load == BUSY), load=load)
    return CaseRun(CaseOutcome(answer=answer, began=BEGAN, took=took, load={}), folder)


def test_what_a_run_has_measured_is_looked_at_here(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[CaseOrder] = []

    def noted(order: CaseOrder, **how: Any) -> CaseOutcome:
        orders.append(order)
        return run_case(order, **how)

    monkeypatch.setattr(made, "run_case", noted)
    console = Console(file=io.StringIO())
    facts = find_participant(ENGINE).facts(2, warm=False)
    with (
        ProcessTemplate(RUNS_CASES, ENGINE) as template,
        CaseRunner(ENGINE, template, warm=False, progress=Steps(console, "run", 2)) as runs,
    ):
        done = runs.run(CASE, facts=facts, limit=60.0)
        answer = done.outcome.answer
        assert answer.returned == 6
        assert answer.total_s is not None
        assert answer.ideal_s == pytest.approx(0.03)
        assert answer.figures["harness"] > 0
        found = observe(done.folder, disturbed=True)
        # The look at other programs before the next run is as long as this.
        runs._looks = [done.outcome.began]
        before = read_record(runs.run(CASE, facts=facts, limit=60.0).folder)["load"]["before"]
        assert before["seconds"] >= done.outcome.took
    assert [one.analysed for one in orders] == [False, False]
    assert isinstance(found, Observation)
    assert found.measured.total == answer.total_s


def test_a_run_whose_record_is_gone_has_failed(tmp_path: Path) -> None:
    found = _analysed(ran(tmp_path), CASE)
    assert "cannot read the run's record" in found.problem
    assert "\n" not in found.problem


def test_a_run_that_has_failed_is_not_looked_at(tmp_path: Path) -> None:
    failed = CaseAnswer(status="failed", reason="no workers")
    one = ran(tmp_path)
    found = _analysed(replace(one, outcome=replace(one.outcome, answer=failed)), CASE)
    assert found.problem == "no workers"


def test_what_others_did_during_a_short_quiet_run_counts_for_the_next(tmp_path: Path) -> None:
    assert _looks([], ran(tmp_path)) == [BEGAN]


@pytest.mark.parametrize(("earlier", "counts"), [(0.5, True), (0.75, True), (0.76, False)])
def test_what_others_did_in_the_second_before_its_end_counts_too(
    tmp_path: Path, earlier: float, counts: bool
) -> None:
    before = replace(BEGAN, at=BEGAN.at - earlier)
    assert _looks([before], ran(tmp_path, took=0.25)) == [before] * counts + [BEGAN]


@pytest.mark.parametrize(
    ("load", "took"),
    [(QUIET, 1.5), (BUSY, 0.3), (None, 0.3), (replace(QUIET, apart=True), 0.3)],
    ids=["long", "disturbed", "not looked at", "with workers apart"],
)
def test_what_others_did_during_another_does_not(
    tmp_path: Path, load: Load | None, took: float
) -> None:
    assert _looks([BEGAN], ran(tmp_path, load, took)) == []


@pytest.mark.parametrize(
    ("engine", "module", "imported"),
    [
        (ENGINE, "gridbench.engines.gridrpc_engines", True),
        ("dask", "gridbench.engines.dask_engine", False),
        ("no-such-engine", "gridbench.engines.gridrpc_engines", False),
    ],
)
def test_what_is_copied_has_imported_only_drivers_that_start_no_threads(
    engine: str, module: str, imported: bool
) -> None:
    program = (
        "import sys; from gridbench.scenario.child import prepare;"
        f" prepare({engine!r}); print({module!r} in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == f"{imported}\n"


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_processes_of_a_run_that_did_not_end_well_may_be_taken_for_others(
    tmp_path: Path, status: Any
) -> None:
    one = ran(tmp_path)
    answer = replace(one.outcome.answer, status=status)
    assert _looks([BEGAN], replace(one, outcome=replace(one.outcome, answer=answer))) == []


def test_a_run_of_a_second_is_a_short_one(tmp_path: Path) -> None:
    assert _looks([], ran(tmp_path, took=1.0)) == [BEGAN]
    assert _looks([], ran(tmp_path, took=1.1)) == []


@pytest.mark.parametrize(
    ("status", "load", "ended_for", "disturbed", "problem"),
    [
        ("done", QUIET, "", False, ""),
        ("invalid", BUSY, "", True, ""),
        ("invalid", QUIET, "", False, "it is late"),
        ("invalid", None, "", False, "it is late"),
        # What has failed is no better for having been disturbed, nor what was ended.
        ("failed", BUSY, "", False, "it is late"),
        ("done", BUSY, "time", False, "time"),
        ("done", QUIET, "memory", False, "memory"),
    ],
)
def test_a_run_counts_or_is_disturbed_or_has_a_problem(  # noqa: PLR0917
    tmp_path: Path, status: Any, load: Load | None, ended_for: str, disturbed: bool, problem: str
) -> None:
    answer = CaseAnswer(status=status, reason="it is late", load=load)
    outcome = CaseOutcome(answer=answer, began=BEGAN, took=0.3, load={}, ended_for=ended_for)
    one = CaseRun(outcome, tmp_path)
    assert (one.disturbed, one.problem) == (disturbed, problem)


def test_a_run_without_a_reason_has_its_status_as_one(tmp_path: Path) -> None:
    answer = CaseAnswer(status="failed")
    assert (
        CaseRun(CaseOutcome(answer=answer, began=BEGAN, took=0.3, load={}), tmp_path).problem
        == "failed"
    )


class Noted(Steps):
    """Notes how long steps took."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "run", 1)
        self.ended: list[float] = []

    def end(self, took: float) -> None:
        self.ended.append(took)
        super().end(took)


def test_runs_are_made_in_real_time_with_the_times_that_are_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = find_participant(ENGINE).facts(2, warm=False)
    printed = io.StringIO()
    progress = Noted(Console(file=printed, width=200))
    with (
        ProcessTemplate(RUNS_CASES, ENGINE) as template,
        CaseRunner(ENGINE, template, warm=False, progress=progress) as runs,
    ):
        times = np.array([0.02, 0.01, 0.01, 0.02, 0.03, 0.03])
        done = runs.run(CASE, facts=facts, limit=60.0, times=times)
        record = read_record(done.folder)
        found = observe(done.folder, disturbed=True)
    # Each goes to the core that is free first: 0.02 + 0.02 + 0.03 s on one of them.
    assert isinstance(found, Observation)
    assert found.situation.sleep.tolist() == times.tolist()
    assert done.outcome.answer.ideal_s == pytest.approx(0.07)
    assert (record["time_scale"], record["check"]["wanted"], record["start"]) == (
        1.0,
        False,
        "cold",
    )
    assert done.folder.parts[-2:] == ("1", "run")
    # The progress was reported, with its duration; and nobody has interrupted it.
    assert "run 1 of 1: 2 cores, 6 tasks of 0.01 s" in printed.getvalue()
    assert progress.ended == [done.outcome.took]
    assert capsys.readouterr().err == ""
