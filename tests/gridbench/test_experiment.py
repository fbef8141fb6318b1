"""`run_experiment` with a benchmark that squares numbers: resume, failures, signals, status."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment, run_experiment
from gridbench.jsonl_store import PlannedCase, ResultsForm
from gridbench.machine.options import Policy
from gridbench.pages.document import Document
from gridbench.printing import Printing
from gridbench.process.interrupt import Stopped
from gridbench.result_kind import ResultRow
from gridbench.shared_options import ResultsOptions

DISTURBED = {"judgement": "disturbed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSquare(PlannedCase):
    number: int
    repeat: int = 0

    def describe(self) -> str:
        return f"{self.number} squared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Square(PlannedSquare):
    status: str = "done"
    value: int = 0
    load: dict[str, Any] | None = None


FORM: ResultsForm[Square] = ResultsForm(
    kind="squares", of="squares", noun="square", record=Square, file="squares.jsonl", command="test"
)


class SquaresKind:
    """What shows the squares of a folder."""

    rules, title, model, compares = "", "test", None, False
    holds = staticmethod(FORM.holds)

    def rows(self, source: Path) -> Iterator[ResultRow]:
        del source
        yield from ()

    def nothing_valid(self, source: Path) -> InputError:
        return InputError("has no square", file=source)

    def document(self, sources: Sequence[Path], page: Path | None = None) -> Document:
        del page
        text = f"{len(FORM.read(sources[0])[1])} squares."
        return Document(kind="squares", title="Squares", heading="Squares", sentences=[text])

    def to_record(self, source: Path) -> dict[str, Any]:
        return {"values": [one.value for one in FORM.read(source)[1]]}


@dataclass
class Squares(Experiment[PlannedSquare, Square]):
    numbers: Sequence[int]
    happens: dict[int, Callable[[], dict[str, Any]]] = field(default_factory=dict)
    """What the run of a number does; its fields of the record."""
    options: dict[str, Any] = field(default_factory=dict)
    ran: list[int] = field(default_factory=list)
    shown: list[Square] = field(default_factory=list)
    kind = SquaresKind()
    form = FORM
    name = "squares"

    def record(self) -> dict[str, Any]:
        return self.options

    def batches(self, bench: Bench, records: Sequence[Square]) -> Iterator[Sequence[PlannedSquare]]:
        del bench, records
        yield [PlannedSquare(number=number) for number in self.numbers]

    def run(self, case: PlannedSquare, bench: Bench) -> Square:
        del bench
        self.ran.append(case.number)
        found = self.happens.get(case.number, dict)()
        return Square(**asdict(case) | {"value": case.number**2} | found)

    def group(self, case: PlannedSquare) -> str:
        return "even" if case.number % 2 == 0 else "odd"

    def outcome(self, record: Square) -> str:
        return f"{record.status} {record.value}"

    def complete(self, folder: Path, records: list[Square]) -> None:
        del folder
        self.shown = records


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridbench.experiment.settle", lambda *_: None)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., int]:
    def run(
        experiment: Squares, *, accept: bool = False, as_json: bool = False, **results: bool
    ) -> int:
        options = ResultsOptions(out=tmp_path / "out", **results)
        printing = Printing(as_json=as_json)
        return run_experiment(experiment, options, Policy(accept=accept), printing)

    return run


Runs = Callable[..., int]


def failing(**more: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"status": "failed", **more}


def refuse() -> dict[str, Any]:
    raise InputError("cannot be squared", remedy="choose another")


def interrupt() -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGINT)
    return {}


def stop() -> dict[str, Any]:
    raise Stopped


def test_an_experiment_runs_what_has_no_result(
    run: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = Squares([3, 1])
    assert run(first) == 0
    assert first.ran == [3, 1]
    assert [one.value for one in first.shown] == [9, 1]
    assert "2 squares." in (tmp_path / "out" / "report.html").read_text()
    assert capsys.readouterr().out == "2 squares.\n"
    second = Squares([3, 1, 2])
    assert run(second) == 0
    assert second.ran == [2]
    assert [one.value for one in second.shown] == [9, 1, 4]
    assert "2 of 3 squares are there" in capsys.readouterr().err
    again = Squares([1])
    assert run(again, fresh=True) == 0
    assert (again.ran, len(again.shown)) == ([1], 1)


def test_programs_get_the_answer_and_the_values(
    run: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Squares([3, 1]), as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {
        "results": str(tmp_path / "out"),
        "verdict": "2 squares.",
        "provisional": False,
        "values": [9, 1],
    }


def test_parts_of_the_results_have_pages_of_their_own(run: Runs, tmp_path: Path) -> None:
    class InParts(Squares):
        def parts(self, folder: Path) -> list[Path]:
            part = folder / "part"
            part.mkdir()
            (part / FORM.file).write_bytes((folder / FORM.file).read_bytes())
            return [part]

    assert run(InParts([1])) == 0
    assert "1 squares." in (tmp_path / "out" / "part" / "report.html").read_text()


def test_results_of_other_options_are_not_added_to(run: Runs) -> None:
    assert run(Squares([1])) == 0
    with pytest.raises(InputError, match="holds results of other options: base"):
        run(Squares([1], options={"base": 10}))


def test_the_resume_key_is_the_fields_of_the_planned_case() -> None:
    planned = PlannedSquare(number=3, repeat=1)
    assert planned.identity == (3, 1)
    assert Square(number=3, repeat=1, value=9).identity == planned.identity


def test_a_failed_case_is_retried_only_if_asked(
    run: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Squares([1, 2], {2: failing()})) == 1
    second = Squares([1, 2])
    assert run(second) == 1
    assert second.ran == []
    assert "1 square failed before and is not tried again: 2 squared" in capsys.readouterr().err
    third = Squares([1, 2])
    assert run(third, retry_failed=True) == 0
    assert third.ran == [2]


def test_a_case_that_failed_while_disturbed_is_run_again(run: Runs) -> None:
    assert run(Squares([1, 2], {2: failing(load=DISTURBED)})) == 1
    second = Squares([1, 2])
    assert run(second) == 0
    assert second.ran == [2]


def test_what_an_experiment_wants_again_is_said(
    run: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    class Undisturbed(Squares):
        def missing(self, cases, records, policy):  # type: ignore[no-untyped-def]
            del policy
            done = {one.identity for one in records if not one.load}
            return [one for one in cases if one.identity not in done]

    assert run(Undisturbed([1, 2], {2: lambda: {"load": DISTURBED}})) == 0
    second = Undisturbed([1, 2])
    assert run(second) == 0
    assert second.ran == [2]
    text = "1 square that other programs disturbed is measured again"
    assert text in capsys.readouterr().err


def test_ctrl_c_keeps_what_was_measured(
    run: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = Squares([1, 2, 3], {2: interrupt})
    assert run(experiment) == 130
    assert experiment.ran == [1, 2]
    assert [one.number for one in experiment.shown] == [1, 2]
    assert (tmp_path / "out" / "report.html").exists()
    assert "stopped: results are saved" in capsys.readouterr().err
    rest = Squares([1, 2, 3])
    assert run(rest) == 0
    assert rest.ran == [3]


def test_a_case_that_was_cut_off_is_not_kept(run: Runs) -> None:
    def cut_off() -> dict[str, Any]:
        interrupt()
        return stop()

    experiment = Squares([1, 2, 3], {2: cut_off})
    assert run(experiment) == 130
    assert [one.number for one in experiment.shown] == [1]


def test_input_that_cannot_be_used_ends_its_group_alone(run: Runs) -> None:
    experiment = Squares([1, 2, 4, 3], {2: refuse})
    with pytest.raises(InputError, match="cannot be squared"):
        run(experiment)
    assert experiment.ran == [1, 2, 3]
    assert [one.number for one in experiment.shown] == [1, 3]


def test_nothing_is_left_of_input_that_cannot_be_used(run: Runs, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be squared"):
        run(Squares([1], {1: refuse}))
    assert not (tmp_path / "out").exists()
    # So another call may have other options.
    assert run(Squares([1], options={"base": 10})) == 0


def test_nothing_can_be_claimed_if_all_was_disturbed(run: Runs) -> None:
    both: dict[int, Callable[[], dict[str, Any]]] = {n: lambda: {"load": DISTURBED} for n in (1, 2)}
    assert run(Squares([1, 2], both)) == 3
    assert run(Squares([1, 2], both), accept=True) == 0
    assert run(Squares([1, 2, 3])) == 0


def test_a_report_that_cannot_be_written_is_an_error(run: Runs) -> None:
    class Unwritable(Squares):
        def complete(self, folder: Path, records: list[Square]) -> None:
            super().complete(folder, records)
            (folder / "report.html").mkdir()

    assert run(Unwritable([1])) == 1


class UntilLarge(Squares):
    """Squares the last result again, until it is at least 100."""

    def batches(self, bench: Bench, records: Sequence[Square]) -> Iterator[Sequence[PlannedSquare]]:
        yield from super().batches(bench, records)
        while (last := max(one.value for one in records)) < 100:
            yield [PlannedSquare(number=last)]


def test_results_decide_what_is_run_next(run: Runs) -> None:
    experiment = UntilLarge([2], {4: interrupt})
    assert run(experiment) == 130
    assert experiment.ran == [2, 4]
    # It resumes where it was.
    rest = UntilLarge([2])
    assert run(rest) == 0
    assert rest.ran == [16]
    assert [one.value for one in rest.shown] == [4, 16, 256]
