"""Options of a time: seconds, or a number with a unit, in all commands alike."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gridbench.cli import cli
from gridbench.errors import InputError
from gridbench.quantities import SECONDS, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        ("-1", -1.0),
        ("1e-5", 1e-5),
        ("3s", 3.0),
        ("90 ms", 0.09),
        (".5h", 1800.0),
        ("2 hours", 7200.0),
        ("1hour", 3600.0),
        ("3 minutes", 180.0),
        ("1 day", 86400.0),
        ("5 sec", 5.0),
        ("1e3", 1000.0),
        ("1e+3 milliseconds", 1.0),
    ],
)
def test_a_time_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert parse_seconds("--limit", text) == pytest.approx(seconds)
    assert SECONDS.convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "3 parsecs", "nan", "inf", "1_0", "3S", "2 mins s", "1 ss", "1" + "0" * 50]
)
def test_what_is_no_time_is_reported(text: str) -> None:
    with pytest.raises(InputError, match=r"--limit: `.*` is not a time") as caught:
        parse_seconds("--limit", text)
    assert "(ms, s, min, h, d)" in caught.value.remedy


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "--sleep"), ("simulate", "--start-up"), ("scenario", "6", "--limit"),
        ("scenario", "6", "--case-limit"), ("run", "setup.xml", "--start-timeout"),
        ("sync", "--timeout"), ("data", "--warm"), ("data", "crossover", "--case-limit"),
    ],
)  # fmt: skip
def test_commands_take_such_times(command: tuple[str, ...]) -> None:
    reported = CliRunner().invoke(cli, [*command, "soon"]).exception
    assert str(reported).startswith(f"{command[-1]}: `soon` is not a time")
