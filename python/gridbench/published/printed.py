"""The figures as the sources print them, with the digits they print."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import product

Row = dict[str, str]

BINARY, DECIMAL = 1024, 1000
"""KB in a MB. The sources take 10 KB for 10/1024 MB in some tables, for 10/1000 MB in others."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as it stands in a table: what was rounded off is not known."""

    text: str

    @property
    def value(self) -> float:
        """As a number."""
        return float(self.text)

    @property
    def digits(self) -> int:
        """Digits after the point."""
        return len(self.text.partition(".")[2])

    @property
    def half_unit(self) -> float:
        """The largest difference that rounding makes: half of a unit in the last digit."""
        return 0.5 * 10.0**-self.digits


@dataclass(frozen=True, slots=True)
class Computed:
    """A number worked out from printed ones."""

    value: float
    low: float
    """Smallest and largest value that it can have, as the inputs are rounded."""
    high: float

    @classmethod
    def exactly(cls, value: float) -> Computed:
        """Of inputs that are exact, or have many more digits than what follows from them."""
        return cls(value, value, value)


def computed(function: Callable[..., float], *inputs: Printed) -> Computed:
    """The value of a function that rises or falls with each of its inputs, and its range."""
    ends = [(given.value - given.half_unit, given.value + given.half_unit) for given in inputs]
    corners = [function(*corner) for corner in product(*ends)]
    return Computed(function(*(given.value for given in inputs)), min(corners), max(corners))


@cache
def table(name: str) -> tuple[Row, ...]:
    """The rows of a table of the report, such as `5.5.1-1`, as they are printed."""
    path = resources.files("gridbench.published").joinpath("data", f"{name}.csv")
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(csv.DictReader(line for line in lines if not line.startswith("#")))


def figure_in_text(key: str, system: str = "") -> Row:
    """The row of a figure that stands in the sources' text."""
    return next(r for r in table("text") if r["key"] == key and r["system"] in (system, ""))


def tasks_of(row: Row) -> str:
    """The number of tasks of a row, in words."""
    return "1 task" if row["tasks"] == "1" else f"{row['tasks']} tasks"


def without_data(rows: Iterable[Row], column: str) -> dict[str, Printed]:
    """The column's values at 0 KB, by number of tasks if the table has them, else by nothing."""
    return {row.get("tasks", ""): Printed(row[column]) for row in rows if row["size"] == "0 KB"}


def megabytes(size: str, kilobytes_in_one: int) -> float:
    """A size such as `100 KB` or `1 MB`, in MB."""
    number, unit = size.split()
    return float(number) / (1 if unit == "MB" else kilobytes_in_one)
