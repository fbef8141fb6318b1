"""Histograms, medians and what is claimed of them, against cases worked out by hand."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.statistics.claims import exceeds_noise
from gridbench.statistics.interval import bootstrap_interval, interval_of_median
from gridbench.statistics.series import Histogram, Series, noise_between, paired_ratios

_times = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=200)


@given(_times, st.sampled_from([50.0, 90.0, 99.0, 99.9]))
def test_percentiles_are_within_the_width_of_a_bucket(times: list[float], percent: float) -> None:
    exact = sorted(times)[max(0, math.ceil(len(times) * percent / 100) - 1)]
    assert Histogram.of(times).percentile(percent) == pytest.approx(exact, rel=0.0051)


@given(_times, _times)
def test_merged_histograms_are_those_of_all_values(one: list[float], other: list[float]) -> None:
    merged = Histogram.of(one).merged(Histogram.of(other))
    assert merged.count == len(one) + len(other)
    assert merged.to_record() == Histogram.of(one + other).to_record()


def test_a_histogram_survives_its_record() -> None:
    times = [random.Random(1).lognormvariate(0, 2) for _ in range(1000)]
    again = Histogram.from_record(Histogram.of(times).to_record())
    assert again.percentile(99) == Histogram.of(times).percentile(99)
    with pytest.raises(ValueError, match="empty"):
        Histogram().percentile(50)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(2, None), (3, (1, 3)), (5, (1, 5)), (6, (1, 6)), (9, (2, 8)), (10, (2, 9)), (15, (4, 12))],
)
def test_intervals_of_medians_are_those_of_the_tables(
    count: int, expected: tuple[float, float] | None
) -> None:
    values = [float(number) for number in range(1, count + 1)]
    random.Random(2).shuffle(values)
    assert interval_of_median(values) == expected


def test_the_interval_of_a_median_holds_it_as_often_as_it_says() -> None:
    draw = random.Random(3)
    held = 0
    for _ in range(2000):
        low, high = interval_of_median([draw.gauss(5, 1) for _ in range(9)]) or (9, 9)
        held += low <= 5 <= high
    assert held / 2000 == pytest.approx(0.961, abs=0.02)


def test_ratios_pair_the_rounds_that_both_have() -> None:
    assert paired_ratios(Series({0: 1.0, 1: 10.0, 2: 3.0}), Series({1: 20.0, 0: 2.0})) == [0.5, 0.5]
    assert paired_ratios(Series({0: 1.0}), Series({})) == []
    # A peer that was measured in other rounds only is still compared, by its median.
    assert paired_ratios(Series({3: 1.0}), Series({0: 4.0, 1: 2.0, 2: 9.0})) == [0.25]
    assert paired_ratios(Series({0: 1.0}), Series({0: 0.0})) == []


def test_bootstrap_intervals_hold_the_median_and_shrink() -> None:
    draw = random.Random(4)
    few = [draw.gauss(1, 0.1) for _ in range(5)]
    many = [draw.gauss(1, 0.1) for _ in range(100)]
    widths = []
    for values in (few, many):
        interval = bootstrap_interval(values)
        assert interval is not None
        assert interval[0] <= statistics.median(values) <= interval[1]
        assert interval == bootstrap_interval(values)
        widths.append(interval[1] - interval[0])
    assert widths[1] < widths[0]
    assert bootstrap_interval([1.0]) is None


def test_noise_is_what_lies_between_equals() -> None:
    assert noise_between(Series({0: 1.0, 1: 2.0}), Series({0: 1.0, 1: 2.0})) == 1
    # Every round is apart, though the medians agree.
    assert noise_between(Series({0: 1.0, 1: 2.0}), Series({0: 2.0, 1: 1.0})) == 2
    assert noise_between(Series({0: 1.0, 1: 1.0, 2: 1.0}), Series({0: 1.0, 1: 3.0, 2: 1.0})) == 1
    assert noise_between(Series({0: 1.0}), Series({1: 5.0})) == 1


@pytest.mark.parametrize(
    ("ratios", "noise", "expected"),
    [
        ((0.4, 0.5, 0.6), 1.1, True),
        ((1.5, 2.0, 2.5), 1.1, True),
        ((0.94, 0.95, 0.96), 1.1, False),
        ((0.4, 0.5, 1.1), 1.1, False),
        ((0.5,), 1.1, False),
        ((0.4, 0.5, 0.6), 2.5, False),
    ],
)
def test_no_claim_is_made_within_noise_or_across_equality(
    ratios: tuple[float, ...], noise: float, expected: bool
) -> None:
    assert exceeds_noise(ratios, noise) is expected
