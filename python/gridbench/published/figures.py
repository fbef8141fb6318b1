"""Published figures as printed, and a recomputed or predicted figure beside each."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gridbench.model.profiles import SourcedFigure

Row = dict[str, str]

BINARY, DECIMAL = 1024, 1000
"""KB in a MB. The sources take 10 KB for 10/1024 MB in some tables, for 10/1000 MB in others."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A number from a table, rounded."""

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
    """The row of a figure in the sources' text."""
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


Verdict = Literal["agrees", "agrees within the inputs", "exception", "differs"]


@dataclass(frozen=True, slots=True)
class RecomputedFigure:
    """One figure, worked out again from its inputs."""

    row: str
    """Which row of its table it is in."""
    quantity: str
    unit: str
    theirs: Printed
    ours: Computed
    exception: str = ""
    """Why it cannot be reproduced, if that is known; else empty."""

    @property
    def difference(self) -> float:
        """Ours less theirs."""
        return self.ours.value - self.theirs.value

    @property
    def verdict(self) -> Verdict:
        """Whether the two agree.

        `agrees`: ours, rounded as theirs is, is the same. `agrees within the inputs`: it would be
        for inputs that are rounded to those that are printed. `exception`: they do not agree,
        and it is known why.
        """
        half = self.theirs.half_unit * (1 + 1e-6)
        if abs(self.difference) <= half:
            return "agrees"
        low, high = self.theirs.value - half, self.theirs.value + half
        if self.ours.low <= high and self.ours.high >= low:
            return "agrees within the inputs"
        return "exception" if self.exception else "differs"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "row": self.row,
            "quantity": self.quantity,
            "unit": self.unit,
            "theirs": self.theirs.value,
            "digits": self.theirs.digits,
            "ours": self.ours.value,
            "difference": self.difference,
            "verdict": self.verdict,
            "reason": self.exception,
        }


@dataclass(frozen=True, slots=True)
class PredictedFigure:
    """A measured figure, what the report expected of it, and what the pipeline model does."""

    row: str
    unit: str
    measured: Printed
    theirs: float | None
    ours: float

    @property
    def error(self) -> float:
        """Ours over measured, less 1."""
        return self.ours / self.measured.value - 1

    @property
    def their_error(self) -> float:
        """Theirs over measured, less 1; NaN if there is none."""
        return math.nan if self.theirs is None else self.theirs / self.measured.value - 1

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "row": self.row,
            "unit": self.unit,
            "measured": self.measured.value,
            "theirs": self.theirs,
            "their_error": None if self.theirs is None else self.their_error,
            "ours": self.ours,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Variant:
    """The same predictions with another choice of parameters that the sources allow."""

    what: str
    mean_error: float
    """Mean of the absolute relative errors."""


@dataclass(frozen=True, slots=True)
class RecomputedTable:
    """A table of figures that follow from others."""

    name: str
    """As one asks for it: the table's number in the report."""
    title: str
    how: str
    """The arithmetic, in a sentence or two."""
    figures: tuple[RecomputedFigure, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "how": self.how,
            "figures": [figure.to_dict() for figure in self.figures],
        }


@dataclass(frozen=True, slots=True)
class PredictedTable:
    """A table of figures that the pipeline model predicts."""

    name: str
    title: str
    how: str
    predictions: tuple[PredictedFigure, ...]
    parameters: tuple[SourcedFigure, ...] = ()
    """What the model was given, with sources."""
    variants: tuple[Variant, ...] = ()
    comparable: bool = True
    """Whether its rows are of one kind, so that a mean of their errors says something."""

    @property
    def compared(self) -> bool:
        """Whether the report has predictions as well, and a mean of their errors says something."""
        return self.comparable and any(one.theirs is not None for one in self.predictions)

    @property
    def mean_error(self) -> float:
        """Mean of the absolute relative errors, ours."""
        return _mean([abs(one.error) for one in self.predictions])

    @property
    def their_mean_error(self) -> float:
        """The same of the report's predictions; NaN if it has none."""
        return _mean([abs(one.their_error) for one in self.predictions if one.theirs is not None])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        theirs = self.their_mean_error if self.compared else None
        return {
            "name": self.name,
            "title": self.title,
            "how": self.how,
            "mean_absolute_error": self.mean_error if self.comparable else None,
            "their_mean_absolute_error": theirs,
            "predictions": [one.to_dict() for one in self.predictions],
            "parameters": [asdict(given) for given in self.parameters],
            "variants": [asdict(variant) for variant in self.variants],
        }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


@dataclass(frozen=True, slots=True)
class DataGridSlides:
    """Of Coherence on 8 data nodes. They are not recomputed: nothing follows from them."""

    update_per_mb: Printed
    """Seconds of 100 updates for each MB of an object; 10 clients."""
    update_constant: Printed
    """Seconds of 100 updates beside that."""
    unloaded: Printed
    """Seconds of 1,000 operations on objects of 1 KB; 1 or 10 clients."""

    def update_time(self, size: float) -> float:
        """Seconds of 100 updates of objects of so many MB."""
        return self.update_per_mb.value * size + self.update_constant.value


FIT_OPERATIONS, UNLOADED_OPERATIONS = 100, 1000
"""Operations of the tasks that the figures are of."""


def data_grid_slides() -> DataGridSlides:
    """As they are printed."""
    found = {row["key"]: Printed(row["value"]) for row in table("data-grid")}
    return DataGridSlides(
        update_per_mb=found["update_time_per_mb"],
        update_constant=found["update_time_offset"],
        unloaded=found["unloaded_time"],
    )
