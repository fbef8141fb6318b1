"""Numbers as a reader sees them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gridbench.formats import (
    NOTHING,
    about,
    amount,
    as_given,
    between,
    bit_rate,
    clock,
    digits,
    duration,
    fixed,
    percent,
    plain,
    processors,
    rough,
    rounded,
    share_given,
    signed_percent,
    size,
    unit_shown,
    whole,
)
from running import REPOSITORY


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


def test_the_ends_of_an_interval_can_be_told_apart() -> None:
    assert between(22.0, 30.0) == "22 s to 30 s"
    assert between(0.99, 1.2) == "990 ms to 1.2 s"
    assert between(30.0, 30.2) == "30.0 s to 30.2 s"
    assert between(30.0, 30.02) == "30.00 s to 30.02 s"
    assert between(30.0, 30.001) == "30 s, within 0.1 %"
    assert between(12.0, 12.0) == NOTHING


def test_what_is_given_is_shown_with_its_own_digits() -> None:
    assert [as_given(s) for s in (0.0, 0.5, 30.0, 1200.0, 1e6)] == [
        "0 s", "0.5 s", "30 s", "1,200 s", "1,000,000 s",
    ]  # fmt: skip
    assert (as_given(0.479117), as_given(1.234567e-9, "s/byte")) == (
        "0.479117 s",
        "1.23457e-09 s/byte",
    )
    assert (as_given(100.0, ""), plain(2.5), plain(1234.5)) == ("100", "2.5", "1,230")


# The rule.

RULE = (
    "Numbers have three digits at most, measured times and sizes four, expected times two, or as"
    " many as tell the ends of their interval apart, up to four. Digits before the point are all"
    " shown of measured times and sizes."
)


def significant(text: str) -> int:
    """Digits of the number that a text begins with; zeros at either end of it are none."""
    number = text.split(" ", maxsplit=1)[0].replace(",", "").lstrip("-")
    whole, _, rest = number.partition(".")
    return len((whole + rest).lstrip("0")) if rest else len(whole.strip("0"))


@pytest.mark.parametrize(
    ("show", "most"),
    [
        (duration, 4),
        (size, 4),
        (rough, 2),
        (plain, 3),
        (bit_rate, 3),
        (digits, 3),
        (lambda value: amount(value, "s"), 3),
        (lambda value: amount(value, "tasks/s"), 3),
        (lambda value: between(value, 1.00012 * value).split(" to ")[-1], 4),
    ],
)
def test_numbers_have_as_many_digits_as_the_rule_says(
    show: Callable[[float], str], most: int
) -> None:
    shown = [show(mantissa * 10.0**power) for mantissa in (1, 1.2345678, 9.87654321, 9.9996)
             for power in range(-4, 4)]  # fmt: skip
    assert max(map(significant, shown)) == most
    page = (REPOSITORY / "docs" / "style.md").read_text(encoding="utf-8")
    assert RULE in " ".join(page.split())


def test_all_digits_before_the_point_are_shown_of_times_and_sizes() -> None:
    assert (duration(123456.7), size(123456 * 2.0**30)) == ("123,457 s", "123,456 GB")


# Who may say how many digits numbers have.

PYTHON = REPOSITORY / "python"
GRIDBENCH = PYTHON / "gridbench"
FORMATS = "formats.py"
#: What programs read has a format of its own, which no reader's wishes may change.
FOR_PROGRAMS = {
    "advise/runs.py": "times of tasks in a file, to the microsecond",
    "benchmarks/curves.py": "coordinates in an SVG, and its powers of ten",
    "benchmarks/hosts_workers.py": "an option in a URL",
    "benchmarks/sync_instants.py": "an argument of sleep",
    "micro/workloads.py": "the name of a case, by which its values are found",
    "pages/svg.py": "coordinates and styles in an SVG",
    "report/charts.py": "coordinates of plots",
    "scenario/grids.py": "the name of a folder",
    "scenario/plots.py": "the name of a plot in a page",
    "schema.py": "a default as users would type it",
    "simulate/command.py": "options of a case of many, to be read as if they were typed",
    "simulate/timeline.py": "the name of a file",
    "tasklog.py": "a stamp as it is in the log, to be found there",
    "tasklog_writer.py": "the task log",
    "workload/workload.py": "a list of times, and the command that makes it again",
}


def benchmarks() -> list[Path]:
    """Sources of the benchmarks, without the programs that make pages of docs/."""
    paths = (PYTHON / "benchmarks").rglob("*.py")
    return [path for path in paths if path.parent.name != "pages"]


def own_digits(source: str) -> list[str]:
    """Formats in a program that say how many digits a number has, such as `.3g` or `,.0f`, in
    f-strings, in texts for `str.format`, and for `%`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FormattedValue(format_spec=ast.JoinedStr() as spec):
                written = ast.unparse(spec)[2:-1]
                found += [written] if re.search(r"[eEfFgGn%]$", written) else []
            case ast.Constant(value=str(text)):
                found += re.findall(r"\{[^{}]*:[^{}]*[eEfFgGn%]\}|%[-+ 0-9]*\.\d+[efg]", text)
    return found


def test_formats_are_found_however_they_are_written() -> None:
    found = own_digits("f'{a:.3g} {b:,} {c:>9} {d:,.{n}f} {e:g}', '{:.1f}'.format(x), '%.2f' % y")
    assert sorted(found) == ["%.2f", ",.{n}f", ".3g", "g", "{:.1f}"]


def test_only_one_module_says_how_many_digits_numbers_have() -> None:
    own = {
        path.relative_to(folder).as_posix(): found
        for folder, paths in ((GRIDBENCH, GRIDBENCH.rglob("*.py")), (PYTHON, benchmarks()))
        for path in paths
        if (found := own_digits(path.read_text(encoding="utf-8")))
    }
    assert own.pop(FORMATS)
    assert {name: own[name] for name in own.keys() - FOR_PROGRAMS.keys()} == {}
    # Those that need no exception have none.
    assert FOR_PROGRAMS.keys() - own.keys() == set()


def test_numbers_of_a_column_have_the_same_decimals() -> None:
    assert [fixed(n, 2) for n in (0.954, 1.05, 1234.5, -0.001)] == [
        "0.95",
        "1.05",
        "1,234.50",
        "0.00",
    ]
    assert [fixed(n, 1, signed=True) for n in (0.31, -0.31, 0.04)] == ["+0.3", "-0.3", "0.0"]
    assert (processors(0.256), whole(12345.0), fixed(math.nan, 2)) == ("0.26", "12,345", NOTHING)
    assert (share_given(0.5), share_given(10.0)) == ("50%", "1000%")
    assert (rounded(12345.0), rounded(0.012344, 4)) == (12300, 0.01234)


def test_what_is_refused_is_shown_as_it_is() -> None:
    assert [as_given(n, "") for n in (math.nan, math.inf, 1e300)] == ["nan", "inf", "1e+300"]
