"""Count numbers on the command line."""

from __future__ import annotations

import pytest

from gridbench.errors import InputError
from gridbench.quantities import parse_count


@pytest.mark.parametrize(
    ("text", "count"),
    [("1", 1), ("007", 7), ("1e6", 10**6), ("2.5E3", 2500), ("1e+2", 100), (" 12 ", 12)],
)
def test_a_count_has_digits_or_an_exponent(text: str, count: int) -> None:
    assert parse_count("--cores", text, 1, 10**6) == count


def test_digits_are_exact() -> None:
    assert parse_count("--seed", str(2**63 - 1), 0, 2**63) == 2**63 - 1


@pytest.mark.parametrize(
    "text",
    ["", "0", "x", "1.5", "1.5e0", "1e-3", "1e7", "1e99", "-3", "1_000", "²", "nan", "9" * 500],
)
def test_other_text_is_refused(text: str) -> None:
    message = r"--cores: `.*` is not a whole number from 1 to 1,000,000"
    with pytest.raises(InputError, match=message) as caught:
        parse_count("--cores", text, 1, 10**6)
    assert caught.value.remedy == "give a number such as 1000, or 1e3"
