"""Which runs a search for a model is made on, what is missing if they are too few, and what its end
says of a term."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gridbench.errors import InputError
from gridbench.model import fit as module
from gridbench.model import options as command
from gridbench.model.fit import MORE_STARTS, refuse_too_few, shapes_of
from gridbench.model.kind import ModelSubjects
from gridbench.model.least_squares import SearchCount, SearchEnd, TermSearch, _estimate
from gridbench.model.model import model_of
from gridbench.model.observation import Observation, RunTimes, Situation
from gridbench.model.options import ModelParameters
from gridbench.model.terms import Shape, Term, terms_of
from gridbench.pages.document import Document
from gridbench.printing import Printing
from gridbench.progress import Steps
from synthetic import PLACE

TERM = Term("one", "a cost", "s", guess=1e-3, low=1e-6, high=1.0, touches=lambda _: True)


def _run(cores: int = 1, tasks: int = 1, place: str = "one host", **sizes: Any) -> Observation:
    situation = Situation(cores=cores, sleep=np.ones(tasks), **sizes)
    where = replace(PLACE, transport=place)  # type: ignore[arg-type]
    return Observation("a run", where, situation, RunTimes(2.0, 1.0, 1.0, 0.0))


def _runs(count: int, place: str = "one host") -> list[Observation]:
    """On one and two cores, with one and two tasks for each: of ten terms."""
    kinds = [(1, 1), (1, 2), (2, 2), (2, 4)]
    return [_run(*kinds[number % 4], place) for number in range(count)]


def _missing(runs: list[Observation], *, few: bool = False) -> str:
    with pytest.raises(InputError) as refused:
        refuse_too_few(runs, [Shape()], few=few)
    return str(refused.value)


def test_a_fit_needs_three_runs_more_than_it_has_terms() -> None:
    refuse_too_few(_runs(13), [Shape()])
    reported = _missing(_runs(12))
    assert reported.startswith(
        "12 runs are too few to fit a model to; missing are 1 more run, as 10"
    )
    assert "measure them with `gridbench run`" in reported
    assert _missing(_runs(1)).startswith("1 run is too few to fit a model to; missing are 12 more")
    with pytest.raises(InputError, match="1 run is too few"):
        module.fit(_runs(1))
    # Unless the caller accepts few.
    twelve = [_run(cores, tasks) for cores in (1, 2) for tasks in range(1, 7)]
    with pytest.raises(InputError, match="12 runs are too few"):
        module.fit(twelve, shape=Shape())
    with pytest.raises(InputError, match="12 runs are too few"):
        model_of(twelve, test=False, shape=Shape())
    # With data to move there are more terms.
    runs = [*_runs(14), _run(2, 4, bytes_in=10.0)]
    more = len(terms_of(Shape())) - 6 - 10  # without those of output and shared data
    assert f"as {10 + more} terms are to be found" in _missing(runs)


def test_half_as_many_do_if_they_are_chosen_well() -> None:
    refuse_too_few(_runs(7), [Shape()], few=True)
    assert "missing are 1 more run, as 10 terms" in _missing(_runs(6), few=True)


def test_more_logs_are_requested_where_nothing_can_be_measured() -> None:
    assert "give more logs of this system" in _missing(_runs(12, "network"))


def test_of_several_shapes_that_with_the_most_terms_counts() -> None:
    runs = [*_runs(15), _run(2, 4, bytes_in=10.0)]
    # Two terms of data through a pipe, and four of copies.
    refuse_too_few(runs[:1] + runs, [Shape(movement="pipe")])
    with pytest.raises(InputError, match="as 14 terms"):
        refuse_too_few(runs, [Shape(movement="pipe"), Shape()])


def test_what_never_changes_cannot_be_told_from_the_rest() -> None:
    assert "runs with another number of cores" in _missing([_run(2, 2), _run(2, 4)] * 10)
    assert "runs with more tasks on each core" in _missing([_run(1, 2), _run(2, 4)] * 10)
    for name, what in (
        ("bytes_in", "task data"),
        ("bytes_shared", "shared data"),
        ("bytes_out", "output data"),
    ):
        same = [
            replace(one, situation=replace(one.situation, **{name: 5.0}))  # type: ignore[arg-type]
            for one in _runs(40)
        ]
        assert f"runs with another size of {what}, or without" in _missing(same)
        refuse_too_few([*same, *_runs(1)], [Shape()])


def test_engines_on_one_host_have_other_shapes_than_those_behind_links() -> None:
    assert shapes_of(PLACE) == [
        Shape(False, "copies"), Shape(True, "copies"), Shape(False, "pipe"), Shape(True, "pipe"),
    ]  # fmt: skip
    network = [Shape(False, "network"), Shape(True, "network")]
    assert shapes_of(replace(PLACE, transport="links")) == network
    assert shapes_of(replace(PLACE, transport="network")) == network
    # gridrpc, which says from which size on it gives data memory of its own.
    ours = replace(PLACE, kept_from=32768)
    assert shapes_of(ours) == [Shape(False, "copies")]
    assert shapes_of(replace(ours, transport="links")) == [Shape(False, "network")]


@pytest.mark.parametrize(
    ("runs", "tasks", "taken"),
    [
        (100, 400, 100),
        (100, 500, 80),
        (100, 666, 60),
        # With so few as 59 more is lost than is won.
        (100, 667, 100),
        (3, 40_000, 3),
    ],
)
def test_runs_are_drawn_if_they_have_more_than_40_000_tasks(
    runs: int, tasks: int, taken: int
) -> None:
    given = [replace(_run(tasks=tasks), name=str(number)) for number in range(runs)]
    found = [int(one.name) for one in module._affordable(given)]
    assert len(found) == len(set(found)) == taken
    assert found == sorted(found)
    if taken < runs:
        assert found != list(range(taken))


def test_a_search_begins_on_sixty_small_runs() -> None:
    def chosen(small: int, large: int) -> list[int]:
        tasks = [300] * small + [301] * large
        runs = [replace(_run(tasks=n), name=f"{name}") for name, n in enumerate(tasks)]
        found = module._some(runs)
        assert len({one.name for one in found}) == len(found)
        return [one.situation.tasks for one in found]

    assert chosen(60, 40) == [300] * 60
    assert chosen(70, 40) == [300] * 60
    found = chosen(59, 100)
    assert len(found) == 60
    assert set(found) == {300, 301}
    assert found == sorted(found)
    assert chosen(20, 30) == [300] * 20 + [301] * 30


def test_who_watches_is_reported_of_each_search() -> None:
    reported: list[tuple[int, int]] = []
    count = SearchCount(1, lambda done, planned: reported.append((done, planned)))
    count.more(2)
    count.tell()
    count.done()
    count.done()
    assert reported == [(0, 3), (1, 3), (2, 3)]
    SearchCount(1, None).done()


def test_a_fit_ends_when_all_its_searches_have() -> None:
    runs = _runs(13)
    reported: list[tuple[int, int]] = []
    module.fit(
        runs, shape=Shape(), watch=lambda done, planned: reported.append((done, planned)), starts=2
    )
    done = [one for one, _ in reported]
    assert done == sorted(done)
    # The last is the one that says how sure it is.
    assert reported[-1][0] == reported[-1][1]
    assert all(one < planned for one, planned in reported[:-1])
    # Each search reports more than once.
    assert len(reported) > len(set(reported))
    assert MORE_STARTS > 1


@pytest.mark.parametrize(
    ("value", "reach", "expected", "determined"),
    [
        (0.01, math.log(2.0), (0.005, 0.01, 0.02), True),
        (0.01, math.log(2.49), (0.01 / 2.49, 0.01, 0.0249), True),
        # From then on the runs say at most that it is no larger.
        (0.01, math.log(2.51), (1e-6, 0.01, 0.0251), False),
        # No further than a term may be.
        (0.8, math.log(2.0), (0.4, 0.8, 1.0), True),
        (1.2e-6, math.log(2.0), (1e-6, 1.2e-6, 2.4e-6), True),
        # What has ended at the lower bound is not known to be above it.
        (1.05e-6, math.log(2.0), (1e-6, 1.05e-6, 2.1e-6), False),
        # A tenth of its logarithm is what it has to be above it.
        (1.08e-6, math.log(2.0), (1e-6, 1.08e-6, 2.16e-6), False),
        (1.13e-6, math.log(2.0), (1e-6, 1.13e-6, 2.26e-6), True),
        (1.2, math.log(2.0), (0.6, 1.2, 1.2), True),
    ],
)
def test_a_term_is_determined_if_its_interval_is_narrow(
    value: float, reach: float, expected: tuple[float, float, float], determined: bool
) -> None:
    found = _estimate(TERM, math.log(value), reach)
    assert (found.low, found.value, found.high) == pytest.approx(expected)
    assert found.determined == determined


def test_a_term_at_the_very_bounds_is_not_determined() -> None:
    assert not _estimate(TERM, math.log(TERM.low) + 0.1, math.log(2.0)).determined
    assert not _estimate(TERM, math.log(0.01), math.log(2.5)).determined


class Searched:
    """A shape whose searches end with these costs."""

    def __init__(self, *costs: float) -> None:
        self.shape = Shape()
        self._costs = list(costs)
        self.begins: list[Mapping[str, float]] = []

    def is_as(self, other: Searched, found: object) -> bool:
        del found
        return other._costs == self._costs

    def elsewhere(self, number: int) -> list[dict[str, float]]:
        return [{"elsewhere": 1.0}] * number

    def search(self, begin: Mapping[str, float]) -> SearchEnd:
        self.begins.append(begin)
        cost = self._costs.pop(0)
        return SearchEnd(np.array([cost]), cost)


def test_shapes_are_compared_by_the_best_of_their_searches() -> None:
    shapes = [
        Searched(1.4, 0.6, 2.0),
        Searched(1.0, 0.9, 0.8),
        Searched(1.5, 1.6, 0.5),
        # More than half as much again as the best from the guesses is not searched for longer.
        Searched(1.6),
    ]
    reported: list[tuple[int, int]] = []
    count = SearchCount(1, lambda done, planned: reported.append((done, planned)))
    tried, ends = module._compared(cast(Any, shapes), count, 2, {})
    assert [cost for _, cost in tried] == [1.0, 1.4, 1.5, 1.6]
    assert [found.cost for _, found in ends] == [0.5, 0.6]
    # One for each, and two more for three of them.
    count.tell()
    assert reported == [(0, 11)]


def test_of_a_single_shape_the_best_two_searches_continue() -> None:
    # What says the same of all runs as another is no other shape.
    alike = [Searched(1.0, 0.7, 0.9), Searched(0.7, 0.9)]
    reported: list[tuple[int, int]] = []
    count = SearchCount(1, lambda done, planned: reported.append((done, planned)))
    tried, ends = module._compared(cast(Any, alike), count, 2, {})
    assert len(tried) == 1
    assert [found.cost for _, found in ends] == [0.7, 0.9]
    # It need not be searched for.
    assert reported == [(1, 3)]


def test_shapes_that_cost_the_same_both_continue() -> None:
    shapes = [Searched(1.0, 0.5), Searched(1.0, 0.5), Searched(1.0, 0.6)]
    _, ends = module._compared(cast(Any, shapes), SearchCount(1, None), 1, {})
    assert [found.cost for _, found in ends] == [0.5, 0.5]


def test_the_first_search_of_each_shape_begins_where_an_earlier_fit_has_ended() -> None:
    shapes = [Searched(1.0, 0.5), Searched(1.1, 0.6)]
    module._compared(cast(Any, shapes), SearchCount(1, None), 1, {"submit": 2.0})
    assert [one.begins for one in shapes] == [[{"submit": 2.0}, {"elsewhere": 1.0}]] * 2


@pytest.mark.parametrize(("runs", "times"), [(60, 0), (61, 1)])
def test_searches_continue_with_all_runs_only_if_they_began_with_some(
    runs: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone_on: list[int] = []
    real = TermSearch.with_all

    def noted(self: Any, observations: Sequence[Observation], found: Any) -> Any:
        gone_on.append(len(observations))
        return real(self, observations, found)

    monkeypatch.setattr(TermSearch, "with_all", noted)
    fitted = module.fit(_runs(runs), shape=Shape(), starts=0)
    assert gone_on == [runs] * times
    assert fitted.runs == runs


def test_searches_begin_around_the_guesses() -> None:
    problem = TermSearch(Shape(), PLACE, _runs(13), SearchCount(1, None))
    begins = problem.elsewhere(400)
    assert begins == problem.elsewhere(400)
    for term in problem._terms:
        logarithms = np.log([begin[term.name] / term.guess for begin in begins])
        assert logarithms.mean() == pytest.approx(0, abs=0.2)
        assert logarithms.std() == pytest.approx(1, abs=0.2)


def test_derivatives_are_taken_over_steps_of_a_share_or_of_a_part_of_the_guess() -> None:
    runs = [*_runs(13), _run(2, 4, bytes_in=1e6), _run(2, 8, bytes_in=2e6)]
    problem = TermSearch(Shape(), PLACE, runs, SearchCount(1, None))
    at = np.array([4.0, 0.01] * 7)
    found = problem._jacobian(at, (0.1, 0.05))
    assert found.shape == (15, 4, 14)
    here = problem._residuals(at)
    for column, step in enumerate([0.4, 0.05] * 7):
        there = at.copy()
        there[column] += step
        moved = (problem._residuals(there) - here) / step
        assert found[:, :, column] == pytest.approx(moved, abs=1e-12)
    assert np.abs(found).max() > 0.01


# The command.


@dataclass(frozen=True)
class Stated:
    """Measurements of an engine; only the name is read."""

    name: str
    told: str = "here"


FOUND = ModelSubjects(
    subjects=[Stated("one"), Stated("two"), Stated("one")],  # type: ignore[list-item]
    noun="run",
    left_out=Counter(),
    remedy="",
)


def test_models_are_of_all_engines_or_of_those_asked_for() -> None:
    assert command._chosen(FOUND, ()) is FOUND
    assert [one.name for one in command._chosen(FOUND, ("one",)).subjects] == ["one", "one"]
    assert len(command._chosen(FOUND, ("two", "one")).subjects) == 3
    with pytest.raises(InputError, match="no run of the engine `ray` can be used") as refused:
        command._chosen(FOUND, ("one", "ray"))
    assert "the runs in these folders are of one, two" in str(refused.value)


def test_who_fits_a_model_sees_which_search_continues() -> None:
    reported: list[str] = []
    steps = cast(Steps, SimpleNamespace(begin=reported.append, note=reported.append))
    watch = command._watched(steps, "all runs")
    watch(0, 3)
    watch(2, 3)
    watch(3, 3)
    assert reported == ["to all runs", "search 1 of 3", "search 3 of 3", "search 3 of 3"]
    # Unless it is not wanted, measurements are held out.
    assert ModelParameters().test


def _fitted(
    monkeypatch: pytest.MonkeyPatch,
    *subjects: Fits,
    left_out: int = 0,
    out: Path | None = None,
    as_json: bool = False,
) -> Callable[[], int]:
    """`gridbench model` on measurements of these engines."""
    why = Counter({"it is not complete": left_out} if left_out else {})
    found = ModelSubjects(subjects=subjects, noun="run", left_out=why)  # type: ignore[arg-type]
    kind = SimpleNamespace(read=lambda _: found)
    monkeypatch.setattr("gridbench.model.kind.kind_of", lambda _: kind)
    parameters = ModelParameters(folders=(Path("runs"),), test=False, out=out)
    return lambda: command.fit_models(parameters, Printing(as_json=as_json))


@dataclass(frozen=True)
class Fits:
    """Measurements of an engine, to which a model can be fitted or not."""

    name: str
    enough: bool = True
    count: int = 2

    @property
    def told(self) -> str:
        return f"{self.name} here"

    def fits(self, *, test: bool) -> int:
        assert not test
        return 1

    def fit(self, *, test: bool, fitting: object) -> object:
        assert not test
        del fitting
        if not self.enough:
            raise InputError(f"2 runs of {self.name} are too few")
        return SimpleNamespace(
            document=lambda: Document(
                kind="", title="", heading="", sentences=[f"model of {self.name}"]
            )
        )


def test_a_model_is_fitted_and_shown_for_each_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _fitted(monkeypatch, Fits("one"), Fits("two"), left_out=3)() == 0
    printed = capsys.readouterr()
    assert printed.out == "model of one\nmodel of two\n"
    lines = printed.err.splitlines()
    assert lines[0] == "gridbench: 3 runs left out: it is not complete"
    assert "one here: fitting a model to 2 runs" in lines
    assert not any("too few" in line for line in lines)


def test_of_which_engine_too_little_was_measured_is_reported_beside_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _fitted(monkeypatch, Fits("one", enough=False), Fits("two"))() == 1
    printed = capsys.readouterr()
    assert printed.out == "model of two\n"
    assert "gridbench: error: one here: 2 runs of one are too few" in printed.err


def test_where_no_engine_has_enough_the_command_ends_with_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subjects = [Fits(name, enough=False) for name in ("one", "two", "three")]
    with pytest.raises(InputError, match="2 runs of one are too few"):
        _fitted(monkeypatch, *subjects)()
    reported = capsys.readouterr().err
    assert all(
        f"{name} here: 2 runs of {name} are too few" in reported for name in ("one", "three")
    )


def test_of_a_single_engine_too_little_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="2 runs of one are too few"):
        _fitted(monkeypatch, Fits("one", enough=False))()
    assert "too few" not in capsys.readouterr().err
    with pytest.raises(InputError, match="none of the runs can be used: there are none"):
        _fitted(monkeypatch)()


def test_models_are_saved_and_told_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saved: list[tuple[int, Path]] = []
    monkeypatch.setattr(
        "gridbench.model.saved.save", lambda _, models, path: saved.append((len(models), path))
    )
    monkeypatch.setattr("gridbench.model.saved.document", lambda _, models: {"models": len(models)})
    path = tmp_path / "model.json"
    fit = _fitted(monkeypatch, Fits("one"), Fits("two"), out=path, as_json=True)
    assert fit() == 0
    assert saved == [(2, path)]
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"models": 2}
    assert f"model: {path}" in printed.err.splitlines()
