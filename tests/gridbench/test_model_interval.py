"""How wide the interval of a prediction is."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from gridbench.model.fit import PipelineFit
from gridbench.model.least_squares import TermEstimate
from gridbench.model.model import PipelineModel, TotalPrediction
from gridbench.model.observation import Situation, range_of
from gridbench.model.terms import terms_of
from synthetic import COPIES, PLACE, TRUE, situations

SITUATION = Situation(cores=4, sleep=np.full(8, 0.5))
NINETY = 1.645
"""Standard deviations to either side within which 90 % of a normal distribution lie."""


def predicted(
    *,
    spread: float,
    values: Mapping[str, float] = TRUE,
    unsure: Mapping[str, float] | None = None,
    least: float = 0.0,
    disturbed: int = 0,
) -> TotalPrediction:
    """Of a model whose terms are off by `unsure`, as standard deviations of their logarithms; or
    whose variances are at least so large."""
    terms = terms_of(COPIES)
    estimates = tuple(
        TermEstimate(term, values[term.name], values[term.name], values[term.name], True)
        for term in terms
    )
    deviations = [(unsure or {}).get(term.name, 0.0) for term in terms]
    covariance = np.diag(np.square(deviations) + least)
    fit = PipelineFit(PLACE, COPIES, estimates, 30, 30, covariance, spread, ())
    return PipelineModel(fit, range_of(situations()), disturbed=disturbed).predict(SITUATION)


def factors(found: TotalPrediction) -> tuple[float, float]:
    """From the lower end of the overhead to what is predicted, and from that to the upper."""
    return found.overhead / (found.low - found.ideal), (found.high - found.ideal) / found.overhead


@pytest.mark.parametrize(
    ("spread", "error"), [(0.1, 0.1), (0.5, 0.5), (0.0, 0.02)], ids=["some", "much", "none"]
)
def test_nine_of_ten_runs_lie_in_the_interval(spread: float, error: float) -> None:
    expected = math.exp(NINETY * error)
    assert factors(predicted(spread=spread)) == pytest.approx((expected, expected))


def test_disturbed_runs_make_it_wide() -> None:
    quiet = predicted(spread=0.02)
    all_of_them = predicted(spread=0.02, disturbed=30)
    # On a machine that stays as busy the work itself can take twice as long.
    assert all_of_them.high > 2 * all_of_them.ideal
    assert all_of_them.high - all_of_them.low > 20 * (quiet.high - quiet.low)
    assert quiet.high < predicted(spread=0.02, disturbed=3).high < all_of_them.high
    assert all_of_them.low >= all_of_them.ideal


def test_a_variance_that_rounding_has_made_negative_is_none() -> None:
    expected = math.exp(NINETY * 0.1)
    assert factors(predicted(spread=0.1, least=-1e-12)) == pytest.approx((expected, expected))


def test_that_of_a_term_which_is_all_of_the_overhead_is_added_as_variances_are() -> None:
    alone = {**dict.fromkeys(TRUE, 0.0), "start.constant": 0.3}
    found = predicted(spread=0.3, values=alone, unsure={"start.constant": 0.4})
    assert found.overhead == pytest.approx(0.3)
    # Derivatives are taken from 1.35 times less to 1.35 times more, which is not quite straight.
    straight = (1.35 - 1 / 1.35) / (2 * math.log(1.35))
    expected = math.exp(NINETY * math.hypot(0.3, 0.4 * straight))
    assert factors(found) == pytest.approx((expected, expected))
