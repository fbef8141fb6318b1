"""Rates of links: what people write, what they meant, and how rates are shown."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gridbench.errors import InputError
from gridbench.formats import bit_rate
from gridbench.links.options import parse_rate
from gridbench_testbed.links.network import MOST_NODES, Network


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1gbit", 1e9),
        ("100mbit", 1e8),
        ("500kbit", 5e5),
        ("2.5 Gbit/s", 2.5e9),
        (".5gbit", 5e8),
        (" 1GBIT ", 1e9),
        ("64000bit", 64e3),
        ("100gbit", 1e11),
    ],
)
def test_rates(text: str, rate: float) -> None:
    assert parse_rate("--link", text) == rate


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1gb", "`gb` is not a unit of rates\nhint: did you mean `1gbit`"),
        ("100Mbps", "`Mbps` is not a unit of rates\nhint: did you mean `100mbit`"),
        ("10G", "did you mean `10gbit`"),
        ("1parsec", "`parsec` is not a unit of rates\nhint: give a rate such as 1gbit"),
        ("1000", "the unit is missing\nhint: give a rate such as 1gbit"),
        ("fast", "`fast` is not a rate"),
        ("", "`` is not a rate"),
        ("-1gbit", "`-1gbit` is not a rate"),
        ("1e3gbit", "is not a rate"),
        ("nan", "is not a rate"),
        ("١gbit", "is not a rate"),  # a digit that is none of ours
        ("0gbit", "0gbit is not between 10 kbit/s and 1,000 Gbit/s"),
        ("1bit", "1bit is not between"),
        ("1001gbit", "is not between"),
        ("9" * 400 + "gbit", "is not between"),
        ("x" * 100_000, "x...` is not a rate"),
        ("1" + "x" * 100_000, "x...` is not a unit of rates"),
    ],
)
def test_what_is_no_rate(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_rate("--link", text)
    assert str(caught.value).startswith("--link: ")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (1e9, "1 Gbit/s"),
        (868.4e6, "868 Mbit/s"),
        (95.63e6, "95.6 Mbit/s"),
        (2.5e9, "2.5 Gbit/s"),
        (999.9e6, "1 Gbit/s"),
        (1e11, "100 Gbit/s"),
        (64e3, "64 kbit/s"),
        (12.0, "12 bit/s"),
    ],
)
def test_rates_as_they_are_shown(rate: float, text: str) -> None:
    assert bit_rate(rate) == text


@pytest.mark.parametrize("nodes", [0, -1, MOST_NODES + 1, 1.5, "3", True, None])
def test_nodes_that_cannot_be_had(nodes: Any) -> None:
    with pytest.raises(InputError, match="nodes are not possible\nhint: choose from 1 to 250"):
        Network(nodes, 1e9)


@pytest.mark.parametrize(
    "rate", [0, -1e9, 63e3, 101e9, 1e15, math.nan, math.inf, "1gbit", None, True]
)
def test_rates_that_no_link_can_have(rate: Any) -> None:
    said = "cannot be made here\nhint: choose from 64 kbit/s to 100 Gbit/s"
    with pytest.raises(InputError, match=said):
        Network(1, rate)
