"""Numbers as a reader sees them."""

from __future__ import annotations

import math

import pytest

from gridbench.formats import (
    about,
    amount,
    clock,
    duration,
    percent,
    signed_percent,
    size,
    unit_shown,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (12.3e-6, "12.30 µs"), (999.96e-6, "1.000 ms"), (0.99996, "1.000 s"),
        (-0.5, "-500.0 ms"), (12345.6, "12,346 s"), (math.nan, "–"), (math.inf, "–"),
    ],
)  # fmt: skip
def test_a_time_has_four_digits_in_the_unit_that_suits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_an_estimate_claims_no_more_than_it_knows() -> None:
    assert [about(s) for s in (0.2, 89.4, 90, 3700)] == ["1 s", "89 s", "2 min", "62 min"]


def test_a_clock_never_shows_less_than_is_left() -> None:
    assert [clock(s) for s in (0, 6.1, 60, 3723)] == ["0:00", "0:07", "1:00", "1:02:03"]


def test_bytes_and_shares() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1.5 * 2**20, 2**43)] == [
        "0 B", "1,023 B", "1 KB", "1.5 MB", "8,192 GB",
    ]  # fmt: skip
    assert (percent(0.834), percent(0.834, 0), percent(math.nan)) == ("83.4 %", "83 %", "–")
    assert (signed_percent(0.02), signed_percent(-0.02)) == ("+2.0 %", "-2.0 %")
    assert (unit_shown("us"), unit_shown("x"), unit_shown("s")) == ("µs", "×", "s")


def test_bandwidths_and_rates_of_other_things() -> None:
    values = [0.0, 999, 83.5e6, 1.2e9, 3.4e12]
    assert [amount(n, "bytes/s") for n in values] == [
        "0 bytes/s", "999 bytes/s", "83.5 MB/s", "1.20 GB/s", "3,400 GB/s",
    ]  # fmt: skip
    assert (amount(1.5e3, "MB/s"), amount(8740, "operations/s")) == ("1.50 GB/s", "8.74 k/s")
