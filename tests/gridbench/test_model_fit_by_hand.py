"""What the end of a search says of its terms: of residuals and derivatives that are given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gridbench.model.least_squares import SearchCount, SearchEnd, TermSearch
from gridbench.model.observation import Observation, RunTimes, Situation
from gridbench.model.terms import Shape
from synthetic import PLACE

RUN = Observation(
    "a run", PLACE, Situation(cores=1, sleep=np.ones(1), warm=True), RunTimes(2.0, 1.0, 1.0, 0.0)
)
#: The pull to the guess, as an observation of each term.
PULL = 1 / 8**2


def _problem(
    monkeypatch: pytest.MonkeyPatch, residuals: Sequence[float], slopes: Sequence[float]
) -> TermSearch:
    """Of one term, which is half of what is found; each run has one figure."""
    problem = TermSearch(Shape(), PLACE, [RUN], SearchCount(1, None))
    values, derivatives = np.array(residuals), np.array(slopes)
    monkeypatch.setattr(problem, "_residuals", lambda _: values[:, np.newaxis])
    monkeypatch.setattr(
        problem, "_jacobian", lambda at, _: derivatives[:, np.newaxis, np.newaxis] / at
    )
    return problem


def _covariance(problem: TermSearch) -> tuple[float, float]:
    covariance, reach = problem.covariance(SearchEnd(np.array([2.0]), 0.0))
    assert covariance.shape == (1, 1)
    return float(covariance[0, 0]), reach


def test_a_term_is_as_unsure_as_residuals_scatter(monkeypatch: pytest.MonkeyPatch) -> None:
    # Four runs that are a tenth off, each counting by the root of a half; one is taken up by
    # the term itself.
    problem = _problem(monkeypatch, [0.1, -0.1, 0.1, -0.1], [1.0] * 4)
    variance = 0.1**2 * 4 / 3
    found, reach = _covariance(problem)
    assert found == pytest.approx(variance / (4 / math.sqrt(2) + variance * PULL))
    # Of three degrees of freedom 95 % lie within 3.182 deviations, and the interval is 2.5 times as
    # wide.
    assert reach == pytest.approx(2.5 * 3.182446, rel=1e-6)


def test_a_run_that_alone_tells_of_a_term_counts_with_all_of_its_residual(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = _problem(monkeypatch, [0.1, 0.0], [1.0, 0.0])
    weight = 1 / math.sqrt(2)
    variance = weight * 0.1**2 / (weight + 1) * 2
    found, reach = _covariance(problem)
    pulled = weight * 0.1
    assert found == pytest.approx(2 * pulled**2 / (weight + variance * PULL) ** 2)
    assert found > variance / weight
    assert reach == pytest.approx(2.5 * 12.706205, rel=1e-6)


def test_no_fit_is_better_than_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = _covariance(_problem(monkeypatch, [0.0] * 4, [1.0] * 4))
    assert found == pytest.approx(1e-8 / 4)
    # As many terms as runs leave one degree of freedom.
    assert _covariance(_problem(monkeypatch, [0.0], [1.0]))[1] == pytest.approx(2.5 * 12.706205)


def test_the_spread_is_the_usual_difference_of_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(monkeypatch, [], [])
    differences = np.array([[0.1, 9.0], [-0.2, 9.0], [0.4, 9.0]])
    monkeypatch.setattr(problem, "_residuals", lambda _: differences)
    # Half of a normal distribution lies within two thirds of a deviation.
    assert problem.spread(SearchEnd(np.ones(1), 0.0)) == pytest.approx(0.2 / 0.6745)


def test_a_term_is_pulled_to_its_guess_by_an_eighth_of_its_logarithm() -> None:
    problem = TermSearch(Shape(), PLACE, [RUN], SearchCount(1, None))
    at = np.array([1.0, math.e, 0.5, 2.0, 4.0])
    pull = problem._pull(at)
    # As residuals are, in tenths.
    assert pull == pytest.approx(0.1 / 8 * np.log(at))
    derivatives = problem._with_pull(at, (0.1, 0.05))[-5:]
    assert derivatives == pytest.approx(np.diag(0.1 / 8 / at))


def test_a_search_stays_within_what_terms_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = TermSearch(Shape(), PLACE, [RUN], SearchCount(1, None))
    terms = problem._terms
    # The less all terms are the better.
    monkeypatch.setattr(problem, "_residuals", lambda at: 1e4 * at[np.newaxis])
    monkeypatch.setattr(problem, "_jacobian", lambda at, _: 1e4 * np.eye(len(at))[np.newaxis])
    found = problem.values(problem.solve({}, (0.1, 0.05)).at)
    for term in terms:
        assert term.low <= found[term.name] < 2 * term.low
    # It begins within them, wherever it is to begin.
    beyond = ({one.name: one.low / 9 for one in terms}, {one.name: 9 * one.high for one in terms})
    for begin in beyond:
        assert problem.solve(begin, (0.1, 0.05)).at.shape == (len(terms),)


@pytest.mark.parametrize(
    ("costs", "searches", "best"),
    [
        # It continues as long as that takes a hundredth off.
        ((0.5, 0.4999, 0.1), 2, 0.4999),
        ((0.5, 0.4, 0.3, 0.2), 3, 0.3),
        # What is no better than before is not taken.
        ((1.1, 0.1), 1, 1.0),
        ((0.989, 0.988, 0.1), 2, 0.988),
        ((0.99, 0.985, 0.1), 2, 0.985),
    ],
)
def test_a_search_continues_as_long_as_that_gains(
    monkeypatch: pytest.MonkeyPatch, costs: Sequence[float], searches: int, best: float
) -> None:
    problem = _problem(monkeypatch, [0.0], [1.0])
    left = list(costs)

    def search(*_: Any) -> SearchEnd:
        return SearchEnd(np.ones(5), left.pop(0))

    monkeypatch.setattr(problem, "search", search)
    assert problem.settle(SearchEnd(np.ones(5), 1.0)).cost == best
    assert len(costs) - len(left) == searches
